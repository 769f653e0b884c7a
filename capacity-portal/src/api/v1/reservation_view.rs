//! A reservation as its owner sees it.

use crate::api::asked;
use crate::api::ops::moves::switch;
use api_types::moves::StopSwitch;
use broker::{Labels, RequestState, ReservationCard, Rollout, State, Valued};
use chrono::{DateTime, Utc};
use control::standing::{Part, Parts, Standing, state_of};
use fleet::{Name, ReservationKind, Rru};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::ToSchema;

/// What is so of a reservation, beside its state.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Condition {
    /// Of a closed list: `promise_kept`, `servers_arriving`, `servers_leaving`, `servers_out_of_use`,
    /// `request_open`.
    condition: &'static str,
    holds: bool,
    /// For people.
    detail: String,
}

/// How far a change of the host profile is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Rollout)]
pub(in crate::api) struct RolloutView {
    /// Servers that had another profile when it began.
    servers: i64,
    /// Servers that it has reached, or that have left the reservation.
    done: i64,
    /// Servers whose hosts refused to be reconfigured: they are not asked again before the profile changes.
    refused: i64,
    /// The same for people: `120 of 500`.
    progress: String,
    /// Who paused it, and why: no server begins to be reconfigured. Null: it goes on.
    paused: Option<StopSwitch>,
}

impl From<Rollout> for RolloutView {
    fn from(of: Rollout) -> RolloutView {
        RolloutView {
            servers: of.servers,
            done: of.done(),
            refused: of.refused,
            progress: format!("{} of {}", of.done(), of.servers),
            paused: of.paused.map(switch),
        }
    }
}

/// Servers, and what they are worth.
#[derive(ToSchema)]
#[schema(as = ReservationPart)]
#[expect(dead_code, reason = "it describes `Part`, which knows no OpenAPI")]
struct PartSchema {
    servers: usize,
    rru: f64,
}

/// A reservation: what is promised, what there is of it, and what is asked about it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reservation)]
pub(super) struct ReservationView {
    #[schema(value_type = String)]
    reservation: Name,
    #[schema(value_type = String)]
    owner: Name,
    #[schema(schema_with = super::reservations::kinds)]
    kind: &'static str,
    #[schema(schema_with = asked::state::<RequestState>)]
    state: &'static str,
    conditions: Vec<Condition>,
    labels: Labels,
    /// What was asked for last, in RRU: more than is promised where a part was granted.
    requested_rru: f64,
    /// C: what is promised, in RRU; of a shared buffer, servers.
    promised_rru: f64,
    /// What of it is guaranteed now by the servers it owns that are not out of use, in RRU.
    granted_rru: f64,
    /// What is left of it after the loss of its worst MSB, in RRU.
    left_after_worst_msb_rru: f64,
    /// The MSB that has most of it.
    #[schema(value_type = Option<String>)]
    worst_msb: Option<Name>,
    /// Its embedded buffer: what is in that MSB, in RRU; null: it has none.
    embedded_buffer_rru: Option<f64>,
    /// Owned and not out of use.
    #[schema(value_type = PartSchema)]
    owned: Part,
    /// Owned and out of use.
    #[schema(value_type = PartSchema)]
    out_of_use: Part,
    /// On their way to it.
    #[schema(value_type = PartSchema)]
    arriving: Part,
    /// On their way from it.
    #[schema(value_type = PartSchema)]
    leaving: Part,
    #[schema(value_type = BTreeMap<String, PartSchema>)]
    by_hardware_type: Parts,
    #[schema(value_type = BTreeMap<String, PartSchema>)]
    by_msb: Parts,
    #[schema(value_type = BTreeMap<String, PartSchema>)]
    by_datacenter: Parts,
    msb_buffer: bool,
    priority: i32,
    msb_alpha: Option<f64>,
    rack_alpha: Option<f64>,
    affinity_theta: Option<f64>,
    #[schema(value_type = Option<String>)]
    host_profile: Option<Name>,
    /// How far the last change of its host profile is; null: it never changed.
    rollout: Option<RolloutView>,
    /// What one server of each eligible hardware type is worth.
    #[serde(rename = "rru", serialize_with = "rru_of")]
    #[schema(value_type = BTreeMap<String, f64>)]
    valued: Arc<Valued>,
    #[serde(serialize_with = "affinity_of")]
    #[schema(value_type = BTreeMap<String, f64>)]
    affinity: Arc<Valued>,
    /// The only datacenters it may have servers in; empty: all.
    #[serde(serialize_with = "allowed_of")]
    #[schema(value_type = Vec<String>)]
    allowed_datacenters: Arc<Valued>,
    /// How many replicas there are of what it stores; null: no replica rule.
    replicas: Option<u32>,
    /// How many of them one MSB may hold.
    replicas_per_msb: Option<u32>,
    #[schema(value_type = Option<Object>)]
    churn_contract: Option<Value>,
    promise_version: i32,
    promised_at: DateTime<Utc>,
    /// When it ends by itself.
    ends_at: Option<DateTime<Utc>>,
    /// The request it is promised by; null: it was loaded from a snapshot.
    request: Option<String>,
    /// The request that waits for its answer.
    open_request: Option<String>,
    /// What the ETag says.
    version: String,
}

impl ReservationView {
    /// `standing` may be a little older than what is promised.
    pub(super) fn new(card: ReservationCard, standing: Option<&Standing>) -> ReservationView {
        let none = Standing::default();
        let guaranteed = card.kind == ReservationKind::Guaranteed;
        let state = match card.kind {
            ReservationKind::Guaranteed => {
                state_of(card.capacity, card.in_force.as_ref(), standing)
            }
            ReservationKind::SharedBuffer | ReservationKind::Elastic => RequestState::Granted,
        };
        let has = standing.unwrap_or(&none);
        let worst = has.worst_msb.as_ref();
        let in_worst = worst.map_or(Rru::ZERO, |(_, rru)| *rru);
        let requested = card.in_force.and_then(|of| of.asked).unwrap_or(card.capacity);
        let contract = card.contract.as_ref().map(|of| {
            json!({
                "in_use_percent": f64::from(of.in_use_micro) / 10_000.0,
                "window_seconds": of.window.as_secs(), "zone": of.zone,
                "quiet": of.quiet.iter().map(ToString::to_string).collect::<Vec<_>>(),
            })
        });
        ReservationView {
            conditions: if guaranteed { conditions(&card, has) } else { Vec::new() },
            reservation: card.reservation,
            owner: card.owner,
            kind: card.kind.as_str(),
            state: state.as_str(),
            labels: card.labels,
            requested_rru: requested.to_f64(),
            promised_rru: card.capacity.to_f64(),
            granted_rru: has.guaranteed.min(card.capacity).to_f64(),
            left_after_worst_msb_rru: (has.owned.rru - in_worst).to_f64(),
            worst_msb: worst.map(|(msb, _)| msb.clone()),
            embedded_buffer_rru: card.msb_buffer.then(|| in_worst.to_f64()),
            owned: has.owned,
            out_of_use: has.out_of_use,
            arriving: has.arriving,
            leaving: has.leaving,
            by_hardware_type: has.by_type.clone(),
            by_msb: has.by_msb.clone(),
            by_datacenter: has.by_datacenter.clone(),
            msb_buffer: card.msb_buffer,
            priority: card.priority,
            msb_alpha: card.msb_alpha,
            rack_alpha: card.rack_alpha,
            affinity_theta: card.affinity_theta,
            host_profile: card.host_profile,
            rollout: card.rollout.map(RolloutView::from),
            affinity: card.valued.clone(),
            allowed_datacenters: card.valued.clone(),
            replicas: card.replica_rule.map(|rule| rule.replicas),
            replicas_per_msb: card.replica_rule.map(|rule| rule.per_msb),
            valued: card.valued,
            churn_contract: contract,
            promise_version: card.promise_version,
            promised_at: card.promised_at,
            ends_at: card.in_force.and_then(|of| of.ends_at),
            request: card.in_force.map(|of| of.request.to_string()),
            open_request: card.open.map(|(id, _)| id.to_string()),
            version: card.version,
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.reservation
    }

    /// Whether it stands so.
    pub(super) fn is_in(&self, state: RequestState) -> bool {
        self.state == state.as_str()
    }
}

fn rru_of<S: Serializer>(of: &Arc<Valued>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(of.rru.iter().map(|(name, amount)| (name, amount.to_f64())))
}

fn affinity_of<S: Serializer>(of: &Arc<Valued>, to: S) -> Result<S::Ok, S::Error> {
    of.affinity.serialize(to)
}

fn allowed_of<S: Serializer>(of: &Arc<Valued>, to: S) -> Result<S::Ok, S::Error> {
    of.allowed_datacenters.serialize(to)
}

fn conditions(card: &ReservationCard, has: &Standing) -> Vec<Condition> {
    let promised = card.capacity;
    let counted = |part: Part| format!("{} servers, {} RRU", part.servers, part.rru);
    let mut all = vec![Condition {
        condition: "promise_kept",
        holds: has.guaranteed >= promised,
        detail: format!(
            "{} RRU of {promised} RRU are guaranteed now",
            has.guaranteed.min(promised)
        ),
    }];
    for (condition, part) in [
        ("servers_arriving", has.arriving),
        ("servers_leaving", has.leaving),
        ("servers_out_of_use", has.out_of_use),
    ] {
        all.push(Condition { condition, holds: part.servers > 0, detail: counted(part) });
    }
    let detail = card.open.map_or_else(
        || "nothing that was asked waits for its answer".to_owned(),
        |(id, state)| format!("request {id} is {}", state.as_str()),
    );
    all.push(Condition { condition: "request_open", holds: card.open.is_some(), detail });
    all
}

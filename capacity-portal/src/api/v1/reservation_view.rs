//! The response type of a reservation.

use crate::api::views::RolloutView;
use crate::http::schema;
use broker::{Labels, PromiseTerms, RequestState, ReservationSummary, State as _};
use chrono::{DateTime, Utc};
use control::reservation_status::{CountsBy, ReservationStatus, ServerCount, state_of};
use fleet::{
    DatacenterName, HardwareTypeName, MsbName, Name, OwnerName, ReservationKind, ReservationName,
    Rru,
};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::ToSchema;

/// A condition of a reservation, beside its state.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Condition {
    /// One of `promise_kept`, `servers_arriving`, `servers_leaving`, `servers_out_of_use`, `request_open`.
    condition: &'static str,
    holds: bool,
    /// Details as text.
    detail: String,
}

/// A number of servers and their RRU.
#[derive(ToSchema)]
#[schema(as = ReservationPart)]
#[expect(dead_code, reason = "schema of `ServerCount`, whose crate does not use OpenAPI")]
struct PartSchema {
    servers: usize,
    rru: f64,
}

/// Names of kinds.
pub(super) fn kinds() -> utoipa::openapi::Schema {
    let all =
        [ReservationKind::Guaranteed, ReservationKind::SharedBuffer, ReservationKind::Elastic];
    schema::words(all.map(ReservationKind::as_str))
}

/// A reservation: promised and owned capacity, and open requests.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reservation)]
pub(super) struct ReservationView {
    #[schema(value_type = String)]
    reservation: ReservationName,
    #[schema(value_type = String)]
    owner: OwnerName,
    #[schema(schema_with = kinds)]
    kind: &'static str,
    #[schema(schema_with = schema::state::<RequestState>)]
    state: &'static str,
    conditions: Vec<Condition>,
    labels: Labels,
    /// Capacity of the last request, in RRU: more than promised if only a part was granted.
    requested_rru: f64,
    /// C: promised capacity in RRU; of a shared buffer, servers.
    promised_rru: f64,
    /// RRU of the promise that its servers in service guarantee now.
    granted_rru: f64,
    /// RRU left after the loss of its largest MSB.
    left_after_worst_msb_rru: f64,
    /// The MSB with the largest share of it.
    #[schema(value_type = Option<String>)]
    worst_msb: Option<MsbName>,
    /// Embedded buffer: RRU in that MSB; null: none.
    embedded_buffer_rru: Option<f64>,
    /// Owned and in service.
    #[schema(value_type = PartSchema)]
    owned: ServerCount,
    /// Owned and out of service.
    #[schema(value_type = PartSchema)]
    out_of_use: ServerCount,
    /// Pending moves to it.
    #[schema(value_type = PartSchema)]
    arriving: ServerCount,
    /// Pending moves from it.
    #[schema(value_type = PartSchema)]
    leaving: ServerCount,
    #[schema(value_type = BTreeMap<String, PartSchema>)]
    by_hardware_type: CountsBy<HardwareTypeName>,
    #[schema(value_type = BTreeMap<String, PartSchema>)]
    by_msb: CountsBy<MsbName>,
    #[schema(value_type = BTreeMap<String, PartSchema>)]
    by_datacenter: CountsBy<DatacenterName>,
    msb_buffer: bool,
    priority: i32,
    msb_alpha: Option<f64>,
    rack_alpha: Option<f64>,
    affinity_theta: Option<f64>,
    #[schema(value_type = Option<String>)]
    host_profile: Option<Name>,
    /// Progress of the last change of its host profile; null: never changed.
    rollout: Option<RolloutView>,
    /// RRU of one server of each eligible hardware type.
    #[serde(rename = "rru", serialize_with = "rru_of")]
    #[schema(value_type = BTreeMap<String, f64>)]
    terms: Arc<PromiseTerms>,
    #[serde(serialize_with = "affinity_of")]
    #[schema(value_type = BTreeMap<String, f64>)]
    affinity: Arc<PromiseTerms>,
    /// The only datacenters of its servers; empty: all.
    #[serde(serialize_with = "allowed_of")]
    #[schema(value_type = Vec<String>)]
    allowed_datacenters: Arc<PromiseTerms>,
    /// Replicas of its data; null: no replica rule.
    replicas: Option<u32>,
    /// Replicas that one MSB may hold.
    replicas_per_msb: Option<u32>,
    #[schema(value_type = Option<Object>)]
    churn_contract: Option<Value>,
    promise_version: i32,
    promised_at: DateTime<Utc>,
    /// When it ends without a request.
    ends_at: Option<DateTime<Utc>>,
    /// The request that was granted; null: loaded from a snapshot.
    request: Option<String>,
    /// The request that waits for its answer.
    open_request: Option<String>,
    /// Its ETag.
    version: String,
}

impl ReservationView {
    /// `status` may be a few seconds older than `card`.
    pub(super) fn new(
        card: ReservationSummary,
        status: Option<&ReservationStatus>,
    ) -> ReservationView {
        let none = ReservationStatus::default();
        let guaranteed = card.kind == ReservationKind::Guaranteed;
        let state = match card.kind {
            ReservationKind::Guaranteed => state_of(card.capacity, card.in_force.as_ref(), status),
            ReservationKind::SharedBuffer | ReservationKind::Elastic => RequestState::Granted,
        };
        let has = status.unwrap_or(&none);
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
            affinity: card.terms.clone(),
            allowed_datacenters: card.terms.clone(),
            replicas: card.replica_rule.map(|rule| rule.replicas),
            replicas_per_msb: card.replica_rule.map(|rule| rule.per_msb),
            terms: card.terms,
            churn_contract: contract,
            promise_version: card.promise_version,
            promised_at: card.promised_at,
            ends_at: card.in_force.and_then(|of| of.ends_at),
            request: card.in_force.map(|of| of.request.to_string()),
            open_request: card.open.map(|(id, _)| id.to_string()),
            version: card.version,
        }
    }

    /// Name of the reservation.
    pub(super) fn name(&self) -> &str {
        &self.reservation
    }

    /// Whether it has this state.
    pub(super) fn is_in(&self, state: RequestState) -> bool {
        self.state == state.as_str()
    }
}

fn rru_of<S: Serializer>(of: &Arc<PromiseTerms>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(of.rru.iter().map(|(name, amount)| (name, amount.to_f64())))
}

fn affinity_of<S: Serializer>(of: &Arc<PromiseTerms>, to: S) -> Result<S::Ok, S::Error> {
    of.affinity.serialize(to)
}

fn allowed_of<S: Serializer>(of: &Arc<PromiseTerms>, to: S) -> Result<S::Ok, S::Error> {
    of.allowed_datacenters.serialize(to)
}

fn conditions(card: &ReservationSummary, has: &ReservationStatus) -> Vec<Condition> {
    let promised = card.capacity;
    let counted = |part: ServerCount| format!("{} servers, {} RRU", part.servers, part.rru);
    let mut all = vec![Condition {
        condition: "promise_kept",
        holds: has.guaranteed >= promised,
        detail: format!("{} of {promised} RRU are guaranteed now", has.guaranteed.min(promised)),
    }];
    for (condition, part) in [
        ("servers_arriving", has.arriving),
        ("servers_leaving", has.leaving),
        ("servers_out_of_use", has.out_of_use),
    ] {
        all.push(Condition { condition, holds: part.servers > 0, detail: counted(part) });
    }
    let detail = card.open.map_or_else(
        || "no request is open".to_owned(),
        |(id, state)| format!("request {id} is {}", state.as_str()),
    );
    all.push(Condition { condition: "request_open", holds: card.open.is_some(), detail });
    all
}

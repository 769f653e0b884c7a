//! `GET /v1/reservations/{name}/history`: versions of a promise, and the audit trail of a reservation.

use super::scope::reservation_name;
use crate::api::views::trail_entry;
use crate::http::auth::Caller;
use crate::http::list::{ListKind, ListQuery, PAGE, StoredListRequest};
use crate::http::{Problem, Site, in_time};
use api_types::servers::TrailEntry;
use axum::extract::{Path, State};
use axum::response::Response;
use broker::{PromiseVersion, ReservationError, Seq};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Limit of versions of a promise; older ones are left out.
const VERSIONS_MAX: u32 = 1_000;

/// The history has no parameters of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryFilters {}

const HISTORY: ListKind =
    ListKind { rows: "entries", key: &["seq"], order: "seq desc", page: PAGE };

/// A version of the promise to a reservation.
#[derive(Debug, Serialize, ToSchema)]
struct PromiseView {
    /// 1, 2, 3, ...
    version: i32,
    promised_at: DateTime<Utc>,
    /// guaranteed, shared_buffer or elastic.
    kind: String,
    owner: String,
    capacity_rru: f64,
    /// Whether it has an embedded buffer, to survive the loss of any one MSB.
    msb_buffer: bool,
    /// 0 is the highest priority.
    priority: i32,
    /// Largest desired share in one MSB; null: the region's default.
    msb_alpha: Option<f64>,
    /// Largest desired share in one rack; null: the region's default.
    rack_alpha: Option<f64>,
    /// Tolerance of datacenter shares; null: the region's default.
    affinity_theta: Option<f64>,
    /// OS configuration of its servers; null: any.
    host_profile: Option<String>,
    /// RRU of a server of each hardware type.
    rru: BTreeMap<String, f64>,
    /// Desired share of the capacity in each datacenter.
    affinity: BTreeMap<String, f64>,
    /// The only datacenters of its servers; empty: all.
    allowed_datacenters: Vec<String>,
    /// Partitions of which it survives the loss of any one domain, besides that of an MSB.
    survives: Vec<String>,
    /// Replicas of its data; null: no replica rule.
    replicas: Option<u32>,
    /// Replicas that one MSB may hold.
    replicas_per_msb: Option<u32>,
}

impl From<PromiseVersion> for PromiseView {
    fn from(of: PromiseVersion) -> PromiseView {
        PromiseView {
            version: of.version,
            promised_at: of.promised_at,
            kind: of.kind.as_str().to_owned(),
            owner: of.owner,
            capacity_rru: of.capacity.to_f64(),
            msb_buffer: of.msb_buffer,
            priority: of.priority,
            msb_alpha: of.msb_alpha,
            rack_alpha: of.rack_alpha,
            affinity_theta: of.affinity_theta,
            host_profile: of.host_profile,
            rru: of.rru.into_iter().map(|(ty, value)| (ty.to_string(), value.to_f64())).collect(),
            affinity: of.affinity.into_iter().map(|(dc, share)| (dc.to_string(), share)).collect(),
            allowed_datacenters: of.allowed_datacenters.iter().map(ToString::to_string).collect(),
            survives: of.survives.iter().map(ToString::to_string).collect(),
            replicas: of.replica_rule.map(|rule| rule.replicas),
            replicas_per_msb: of.replica_rule.map(|rule| rule.per_msb),
        }
    }
}

/// Promises and audit trail of a reservation, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReservationHistory {
    /// Versions of the promise; only on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    promises: Option<Vec<PromiseView>>,
    /// What was done to the reservation and who did it: requests, applied plans with what they promised to it (`plan_applied`),
    /// emergencies, contracts, its end.
    entries: Vec<TrailEntry>,
    /// Null: this is the last page.
    next_page_token: Option<String>,
}

/// Versions of the promise of a reservation, and what was done to it
///
/// It remains after the reservation is removed.
#[utoipa::path(get, path = "/reservations/{name}/history", operation_id = "get_reservation_history",
    params(("name" = String, Path, description = "the reservation"), ListQuery),
    responses((status = 200, description = "a page", body = ReservationHistory)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    StoredListRequest { list, .. }: StoredListRequest<HistoryFilters>,
) -> Result<Response, Problem> {
    caller.reads()?;
    let name = reservation_name(name)?;
    let versions = in_time(site.broker.promise_versions(&name, None, VERSIONS_MAX)).await?;
    // A removed reservation belongs to its last owner.
    if versions.first().is_none_or(|last| !caller.sees(&last.owner)) {
        return Err(ReservationError::Unknown { name }.into());
    }
    let promises = list.is_first().then(|| versions.into_iter().map(PromiseView::from).collect());
    let (broker, name) = (&site.broker, &name);
    let read = move |before: Option<i64>, limit| async move {
        in_time(broker.reservation_history(name, before.map(Seq), limit)).await
    };
    let page = list.page(HISTORY, name, read, |entry| entry.seq.0, trail_entry).await?;
    Ok(page.response(&ReservationHistory { promises, entries: Vec::new(), next_page_token: None }))
}

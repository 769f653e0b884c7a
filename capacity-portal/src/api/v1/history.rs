//! `GET /v1/reservations/{name}/history`: what was promised, version by version, and who did what.

use super::named;
use crate::api::asked::{self, Asked};
use crate::api::authority::Caller;
use crate::api::ops::TrailEntry;
use crate::api::page::Question;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::extract::{Path, State};
use broker::{PromiseVersion, ReservationError, Seq, TrailAsked};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Entries of a page, unless told otherwise, and at most.
const PAGE: u32 = 100;
const PAGE_MAX: u32 = 999;

/// The most versions of a promise, the youngest.
const VERSIONS_MAX: u32 = 1_000;

/// Which page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryAsked {
    /// The most entries of the page.
    #[param(minimum = 1, maximum = 999)]
    limit: Option<u32>,
    /// `next_page_token` of the page before.
    page_token: Option<String>,
}

/// One version of what was promised to a reservation.
#[derive(Debug, Serialize, ToSchema)]
struct Promised {
    /// 1, 2, 3, ...
    version: i32,
    promised_at: DateTime<Utc>,
    /// guaranteed, shared_buffer or elastic.
    kind: String,
    owner: String,
    capacity_rru: f64,
    /// Whether it survives the loss of any MSB.
    msb_buffer: bool,
    /// 0 is the most important.
    priority: i32,
    /// Largest share wanted in one MSB; null: the region's rule.
    msb_alpha: Option<f64>,
    /// Largest share wanted in one rack; null: the region's rule.
    rack_alpha: Option<f64>,
    /// Tolerance of datacenter shares; null: the region's rule.
    affinity_theta: Option<f64>,
    /// OS configuration wanted on its servers; null: any.
    host_profile: Option<String>,
    /// What a server is worth to it, by hardware type.
    rru: BTreeMap<String, f64>,
    /// Share of the capacity wanted in each datacenter.
    affinity: BTreeMap<String, f64>,
    /// The only datacenters it may have servers in; empty: all.
    allowed_datacenters: Vec<String>,
    /// How many replicas there are of what it stores; null: no replica rule.
    replicas: Option<u32>,
    /// How many of them one MSB may hold.
    replicas_per_msb: Option<u32>,
}

impl From<PromiseVersion> for Promised {
    fn from(of: PromiseVersion) -> Promised {
        Promised {
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
            replicas: of.replica_rule.map(|rule| rule.replicas),
            replicas_per_msb: of.replica_rule.map(|rule| rule.per_msb),
        }
    }
}

/// What was promised to a reservation and done about it, the youngest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReservationHistory {
    /// Versions of the promise; on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    promises: Option<Vec<Promised>>,
    /// Entries of the audit trail about the reservation.
    entries: Vec<TrailEntry>,
    /// Null: this is the last page.
    next_page_token: Option<String>,
}

/// What was promised to a reservation, version by version, and who did what about it
///
/// Of a reservation that ended it stays.
#[utoipa::path(get, path = "/reservations/{name}/history", operation_id = "get_reservation_history",
    params(("name" = String, Path, description = "the reservation"), HistoryAsked),
    responses((status = 200, description = "a page", body = ReservationHistory)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    Asked(which): Asked<HistoryAsked>,
) -> Result<Json<ReservationHistory>, Problem> {
    caller.reads()?;
    let name = named(name)?;
    let question = Question::new(&("reservation", &name));
    let before = question.cursor(which.page_token.as_deref())?.map(Seq);
    let limit = asked::limit(which.limit, PAGE, PAGE_MAX)?;
    let versions = in_time(site.broker.promise_versions(&name, None, VERSIONS_MAX)).await?;
    // One that ended is its last owner's.
    if versions.first().is_none_or(|last| !caller.sees(&last.owner)) {
        return Err(ReservationError::Unknown { name }.into());
    }
    let promises = before.is_none().then(|| versions.into_iter().map(Promised::from).collect());
    let asked = TrailAsked { subject: Some(name), before, ..TrailAsked::default() };
    let rows = in_time(site.broker.trail_page(&asked, limit + 1)).await?;
    let (rows, next_page_token) = question.page(rows, limit, |entry| entry.seq.0);
    let entries = rows.into_iter().map(TrailEntry::from).collect();
    Ok(Json(ReservationHistory { promises, entries, next_page_token }))
}

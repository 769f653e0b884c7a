//! `GET /ops/v1/certificate`: capacity of every reservation after its worst MSB loss.

use crate::http::auth::Caller;
use crate::http::query::StrictQuery;
use crate::http::{Problem, Site};
use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use control::CachedRegion;
use fleet::audit::Certified;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Filters of the certificate.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct CertificateQuery {
    /// true: only broken promises; false: only those that hold; absent: all.
    broken: Option<bool>,
    /// Only reservations of this owner.
    owner: Option<String>,
}

/// A reservation after its worst MSB loss.
#[derive(Debug, Serialize, ToSchema)]
struct ReservationSurvives {
    reservation: String,
    owner: String,
    /// 0 is the highest priority.
    priority: i32,
    /// Promised capacity.
    requested_rru: f64,
    /// Whether it has an embedded buffer, to survive the loss of any one MSB.
    msb_buffer: bool,
    /// Owned capacity in service, servers in maintenance included.
    owned_rru: f64,
    /// Of that, in maintenance.
    in_maintenance_rru: f64,
    /// The MSB whose loss leaves least; null: it owns no server.
    worst_msb: Option<String>,
    /// Capacity left within 30 minutes of that loss.
    left_rru: f64,
    /// Least capacity that the loss of any MSB leaves at once.
    left_at_once_rru: f64,
    /// Capacity required at once: the promise less a quarter of the embedded buffer.
    needed_at_once_rru: f64,
    /// Whether the promise holds: without a loss, and after any loss at once and within 30 minutes.
    holds: bool,
    /// Largest shortfall in any of these cases.
    missing_rru: f64,
}

/// Capacity of every guaranteed reservation after its worst MSB loss.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RegionCertificate {
    /// Time of the region, by the database's clock.
    taken_at: DateTime<Utc>,
    /// Last audit-trail entry at that time.
    seq: i64,
    /// Number of broken promises, listed or not.
    broken: usize,
    /// Number of guaranteed reservations.
    of: usize,
    /// Sorted by name.
    reservations: Vec<ReservationSurvives>,
}

fn survives(held: &CachedRegion, row: &Certified) -> ReservationSurvives {
    ReservationSurvives {
        reservation: row.reservation_id.to_string(),
        owner: row.owner.to_string(),
        priority: row.priority,
        requested_rru: row.capacity.to_f64(),
        msb_buffer: row.msb_buffer,
        owned_rru: row.owned.to_f64(),
        in_maintenance_rru: row.maintained.to_f64(),
        worst_msb: row.worst.map(|msb| held.snapshot.msbs[msb.ix()].id.to_string()),
        left_rru: row.left.to_f64(),
        left_at_once_rru: row.left_at_once.to_f64(),
        needed_at_once_rru: row.needed_at_once().to_f64(),
        holds: row.holds(),
        missing_rru: row.missing().to_f64(),
    }
}

/// Capacity of every guaranteed reservation after its worst MSB loss
///
/// Computed by the audit, from owned servers less planned maintenance, again after every event.
#[utoipa::path(get, path = "/certificate", operation_id = "region_certificate",
    params(CertificateQuery),
    responses((status = 200, description = "the certificate", body = RegionCertificate)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(CertificateQuery { broken, owner }): StrictQuery<CertificateQuery>,
) -> Result<Json<RegionCertificate>, Problem> {
    caller.reads_region()?;
    let held = site.cached_region().await?;
    let rows = &held.certificate.rows;
    let wanted = |row: &&Certified| {
        broken.is_none_or(|broken| broken != row.holds())
            && owner.as_deref().is_none_or(|owner| *row.owner == *owner)
    };
    Ok(Json(RegionCertificate {
        taken_at: held.snapshot.taken_at,
        seq: held.seq.0,
        broken: held.certificate.broken().count(),
        of: rows.len(),
        reservations: rows.iter().filter(wanted).map(|row| survives(&held, row)).collect(),
    }))
}

//! `GET /ops/v1/certificate`: what the worst loss would leave of every reservation.

use crate::api::asked::Asked;
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::api::{Site, held};
use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use control::HeldRegion;
use fleet::audit::Certified;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which reservations.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct CertificateAsked {
    /// Only those whose promise is broken, or only those whose holds; absent: all.
    broken: Option<bool>,
    /// Only those of this owner.
    owner: Option<String>,
}

/// A reservation and its worst loss.
#[derive(Debug, Serialize, ToSchema)]
struct ReservationSurvives {
    reservation: String,
    owner: String,
    /// 0 is the most important.
    priority: i32,
    /// What was promised.
    requested_rru: f64,
    /// Whether that is to survive the loss of any one MSB.
    msb_buffer: bool,
    /// What it owns and no unplanned event takes out of use; servers in maintenance included.
    owned_rru: f64,
    /// What of that is in maintenance.
    in_maintenance_rru: f64,
    /// The MSB whose loss leaves least; null: it owns nothing.
    worst_msb: Option<String>,
    /// What is left within 30 minutes of that loss.
    left_rru: f64,
    /// The least that the loss of any MSB leaves at once.
    left_at_once_rru: f64,
    /// What must be left at once: what was promised less a quarter of the embedded buffer.
    needed_at_once_rru: f64,
    /// Whether the promise holds: without a loss, and after any loss at once and within 30 minutes.
    holds: bool,
    /// The most that is missing to any of these.
    missing_rru: f64,
}

/// What the worst loss would leave of every guaranteed reservation.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RegionCertificate {
    /// When the region was like this, by the database's clock.
    taken_at: DateTime<Utc>,
    /// The last entry of the audit trail at that instant.
    seq: i64,
    /// Reservations whose promise does not hold, whichever are listed.
    broken: usize,
    /// Of all guaranteed reservations.
    of: usize,
    /// In order of name.
    reservations: Vec<ReservationSurvives>,
}

fn survives(held: &HeldRegion, row: &Certified) -> ReservationSurvives {
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

/// What the worst loss of a single MSB would leave of every guaranteed reservation
///
/// By the audit's code, from what reservations own now less planned maintenance; computed again after every
/// event.
#[utoipa::path(get, path = "/certificate", operation_id = "region_certificate",
    params(CertificateAsked),
    responses((status = 200, description = "all of it", body = RegionCertificate)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    Asked(CertificateAsked { broken, owner }): Asked<CertificateAsked>,
) -> Result<Json<RegionCertificate>, Problem> {
    caller.reads_region()?;
    let held = held(&site).await?;
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

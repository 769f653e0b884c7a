//! `GET /v1/reservations/{name}/certificate`: what the loss of each MSB would leave.

use super::named;
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::api::{Site, held};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use fleet::audit::Certified;
use fleet::{MsbIx, RegionSnapshot};
use serde::Serialize;
use utoipa::ToSchema;

/// What one MSB holds of a reservation, and what its loss would leave.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MsbLeft {
    msb: String,
    datacenter: String,
    /// What the reservation owns there and is not out of use.
    rru: f64,
    /// What is left of the reservation without it.
    left_rru: f64,
    /// Whether that is as much as was promised after a loss.
    holds: bool,
}

/// What the loss of each MSB would leave of a reservation, as things are: servers that it owns now and
/// that nothing but planned maintenance takes out of use. Targets of moves count once they are bound.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReservationCertificate {
    reservation: String,
    /// When the region was like this, by the database's clock.
    taken_at: DateTime<Utc>,
    /// The last entry of the audit trail at that instant.
    seq: i64,
    /// What was promised.
    requested_rru: f64,
    /// Whether that is to survive the loss of any one MSB.
    msb_buffer: bool,
    /// What it owns and is not out of use.
    owned_rru: f64,
    /// Whether the promise holds.
    holds: bool,
    /// What is missing to that.
    missing_rru: f64,
    /// The MSB whose loss takes most; null: it owns nothing.
    worst_msb: Option<String>,
    /// What is left without that.
    left_rru: f64,
    /// Every MSB in which it owns something, and the datacenter of each.
    msbs: Vec<MsbLeft>,
}

fn msbs(region: &RegionSnapshot, row: &Certified) -> Vec<MsbLeft> {
    let amounts = row.by_msb.iter().enumerate().filter(|(_, amount)| amount.0 > 0);
    let left = |(position, amount): (usize, &fleet::Rru)| {
        let (msb, left) = (&region.msbs[position], row.after_loss(MsbIx::new(position)));
        MsbLeft {
            msb: msb.id.to_string(),
            datacenter: region.datacenters[msb.datacenter.ix()].id.to_string(),
            rru: amount.to_f64(),
            left_rru: left.to_f64(),
            holds: !row.msb_buffer || left >= row.capacity,
        }
    };
    amounts.map(left).collect()
}

/// What the loss of each MSB would leave of a reservation
///
/// By the audit's code, anew after every event: within seconds, on a large region that changes all the
/// time within ten times as long as reading it takes.
#[utoipa::path(get, path = "/reservations/{name}/certificate", operation_id = "certificate",
    params(("name" = String, Path, description = "the reservation")),
    responses((status = 200, description = "what would be left", body = ReservationCertificate)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ReservationCertificate>, Problem> {
    caller.reads()?;
    let name = named(name)?;
    let held = held(&site).await?;
    let found = held.certificate.row(&name).filter(|row| caller.sees(&row.owner));
    let row = found.ok_or_else(|| {
        let detail = format!("there is no guaranteed reservation {name:?}");
        Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail)
    })?;
    Ok(Json(ReservationCertificate {
        reservation: row.reservation_id.to_string(),
        taken_at: held.snapshot.taken_at,
        seq: held.seq.0,
        requested_rru: row.capacity.to_f64(),
        msb_buffer: row.msb_buffer,
        owned_rru: row.owned.to_f64(),
        holds: row.holds(),
        missing_rru: row.missing().to_f64(),
        worst_msb: row.worst.map(|msb| held.snapshot.msbs[msb.ix()].id.to_string()),
        left_rru: row.left.to_f64(),
        msbs: msbs(&held.snapshot, row),
    }))
}

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
    /// What the reservation owns there and no unplanned event takes out of use.
    rru: f64,
    /// What of that is in maintenance.
    in_maintenance_rru: f64,
    /// What is left of the reservation within 30 minutes of its loss: maintenance elsewhere that can be
    /// recalled by then counts as back.
    left_rru: f64,
    /// What is left at once: all servers in maintenance count as gone.
    left_at_once_rru: f64,
    /// Whether both are as much as was promised after a loss.
    holds: bool,
}

/// What the loss of each MSB would leave of a reservation, as things are: servers that it owns now and
/// that no unplanned event takes out of use, less those in maintenance. Targets of moves count once they are bound.
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
    /// What it owns and no unplanned event takes out of use; servers in maintenance included.
    owned_rru: f64,
    /// What of that is in maintenance.
    in_maintenance_rru: f64,
    /// Whether the promise holds: without a loss, and after any loss at once and within 30 minutes.
    holds: bool,
    /// The most that is missing to any of these.
    missing_rru: f64,
    /// The MSB whose loss leaves least; null: it owns nothing.
    worst_msb: Option<String>,
    /// What is left within 30 minutes of that loss.
    left_rru: f64,
    /// The least that the loss of any MSB leaves at once.
    left_at_once_rru: f64,
    /// What must be left at once: what was promised less a quarter of the embedded buffer.
    needed_at_once_rru: f64,
    /// The most that one MSB may hold by its replica rule; null: it has none.
    msb_max_rru: Option<f64>,
    /// Whether no MSB holds more; null: it has no replica rule.
    replicas_hold: Option<bool>,
    /// What is to be left by it after the loss of any one MSB; null: likewise.
    quorum_rru: Option<f64>,
    /// Every MSB in which it owns something, and the datacenter of each.
    msbs: Vec<MsbLeft>,
}

fn msbs(region: &RegionSnapshot, row: &Certified) -> Vec<MsbLeft> {
    let amounts = row.by_msb.iter().enumerate().filter(|(_, amount)| amount.0 > 0);
    let left = |(position, amount): (usize, &fleet::Rru)| {
        let (msb, ix) = (&region.msbs[position], MsbIx::new(position));
        MsbLeft {
            msb: msb.id.to_string(),
            datacenter: region.datacenters[msb.datacenter.ix()].id.to_string(),
            rru: amount.to_f64(),
            in_maintenance_rru: row.maintained_by_msb[position].to_f64(),
            left_rru: row.after_loss(ix).to_f64(),
            left_at_once_rru: row.at_once_after_loss(ix).to_f64(),
            holds: row.survives(ix),
        }
    };
    amounts.map(left).collect()
}

/// What the loss of each MSB would leave of a reservation
///
/// By the audit's code, computed again after every event: within seconds, on a large region that changes all the
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
        in_maintenance_rru: row.maintained.to_f64(),
        holds: row.holds(),
        missing_rru: row.missing().to_f64(),
        worst_msb: row.worst.map(|msb| held.snapshot.msbs[msb.ix()].id.to_string()),
        left_rru: row.left.to_f64(),
        left_at_once_rru: row.left_at_once.to_f64(),
        needed_at_once_rru: row.needed_at_once().to_f64(),
        msb_max_rru: row.msb_max.map(fleet::Rru::to_f64),
        replicas_hold: row.msb_max.map(|_| row.replicas_hold()),
        quorum_rru: row.quorum().map(fleet::Rru::to_f64),
        msbs: msbs(&held.snapshot, row),
    }))
}

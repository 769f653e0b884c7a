//! `GET /v1/reservations/{name}/certificate`: what the loss of each MSB would leave.

use super::scope::reservation_name;
use crate::http::auth::Caller;
use crate::http::{Problem, Site};
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
    /// Capacity in service that it owns there.
    rru: f64,
    /// Of that, in maintenance.
    in_maintenance_rru: f64,
    /// Capacity left within 30 minutes of its loss: servers in maintenance elsewhere that can be recalled by then
    /// count.
    left_rru: f64,
    /// Capacity left at once: no server in maintenance counts.
    left_at_once_rru: f64,
    /// Whether both are as much as was promised for a loss.
    holds: bool,
}

/// Capacity of a reservation after the loss of each MSB: servers that it owns and that are in service, less those in
/// maintenance. Targets of moves count once they are bound.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReservationCertificate {
    reservation: String,
    /// Time of the region, by the database's clock.
    taken_at: DateTime<Utc>,
    /// Last audit-trail entry at that time.
    seq: i64,
    /// Promised capacity.
    requested_rru: f64,
    /// Whether it has an embedded buffer, to survive the loss of any one MSB.
    msb_buffer: bool,
    /// Owned capacity in service, servers in maintenance included.
    owned_rru: f64,
    /// Of that, in maintenance.
    in_maintenance_rru: f64,
    /// Whether the promise holds: without a loss, and after any loss at once and within 30 minutes.
    holds: bool,
    /// Largest shortfall in any of these cases.
    missing_rru: f64,
    /// The MSB whose loss leaves least; null: it owns no server.
    worst_msb: Option<String>,
    /// Capacity left within 30 minutes of that loss.
    left_rru: f64,
    /// Least capacity that the loss of any MSB leaves at once.
    left_at_once_rru: f64,
    /// Capacity required at once: the promise less a quarter of the embedded buffer.
    needed_at_once_rru: f64,
    /// Limit of one MSB by its replica rule; null: no replica rule.
    msb_max_rru: Option<f64>,
    /// Whether every MSB is within it; null: no replica rule.
    replicas_hold: Option<bool>,
    /// Capacity that the rule requires after the loss of any one MSB; null: no replica rule.
    quorum_rru: Option<f64>,
    /// Every MSB in which it owns servers.
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

/// Capacity of a reservation after the loss of each MSB
///
/// Computed by the audit, again after every event: within seconds, or in a large and busy region within ten times
/// the duration of reading it.
#[utoipa::path(get, path = "/reservations/{name}/certificate", operation_id = "certificate",
    params(("name" = String, Path, description = "the reservation")),
    responses((status = 200, description = "the certificate", body = ReservationCertificate)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ReservationCertificate>, Problem> {
    caller.reads()?;
    let name = reservation_name(name)?;
    let held = site.cached_region().await?;
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

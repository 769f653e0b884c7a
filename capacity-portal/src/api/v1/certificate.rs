//! `GET /v1/reservations/{name}/certificate`: what the loss of each MSB would leave.

use super::scope::reservation_name;
use crate::api::views::domains_left;
use crate::http::auth::Caller;
use crate::http::{Problem, Site};
use api_types::reservations::{MsbLeft, ReservationCertificate};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use fleet::audit::Certified;
use fleet::{MsbIx, RegionSnapshot};

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
    let figures = row.figures();
    Ok(Json(ReservationCertificate {
        reservation: row.reservation_id.to_string(),
        taken_at: held.snapshot.taken_at,
        seq: held.seq.0,
        promised_rru: row.capacity.to_f64(),
        msb_buffer: row.msb_buffer,
        owned_rru: row.owned.to_f64(),
        in_maintenance_rru: row.maintained.to_f64(),
        held_rru: figures.held.to_f64(),
        guaranteed_rru: figures.guaranteed().to_f64(),
        missing_now_rru: figures.missing_now().to_f64(),
        standing: figures.standing().as_str().to_owned(),
        holds: row.holds(),
        missing_after_loss_rru: figures.missing_after_loss().to_f64(),
        worst_msb: row.worst.map(|msb| held.snapshot.msbs[msb.ix()].id.to_string()),
        left_rru: row.left.to_f64(),
        left_at_once_rru: row.left_at_once.to_f64(),
        needed_at_once_rru: row.needed_at_once().to_f64(),
        msb_max_rru: row.msb_max.map(fleet::Rru::to_f64),
        replicas_hold: row.msb_max.map(|_| row.replicas_hold()),
        quorum_rru: row.quorum().map(fleet::Rru::to_f64),
        domains: domains_left(&held.snapshot, row),
        msbs: msbs(&held.snapshot, row),
    }))
}

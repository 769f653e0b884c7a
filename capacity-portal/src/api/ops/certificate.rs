//! `GET /ops/v1/certificate`: capacity of every reservation after its worst MSB loss.

use crate::api::views::domains_left;
use crate::http::auth::Caller;
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::{Problem, Site};
use api_types::reservations::{RegionCertificate, ReservationSurvives};
use axum::extract::State;
use axum::response::Response;
use control::CachedRegion;
use fleet::audit::Certified;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

const RESERVATIONS: ListKind =
    ListKind { rows: "reservations", key: &["reservation"], order: "reservation", page: WHOLE };

/// Filters of the certificate.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct CertificateQuery {
    /// true: only promises that hold; false: only those that do not (short or at risk); absent: all.
    holds: Option<bool>,
    /// Only reservations of this owner.
    owner: Option<String>,
}

fn survives(held: &CachedRegion, row: &Certified) -> ReservationSurvives {
    let figures = row.figures();
    ReservationSurvives {
        reservation: row.reservation_id.to_string(),
        owner: row.owner.to_string(),
        priority: row.priority,
        promised_rru: row.capacity.to_f64(),
        msb_buffer: row.msb_buffer,
        owned_rru: row.owned.to_f64(),
        in_maintenance_rru: row.maintained.to_f64(),
        held_rru: figures.held.to_f64(),
        guaranteed_rru: figures.guaranteed().to_f64(),
        missing_now_rru: figures.missing_now().to_f64(),
        standing: figures.standing().as_str().to_owned(),
        worst_msb: row.worst.map(|msb| held.snapshot.msbs[msb.ix()].id.to_string()),
        left_rru: row.left.to_f64(),
        left_at_once_rru: row.left_at_once.to_f64(),
        needed_at_once_rru: row.needed_at_once().to_f64(),
        holds: row.holds(),
        missing_after_loss_rru: figures.missing_after_loss().to_f64(),
        domains: domains_left(&held.snapshot, row),
    }
}

/// Capacity of every guaranteed reservation after its worst MSB loss
///
/// Computed by the audit, from owned servers less planned maintenance, again after every event.
#[utoipa::path(get, path = "/certificate", operation_id = "region_certificate",
    params(CertificateQuery, ListQuery),
    responses((status = 200, description = "a page", body = RegionCertificate)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest<CertificateQuery>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let held = site.cached_region().await?;
    let rows = &held.certificate.rows;
    let wanted = |row: &&Certified| {
        filters.holds.is_none_or(|holds| holds == row.holds())
            && filters.owner.as_deref().is_none_or(|owner| *row.owner == *owner)
    };
    let listed = rows.iter().filter(wanted).map(|row| survives(&held, row));
    let totals = held.certificate.totals();
    let page = list.page_of(RESERVATIONS, &filters, listed)?;
    Ok(page.response(&RegionCertificate {
        taken_at: held.snapshot.taken_at,
        seq: held.seq.0,
        short: totals.short,
        at_risk: totals.at_risk,
        missing_now_servers: totals.missing_now,
        missing_after_loss_servers: totals.missing_after_loss,
        of: rows.len(),
        reservations: Vec::new(),
        next_page_token: None,
    }))
}

//! `GET /ops/v1/certificate`: capacity of every reservation after its worst MSB loss.

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
    /// true: only broken promises; false: only those that hold; absent: all.
    broken: Option<bool>,
    /// Only reservations of this owner.
    owner: Option<String>,
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
        filters.broken.is_none_or(|broken| broken != row.holds())
            && filters.owner.as_deref().is_none_or(|owner| *row.owner == *owner)
    };
    let listed = rows.iter().filter(wanted).map(|row| survives(&held, row));
    let page = list.page_of(RESERVATIONS, &filters, listed)?;
    Ok(page.response(&RegionCertificate {
        taken_at: held.snapshot.taken_at,
        seq: held.seq.0,
        broken: held.certificate.broken().count(),
        of: rows.len(),
        reservations: Vec::new(),
        next_page_token: None,
    }))
}

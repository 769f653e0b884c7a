//! `/ops/v1/elastic-reservations`: reservations that own no servers and borrow idle buffers.

use crate::http::auth::{Caller, Role};
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::preconditions::{etag, optional_if_match};
use crate::http::{Problem, Site, body, in_time};
use api_types::region::{ElasticAsked, ElasticEnded, ElasticReservation, ElasticReservations};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::{EditError, Elastic, ElasticEnd};
use fleet::edit;
use fleet::{HardwareTypeName, ReservationName};
use std::collections::BTreeMap;

const ELASTIC: ListKind = ListKind {
    rows: "elastic_reservations",
    key: &["reservation"],
    order: "reservation",
    page: WHOLE,
};

/// An elastic reservation, as it is sent.
fn view(of: Elastic) -> ElasticReservation {
    ElasticReservation {
        reservation: of.reservation.to_string(),
        owner: of.asked.owner.to_string(),
        rru: of.asked.rru.iter().map(|(ty, value)| (ty.to_string(), *value)).collect(),
        priority: of.asked.priority,
        host_profile: of.asked.host_profile.map(|name| name.to_string()),
        share: of.share,
        ending: of.ending,
        borrows: of.borrows,
        promise_version: of.promise_version,
    }
}

async fn one_elastic(site: &Site, name: &str) -> Result<Response, Problem> {
    let found = in_time(site.broker.elastic_reservations(Some(name))).await?.pop();
    let of = found.ok_or_else(|| EditError::UnknownElastic { name: name.into() })?;
    let version = of.version();
    Ok(etag(Json(view(of)), &version))
}

/// Elastic reservations and the servers that they borrow
#[utoipa::path(get, path = "/elastic-reservations", operation_id = "list_elastic_reservations",
    params(ListQuery),
    responses((status = 200, description = "a page", body = ElasticReservations)))]
pub(super) async fn list_elastic(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.elastic_reservations(None)).await?;
    let page = list.page_of(ELASTIC, &filters, all.into_iter().map(view))?;
    Ok(page
        .response(&ElasticReservations { elastic_reservations: Vec::new(), next_page_token: None }))
}

/// One elastic reservation
#[utoipa::path(get, path = "/elastic-reservations/{name}", operation_id = "get_elastic_reservation",
    params(("name" = String, Path, description = "its name")),
    responses(
        (status = 200, description = "the reservation", body = ElasticReservation),
        (status = 404, description = "there is no such reservation")))]
pub(super) async fn find_elastic(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    one_elastic(&site, &name).await
}

/// Creates or changes an elastic reservation
///
/// Servers of types that are no longer eligible are returned. With `If-Match`, only if it has not changed.
#[utoipa::path(put, path = "/elastic-reservations/{name}", operation_id = "set_elastic_reservation",
    params(
        ("name" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    request_body = ElasticAsked,
    responses(
        (status = 200, description = "the reservation is stored", body = ElasticReservation),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "fields are invalid; `errors` lists them, with the nearest valid number")))]
pub(super) async fn set_elastic(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let body: ElasticAsked = body::json(&body)?;
    let seen = optional_if_match(&headers)?;
    let (asked, share) = read(body);
    let stored = ReservationName::from(name.as_str());
    in_time(site.broker.set_elastic(&actor, &stored, &asked, share, seen.as_deref())).await?;
    one_elastic(&site, &name).await
}

fn read(body: ElasticAsked) -> (edit::ElasticAsked, Option<f64>) {
    let types = body.hardware_types.into_iter().map(|ty| (HardwareTypeName::from(ty), 1.0));
    let mut rru: BTreeMap<HardwareTypeName, f64> = types.collect();
    rru.extend(body.rru.into_iter().map(|(ty, value)| (HardwareTypeName::from(ty), value)));
    let (owner, host_profile) = (body.owner.into(), body.host_profile.map(Into::into));
    (edit::ElasticAsked { owner, rru, priority: body.priority, host_profile }, body.share)
}

/// Ends an elastic reservation
///
/// It is removed when its servers are returned; no further server is lent.
#[utoipa::path(delete, path = "/elastic-reservations/{name}", operation_id = "end_elastic_reservation",
    params(
        ("name" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    responses(
        (status = 200, description = "it is removed", body = ElasticEnded),
        (status = 202, description = "it will be removed when its servers are returned", body = ElasticEnded),
        (status = 404, description = "there is no such reservation"),
        (status = 412, description = "it has changed since")))]
pub(super) async fn end_elastic(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let seen = optional_if_match(&headers)?;
    let end = in_time(site.broker.end_elastic(&actor, &name, seen.as_deref())).await?;
    let (status, returning) = match end {
        ElasticEnd::Gone => (StatusCode::OK, 0),
        ElasticEnd::Returning(servers) => (StatusCode::ACCEPTED, servers),
    };
    Ok((status, Json(ElasticEnded { ended: name, returning })).into_response())
}

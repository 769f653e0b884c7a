//! `/ops/v1/elastic-reservations`: reservations that are given no server, and borrow idle buffers.

use crate::api::asked;
use crate::api::authority::{Caller, Role};
use crate::api::conditions::{etag, seen};
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::{EditError, Elastic, ElasticEnd};
use fleet::Name;
use fleet::edit::ElasticAsked;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// An elastic reservation: it is given no server, and borrows idle buffers.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ElasticAsked)]
pub(super) struct ElasticBody {
    /// The business unit.
    owner: String,
    /// What a server of each eligible hardware type is worth to it.
    #[serde(default)]
    rru: BTreeMap<String, f64>,
    /// Eligible hardware types, where all are worth 1; beside `rru` those it does not name.
    #[serde(default)]
    hardware_types: Vec<String>,
    /// 0 is the most important, and the default.
    #[serde(default)]
    priority: i32,
    /// The OS configuration of its servers; null: any.
    #[serde(default)]
    host_profile: Option<String>,
    /// The share by which it is served beside other borrowers; null: what the mover's settings say, else 1.
    #[serde(default)]
    share: Option<f64>,
}

/// An elastic reservation, and what it borrows.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ElasticReservation)]
pub(super) struct ElasticView {
    reservation: String,
    owner: String,
    /// What a server of each eligible hardware type is worth to it.
    rru: BTreeMap<String, f64>,
    priority: i32,
    host_profile: Option<String>,
    share: Option<f64>,
    /// Whether it was ended: it goes once it borrows nothing.
    ending: bool,
    /// Servers it borrows.
    borrows: u64,
    promise_version: i32,
}

impl From<Elastic> for ElasticView {
    fn from(of: Elastic) -> ElasticView {
        let rru = of.asked.rru.iter().map(|(ty, value)| (ty.to_string(), *value)).collect();
        ElasticView {
            reservation: of.reservation.to_string(),
            owner: of.asked.owner.to_string(),
            rru,
            priority: of.asked.priority,
            host_profile: of.asked.host_profile.map(|name| name.to_string()),
            share: of.share,
            ending: of.ending,
            borrows: of.borrows,
            promise_version: of.promise_version,
        }
    }
}

/// By name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ElasticReservations)]
pub(super) struct ElasticList {
    elastic_reservations: Vec<ElasticView>,
}

/// What became of one that was ended.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ElasticEnded)]
pub(super) struct ElasticEnded {
    ended: String,
    /// Servers that come back first; 0: it is gone.
    returning: u64,
}

async fn one_elastic(site: &Site, name: &str) -> Result<Response, Problem> {
    let found = in_time(site.broker.elastic_reservations(Some(name))).await?.pop();
    let of = found.ok_or_else(|| EditError::UnknownElastic { name: name.into() })?;
    let version = of.version();
    Ok(etag(Json(ElasticView::from(of)), &version))
}

/// Elastic reservations and what they borrow
#[utoipa::path(get, path = "/elastic-reservations", operation_id = "list_elastic_reservations",
    responses((status = 200, description = "by name", body = ElasticList)))]
pub(super) async fn list_elastic(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<ElasticList>, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.elastic_reservations(None)).await?;
    let all = all.into_iter().map(ElasticView::from).collect();
    Ok(Json(ElasticList { elastic_reservations: all }))
}

/// One elastic reservation
#[utoipa::path(get, path = "/elastic-reservations/{name}", operation_id = "get_elastic_reservation",
    params(("name" = String, Path, description = "its name")),
    responses(
        (status = 200, description = "what it may borrow and borrows", body = ElasticView),
        (status = 404, description = "no such name")))]
pub(super) async fn find_elastic(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    one_elastic(&site, &name).await
}

/// Makes an elastic reservation, or changes the one of this name
///
/// Types that are not eligible any more come back. With `If-Match` only if it is as it was seen.
#[utoipa::path(put, path = "/elastic-reservations/{name}", operation_id = "set_elastic_reservation",
    params(
        ("name" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *")),
    request_body = ElasticBody,
    responses(
        (status = 200, description = "it is set", body = ElasticView),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "fields are wrong; `errors` names each, with the nearest number")))]
pub(super) async fn set_elastic(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let body: ElasticBody = asked::json(&body)?;
    let seen = seen(&headers)?;
    let (asked, share) = read(body);
    let stored = Name::from(name.as_str());
    in_time(site.broker.set_elastic(&actor, &stored, &asked, share, seen.as_deref())).await?;
    one_elastic(&site, &name).await
}

fn read(body: ElasticBody) -> (ElasticAsked, Option<f64>) {
    let types = body.hardware_types.into_iter().map(|ty| (Name::from(ty), 1.0));
    let mut rru: BTreeMap<Name, f64> = types.collect();
    rru.extend(body.rru.into_iter().map(|(ty, value)| (Name::from(ty), value)));
    let (owner, host_profile) = (body.owner.into(), body.host_profile.map(Into::into));
    (ElasticAsked { owner, rru, priority: body.priority, host_profile }, body.share)
}

/// Ends an elastic reservation
///
/// What it borrows comes back first; it is lent nothing more.
#[utoipa::path(delete, path = "/elastic-reservations/{name}", operation_id = "end_elastic_reservation",
    params(
        ("name" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *")),
    responses(
        (status = 200, description = "it is gone", body = ElasticEnded),
        (status = 202, description = "it goes once its servers are back", body = ElasticEnded),
        (status = 404, description = "no such name"),
        (status = 412, description = "it has changed since")))]
pub(super) async fn end_elastic(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let seen = seen(&headers)?;
    let end = in_time(site.broker.end_elastic(&actor, &name, seen.as_deref())).await?;
    let (status, returning) = match end {
        ElasticEnd::Gone => (StatusCode::OK, 0),
        ElasticEnd::Returning(servers) => (StatusCode::ACCEPTED, servers),
    };
    Ok((status, Json(ElasticEnded { ended: name, returning })).into_response())
}

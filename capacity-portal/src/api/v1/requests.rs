//! `/v1/requests`: requests and their outcome.

use super::accepted::{accepted, not_reserved_until};
use super::hidden;
use super::scope::visible_owner;
use crate::api::views::json;
use crate::http::auth::{Caller, Role};
use crate::http::list::{ListKind, ListQuery, PAGE, StoredListRequest};
use crate::http::preconditions::{etag, if_match, stale};
use crate::http::query;
use crate::http::{Problem, Site, in_time, schema};
use api_types::requests::{Request, Requests};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::{GrantPolicy, OperationId, RequestFilter, RequestState, State as _};
use fleet::Rru;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// Filters of the list of requests.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RequestsQuery {
    /// Owner.
    owner: Option<String>,
    /// Reservation.
    reservation: Option<String>,
    /// State.
    #[param(schema_with = schema::state::<RequestState>)]
    state: Option<String>,
}

/// The list of requests.
pub(crate) const REQUESTS: ListKind =
    ListKind { rows: "requests", key: &["request"], order: "created_at desc", page: PAGE };

/// A request, as it is sent.
pub(crate) fn view(of: broker::Request) -> Request {
    let asking = of.asking;
    Request {
        request: of.id.to_string(),
        reservation: asking.reservation().to_string(),
        owner: asking.owner.to_string(),
        kind: asking.kind.as_str().to_owned(),
        state: of.state.as_str().to_owned(),
        state_at: of.state_at,
        grant_policy: asking.policy.as_str().to_owned(),
        at_least_rru: match asking.policy {
            GrantPolicy::AtLeast(least) => Some(least.to_f64()),
            GrantPolicy::All | GrantPolicy::BestEffort => None,
        },
        starts_at: asking.starts_at,
        notice: asking.starts_at.filter(|_| of.starts_later).map(not_reserved_until),
        ends_at: asking.ends_at.flatten(),
        labels: asking.labels,
        why: asking.why,
        asked: asking.change,
        granted_rru: of.granted.map(Rru::to_f64),
        awaits_in_use: of.awaits_in_use,
        approved_in_use: of.approved_in_use,
        answer: of.answer.as_ref().map(json),
        plan: of.plan.map(|id| id.to_string()),
        operation: of.operation.map(|id| id.to_string()),
        version: of.version,
        created_at: of.created_at,
        created_by: of.created_by,
    }
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_request", detail)
}

/// Reads a request that the caller may see; names that it may not see are hidden in its answer.
pub(crate) async fn read(
    site: &Site,
    caller: &Caller,
    id: &str,
) -> Result<broker::Request, Problem> {
    let id = query::id(id, unknown)?;
    let found = in_time(site.broker.request(id)).await?;
    let found = found.filter(|of| caller.sees(&of.asking.owner));
    let mut found = found.ok_or_else(|| unknown(format!("there is no request {id}")))?;
    found.answer = hidden::answer(site, caller, found.answer.take()).await?;
    Ok(found)
}

/// Requests, newest first
#[utoipa::path(get, path = "/requests", operation_id = "list_requests",
    params(RequestsQuery, ListQuery),
    responses((status = 200, description = "a page", body = Requests)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    StoredListRequest { filters: wanted, list }: StoredListRequest<RequestsQuery>,
) -> Result<Response, Problem> {
    caller.reads()?;
    let state = query::state_of(wanted.state.as_deref())?;
    let owner = visible_owner(&caller, wanted.owner)?;
    let filter = RequestFilter { owner, reservation: wanted.reservation, state };
    query::storable(filter.owner.iter().chain(&filter.reservation))?;
    let (site, caller, filter) = (&site, &caller, &filter);
    let read = move |after: Option<String>, limit| async move {
        let before = after.and_then(|id| id.parse().ok());
        let mut found = in_time(site.broker.requests(filter, before, limit)).await?;
        for of in &mut found {
            of.answer = hidden::answer(site, caller, of.answer.take()).await?;
        }
        Ok(found)
    };
    let parameters = (&filter.owner, &filter.reservation, &wanted.state);
    let page = list.page(REQUESTS, &parameters, read, |of| of.id.to_string(), view).await?;
    Ok(page.response(&Requests { requests: Vec::new(), next_page_token: None }))
}

/// One request
#[utoipa::path(get, path = "/requests/{id}", operation_id = "get_request",
    params(("id" = Uuid, Path, description = "its id")),
    responses((status = 200, description = "the request", body = Request)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.reads()?;
    let found = read(&site, &caller, &id).await?;
    let version = found.version.to_string();
    Ok(etag(Json(view(found)), &version))
}

/// Checks that the caller may change a request; returns the actor, the request and the version of `If-Match`.
async fn writes(
    site: &Site,
    caller: &Caller,
    headers: &HeaderMap,
    id: &str,
) -> Result<(Arc<str>, broker::Request, Option<i64>), Problem> {
    caller.needs(Role::Owner)?;
    let found = read(site, caller, id).await?;
    let actor = caller.may_act_for(&found.asking.owner)?;
    let seen = if_match(headers)?;
    let current = || stale(&found.version.to_string());
    let seen = seen.map(|seen| seen.parse::<i64>().map_err(|_| current())).transpose()?;
    Ok((actor, found, seen))
}

/// Withdraws a request that is not decided yet
#[utoipa::path(post, path = "/requests/{id}/cancel", operation_id = "cancel_request",
    params(("id" = Uuid, Path, description = "its id"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    responses(
        (status = 200, description = "the request is withdrawn", body = Request),
        (status = 409, description = "it has been decided"),
        (status = 412, description = "it has changed since"),
        (status = 428, description = "If-Match is missing")))]
pub(super) async fn cancel(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (actor, found, seen) = writes(&site, &caller, &headers, &id).await?;
    in_time(site.broker.cancel_request(&actor, found.id, seen)).await?;
    Ok(Json(view(read(&site, &caller, &id).await?)).into_response())
}

/// Submits a draft
#[utoipa::path(post, path = "/requests/{id}/submit", operation_id = "submit_request",
    params(("id" = Uuid, Path, description = "its id"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    responses(
        (status = 202, description = "the request will be decided", body = Object),
        (status = 409, description = "it is not a draft"),
        (status = 412, description = "it has changed since"),
        (status = 428, description = "If-Match is missing")))]
pub(super) async fn submit(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (actor, found, seen) = writes(&site, &caller, &headers, &id).await?;
    let operation = OperationId::now_v7();
    in_time(site.broker.submit_draft(&actor, found.id, seen, operation)).await?;
    site.submitted.notify_one();
    Ok(accepted(&found.asking, found.id, Some(operation)).into_response())
}

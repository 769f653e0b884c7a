//! `/v1/requests`: what was asked and what became of it.

use super::reservations::accepted;
use crate::api::asked::{self, Asked};
use crate::api::authority::{Caller, Role};
use crate::api::conditions::{etag, if_match, stale};
use crate::api::page::Question;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::extract::{Path, State as Extension};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::{
    GrantPolicy, OperationId, Request, RequestChangeKind, RequestFilter, RequestState, State,
};
use chrono::{DateTime, SecondsFormat, Utc};
use fleet::{CapacityRequest, Rru};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Requests of a page, unless told otherwise.
const PAGE: u32 = 100;

/// The most of one page.
const ROWS_MAX: u32 = 1_000;

/// Which page of which requests.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RequestsAsked {
    /// Of one owner.
    owner: Option<String>,
    /// About one reservation.
    reservation: Option<String>,
    /// In one state.
    #[param(schema_with = asked::state::<RequestState>)]
    state: Option<String>,
    /// The most requests of the page; 100 unless told otherwise.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<u32>,
    /// Where the page begins: `next_page_token` of the one before, with the same filter.
    page_token: Option<String>,
}

/// A request, and what became of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Request)]
pub(super) struct RequestView {
    request: String,
    reservation: String,
    owner: String,
    #[schema(schema_with = kinds)]
    kind: &'static str,
    #[schema(schema_with = asked::state::<RequestState>)]
    state: &'static str,
    state_at: DateTime<Utc>,
    /// What is asked: members that are absent stay as they are.
    #[schema(value_type = Object)]
    asked: CapacityRequest,
    #[schema(schema_with = policies)]
    grant_policy: &'static str,
    /// The least that is a grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least_rru: Option<f64>,
    starts_at: Option<DateTime<Utc>>,
    /// While its start lies ahead: that nothing is set aside until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
    ends_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    labels: Option<broker::Labels>,
    /// What was promised.
    granted_rru: Option<f64>,
    /// What was said to it: the plan, or `code`, `detail`, `reasons` and `alternatives`.
    #[schema(value_type = Option<Object>)]
    answer: Option<Value>,
    plan: Option<String>,
    operation: Option<String>,
    version: i64,
    created_at: DateTime<Utc>,
    created_by: String,
}

/// What a start in the future means, for people.
pub(crate) fn not_set_aside(starts_at: DateTime<Utc>) -> String {
    let at = starts_at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    format!(
        "nothing is set aside until {at}: the request is decided then, on the region as it is at that time"
    )
}

fn kinds() -> utoipa::openapi::Schema {
    asked::words(RequestChangeKind::ALL.map(RequestChangeKind::as_str))
}

fn policies() -> utoipa::openapi::Schema {
    let all = [GrantPolicy::All, GrantPolicy::AtLeast(Rru::ZERO), GrantPolicy::BestEffort];
    asked::words(all.map(GrantPolicy::as_str))
}

/// A page of requests, the youngest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Requests {
    requests: Vec<RequestView>,
    /// Where the next page begins; null: this is the last.
    next_page_token: Option<String>,
}

impl From<Request> for RequestView {
    fn from(of: Request) -> RequestView {
        let asking = of.asking;
        RequestView {
            request: of.id.to_string(),
            reservation: asking.reservation().to_string(),
            owner: asking.owner.to_string(),
            kind: asking.kind.as_str(),
            state: of.state.as_str(),
            state_at: of.state_at,
            grant_policy: asking.policy.as_str(),
            at_least_rru: match asking.policy {
                GrantPolicy::AtLeast(least) => Some(least.to_f64()),
                GrantPolicy::All | GrantPolicy::BestEffort => None,
            },
            starts_at: asking.starts_at,
            notice: asking.starts_at.filter(|_| of.starts_later).map(not_set_aside),
            ends_at: asking.ends_at.flatten(),
            labels: asking.labels,
            asked: asking.change,
            granted_rru: of.granted.map(Rru::to_f64),
            answer: of.answer,
            plan: of.plan.map(|id| id.to_string()),
            operation: of.operation.map(|id| id.to_string()),
            version: of.version,
            created_at: of.created_at,
            created_by: of.created_by,
        }
    }
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_request", detail)
}

async fn read(site: &Site, caller: &Caller, id: &str) -> Result<Request, Problem> {
    let id = asked::id(id, unknown)?;
    let found = in_time(site.broker.request(id)).await?;
    let found = found.filter(|of| caller.sees(&of.asking.owner));
    found.ok_or_else(|| unknown(format!("there is no request {id}")))
}

/// Requests, the youngest first
#[utoipa::path(get, path = "/requests", operation_id = "list_requests", params(RequestsAsked),
    responses((status = 200, description = "a page", body = Requests)))]
pub(super) async fn list(
    Extension(site): Extension<Site>,
    caller: Caller,
    Asked(wanted): Asked<RequestsAsked>,
) -> Result<Json<Requests>, Problem> {
    caller.reads()?;
    let limit = asked::limit(wanted.limit, PAGE, ROWS_MAX)?;
    let state = wanted.state.as_deref().map(state).transpose()?;
    let owner = super::own(&caller, wanted.owner)?;
    let filter = RequestFilter { owner, reservation: wanted.reservation, state };
    super::storable(filter.owner.iter().chain(&filter.reservation))?;
    let question = Question::new(&("requests", &filter.owner, &filter.reservation, &wanted.state));
    let before = question.id(wanted.page_token.as_deref())?;
    let found = in_time(site.broker.requests(&filter, before, limit + 1)).await?;
    let (found, next_page_token) = question.page(found, limit, |last| last.id.to_string());
    let requests = found.into_iter().map(RequestView::from).collect();
    Ok(Json(Requests { requests, next_page_token }))
}

/// Reads the word of a state.
pub(super) fn state(word: &str) -> Result<RequestState, Problem> {
    let found = RequestState::ALL.iter().copied().find(|state| state.as_str() == word);
    let unknown = || Problem::bad_request("malformed", format!("{word:?} is no state"));
    found.ok_or_else(unknown)
}

/// One request
#[utoipa::path(get, path = "/requests/{id}", operation_id = "get_request",
    params(("id" = Uuid, Path, description = "its id")),
    responses((status = 200, description = "what became of it", body = RequestView)))]
pub(super) async fn find(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.reads()?;
    let found = read(&site, &caller, &id).await?;
    let version = found.version.to_string();
    Ok(etag(Json(RequestView::from(found)), &version))
}

/// Whoever may change a request, and the version that was seen.
async fn writes(
    site: &Site,
    caller: &Caller,
    headers: &HeaderMap,
    id: &str,
) -> Result<(Arc<str>, Request, Option<i64>), Problem> {
    caller.needs(Role::Owner)?;
    let found = read(site, caller, id).await?;
    let actor = caller.may_act_for(&found.asking.owner)?;
    let seen = if_match(headers)?;
    let current = || stale(&found.version.to_string());
    let seen = seen.map(|seen| seen.parse::<i64>().map_err(|_| current())).transpose()?;
    Ok((actor, found, seen))
}

/// Takes a request back that is not decided yet
#[utoipa::path(post, path = "/requests/{id}/cancel", operation_id = "cancel_request",
    params(("id" = Uuid, Path, description = "its id"),
        ("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *")),
    responses(
        (status = 200, description = "it is taken back", body = RequestView),
        (status = 409, description = "it was decided"),
        (status = 412, description = "it has changed since"),
        (status = 428, description = "no version was sent")))]
pub(super) async fn cancel(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (actor, found, seen) = writes(&site, &caller, &headers, &id).await?;
    in_time(site.broker.cancel_request(&actor, found.id, seen)).await?;
    Ok(Json(RequestView::from(read(&site, &caller, &id).await?)).into_response())
}

/// Submits a draft
#[utoipa::path(post, path = "/requests/{id}/submit", operation_id = "submit_request",
    params(("id" = Uuid, Path, description = "its id"),
        ("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *")),
    responses(
        (status = 202, description = "it will be decided", body = Object),
        (status = 409, description = "it is no draft"),
        (status = 412, description = "it has changed since"),
        (status = 428, description = "no version was sent")))]
pub(super) async fn submit(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (actor, found, seen) = writes(&site, &caller, &headers, &id).await?;
    let operation = OperationId::now_v7();
    in_time(site.broker.submit_draft(&actor, found.id, seen, operation)).await?;
    site.submitted.notify_one();
    Ok(accepted(&found.asking, found.id, operation).into_response())
}

//! `/ops/v1/emergencies`: capacity that is granted at once; requested, listed and ended.

use crate::http::auth::{Caller, Role};
use crate::http::query::{self, StrictQuery};
use crate::http::{Problem, Site, body, in_time, schema};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use broker::{
    Emergency, EmergencyError, EmergencyId, EmergencyRefusal, EmergencyState, Grant, State as _,
};
use chrono::{DateTime, Utc};
use fleet::Rru;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::sleep;
use utoipa::{IntoParams, ToSchema};

/// Longest wait for a decision, in seconds: load balancers time out soon after.
const WAIT_MAX: u32 = 30;

/// Poll interval.
const POLL_EVERY: Duration = Duration::from_millis(200);

/// Limit of emergencies in a response.
const EMERGENCIES_MAX: u32 = 1_000;

/// Requests capacity at once.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EmergencyAsked)]
struct EmergencyBody {
    /// Its id, which makes retries safe; absent: a new one.
    #[schema(value_type = Option<Uuid>)]
    emergency: Option<String>,
    reservation: String,
    /// Additional RRU.
    rru: f64,
    /// Why, as text.
    why: String,
}

/// An emergency request.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Emergency)]
pub(super) struct EmergencyView {
    emergency: String,
    reservation: String,
    /// Additional RRU requested.
    asked_rru: f64,
    /// Why, as text.
    why: String,
    asked_by: String,
    asked_at: DateTime<Utc>,
    #[schema(schema_with = schema::state::<EmergencyState>)]
    state: &'static str,
    granted: Option<GrantView>,
    /// Code of the refusal.
    refusal: Option<&'static str>,
    /// Reason of the refusal, as text.
    refused_because: Option<&'static str>,
    /// Whether it still waits for a solve to spread and buffer it.
    debt: bool,
}

/// Granted capacity.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmergencyGrant)]
struct GrantView {
    rru: f64,
    at: DateTime<Utc>,
    servers: i32,
    /// Of these, servers from shared buffers.
    from_shared: i32,
}

impl From<Grant> for GrantView {
    fn from(of: Grant) -> GrantView {
        let Grant { amount, at, servers, from_shared } = of;
        GrantView { rru: amount.to_f64(), at, servers, from_shared }
    }
}

impl From<&Emergency> for EmergencyView {
    fn from(of: &Emergency) -> EmergencyView {
        EmergencyView {
            emergency: of.id.to_string(),
            reservation: of.reservation.to_string(),
            asked_rru: of.asked.to_f64(),
            why: of.why.clone(),
            asked_by: of.asked_by.clone(),
            asked_at: of.asked_at,
            state: of.state.as_str(),
            granted: of.granted.map(GrantView::from),
            refusal: of.refusal.map(EmergencyRefusal::as_str),
            refused_because: of.refusal.map(EmergencyRefusal::text),
            debt: of.debt,
        }
    }
}

/// Emergencies, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Emergencies {
    emergencies: Vec<EmergencyView>,
}

/// An ended emergency.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EmergencyEnded {
    ended: String,
}

/// How long to wait for the decision.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WaitQuery {
    /// Seconds, at most 30.
    #[serde(default)]
    wait: u32,
}

impl From<EmergencyError> for Problem {
    fn from(error: EmergencyError) -> Problem {
        let detail = error.to_string();
        match error {
            EmergencyError::NoReason | EmergencyError::Amount => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "malformed", detail)
            }
            EmergencyError::Unknown { .. } => unknown(detail),
            EmergencyError::Over { .. } => Problem::new(StatusCode::CONFLICT, "over", detail),
            EmergencyError::Db(error) => error.into(),
        }
    }
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_emergency", detail)
}

fn parse_id(text: &str) -> Result<EmergencyId, Problem> {
    query::id(text, unknown)
}

/// Requests capacity at once
///
/// The mover decides, usually within a second. 202 means that it has not decided yet.
#[utoipa::path(post, path = "/emergencies", operation_id = "ask_emergency", params(WaitQuery),
    request_body = EmergencyBody,
    responses(
        (status = 201, description = "the grant", body = EmergencyView),
        (status = 202, description = "not decided yet", body = EmergencyView),
        (status = 404, description = "the id is invalid"),
        (status = 409, description = "refused; `emergency` has the details"),
        (status = 422, description = "the reason or the amount is missing")))]
pub(super) async fn ask(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(WaitQuery { wait }): StrictQuery<WaitQuery>,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Emergency)?;
    let body: EmergencyBody = body::json(&body)?;
    let id = body.emergency.as_deref().map_or_else(|| Ok(EmergencyId::now_v7()), parse_id)?;
    let amount = Rru::from_f64(body.rru).ok_or(EmergencyError::Amount)?;
    let broker = &site.broker;
    in_time(broker.ask_emergency(&actor, id, &body.reservation, amount, &body.why)).await?;
    let polls = wait.min(WAIT_MAX) * 5;
    let mut polled = 0;
    loop {
        let of =
            in_time(broker.emergency(id)).await?.ok_or_else(|| unknown("it is gone".to_owned()))?;
        if of.state != EmergencyState::Asked || polled >= polls {
            return Ok(response(&of));
        }
        polled += 1;
        sleep(POLL_EVERY).await;
    }
}

fn response(of: &Emergency) -> Response {
    let status = match of.state {
        EmergencyState::Asked => StatusCode::ACCEPTED,
        EmergencyState::Granted => StatusCode::CREATED,
        EmergencyState::Refused | EmergencyState::Cancelled | EmergencyState::Ended => {
            let why = of.refusal.map_or("the emergency is over", |refusal| refusal.text());
            let code = of.refusal.map_or("over", |refusal| refusal.as_str());
            let problem = Problem::new(StatusCode::CONFLICT, code, why);
            let view = serde_json::to_value(EmergencyView::from(of)).unwrap_or_default();
            return problem.with("emergency", view).into_response();
        }
    };
    let place = format!("/ops/v1/emergencies/{}", of.id);
    (status, [(LOCATION, place)], Json(EmergencyView::from(of))).into_response()
}

/// Emergencies, newest first
#[utoipa::path(get, path = "/emergencies", operation_id = "list_emergencies",
    responses((status = 200, description = "the last thousand", body = Emergencies)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<Emergencies>, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.emergencies(EMERGENCIES_MAX)).await?;
    Ok(Json(Emergencies { emergencies: all.iter().map(EmergencyView::from).collect() }))
}

/// One emergency
#[utoipa::path(get, path = "/emergencies/{id}", operation_id = "get_emergency",
    params(("id" = Uuid, Path, description = "its id")),
    responses((status = 200, description = "the outcome", body = EmergencyView)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<EmergencyView>, Problem> {
    caller.reads_region()?;
    let id = parse_id(&id)?;
    let of = in_time(site.broker.emergency(id)).await?;
    let of = of.ok_or_else(|| unknown(format!("there is no emergency {id}")))?;
    Ok(Json(EmergencyView::from(&of)))
}

/// Ends an emergency: the promise is reduced again
#[utoipa::path(post, path = "/emergencies/{id}/end", operation_id = "end_emergency",
    params(("id" = Uuid, Path, description = "its id")),
    responses(
        (status = 200, description = "the emergency is ended", body = EmergencyEnded),
        (status = 409, description = "the emergency is over")))]
pub(super) async fn end(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<EmergencyEnded>, Problem> {
    let actor = caller.needs(Role::Emergency)?;
    let id = parse_id(&id)?;
    in_time(site.broker.end_emergency(&actor, id)).await?;
    Ok(Json(EmergencyEnded { ended: id.to_string() }))
}

//! `/ops/v1/emergencies`: capacity at once, asked for, listed and ended.

use crate::api::asked::{self, Asked};
use crate::api::authority::{Caller, Role};
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State as Extension};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use broker::{
    Emergency, EmergencyError, EmergencyId, EmergencyRefusal, EmergencyState, Grant, State,
};
use chrono::{DateTime, Utc};
use fleet::Rru;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::sleep;
use utoipa::{IntoParams, ToSchema};

/// The longest wait for an answer: balancers give up after about as long.
const WAIT_MAX: u32 = 30;

/// How often the answer is looked for meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The most of one answer.
const EMERGENCIES_MAX: u32 = 1_000;

/// Capacity as it is asked for at once.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EmergencyAsked)]
struct AskBody {
    /// Its id, so that asking again changes nothing; absent: a new one.
    #[schema(value_type = Option<Uuid>)]
    emergency: Option<String>,
    reservation: String,
    /// How much more than it has.
    rru: f64,
    /// Why, for people.
    why: String,
}

/// Capacity that was asked for at once.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Emergency)]
pub(super) struct EmergencyView {
    emergency: String,
    reservation: String,
    /// How much more than it had.
    asked_rru: f64,
    /// Why, for people.
    why: String,
    asked_by: String,
    asked_at: DateTime<Utc>,
    #[schema(schema_with = asked::state::<EmergencyState>)]
    state: &'static str,
    granted: Option<GrantView>,
    /// Why nothing was granted, for programs.
    refusal: Option<&'static str>,
    /// Why nothing was granted, for people.
    refused_because: Option<&'static str>,
    /// Whether no solve has spread and buffered it yet.
    debt: bool,
}

/// What was granted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmergencyGrant)]
struct GrantView {
    rru: f64,
    at: DateTime<Utc>,
    servers: i32,
    /// How many of them shared buffers gave.
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

/// The youngest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Emergencies {
    emergencies: Vec<EmergencyView>,
}

/// What was ended.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EmergencyEnded {
    ended: String,
}

/// For how long to wait for the answer.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wait {
    /// Seconds; 30 at most count.
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

fn read(said: &str) -> Result<EmergencyId, Problem> {
    asked::id(said, unknown)
}

/// Asks for capacity at once
///
/// The mover answers, within a second where it runs; 202 means that it has not yet.
#[utoipa::path(post, path = "/emergencies", operation_id = "ask_emergency", params(Wait),
    request_body = AskBody,
    responses(
        (status = 201, description = "what was granted", body = EmergencyView),
        (status = 202, description = "nobody has answered yet", body = EmergencyView),
        (status = 404, description = "an id that is none"),
        (status = 409, description = "nothing was granted, and why; `emergency` has the rest"),
        (status = 422, description = "it has no reason or no amount")))]
pub(super) async fn ask(
    Extension(site): Extension<Site>,
    caller: Caller,
    Asked(Wait { wait }): Asked<Wait>,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Emergency)?;
    let body: AskBody = asked::json(&body)?;
    let id = body.emergency.as_deref().map_or_else(|| Ok(EmergencyId::now_v7()), read)?;
    let amount = Rru::from_f64(body.rru).ok_or(EmergencyError::Amount)?;
    let broker = &site.broker;
    in_time(broker.ask_emergency(&actor, id, &body.reservation, amount, &body.why)).await?;
    let looks = wait.min(WAIT_MAX) * 5;
    let mut looked = 0;
    loop {
        let of =
            in_time(broker.emergency(id)).await?.ok_or_else(|| unknown("it is gone".to_owned()))?;
        if of.state != EmergencyState::Asked || looked >= looks {
            return Ok(answer(&of));
        }
        looked += 1;
        sleep(LOOK_EVERY).await;
    }
}

fn answer(of: &Emergency) -> Response {
    let status = match of.state {
        EmergencyState::Asked => StatusCode::ACCEPTED,
        EmergencyState::Granted => StatusCode::CREATED,
        EmergencyState::Refused | EmergencyState::Cancelled | EmergencyState::Ended => {
            let why = of.refusal.map_or("it is over", |refusal| refusal.text());
            let code = of.refusal.map_or("over", |refusal| refusal.as_str());
            let problem = Problem::new(StatusCode::CONFLICT, code, why);
            let view = serde_json::to_value(EmergencyView::from(of)).unwrap_or_default();
            return problem.with("emergency", view).into_response();
        }
    };
    let place = format!("/ops/v1/emergencies/{}", of.id);
    (status, [(LOCATION, place)], Json(EmergencyView::from(of))).into_response()
}

/// Capacity that was asked for at once, the youngest first
#[utoipa::path(get, path = "/emergencies", operation_id = "list_emergencies",
    responses((status = 200, description = "the last thousand", body = Emergencies)))]
pub(super) async fn list(
    Extension(site): Extension<Site>,
    caller: Caller,
) -> Result<Json<Emergencies>, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.emergencies(EMERGENCIES_MAX)).await?;
    Ok(Json(Emergencies { emergencies: all.iter().map(EmergencyView::from).collect() }))
}

/// One emergency
#[utoipa::path(get, path = "/emergencies/{id}", operation_id = "get_emergency",
    params(("id" = Uuid, Path, description = "its id")),
    responses((status = 200, description = "what became of it", body = EmergencyView)))]
pub(super) async fn find(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<EmergencyView>, Problem> {
    caller.reads_region()?;
    let id = read(&id)?;
    let of = in_time(site.broker.emergency(id)).await?;
    let of = of.ok_or_else(|| unknown(format!("there is no emergency {id}")))?;
    Ok(Json(EmergencyView::from(&of)))
}

/// Ends an emergency: what is promised shrinks again
#[utoipa::path(post, path = "/emergencies/{id}/end", operation_id = "end_emergency",
    params(("id" = Uuid, Path, description = "its id")),
    responses(
        (status = 200, description = "it is ended", body = EmergencyEnded),
        (status = 409, description = "it is over")))]
pub(super) async fn end(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<EmergencyEnded>, Problem> {
    let actor = caller.needs(Role::Emergency)?;
    let id = read(&id)?;
    in_time(site.broker.end_emergency(&actor, id)).await?;
    Ok(Json(EmergencyEnded { ended: id.to_string() }))
}

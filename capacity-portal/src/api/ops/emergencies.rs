//! `/ops/v1/emergencies`: capacity that is granted at once; requested, listed and ended.

use crate::http::auth::{Caller, Role};
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::query::{self, StrictQuery};
use crate::http::{Problem, Site, body, in_time};
use api_types::emergencies::{
    Emergencies, Emergency, EmergencyAsked, EmergencyEnded, EmergencyGrant,
};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use broker::{EmergencyError, EmergencyId, EmergencyState, Grant, State as _};
use fleet::Rru;
use serde::Deserialize;
use std::time::Duration;
use tokio::time::sleep;
use utoipa::IntoParams;

/// Longest wait for a decision, in seconds: load balancers time out soon after.
const WAIT_MAX: u32 = 30;

/// Poll interval.
const POLL_EVERY: Duration = Duration::from_millis(200);

/// Most emergencies that are listed: the last ones.
const EMERGENCIES_MAX: u32 = 100_000;

const EMERGENCIES: ListKind =
    ListKind { rows: "emergencies", key: &["emergency"], order: "asked_at desc", page: WHOLE };

/// An emergency, as it is sent.
fn view(of: &broker::Emergency) -> Emergency {
    let grant = |of: Grant| EmergencyGrant {
        rru: of.amount.to_f64(),
        at: of.at,
        servers: of.servers,
        from_shared: of.from_shared,
    };
    Emergency {
        emergency: of.id.to_string(),
        reservation: of.reservation.to_string(),
        asked_rru: of.asked.to_f64(),
        why: of.why.clone(),
        asked_by: of.asked_by.clone(),
        asked_at: of.asked_at,
        state: of.state.as_str().to_owned(),
        granted: of.granted.map(grant),
        refusal: of.refusal.map(|refusal| refusal.as_str().to_owned()),
        refused_because: of.refusal.map(|refusal| refusal.text().to_owned()),
        debt: of.debt,
    }
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
    request_body = EmergencyAsked,
    responses(
        (status = 201, description = "the grant", body = Emergency),
        (status = 202, description = "not decided yet", body = Emergency),
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
    let body: EmergencyAsked = body::json(&body)?;
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

fn response(of: &broker::Emergency) -> Response {
    let status = match of.state {
        EmergencyState::Asked => StatusCode::ACCEPTED,
        EmergencyState::Granted => StatusCode::CREATED,
        EmergencyState::Refused | EmergencyState::Cancelled | EmergencyState::Ended => {
            let why = of.refusal.map_or("the emergency is over", |refusal| refusal.text());
            let code = of.refusal.map_or("over", |refusal| refusal.as_str());
            let problem = Problem::new(StatusCode::CONFLICT, code, why);
            let view = serde_json::to_value(view(of)).unwrap_or_default();
            return problem.with("emergency", view).into_response();
        }
    };
    let place = format!("/ops/v1/emergencies/{}", of.id);
    (status, [(LOCATION, place)], Json(view(of))).into_response()
}

/// Emergencies, newest first
#[utoipa::path(get, path = "/emergencies", operation_id = "list_emergencies",
    params(ListQuery),
    responses((status = 200, description = "a page", body = Emergencies)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.emergencies(EMERGENCIES_MAX)).await?;
    let page = list.page_of(EMERGENCIES, &filters, all.iter().map(view))?;
    Ok(page.response(&Emergencies { emergencies: Vec::new(), next_page_token: None }))
}

/// One emergency
#[utoipa::path(get, path = "/emergencies/{id}", operation_id = "get_emergency",
    params(("id" = Uuid, Path, description = "its id")),
    responses((status = 200, description = "the outcome", body = Emergency)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Emergency>, Problem> {
    caller.reads_region()?;
    let id = parse_id(&id)?;
    let of = in_time(site.broker.emergency(id)).await?;
    let of = of.ok_or_else(|| unknown(format!("there is no emergency {id}")))?;
    Ok(Json(view(&of)))
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

//! `/v1/emergencies`: capacity at once, asked for, listed and ended.

use super::authority::{Caller, Role};
use super::problem::Problem;
use super::{Site, in_time};
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use broker::{Emergency, EmergencyError, EmergencyState};
use fleet::Rru;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;
use uuid::Uuid;

/// The longest wait for an answer: balancers give up after about as long.
const WAIT_MAX: u32 = 30;

/// How often the answer is looked for meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The most of one answer.
const EMERGENCIES_MAX: u32 = 1_000;

/// What is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskBody {
    /// Its id, so that asking again changes nothing; absent: a new one.
    emergency: Option<String>,
    reservation: String,
    rru: f64,
    why: String,
}

/// For how long to wait for the answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
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

fn read(id: &str) -> Result<Uuid, Problem> {
    Uuid::parse_str(id).map_err(|_| unknown(format!("{id:?} is the id of no emergency")))
}

/// Asks: 202 while nobody has answered, 201 with what was granted, 409 and why nothing was.
pub(super) async fn ask(
    State(site): State<Site>,
    caller: Caller,
    wait: Result<Query<Wait>, QueryRejection>,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Emergency)?;
    let malformed = |error: QueryRejection| Problem::bad_request("malformed", error.body_text());
    let Query(Wait { wait }) = wait.map_err(malformed)?;
    let body: AskBody = super::json(&body)?;
    let id = body.emergency.as_deref().map_or_else(|| Ok(Uuid::now_v7()), read)?;
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
            return problem.with("emergency", of.json()).into_response();
        }
    };
    let place = format!("/v1/emergencies/{}", of.id);
    (status, [(LOCATION, place)], Json(of.json())).into_response()
}

/// Lists them, the youngest first.
pub(super) async fn list(State(site): State<Site>, caller: Caller) -> Result<Response, Problem> {
    caller.reads()?;
    let all = in_time(site.broker.emergencies(EMERGENCIES_MAX)).await?;
    Ok(Json(json!({ "emergencies": all.iter().map(Emergency::json).collect::<Vec<_>>() }))
        .into_response())
}

/// One of them.
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.reads()?;
    let id = read(&id)?;
    let of = in_time(site.broker.emergency(id)).await?;
    let of = of.ok_or_else(|| unknown(format!("there is no emergency {id}")))?;
    Ok(Json(of.json()).into_response())
}

/// Ends one: what is promised shrinks again.
pub(super) async fn end(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Emergency)?;
    let id = read(&id)?;
    in_time(site.broker.end_emergency(&actor, id)).await?;
    Ok(Json(json!({ "ended": id.to_string() })).into_response())
}

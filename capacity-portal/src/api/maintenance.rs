//! `/v1/maintenance`: windows of planned maintenance, asked for, listed, ended and cancelled.

use super::authority::{Caller, Role};
use super::problem::Problem;
use super::{Site, in_time};
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use broker::{MaintenanceError, MaintenanceRefusal, MaintenanceRequest, MaintenanceWindow};
use chrono::{DateTime, Utc};
use fleet::Scope;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

/// The most windows of one answer.
const WINDOWS_MAX: u32 = 1_000;

/// A plan as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanBody {
    scope: String,
    scope_id: String,
    /// Absent: as soon as the drain is over.
    starts_at: Option<DateTime<Utc>>,
    length_seconds: u32,
    #[serde(default)]
    drain_seconds: u32,
    share: Option<f64>,
    why: String,
}

impl PlanBody {
    fn request(self) -> Result<MaintenanceRequest, Problem> {
        let malformed = |detail: String| Problem::bad_request("malformed", detail);
        let scope = Scope::parse(&self.scope).filter(|scope| *scope != Scope::Datacenter);
        let scope = scope.ok_or_else(|| {
            malformed(format!("scope {:?} is none of server, rack or msb", self.scope))
        })?;
        let share_micro = match self.share {
            None => None,
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1")]
            Some(share) if (0.0..=1.0).contains(&share) => Some((share * 1e6).round() as u32),
            Some(_) => return Err(malformed("share is from 0 to 1".to_owned())),
        };
        Ok(MaintenanceRequest {
            scope,
            name: self.scope_id.into(),
            starts_at: self.starts_at,
            length: Duration::from_secs(self.length_seconds.into()),
            drain: Duration::from_secs(self.drain_seconds.into()),
            share_micro,
            why: self.why,
        })
    }
}

/// Which windows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// Those that are over, too.
    #[serde(default)]
    all: bool,
    limit: Option<u32>,
}

impl From<MaintenanceError> for Problem {
    fn from(error: MaintenanceError) -> Problem {
        let detail = error.to_string();
        match error {
            MaintenanceError::Refused(refusal) => refused(&refusal),
            MaintenanceError::Unknown { .. } => unknown(detail),
            MaintenanceError::Over { .. } => Problem::new(StatusCode::CONFLICT, "over", detail),
            MaintenanceError::NotActive { .. } => {
                Problem::new(StatusCode::CONFLICT, "not_active", detail)
            }
            MaintenanceError::Db(error) => error.into(),
        }
    }
}

/// 409: what there is stands in the way, and that may change; 422: it can never be.
fn refused(refusal: &MaintenanceRefusal) -> Problem {
    let status = match refusal {
        MaintenanceRefusal::Share { .. }
        | MaintenanceRefusal::Guarantee { .. }
        | MaintenanceRefusal::OutageNow { .. } => StatusCode::CONFLICT,
        MaintenanceRefusal::UnknownScope { .. }
        | MaintenanceRefusal::InThePast { .. }
        | MaintenanceRefusal::Length { .. } => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let problem = Problem::new(status, refusal.code(), refusal.to_string());
    match refusal.numbers() {
        Value::Object(numbers) => {
            numbers.into_iter().fold(problem, |problem, (name, value)| problem.with(&name, value))
        }
        _ => problem,
    }
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_maintenance", detail)
}

fn windows(windows: &[MaintenanceWindow]) -> Vec<Value> {
    windows.iter().map(MaintenanceWindow::json).collect()
}

/// Plans maintenance: 201 and its windows, or why it cannot be.
pub(super) async fn plan(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let request = super::json::<PlanBody>(&body)?.request()?;
    let planned = in_time(site.broker.plan_maintenance(&actor, &request)).await?;
    let plan = planned.first().map(|window| window.plan.to_string());
    let answer = json!({ "plan": plan, "windows": windows(&planned) });
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

/// Lists windows, those still to come or under way first.
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Response, Problem> {
    caller.reads()?;
    let refused = |error: QueryRejection| Problem::bad_request("malformed", error.body_text());
    let Query(Which { all, limit }) = which.map_err(refused)?;
    let limit = limit.unwrap_or(WINDOWS_MAX);
    if !(1..=WINDOWS_MAX).contains(&limit) {
        let detail = format!("an answer has 1 to {WINDOWS_MAX} windows");
        return Err(Problem::bad_request("malformed", detail));
    }
    let listed = in_time(site.broker.maintenance(all, None, limit)).await?;
    Ok(Json(json!({ "windows": windows(&listed) })).into_response())
}

/// One window, or all of a plan.
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.reads()?;
    let id = read(&id)?;
    let found = in_time(site.broker.maintenance(true, Some(id), WINDOWS_MAX)).await?;
    if found.is_empty() {
        return Err(unknown(format!("there is no maintenance {id}")));
    }
    Ok(Json(json!({ "windows": windows(&found) })).into_response())
}

/// Ends work that is done before its time.
pub(super) async fn end(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let ended = in_time(site.broker.end_maintenance(&actor, read(&id)?)).await?;
    Ok(stopped("ended", &ended))
}

/// Cancels windows, however far they are.
pub(super) async fn cancel(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let cancelled = in_time(site.broker.cancel_maintenance(&actor, read(&id)?)).await?;
    Ok(stopped("cancelled", &cancelled))
}

fn read(id: &str) -> Result<Uuid, Problem> {
    Uuid::parse_str(id).map_err(|_| unknown(format!("{id:?} is the id of no maintenance")))
}

fn stopped(how: &str, windows: &[Uuid]) -> Response {
    let ids: Vec<String> = windows.iter().map(ToString::to_string).collect();
    Json(json!({ how: ids })).into_response()
}

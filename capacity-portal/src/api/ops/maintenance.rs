//! `/ops/v1/maintenance`: windows of planned maintenance, asked for, listed, ended and cancelled.

use super::events::scopes;
use crate::api::asked::{self, Asked};
use crate::api::authority::{Caller, Role};
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State as Extension};
use axum::http::StatusCode;
use broker::{
    MaintenanceError, MaintenanceId, MaintenancePreview, MaintenanceReason, MaintenanceRefusal,
    MaintenanceRequest, MaintenanceState, MaintenanceWindow, State, WindowId,
};
use chrono::{DateTime, Utc};
use fleet::Scope;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// The most windows of one answer.
const WINDOWS_MAX: u32 = 1_000;

/// Planned maintenance as it is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MaintenanceAsked)]
struct PlanBody {
    /// Of an MSB windows are planned rack by rack.
    #[schema(schema_with = planned_scopes)]
    scope: String,
    /// The name of the server, rack or MSB.
    scope_id: String,
    /// Absent: as soon as the drain is over.
    starts_at: Option<DateTime<Utc>>,
    length_seconds: u32,
    /// For how long before nothing new is put there.
    #[serde(default)]
    drain_seconds: u32,
    /// How much of its MSB may be under maintenance at once while it is; a quarter unless told
    /// otherwise.
    #[schema(minimum = 0.0, maximum = 1.0)]
    share: Option<f64>,
    /// How many minutes work takes to give its servers back when it is recalled because an MSB is lost.
    /// Absent: it cannot be recalled, and its servers count as gone.
    recall_minutes: Option<u32>,
    /// Why, for people.
    why: String,
}

fn planned_scopes() -> utoipa::openapi::Schema {
    asked::words([Scope::Server, Scope::Rack, Scope::Msb].map(Scope::as_str))
}

/// A window of planned maintenance.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MaintenanceWindow)]
struct Window {
    window: String,
    /// What windows that were asked for together share; of one alone, its own id.
    plan: String,
    /// What the plan is for.
    #[schema(schema_with = scopes)]
    asked_for: &'static str,
    /// A server or a rack.
    #[schema(schema_with = scopes)]
    scope: &'static str,
    /// Its name.
    scope_id: String,
    msb: String,
    /// When nothing new is put there any more.
    drains_at: DateTime<Utc>,
    starts_at: DateTime<Utc>,
    ends_at: DateTime<Utc>,
    drain_seconds: u64,
    /// How much of its MSB may be under maintenance at once while it is.
    share: f64,
    /// How many minutes work takes to give its servers back when it is recalled; null: it cannot be.
    recall_minutes: Option<u32>,
    /// Why, for people.
    why: String,
    requested_by: String,
    requested_at: DateTime<Utc>,
    #[schema(schema_with = asked::state::<MaintenanceState>)]
    state: &'static str,
    state_at: DateTime<Utc>,
    /// Why it is paused, was cancelled or ended before its time.
    reason: Option<&'static str>,
    /// The numbers behind that, for people.
    detail: Option<String>,
    /// Its servers now; of one that is over, none.
    servers: u64,
    /// Those of them that are in use or lent.
    in_use: u64,
    /// How far its recall is; null: it was not recalled.
    recall: Option<Recall>,
}

/// How far the recall of a window is: an MSB was lost elsewhere.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MaintenanceRecall)]
struct Recall {
    ordered_at: DateTime<Utc>,
    /// When all of it is to be back.
    due_at: DateTime<Utc>,
    /// When the last server that is back was; null: none is.
    back_at: Option<DateTime<Utc>>,
    /// Servers recalled.
    servers: u64,
    /// Those of them that are back.
    returned: u64,
    /// Those whose hosts refused: they stay out until the window ends.
    refused: u64,
}

impl From<&MaintenanceWindow> for Window {
    fn from(of: &MaintenanceWindow) -> Window {
        Window {
            window: of.id.to_string(),
            plan: of.plan.to_string(),
            asked_for: of.asked_for.as_str(),
            scope: of.scope.as_str(),
            scope_id: of.name.to_string(),
            msb: of.msb.to_string(),
            drains_at: of.drains_at(),
            starts_at: of.starts_at,
            ends_at: of.ends_at,
            drain_seconds: of.drain.as_secs(),
            share: f64::from(of.share_micro) / 1e6,
            recall_minutes: of.recall_minutes,
            why: of.why.clone(),
            requested_by: of.requested_by.clone(),
            requested_at: of.requested_at,
            state: of.state.as_str(),
            state_at: of.state_at,
            reason: of.reason.map(MaintenanceReason::as_str),
            detail: of.detail.clone(),
            servers: of.servers,
            in_use: of.in_use,
            recall: of.recall.map(|of| Recall {
                ordered_at: of.ordered_at,
                due_at: of.due_at,
                back_at: of.back_at,
                servers: of.servers,
                returned: of.returned,
                refused: of.refused,
            }),
        }
    }
}

/// Windows.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MaintenanceWindows)]
pub(super) struct Windows {
    /// Those still to come or under way first.
    windows: Vec<Window>,
}

impl Windows {
    fn of(windows: &[MaintenanceWindow]) -> Windows {
        Windows { windows: windows.iter().map(Window::from).collect() }
    }
}

/// Windows that were planned together.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MaintenancePlan)]
pub(super) struct Planned {
    plan: Option<String>,
    /// In order of time.
    windows: Vec<Window>,
}

/// Windows that were ended.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MaintenanceEnded)]
pub(super) struct Ended {
    ended: Vec<String>,
}

/// Windows that were cancelled.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MaintenanceCancelled)]
pub(super) struct Cancelled {
    cancelled: Vec<String>,
}

impl PlanBody {
    fn request(self) -> Result<MaintenanceRequest, Problem> {
        let malformed = |field: &str, detail: String| {
            Problem::bad_request("malformed", detail).with("field", field.into())
        };
        let scope = Scope::parse(&self.scope).filter(|scope| *scope != Scope::Datacenter);
        let scope = scope.ok_or_else(|| {
            malformed("scope", format!("scope {:?} is none of server, rack or msb", self.scope))
        })?;
        let share_micro = match self.share {
            None => None,
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1")]
            Some(share) if (0.0..=1.0).contains(&share) => Some((share * 1e6).round() as u32),
            Some(_) => return Err(malformed("share", "share is from 0 to 1".to_owned())),
        };
        Ok(MaintenanceRequest {
            scope,
            name: self.scope_id.into(),
            starts_at: self.starts_at,
            length: Duration::from_secs(self.length_seconds.into()),
            drain: Duration::from_secs(self.drain_seconds.into()),
            share_micro,
            recall_minutes: self.recall_minutes,
            why: self.why,
        })
    }
}

/// Which windows.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Those that are over, too.
    #[serde(default)]
    all: bool,
    #[param(minimum = 1, maximum = 1_000)]
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
    let problem = match field(refusal) {
        Some(field) => problem.with("field", field.into()),
        None => problem,
    };
    match refusal.numbers() {
        Value::Object(numbers) => {
            numbers.into_iter().fold(problem, |problem, (name, value)| problem.with(&name, value))
        }
        _ => problem,
    }
}

/// The field of the body that can never be so; `None`: what there is stands in the way.
fn field(refusal: &MaintenanceRefusal) -> Option<&'static str> {
    match refusal {
        MaintenanceRefusal::UnknownScope { .. } => Some("scope_id"),
        MaintenanceRefusal::InThePast { .. } => Some("starts_at"),
        MaintenanceRefusal::Length { what: "a window", .. } => Some("length_seconds"),
        MaintenanceRefusal::Length { what: "a drain", .. } => Some("drain_seconds"),
        MaintenanceRefusal::Length { what: "a recall", .. } => Some("recall_minutes"),
        MaintenanceRefusal::Length { .. } => Some("starts_at"),
        MaintenanceRefusal::Share { .. }
        | MaintenanceRefusal::Guarantee { .. }
        | MaintenanceRefusal::OutageNow { .. } => None,
    }
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_maintenance", detail)
}

fn read(said: &str) -> Result<MaintenanceId, Problem> {
    asked::id(said, unknown)
}

fn texts(ids: &[WindowId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// Plans maintenance, or says why it cannot be
///
/// 409: what there is stands in the way, and that may change; 422: it can never be. Either has the
/// numbers behind it.
#[utoipa::path(post, path = "/maintenance", operation_id = "plan_maintenance",
    request_body = PlanBody,
    responses(
        (status = 201, description = "its windows", body = Planned),
        (status = 409, description = "what there is stands in the way"),
        (status = 422, description = "it can never be")))]
pub(super) async fn plan(
    Extension(site): Extension<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<(StatusCode, Json<Planned>), Problem> {
    let planned = planned_for(&site, &caller, &body).await?;
    let plan = planned.first().map(|window| window.plan.to_string());
    let planned = Planned { plan, windows: planned.iter().map(Window::from).collect() };
    Ok((StatusCode::CREATED, Json(planned)))
}

/// What [`plan`] does, for a page as well.
pub(crate) async fn planned_for(
    site: &Site,
    caller: &Caller,
    body: &[u8],
) -> Result<Vec<MaintenanceWindow>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let request = asked::json::<PlanBody>(body)?.request()?;
    in_time(site.broker.plan_maintenance(&actor, &request)).await
}

/// What [`plan`] would do now, or would refuse, for a page.
pub(crate) async fn previewed_for(
    site: &Site,
    caller: &Caller,
    body: &[u8],
) -> Result<MaintenancePreview, Problem> {
    caller.needs(Role::Operator)?;
    let request = asked::json::<PlanBody>(body)?.request()?;
    in_time(site.broker.preview_maintenance(&request)).await
}

/// Windows of planned maintenance, those still to come or under way first
#[utoipa::path(get, path = "/maintenance", operation_id = "list_maintenance", params(Which),
    responses((status = 200, description = "windows", body = Windows)))]
pub(super) async fn list(
    Extension(site): Extension<Site>,
    caller: Caller,
    Asked(Which { all, limit }): Asked<Which>,
) -> Result<Json<Windows>, Problem> {
    caller.reads_region()?;
    let limit = asked::limit(limit, WINDOWS_MAX, WINDOWS_MAX)?;
    let listed = in_time(site.broker.maintenance(all, None, limit)).await?;
    Ok(Json(Windows::of(&listed)))
}

/// One window of planned maintenance, or all of a plan
#[utoipa::path(get, path = "/maintenance/{id}", operation_id = "get_maintenance",
    params(("id" = Uuid, Path, description = "a window or a plan")),
    responses((status = 200, description = "its windows", body = Windows)))]
pub(super) async fn find(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Windows>, Problem> {
    caller.reads_region()?;
    let id = read(&id)?;
    let found = in_time(site.broker.maintenance(true, Some(id), WINDOWS_MAX)).await?;
    if found.is_empty() {
        return Err(unknown(format!("there is no maintenance {id}")));
    }
    Ok(Json(Windows::of(&found)))
}

/// Ends maintenance that is done before its time
#[utoipa::path(post, path = "/maintenance/{id}/end", operation_id = "end_maintenance",
    params(("id" = Uuid, Path, description = "a window or a plan")),
    responses(
        (status = 200, description = "what was ended", body = Ended),
        (status = 409, description = "it is over or has not begun")))]
pub(super) async fn end(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Ended>, Problem> {
    let ended = ended_for(&site, &caller, &id).await?;
    Ok(Json(Ended { ended: texts(&ended) }))
}

/// What [`end`] does, for a page as well.
pub(crate) async fn ended_for(
    site: &Site,
    caller: &Caller,
    id: &str,
) -> Result<Vec<WindowId>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    in_time(site.broker.end_maintenance(&actor, read(id)?)).await
}

/// Cancels maintenance, however far it is
#[utoipa::path(post, path = "/maintenance/{id}/cancel", operation_id = "cancel_maintenance",
    params(("id" = Uuid, Path, description = "a window or a plan")),
    responses(
        (status = 200, description = "what was cancelled", body = Cancelled),
        (status = 409, description = "it is over")))]
pub(super) async fn cancel(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Cancelled>, Problem> {
    let cancelled = cancelled_for(&site, &caller, &id).await?;
    Ok(Json(Cancelled { cancelled: texts(&cancelled) }))
}

/// What [`cancel`] does, for a page as well.
pub(crate) async fn cancelled_for(
    site: &Site,
    caller: &Caller,
    id: &str,
) -> Result<Vec<WindowId>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    in_time(site.broker.cancel_maintenance(&actor, read(id)?)).await
}

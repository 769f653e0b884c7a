//! `/ops/v1/maintenance`: windows of planned maintenance.

use crate::http::auth::{Caller, Role};
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::query;
use crate::http::{Problem, Site, body, in_time};
use api_types::maintenance::{
    AcceptShort, MaintenanceAsked, MaintenanceCancelled, MaintenanceEnded, MaintenancePlan,
    MaintenanceRecall, MaintenanceWindow, MaintenanceWindows,
};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use broker::{
    AcceptedShort, MaintenanceAlternative, MaintenanceError, MaintenanceId, MaintenanceLength,
    MaintenancePreview, MaintenanceRefusal, MaintenanceRequest, State as _, WindowId,
};
use decisions::domains::{Domain, Loss};
use fleet::{MsbName, ReservationName, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use utoipa::IntoParams;

/// Most windows that are listed: open ones, then the last ones.
const WINDOWS_MAX: u32 = 100_000;

const WINDOWS: ListKind =
    ListKind { rows: "windows", key: &["window"], order: "starts_at", page: WHOLE };

/// Scopes of a plan.
pub(in crate::api) const PLANNED_SCOPES: [Scope; 3] = [Scope::Server, Scope::Rack, Scope::Msb];

/// A window, as it is sent.
fn view(of: &broker::MaintenanceWindow) -> MaintenanceWindow {
    MaintenanceWindow {
        window: of.id.to_string(),
        plan: of.plan.to_string(),
        asked_for: of.asked_for.as_str().to_owned(),
        scope: of.scope.as_str().to_owned(),
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
        state: of.state.as_str().to_owned(),
        open: !of.state.is_terminal(),
        state_at: of.state_at,
        reason: of.reason.map(|reason| reason.as_str().to_owned()),
        detail: of.detail.clone(),
        servers: of.servers,
        in_use: of.in_use,
        accept_short: of.accept_short.as_ref().map(|of| AcceptShort {
            reservations: of.reservations.iter().map(ToString::to_string).collect(),
            why: of.why.clone(),
        }),
        recall: of.recall.map(|of| MaintenanceRecall {
            ordered_at: of.ordered_at,
            due_at: of.due_at,
            back_at: of.back_at,
            servers: of.servers,
            returned: of.returned,
            refused: of.refused,
        }),
    }
}

/// Reads a body.
fn request(body: MaintenanceAsked) -> Result<MaintenanceRequest, Problem> {
    let malformed =
        |field: &str, detail: String| Problem::bad_request("malformed", detail).with_field(field);
    let scope = Scope::parse(&body.scope).filter(|scope| PLANNED_SCOPES.contains(scope));
    let scope = scope.ok_or_else(|| {
        malformed("scope", format!("scope {:?} is not server, rack or msb", body.scope))
    })?;
    let share_micro = match body.share {
        None => None,
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1")]
        Some(share) if (0.0..=1.0).contains(&share) => Some((share * 1e6).round() as u32),
        Some(_) => return Err(malformed("share", "share must be from 0 to 1".to_owned())),
    };
    let accept_short = body.accept_short.map(|of| {
        let reservations: BTreeSet<ReservationName> =
            of.reservations.into_iter().map(Into::into).collect();
        if reservations.is_empty() {
            let detail = "name the reservations that may be short";
            return Err(malformed("accept_short.reservations", detail.to_owned()));
        }
        if of.why.trim().is_empty() {
            let detail = "say why they may be short: the audit trail keeps it";
            return Err(malformed("accept_short.why", detail.to_owned()));
        }
        Ok(AcceptedShort { reservations, why: of.why })
    });
    Ok(MaintenanceRequest {
        accept_short: accept_short.transpose()?,
        scope,
        name: body.scope_id.into(),
        starts_at: body.starts_at,
        length: Duration::from_secs(body.length_seconds.into()),
        drain: Duration::from_secs(body.drain_seconds.into()),
        share_micro,
        recall_minutes: body.recall_minutes,
        why: body.why,
    })
}

/// Filters of the list of windows.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WindowsQuery {
    /// Whether to include windows that are over.
    #[serde(default)]
    all: bool,
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

/// 409: the current state forbids it, which may change; 422: it is never possible.
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
        Some(field) => problem.with_field(field),
        None => problem,
    };
    let numbers = numbers(refusal).into_iter();
    numbers.fold(problem, |problem, (name, value)| problem.with(name, value))
}

/// The invalid field of the body; `None`: the current state forbids the window.
fn field(refusal: &MaintenanceRefusal) -> Option<&'static str> {
    match refusal {
        MaintenanceRefusal::UnknownScope { .. } => Some("scope_id"),
        MaintenanceRefusal::InThePast { .. } => Some("starts_at"),
        MaintenanceRefusal::Length { what, .. } => Some(match what {
            MaintenanceLength::Window => "length_seconds",
            MaintenanceLength::Drain => "drain_seconds",
            MaintenanceLength::Recall => "recall_minutes",
            MaintenanceLength::Ahead => "starts_at",
        }),
        MaintenanceRefusal::Share { .. }
        | MaintenanceRefusal::Guarantee { .. }
        | MaintenanceRefusal::OutageNow { .. } => None,
    }
}

/// The numbers behind a refusal, as members of the problem.
fn numbers(refusal: &MaintenanceRefusal) -> Vec<(&'static str, Value)> {
    match refusal {
        MaintenanceRefusal::UnknownScope { scope, name } => {
            vec![("scope", scope.as_str().into()), ("name", json!(name))]
        }
        MaintenanceRefusal::InThePast { starts_at, now } => {
            vec![("starts_at", json!(starts_at)), ("now", json!(now))]
        }
        MaintenanceRefusal::Length { what, seconds, least, most } => vec![
            ("what", what.as_str().into()),
            ("seconds", json!(seconds)),
            ("least", json!(least)),
            ("most", json!(most)),
        ],
        MaintenanceRefusal::Share { msb, out, servers, most, instead } => vec![
            ("msb", json!(msb)),
            ("out", json!(out)),
            ("servers", json!(servers)),
            ("most", json!(most)),
            ("instead", alternatives(instead)),
        ],
        MaintenanceRefusal::Guarantee { left, msb, blocking, instead } => vec![
            ("blocked_by", json!(blocking)),
            ("reservation", json!(left.reservation)),
            ("lost_msb", json!(lost_msb(left.lost.as_ref()))),
            ("lost_domain", lost_domain(left.lost.as_ref())),
            ("needed_at_once_rru", json!(left.needed_at_once.to_f64())),
            ("left_at_once_rru", json!(left.left_at_once.to_f64())),
            ("needed_rru", json!(left.needed.to_f64())),
            ("left_rru", json!(left.left.to_f64())),
            ("msb", json!(msb)),
            ("instead", alternatives(instead)),
        ],
        MaintenanceRefusal::OutageNow { msb } => vec![("msb", json!(msb))],
    }
}

/// The MSB that is assumed lost, if one is.
fn lost_msb(lost: Option<&Loss>) -> Option<&MsbName> {
    match lost {
        Some(Loss::Msb(msb)) => Some(msb),
        _ => None,
    }
}

/// The domain of another partition that is assumed lost, if one is.
fn lost_domain(lost: Option<&Loss>) -> Value {
    match lost {
        Some(Loss::Domain(Domain { partition, name })) => {
            json!({ "partition": partition, "domain": name })
        }
        _ => Value::Null,
    }
}

/// Only the members that differ from the request.
fn alternatives(all: &[MaintenanceAlternative]) -> Value {
    let one = |of: &MaintenanceAlternative| {
        let members = [
            ("starts_at", of.starts_at.map(|at| json!(at))),
            ("recall_minutes", of.recall_minutes.map(Value::from)),
            ("share", of.share_micro.map(|share| json!(f64::from(share) / 1e6))),
            ("servers", of.servers.map(Value::from)),
        ];
        let members = members.into_iter();
        Value::Object(members.filter_map(|(name, of)| Some((name.to_owned(), of?))).collect())
    };
    all.iter().map(one).collect()
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_maintenance", detail)
}

fn parse_id(text: &str) -> Result<MaintenanceId, Problem> {
    query::id(text, unknown)
}

fn texts(ids: &[WindowId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// Plans maintenance
///
/// Refused with 409 if the current state forbids it, which may change, and with 422 if it is never possible. Both have
/// the numbers.
#[utoipa::path(post, path = "/maintenance", operation_id = "plan_maintenance",
    request_body = MaintenanceAsked,
    responses(
        (status = 201, description = "the windows", body = MaintenancePlan),
        (status = 409, description = "the current state forbids it"),
        (status = 422, description = "it is never possible")))]
pub(super) async fn plan(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<(StatusCode, Json<MaintenancePlan>), Problem> {
    let planned = planned_for(&site, &caller, &body).await?;
    let plan = planned.first().map(|window| window.plan.to_string());
    let planned = MaintenancePlan { plan, windows: planned.iter().map(view).collect() };
    Ok((StatusCode::CREATED, Json(planned)))
}

/// [`plan`] for a page.
pub(crate) async fn planned_for(
    site: &Site,
    caller: &Caller,
    body: &[u8],
) -> Result<Vec<broker::MaintenanceWindow>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let request = request(body::json(body)?)?;
    in_time(site.broker.plan_maintenance(&actor, &request)).await
}

/// Previews [`plan`] for a page.
pub(crate) async fn previewed_for(
    site: &Site,
    caller: &Caller,
    body: &[u8],
) -> Result<MaintenancePreview, Problem> {
    caller.needs(Role::Operator)?;
    let request = request(body::json(body)?)?;
    in_time(site.broker.preview_maintenance(&request)).await
}

/// Windows of planned maintenance, open windows first
#[utoipa::path(get, path = "/maintenance", operation_id = "list_maintenance",
    params(WindowsQuery, ListQuery),
    responses((status = 200, description = "a page", body = MaintenanceWindows)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest<WindowsQuery>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let listed = in_time(site.broker.maintenance(filters.all, None, WINDOWS_MAX)).await?;
    // Of windows that are over, the last ones are wanted first.
    let order = if filters.all { "open desc, starts_at desc" } else { WINDOWS.order };
    let kind = ListKind { order, ..WINDOWS };
    let page = list.page_of(kind, &filters, listed.iter().map(view))?;
    Ok(page.response(&MaintenanceWindows { windows: Vec::new(), next_page_token: None }))
}

/// One window of planned maintenance, or all windows of a plan
#[utoipa::path(get, path = "/maintenance/{id}", operation_id = "get_maintenance",
    params(("id" = Uuid, Path, description = "a window or a plan")),
    responses((status = 200, description = "the windows", body = MaintenanceWindows)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<MaintenanceWindows>, Problem> {
    caller.reads_region()?;
    let id = parse_id(&id)?;
    let found = in_time(site.broker.maintenance(true, Some(id), WINDOWS_MAX)).await?;
    if found.is_empty() {
        return Err(unknown(format!("there is no maintenance {id}")));
    }
    let windows = found.iter().map(view).collect();
    Ok(Json(MaintenanceWindows { windows, next_page_token: None }))
}

/// Ends maintenance early
#[utoipa::path(post, path = "/maintenance/{id}/end", operation_id = "end_maintenance",
    params(("id" = Uuid, Path, description = "a window or a plan")),
    responses(
        (status = 200, description = "the ended windows", body = MaintenanceEnded),
        (status = 409, description = "the window is over or has not begun")))]
pub(super) async fn end(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<MaintenanceEnded>, Problem> {
    let ended = ended_for(&site, &caller, &id).await?;
    Ok(Json(MaintenanceEnded { ended: texts(&ended) }))
}

/// [`end`] for a page.
pub(crate) async fn ended_for(
    site: &Site,
    caller: &Caller,
    id: &str,
) -> Result<Vec<WindowId>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    in_time(site.broker.end_maintenance(&actor, parse_id(id)?)).await
}

/// Cancels maintenance in any open state
#[utoipa::path(post, path = "/maintenance/{id}/cancel", operation_id = "cancel_maintenance",
    params(("id" = Uuid, Path, description = "a window or a plan")),
    responses(
        (status = 200, description = "the cancelled windows", body = MaintenanceCancelled),
        (status = 409, description = "the window is over")))]
pub(super) async fn cancel(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<MaintenanceCancelled>, Problem> {
    let cancelled = cancelled_for(&site, &caller, &id).await?;
    Ok(Json(MaintenanceCancelled { cancelled: texts(&cancelled) }))
}

/// [`cancel`] for a page.
pub(crate) async fn cancelled_for(
    site: &Site,
    caller: &Caller,
    id: &str,
) -> Result<Vec<WindowId>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    in_time(site.broker.cancel_maintenance(&actor, parse_id(id)?)).await
}

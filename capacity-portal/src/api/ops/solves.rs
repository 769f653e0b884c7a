//! `/ops/v1/solves`: solves, what they came to and how; and asking for one.

use crate::api::asked::{self, Asked};
use crate::api::authority::{Caller, Role};
use crate::api::page::Question;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use api_types::solves::{Solve, SolveAsked, SolvesPage};
use axum::Json;
use axum::extract::{Path, State as Extension};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use broker::{Cause, SolveId, SolveRow, SolveState, SolvesAsked, State};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// Solves of a page, unless told otherwise, and at most.
const PAGE: u32 = 50;
const PAGE_MAX: u32 = 1_000;

/// Which solves.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    #[param(schema_with = asked::state::<SolveState>)]
    state: Option<String>,
    #[param(schema_with = causes)]
    cause: Option<String>,
    #[param(minimum = 1, maximum = 1_000)]
    #[serde(skip_serializing)]
    limit: Option<u32>,
    /// `next_page_token` of the page before.
    #[serde(skip_serializing)]
    page_token: Option<String>,
}

fn causes() -> utoipa::openapi::Schema {
    asked::words(Cause::ALL.map(Cause::as_str))
}

/// A solve, as it is sent.
fn view(of: SolveRow) -> Solve {
    Solve {
        solve: of.id.into(),
        cause: of.cause.as_str().to_owned(),
        state: of.state.as_str().to_owned(),
        state_at: of.state_at,
        requested_at: of.requested_at,
        started_at: of.started_at,
        parent: of.parent.0,
        version: of.version.map(|version| version.0),
        reason: of.reason.map(|reason| reason.as_str().to_owned()),
        failure: of.failure,
    }
}

/// A solve and what it came to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SolveDetail {
    #[serde(flatten)]
    solve: Solve,
    /// Of one that was published and is not forgotten.
    figures: Option<Figures>,
    /// The settings it was solved with.
    #[schema(value_type = Option<Object>)]
    config: Option<Value>,
}

/// What a solve came to, from its report.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = SolveFigures)]
struct Figures {
    /// Why the search ended; null: nothing was solved.
    termination: Option<String>,
    /// How the process came to its result.
    ending: Option<String>,
    /// The terms of the objective, as they were audited.
    #[schema(value_type = Option<Object>)]
    objective: Option<Value>,
    /// The best that was found, the bound that was proved, and what lies between.
    #[schema(value_type = Option<Object>)]
    phase1: Option<Value>,
    /// RRU that reservations are short of, before and after.
    initial_shortfall_rru: Option<f64>,
    shortfall_rru: Option<f64>,
    /// Servers that change their owner, in use and idle.
    #[schema(value_type = Option<Object>)]
    moves: Option<Value>,
    /// Seconds by part of the run.
    #[schema(value_type = Option<Object>)]
    seconds: Option<Value>,
    /// Seconds by step, in their order.
    #[serde(default)]
    steps: Vec<StepSeconds>,
    /// Best and bound over time.
    #[serde(default)]
    history: Vec<GapPoint>,
    /// Servers, classes, reservations, columns, rows, nonzeros.
    #[schema(value_type = Option<Object>)]
    sizes: Option<Value>,
    peak_memory_bytes: Option<u64>,
}

/// How long a step took.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
struct StepSeconds {
    /// 1 places on MSBs, 2 on racks.
    phase: u8,
    step: String,
    seconds: f64,
}

/// Where a solve stood at a moment.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
struct GapPoint {
    /// Since it began.
    seconds: f64,
    /// 1 places on MSBs, 2 on racks.
    phase: u8,
    step: String,
    /// The best that was known.
    primal: Option<f64>,
    /// The bound that was proved.
    dual_bound: Option<f64>,
}

pub(super) fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_solve", detail)
}

/// The solve of an id in a path.
pub(super) async fn row(site: &Site, id: &str) -> Result<SolveRow, Problem> {
    let id = asked::id(id, unknown)?;
    let found = in_time(site.broker.solve(id)).await?;
    found.ok_or_else(|| unknown(format!("there is no solve {id}")))
}

/// Solves, the youngest first
#[utoipa::path(get, path = "/solves", operation_id = "list_solves", params(Which),
    responses((status = 200, description = "a page", body = SolvesPage)))]
pub(super) async fn list(
    Extension(site): Extension<Site>,
    caller: Caller,
    Asked(which): Asked<Which>,
) -> Result<Json<SolvesPage>, Problem> {
    caller.reads_region()?;
    let question = Question::new(&("solves", &which));
    let before: Option<(DateTime<Utc>, String)> = question.cursor(which.page_token.as_deref())?;
    let before = before.and_then(|(at, id)| Some((at, id.parse().ok()?)));
    let limit = asked::limit(which.limit, PAGE, PAGE_MAX)?;
    let state = asked::state_of::<SolveState>(which.state.as_deref())?;
    asked::word(which.cause.as_deref(), "cause", Cause::ALL.map(Cause::as_str))?;
    let cause = Cause::ALL.into_iter().find(|of| which.cause.as_deref() == Some(of.as_str()));
    let asked = SolvesAsked { state, cause, before };
    let rows = in_time(site.broker.solves_page(&asked, limit + 1)).await?;
    let (rows, next_page_token) =
        question.page(rows, limit, |of| (of.requested_at, of.id.to_string()));
    Ok(Json(SolvesPage { solves: rows.into_iter().map(view).collect(), next_page_token }))
}

/// A solve: how far it is, what it came to, time by step, best and bound over time
#[utoipa::path(get, path = "/solves/{id}", operation_id = "get_solve",
    params(("id" = Uuid, Path, description = "its id")),
    responses((status = 200, description = "the solve", body = SolveDetail)))]
pub(super) async fn find(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SolveDetail>, Problem> {
    caller.reads_region()?;
    let solve = row(&site, &id).await?;
    let report = in_time(site.broker.solve_report(solve.id)).await?;
    let config = in_time(site.broker.solve_config(solve.id)).await?;
    // A report of another program may say less.
    let figures = report.and_then(|report| serde_json::from_value(report).ok());
    Ok(Json(SolveDetail { solve: view(solve), figures, config }))
}

/// The report of a solve that was published, as it was written
#[utoipa::path(get, path = "/solves/{id}/report", operation_id = "get_solve_report",
    params(("id" = Uuid, Path, description = "its id")),
    responses((status = 200, description = "its report", body = Object)))]
pub(super) async fn report(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    caller.reads_region()?;
    let solve = row(&site, &id).await?;
    let report = in_time(site.broker.solve_report(solve.id)).await?;
    let none = || {
        let detail = "it has no report: it was not published, or is forgotten";
        Problem::new(StatusCode::NOT_FOUND, "no_report", detail)
    };
    report.map(Json).ok_or_else(none)
}

/// Asks for a solve
///
/// One that waits already is it. A worker takes it as soon as it has time: `GET /solves/{id}` says how
/// far it is.
#[utoipa::path(post, path = "/solves", operation_id = "ask_solve",
    responses((status = 202, description = "it will be solved", body = SolveAsked)))]
pub(super) async fn ask(
    Extension(site): Extension<Site>,
    caller: Caller,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let id = SolveId::now_v7();
    let asked = in_time(site.broker.request_solve(&actor, id, Cause::Demand, None)).await?;
    let (solve, new) = asked.ok_or_else(|| unknown("no solve was asked for".to_owned()))?;
    tracing::info!(%actor, %solve, new, "a solve is asked for");
    let place = format!("/ops/v1/solves/{solve}");
    let answer = Json(SolveAsked { solve: solve.into(), new });
    Ok((StatusCode::ACCEPTED, [(LOCATION, place)], answer).into_response())
}

//! `/ops/v1/solves`: solves and their results; requests a solve.

use crate::api::views::json;
use crate::http::auth::{Caller, Role};
use crate::http::list::{ListKind, ListQuery, PAGE, StoredListRequest};
use crate::http::query;
use crate::http::{Problem, Site, body, field, in_time, schema};
use api_types::approval::Rejection;
use api_types::solves::{Solve, SolveAsked, SolveDetail, SolveProgress, SolvesPage};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use broker::{
    ApprovalError, CancelError, Cause, Document, PageEnd, PublishError, SolveId, SolveRow,
    SolveState, SolvesAsked, State as _,
};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

/// Filters of the list of solves.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SolvesQuery {
    #[param(schema_with = schema::state::<SolveState>)]
    state: Option<String>,
    #[param(schema_with = causes)]
    cause: Option<String>,
}

/// The list of solves.
pub(crate) const SOLVES: ListKind =
    ListKind { rows: "solves", key: &["solve"], order: "requested_at desc", page: PAGE };

fn causes() -> utoipa::openapi::Schema {
    schema::words(Cause::ALL.map(Cause::as_str))
}

/// A solve, as it is sent.
pub(crate) fn view(of: SolveRow) -> Solve {
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

pub(super) fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_solve", detail)
}

/// Reads the solve of an id in a path.
pub(super) async fn row(site: &Site, id: &str) -> Result<SolveRow, Problem> {
    let id = query::id(id, unknown)?;
    let found = in_time(site.broker.solve(id)).await?;
    found.ok_or_else(|| unknown(format!("there is no solve {id}")))
}

/// Solves, newest first
#[utoipa::path(get, path = "/solves", operation_id = "list_solves",
    params(SolvesQuery, ListQuery),
    responses((status = 200, description = "a page", body = SolvesPage)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    StoredListRequest { filters: which, list }: StoredListRequest<SolvesQuery>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let state = query::state_of::<SolveState>(which.state.as_deref())?;
    query::word(which.cause.as_deref(), "cause", Cause::ALL.map(Cause::as_str))?;
    let cause = Cause::ALL.into_iter().find(|of| which.cause.as_deref() == Some(of.as_str()));
    let broker = &site.broker;
    let read = move |before, limit| async move {
        in_time(broker.solves_page(&SolvesAsked { state, cause, before }, limit)).await
    };
    let position = |of: &SolveRow| PageEnd { at: of.requested_at, id: of.id };
    let page = list.page(SOLVES, &which, read, position, view).await?;
    Ok(page.response(&SolvesPage { solves: Vec::new(), next_page_token: None }))
}

/// A solve: state, progress, results, duration of each step, primal and bound over time
#[utoipa::path(get, path = "/solves/{id}", operation_id = "get_solve",
    params(("id" = Uuid, Path, description = "its id")),
    responses((status = 200, description = "the solve", body = SolveDetail)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SolveDetail>, Problem> {
    caller.reads_region()?;
    let solve = row(&site, &id).await?;
    let report = in_time(site.broker.solve_report(solve.id)).await?;
    let config = in_time(site.broker.solve_config(solve.id)).await?;
    // A report of another version may lack members.
    let figures = report.and_then(|report| report.read().ok());
    let progress = in_time(site.broker.solve_progress(solve.id)).await?.map(|of| SolveProgress {
        at: of.at,
        step: of.step.as_str().to_owned(),
        // Points of another version may lack members.
        history: of.history.read().unwrap_or_default(),
    });
    let config = config.as_ref().map(json);
    Ok(Json(SolveDetail { solve: view(solve), figures, progress, config }))
}

/// The report of a published solve, unchanged
#[utoipa::path(get, path = "/solves/{id}/report", operation_id = "get_solve_report",
    params(("id" = Uuid, Path, description = "its id")),
    responses((status = 200, description = "its report", body = Object)))]
pub(super) async fn report(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Document>, Problem> {
    caller.reads_region()?;
    let solve = row(&site, &id).await?;
    let report = in_time(site.broker.solve_report(solve.id)).await?;
    let none = || {
        let detail = "no report: the solve was not published, or its report was deleted";
        Problem::new(StatusCode::NOT_FOUND, "no_report", detail)
    };
    report.map(Json).ok_or_else(none)
}

/// Requests a solve
///
/// Joins a queued solve, if there is one. Poll `GET /solves/{id}` for its state.
#[utoipa::path(post, path = "/solves", operation_id = "ask_solve",
    responses((status = 202, description = "the solve is queued", body = SolveAsked)))]
pub(super) async fn ask(State(site): State<Site>, caller: Caller) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let id = SolveId::now_v7();
    let asked = in_time(site.broker.request_solve(&actor, id, Cause::Demand, None)).await?;
    let (solve, new) = asked.ok_or_else(|| unknown("the solve was not queued".to_owned()))?;
    tracing::info!(%actor, %solve, new, "solve requested");
    let place = format!("/ops/v1/solves/{solve}");
    let answer = Json(SolveAsked { solve: solve.into(), new });
    Ok((StatusCode::ACCEPTED, [(LOCATION, place)], answer).into_response())
}

impl From<ApprovalError> for Problem {
    fn from(error: ApprovalError) -> Problem {
        let detail = error.to_string();
        let conflict = |code| Problem::new(StatusCode::CONFLICT, code, detail.clone());
        match error {
            ApprovalError::Unknown { .. } => unknown(detail),
            ApprovalError::NotAwaiting { .. } => conflict("not_awaiting"),
            ApprovalError::Publish(PublishError::Db(error)) | ApprovalError::Db(error) => {
                error.into()
            }
            ApprovalError::Publish(
                PublishError::Stale { .. } | PublishError::PoliciesChanged { .. },
            ) => conflict("solve_stale"),
            ApprovalError::Publish(_) => conflict("not_publishable"),
        }
    }
}

impl From<CancelError> for Problem {
    fn from(error: CancelError) -> Problem {
        let detail = error.to_string();
        match error {
            CancelError::Unknown(_) => unknown(detail),
            CancelError::Over(_) => Problem::new(StatusCode::CONFLICT, "over", detail),
            CancelError::Db(error) => error.into(),
        }
    }
}

/// Approves the targets of a solve that awaits approval, and publishes them
///
/// Servers that changed since the solve began are skipped, as in every publication. Repeating it publishes nothing twice.
#[utoipa::path(post, path = "/solves/{id}/approve", operation_id = "approve_solve",
    params(("id" = Uuid, Path, description = "its id")),
    responses(
        (status = 200, description = "the published solve", body = Solve),
        (status = 409, description = "it does not await approval (`not_awaiting`), another version was published since \
            (`solve_stale`), or its targets break a rule now (`not_publishable`)")))]
pub(super) async fn approve(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Solve>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let solve = row(&site, &id).await?.id;
    in_time(site.broker.approve_solve(&actor, solve)).await?;
    Ok(Json(view(row(&site, &id).await?)))
}

/// Rejects the targets of a solve that awaits approval
#[utoipa::path(post, path = "/solves/{id}/reject", operation_id = "reject_solve",
    params(("id" = Uuid, Path, description = "its id")), request_body = Rejection,
    responses(
        (status = 200, description = "the rejected solve", body = Solve),
        (status = 409, description = "it does not await approval (`not_awaiting`)"),
        (status = 422, description = "a reason is missing")))]
pub(super) async fn reject(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Solve>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let Rejection { why } = body::json(&body)?;
    let solve = row(&site, &id).await?.id;
    reject_for(&site, &actor, solve, &why).await?;
    Ok(Json(view(row(&site, &id).await?)))
}

/// [`reject`], also for its page.
pub(crate) async fn reject_for(
    site: &Site,
    actor: &str,
    solve: SolveId,
    why: &str,
) -> Result<(), Problem> {
    let why = field::reason_given(why)?;
    in_time(site.broker.reject_solve(actor, solve, why)).await
}

/// Cancels a solve that waits or runs
///
/// It fails with the reason `cancelled`, publishes nothing, and its worker stops within seconds.
#[utoipa::path(post, path = "/solves/{id}/cancel", operation_id = "cancel_solve",
    params(("id" = Uuid, Path, description = "its id")),
    responses(
        (status = 200, description = "the cancelled solve", body = Solve),
        (status = 409, description = "it has ended, or awaits approval (`over`)")))]
pub(super) async fn cancel(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Solve>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let solve = row(&site, &id).await?.id;
    in_time(site.broker.cancel_solve(&actor, solve)).await?;
    tracing::info!(%actor, %solve, "solve cancelled");
    Ok(Json(view(row(&site, &id).await?)))
}

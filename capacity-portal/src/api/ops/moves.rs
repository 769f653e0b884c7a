//! `/ops/v1/moves` and `/ops/v1/mover`: moves of servers, and the switch that stops them.

use crate::api::views::stop_switch;
use crate::http::auth::{Caller, Role};
use crate::http::list::{ListKind, ListQuery, PAGE, StoredListRequest};
use crate::http::query;
use crate::http::{Problem, Site, body, in_time, schema};
use api_types::moves::{Move, MoverView, MovesPage, StopAsked};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use broker::{MoveRow, MoveState, MovesAsked, State as _};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

/// Filters of the list of moves.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct MovesQuery {
    /// Source or target reservation.
    reservation: Option<String>,
    /// Server.
    server: Option<String>,
    #[param(schema_with = schema::state::<MoveState>)]
    state: Option<String>,
    /// true: open moves; false: ended moves.
    open: Option<bool>,
}

/// The list of moves.
pub(crate) const MOVES: ListKind =
    ListKind { rows: "moves", key: &["move"], order: "opened_at desc", page: PAGE };

/// A move, as it is sent.
pub(crate) fn view(of: MoveRow) -> Move {
    Move {
        id: of.id.to_string(),
        server: of.server.to_string(),
        from: of.source.map(|name| name.to_string()),
        to: of.target.map(|name| name.to_string()),
        version: of.version.0,
        state: of.state.as_str().to_owned(),
        state_at: of.state_at,
        opened_at: of.opened_at,
        origin: of.origin.as_str().to_owned(),
        in_use: of.in_use,
        reason: of.reason.map(|reason| reason.as_str().to_owned()),
        detail: of.detail,
    }
}

/// The reason of a stop or pause, which must not be empty.
pub(super) fn reason(body: &[u8]) -> Result<String, Problem> {
    let StopAsked { why } = body::json(body)?;
    if why.trim().is_empty() {
        let detail = "why: a reason is required";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "malformed", detail));
    }
    Ok(why)
}

/// Open and recent moves, newest first
#[utoipa::path(get, path = "/moves", operation_id = "list_moves",
    params(MovesQuery, ListQuery),
    responses((status = 200, description = "a page", body = MovesPage)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    StoredListRequest { filters: which, list }: StoredListRequest<MovesQuery>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let state = query::state_of(which.state.as_deref())?;
    let (site, parameters) = (&site, &which);
    let read = move |after: Option<String>, limit| async move {
        let before = after.and_then(|id| id.parse().ok());
        let (reservation, server) = (parameters.reservation.clone(), parameters.server.clone());
        let asked = MovesAsked { reservation, server, state, open: parameters.open, before };
        in_time(site.broker.moves_page(&asked, limit)).await
    };
    let page = list.page(MOVES, parameters, read, |of| of.id.to_string(), view).await?;
    Ok(page.response(&MovesPage { moves: Vec::new(), next_page_token: None }))
}

/// The mover, and whether moves may begin
#[utoipa::path(get, path = "/mover", operation_id = "get_mover",
    responses((status = 200, description = "the mover", body = MoverView)))]
pub(super) async fn mover(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<MoverView>, Problem> {
    caller.reads_region()?;
    status(&site).await
}

/// Pulls the stop switch: running steps end, no further step begins
///
/// If it is already pulled, nothing changes.
#[utoipa::path(post, path = "/moves/stop", operation_id = "stop_moves",
    request_body = StopAsked,
    responses(
        (status = 200, description = "the mover", body = MoverView),
        (status = 422, description = "the reason is missing")))]
pub(super) async fn stop(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<MoverView>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let why = reason(&body)?;
    in_time(site.broker.stop_mover(&actor, &why)).await?;
    status(&site).await
}

/// Releases the stop switch
#[utoipa::path(post, path = "/moves/resume", operation_id = "resume_moves",
    responses((status = 200, description = "the mover", body = MoverView)))]
pub(super) async fn resume(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<MoverView>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    in_time(site.broker.resume_mover(&actor)).await?;
    status(&site).await
}

async fn status(site: &Site) -> Result<Json<MoverView>, Problem> {
    let status = in_time(site.broker.mover_status()).await?;
    let stopped = status.stopped.map(stop_switch);
    let give_way_after_seconds = status.gives_way_after.map(|after| after.as_secs());
    let distance = status.distance;
    Ok(Json(MoverView {
        acting: status.acting,
        stopped,
        give_way_after_seconds,
        round_trip_seconds: distance.map(|of| of.round_trip.as_secs_f64()),
        pass_seconds: distance.and_then(|of| of.pass).map(|pass| pass.as_secs_f64()),
        lease_seconds: distance.map(|of| of.lease.as_secs_f64()),
        cannot_act: distance.and_then(|of| of.cannot_act()),
    }))
}

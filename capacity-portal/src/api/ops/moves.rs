//! `/ops/v1/moves`: servers on their way from one owner to another, and the switch that stops them.

use crate::api::asked::{self, Asked};
use crate::api::authority::{Caller, Role};
use crate::api::page::Question;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use api_types::moves::{MoverView, StopSwitch};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State as Extension;
use axum::http::StatusCode;
use broker::{MoveOrigin, MoveReason, MoveRow, MoveState, MovesAsked, State, Stopped};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Moves of a page, unless told otherwise, and at most.
const PAGE: u32 = 100;
const PAGE_MAX: u32 = 1_000;

/// Which moves.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// From or to this reservation.
    reservation: Option<String>,
    /// Of this server.
    server: Option<String>,
    #[param(schema_with = asked::state::<MoveState>)]
    state: Option<String>,
    /// true: those under way; false: those that ended.
    open: Option<bool>,
    #[param(minimum = 1, maximum = 1_000)]
    #[serde(skip_serializing)]
    limit: Option<u32>,
    /// `next_page_token` of the page before.
    #[serde(skip_serializing)]
    page_token: Option<String>,
}

/// A server on its way from one owner to another, or that was.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Move)]
pub(super) struct MoveView {
    #[serde(rename = "move")]
    #[schema(value_type = Uuid)]
    id: String,
    server: String,
    /// Who owned it; null: nobody.
    from: Option<String>,
    /// Who shall, or does; null: nobody.
    to: Option<String>,
    /// The version of the targets it serves.
    version: i64,
    #[schema(schema_with = asked::state::<MoveState>)]
    state: &'static str,
    state_at: DateTime<Utc>,
    opened_at: DateTime<Utc>,
    /// Why it was opened.
    #[schema(schema_with = origins)]
    origin: &'static str,
    /// Whether containers ran on it when it was opened.
    in_use: bool,
    /// Why it ended without being bound.
    #[schema(schema_with = reasons)]
    reason: Option<&'static str>,
    /// What the host said, for people.
    detail: Option<String>,
}

fn origins() -> utoipa::openapi::Schema {
    asked::words(MoveOrigin::ALL.map(MoveOrigin::as_str))
}

fn reasons() -> utoipa::openapi::Schema {
    asked::words_or_null(MoveReason::ALL.map(MoveReason::as_str))
}

impl From<MoveRow> for MoveView {
    fn from(of: MoveRow) -> MoveView {
        MoveView {
            id: of.id.to_string(),
            server: of.server.to_string(),
            from: of.source.map(|name| name.to_string()),
            to: of.target.map(|name| name.to_string()),
            version: of.version.0,
            state: of.state.as_str(),
            state_at: of.state_at,
            opened_at: of.opened_at,
            origin: of.origin.as_str(),
            in_use: of.in_use,
            reason: of.reason.map(MoveReason::as_str),
            detail: of.detail,
        }
    }
}

/// Moves, the youngest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MovesPage {
    moves: Vec<MoveView>,
    /// Null: this is the last page.
    next_page_token: Option<String>,
}

/// The stop switch, or the pause of a roll-out, as it is sent.
pub(in crate::api) fn switch(of: Stopped) -> StopSwitch {
    StopSwitch { by: of.by, why: of.why }
}

/// Why the switch is pulled, or something is paused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StopAsked)]
pub(super) struct StopBody {
    /// Why, for people.
    #[schema(min_length = 1)]
    why: String,
}

impl StopBody {
    /// What is said.
    pub(super) fn said(self) -> Result<String, Problem> {
        if self.why.trim().is_empty() {
            let detail = "why: say why, for those who come to look";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "malformed", detail));
        }
        Ok(self.why)
    }
}

/// Moves under way and of late, the youngest first
#[utoipa::path(get, path = "/moves", operation_id = "list_moves", params(Which),
    responses((status = 200, description = "a page", body = MovesPage)))]
pub(super) async fn list(
    Extension(site): Extension<Site>,
    caller: Caller,
    Asked(which): Asked<Which>,
) -> Result<Json<MovesPage>, Problem> {
    caller.reads_region()?;
    let question = Question::new(&("moves", &which));
    let before = question.id(which.page_token.as_deref())?;
    let limit = asked::limit(which.limit, PAGE, PAGE_MAX)?;
    let state = asked::state_of(which.state.as_deref())?;
    let Which { reservation, server, open, .. } = which;
    let asked = MovesAsked { reservation, server, state, open, before };
    let rows = in_time(site.broker.moves_page(&asked, limit + 1)).await?;
    let (rows, next_page_token) = question.page(rows, limit, |of| of.id.to_string());
    Ok(Json(MovesPage { moves: rows.into_iter().map(MoveView::from).collect(), next_page_token }))
}

/// Who carries moves out, and whether any may begin
#[utoipa::path(get, path = "/mover", operation_id = "get_mover",
    responses((status = 200, description = "how it stands", body = MoverView)))]
pub(super) async fn mover(
    Extension(site): Extension<Site>,
    caller: Caller,
) -> Result<Json<MoverView>, Problem> {
    caller.reads_region()?;
    status(&site).await
}

/// Pulls the switch: steps under way end, no other begins
///
/// Pulled again, it stays as it was.
#[utoipa::path(post, path = "/moves/stop", operation_id = "stop_moves",
    request_body = StopBody,
    responses(
        (status = 200, description = "how it stands now", body = MoverView),
        (status = 422, description = "it says no reason")))]
pub(super) async fn stop(
    Extension(site): Extension<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<MoverView>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let why = asked::json::<StopBody>(&body)?.said()?;
    in_time(site.broker.stop_mover(&actor, &why)).await?;
    status(&site).await
}

/// Releases the switch
#[utoipa::path(post, path = "/moves/resume", operation_id = "resume_moves",
    responses((status = 200, description = "how it stands now", body = MoverView)))]
pub(super) async fn resume(
    Extension(site): Extension<Site>,
    caller: Caller,
) -> Result<Json<MoverView>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    in_time(site.broker.resume_mover(&actor)).await?;
    status(&site).await
}

async fn status(site: &Site) -> Result<Json<MoverView>, Problem> {
    let status = in_time(site.broker.mover_status()).await?;
    let stopped = status.stopped.map(switch);
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

//! `GET /ops/v1/stuck`: objects that have been in one state for too long.

use crate::api::views::stuck_thing;
use crate::http::auth::Caller;
use crate::http::{Problem, Site, in_time};
use api_types::moves::StuckThings;
use axum::Json;
use axum::extract::State;

/// Objects that have been in one state for too long, longest first
#[utoipa::path(get, path = "/stuck", operation_id = "list_stuck",
    responses((status = 200, description = "the stuck objects", body = StuckThings)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<StuckThings>, Problem> {
    caller.reads_region()?;
    let stuck = in_time(site.broker.stuck()).await?;
    Ok(Json(StuckThings { stuck: stuck.into_iter().map(stuck_thing).collect() }))
}

//! `GET /ops/v1/stuck`: what has been in a state for longer than anything should.

use crate::api::authority::Caller;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use api_types::moves::StuckThing;
use axum::Json;
use axum::extract::State;
use broker::Stuck;
use serde::Serialize;
use utoipa::ToSchema;

/// The longest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StuckThings {
    stuck: Vec<StuckThing>,
}

/// What has been in its state for longer than anything should, the longest first
#[utoipa::path(get, path = "/stuck", operation_id = "list_stuck",
    responses((status = 200, description = "all of it", body = StuckThings)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<StuckThings>, Problem> {
    caller.reads_region()?;
    let stuck = in_time(site.broker.stuck()).await?;
    let thing =
        |Stuck { machine, subject, state, since }| StuckThing { machine, subject, state, since };
    Ok(Json(StuckThings { stuck: stuck.into_iter().map(thing).collect() }))
}

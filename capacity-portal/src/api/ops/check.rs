//! `GET /ops/v1/check`: whether the stored region keeps its invariants.

use crate::http::auth::{Caller, Role};
use crate::http::{Problem, Site};
use api_types::status::Checked;
use axum::Json;
use axum::extract::State;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit: the check reads every row of the region.
const CHECKED_WITHIN: Duration = Duration::from_secs(50);

/// Checks the invariants of the stored region: no gaps in versions and audit trail, one owner per server
///
/// It reads every row of the region, which takes seconds in a large one.
#[utoipa::path(get, path = "/check", operation_id = "check_region",
    responses((status = 200, description = "the invariants that are broken", body = Checked)))]
pub(super) async fn run(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<Checked>, Problem> {
    caller.needs(Role::Operator)?;
    let late = |_| Problem::unavailable("postgres_unavailable", "the check took too long");
    let broken = timeout(CHECKED_WITHIN, site.broker.check()).await.map_err(late)??;
    Ok(Json(Checked { broken }))
}

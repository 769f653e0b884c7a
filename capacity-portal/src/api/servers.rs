//! `GET /v1/reservations/{name}/servers`: what an allocator may place containers on.

use super::Site;
use super::authority::Caller;
use super::problem::Problem;
use crate::ANSWER_WITHIN;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use broker::SERVERS_PAGE_MAX;
use serde::Deserialize;
use tokio::time::timeout;

/// Servers of a page, unless told otherwise.
const PAGE: u32 = 1_000;

/// Which page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    #[serde(default)]
    after: String,
    limit: Option<u32>,
}

/// A name from a path that may be one of a reservation.
pub(super) fn reservation(name: String) -> Result<String, Problem> {
    if name.contains('\0') {
        let detail = "no reservation has a zero character in its name";
        return Err(Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail));
    }
    Ok(name)
}

/// Lists a page.
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Response, Problem> {
    caller.reads()?;
    let name = reservation(name)?;
    let refused = |error: QueryRejection| Problem::bad_request("malformed", error.body_text());
    let Query(Page { after, limit }) = page.map_err(refused)?;
    let limit = limit.unwrap_or(PAGE);
    if !(1..=SERVERS_PAGE_MAX).contains(&limit) || after.contains('\0') {
        let detail = format!("a page has 1 to {SERVERS_PAGE_MAX} servers, and begins after a name");
        return Err(Problem::bad_request("malformed", detail));
    }
    let listed = timeout(ANSWER_WITHIN, site.broker.reserved_servers(&name, &after, limit)).await;
    let late = |_| Problem::unavailable("postgres_unavailable", "Postgres does not answer in time");
    Ok(Json(listed.map_err(late)??).into_response())
}

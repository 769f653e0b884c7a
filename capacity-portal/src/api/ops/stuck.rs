//! `GET /ops/v1/stuck`: objects that have been in one state for too long.

use crate::api::views::stuck_thing;
use crate::http::auth::Caller;
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::{Problem, Site, in_time};
use api_types::moves::StuckThings;
use axum::extract::State;
use axum::response::Response;

const STUCK: ListKind =
    ListKind { rows: "stuck", key: &["machine", "subject"], order: "since", page: WHOLE };

/// Objects that have been in one state for too long, longest first
#[utoipa::path(get, path = "/stuck", operation_id = "list_stuck",
    params(ListQuery),
    responses((status = 200, description = "a page", body = StuckThings)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let stuck = in_time(site.broker.stuck()).await?;
    let page = list.page_of(STUCK, &filters, stuck.into_iter().map(stuck_thing))?;
    Ok(page.response(&StuckThings { stuck: Vec::new(), next_page_token: None }))
}

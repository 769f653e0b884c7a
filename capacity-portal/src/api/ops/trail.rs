//! `GET /ops/v1/trail`: the audit trail.

use crate::api::views::trail_entry;
use crate::http::auth::Caller;
use crate::http::page::PageCursor;
use crate::http::query::{self, StrictQuery};
use crate::http::{Problem, Site, in_time, schema};
use api_types::servers::TrailPage;
use axum::Json;
use axum::extract::State;
use broker::{Action, Seq, TrailAsked};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

/// Entries of a page: the default, and the limit.
const PAGE: u32 = 100;
const PAGE_MAX: u32 = 999;

/// Filters of the audit trail.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TrailQuery {
    /// Object, by name or id.
    subject: Option<String>,
    /// Actor.
    actor: Option<String>,
    #[param(schema_with = actions)]
    action: Option<String>,
    #[param(minimum = 1, maximum = 999)]
    #[serde(skip_serializing)]
    limit: Option<u32>,
    /// `next_page_token` of the previous page.
    #[serde(skip_serializing)]
    page_token: Option<String>,
}

pub(super) fn actions() -> utoipa::openapi::Schema {
    schema::words(Action::ALL.map(Action::as_str))
}

/// The audit trail, newest entry first
#[utoipa::path(get, path = "/trail", operation_id = "list_trail", params(TrailQuery),
    responses((status = 200, description = "a page", body = TrailPage)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(which): StrictQuery<TrailQuery>,
) -> Result<Json<TrailPage>, Problem> {
    caller.reads_region()?;
    let cursor = PageCursor::new(&("trail", &which));
    let before = cursor.position(which.page_token.as_deref())?.map(Seq);
    let limit = query::limit(which.limit, PAGE, PAGE_MAX)?;
    let action = query::word(which.action.as_deref(), "action", Action::ALL.map(Action::as_str))?;
    let action = Action::ALL.into_iter().find(|known| action == Some(known.as_str()));
    let TrailQuery { subject, actor, .. } = which;
    let asked = TrailAsked { subject, actor, action, before };
    let rows = in_time(site.broker.trail_page(&asked, limit + 1)).await?;
    let (rows, next_page_token) = cursor.page(rows, limit, |entry| entry.seq.0);
    let entries = rows.into_iter().map(trail_entry).collect();
    Ok(Json(TrailPage { entries, next_page_token }))
}

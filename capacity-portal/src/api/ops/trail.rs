//! `GET /ops/v1/trail`: the audit trail.

use crate::api::views::trail_entry;
use crate::http::auth::Caller;
use crate::http::list::{ListQuery, PAGE, StoredListRequest, StoredOrder};
use crate::http::page::PageCursor;
use crate::http::query;
use crate::http::{Problem, Site, in_time, schema};
use api_types::servers::TrailPage;
use axum::extract::State;
use axum::response::Response;
use broker::{Action, Seq, TrailAsked};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

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
}

impl StoredOrder for TrailQuery {
    const ORDER: &'static str = "seq desc";
}

pub(super) fn actions() -> utoipa::openapi::Schema {
    schema::words(Action::ALL.map(Action::as_str))
}

/// The audit trail, newest entry first
#[utoipa::path(get, path = "/trail", operation_id = "list_trail",
    params(TrailQuery, ListQuery),
    responses((status = 200, description = "a page", body = TrailPage)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    StoredListRequest { filters: which, list }: StoredListRequest<TrailQuery>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let cursor = PageCursor::new(&("trail", &which));
    let before = cursor.position(list.page_token.as_deref())?.map(Seq);
    let limit = list.limit(PAGE)?;
    let action = query::word(which.action.as_deref(), "action", Action::ALL.map(Action::as_str))?;
    let action = Action::ALL.into_iter().find(|known| action == Some(known.as_str()));
    let TrailQuery { subject, actor, .. } = which;
    let asked = TrailAsked { subject, actor, action, before };
    let rows = in_time(site.broker.trail_page(&asked, limit + 1)).await?;
    let (rows, next_page_token) = cursor.page(rows, limit, |entry| entry.seq.0);
    let page = list.stored_page("entries", rows.into_iter().map(trail_entry), next_page_token)?;
    Ok(page.response(&TrailPage { entries: Vec::new(), next_page_token: None }))
}

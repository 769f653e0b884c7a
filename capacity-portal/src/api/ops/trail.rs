//! `GET /ops/v1/trail`: the audit trail.

use crate::api::views::trail_entry;
use crate::http::auth::Caller;
use crate::http::list::{ListKind, ListQuery, PAGE, StoredListRequest};
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

/// The audit trail as a list.
pub(crate) const TRAIL: ListKind =
    ListKind { rows: "entries", key: &["seq"], order: "seq desc", page: PAGE };

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
    let action = query::word(which.action.as_deref(), "action", Action::ALL.map(Action::as_str))?;
    let action = Action::ALL.into_iter().find(|known| action == Some(known.as_str()));
    let (site, parameters) = (&site, &which);
    let read = move |before: Option<i64>, limit| async move {
        let (subject, actor) = (parameters.subject.clone(), parameters.actor.clone());
        let asked = TrailAsked { subject, actor, action, before: before.map(Seq) };
        in_time(site.broker.trail_page(&asked, limit)).await
    };
    let page = list.page(TRAIL, parameters, read, |entry| entry.seq.0, trail_entry).await?;
    Ok(page.response(&TrailPage { entries: Vec::new(), next_page_token: None }))
}

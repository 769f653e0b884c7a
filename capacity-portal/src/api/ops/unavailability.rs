//! `GET /ops/v1/unavailability`: past, current and announced unavailability events.

use super::events::{kinds, scopes};
use crate::http::auth::Caller;
use crate::http::list::{ListKind, ListQuery, PAGE, StoredListRequest};
use crate::http::query;
use crate::http::{Problem, Site, in_time};
use api_types::servers::{EventView, EventsPage};
use axum::extract::State;
use axum::response::Response;
use broker::{EventRow, EventsAsked, PageEnd};
use fleet::{Scope, UnavailabilityKind};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

/// Filters of the list of events.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct UnavailabilityQuery {
    #[param(schema_with = scopes)]
    scope: Option<String>,
    /// Name of the server, rack, MSB or datacenter.
    scope_id: Option<String>,
    #[param(schema_with = kinds)]
    kind: Option<String>,
    /// true: not ended, announced events included; false: ended.
    open: Option<bool>,
}

/// The list of unavailability events.
pub(crate) const EVENTS: ListKind =
    ListKind { rows: "events", key: &["event"], order: "started_at desc", page: PAGE };

/// An event, as it is sent.
pub(crate) fn view(of: EventRow) -> EventView {
    EventView {
        event: of.event.to_string(),
        scope: of.scope.as_str().to_owned(),
        scope_id: of.scope_id.to_string(),
        kind: of.kind.as_str().to_owned(),
        started_at: of.started_at,
        ended_at: of.ended_at,
        active: of.active,
    }
}

/// Unavailability events, newest first
#[utoipa::path(get, path = "/unavailability", operation_id = "list_unavailability",
    params(UnavailabilityQuery, ListQuery),
    responses((status = 200, description = "a page", body = EventsPage)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    StoredListRequest { filters: which, list }: StoredListRequest<UnavailabilityQuery>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let (scopes, kinds) =
        (Scope::ALL.map(Scope::as_str), UnavailabilityKind::ALL.map(UnavailabilityKind::as_str));
    let scope = query::word(which.scope.as_deref(), "scope", scopes)?.and_then(Scope::parse);
    let kind = query::word(which.kind.as_deref(), "kind", kinds)?;
    let kind = kind.and_then(UnavailabilityKind::parse);
    let (site, parameters) = (&site, &which);
    let read = move |before, limit| async move {
        let (scope_id, open) = (parameters.scope_id.clone(), parameters.open);
        let asked = EventsAsked { scope, kind, scope_id, open, before };
        in_time(site.broker.events_page(&asked, limit)).await
    };
    let position = |of: &EventRow| PageEnd { at: of.started_at, id: of.event.to_string() };
    let page = list.page(EVENTS, parameters, read, position, view).await?;
    Ok(page.response(&EventsPage { events: Vec::new(), next_page_token: None }))
}

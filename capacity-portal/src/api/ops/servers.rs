//! `/ops/v1/servers/{name}`: one server and its history.

use super::{moves, unavailability};
use crate::api::views::json;
use crate::http::auth::Caller;
use crate::http::list::{ListKind, ListQuery, PAGE, StoredListRequest};
use crate::http::{Problem, Site, in_time};
use api_types::servers::{Server, ServerHistory, ServerMaintenance, ServerPast, ServerTarget};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use broker::{PastEnd, ServerDetail, State as _};
use serde::Deserialize;

/// The history has no parameters of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryFilters {}

/// The history of a server as a list.
const HISTORY: ListKind =
    ListKind { rows: "history", key: &["kind", "key"], order: "at desc", page: PAGE };

/// A server, as it is sent.
fn view(of: ServerDetail) -> Server {
    let version = of.target.as_ref().map(|target| target.version.0);
    let origin = of.target.as_ref().and_then(|target| target.origin);
    let target = |of: broker::ServerTarget| ServerTarget {
        reservation: of.reservation.map(|name| name.to_string()),
    };
    let window = |of: broker::ServerMaintenance| ServerMaintenance {
        window: of.window.to_string(),
        scope: of.scope.as_str().to_owned(),
        state: of.state.as_str().to_owned(),
        starts_at: of.starts_at,
        ends_at: of.ends_at,
    };
    let available = !of.events.iter().any(|event| event.active && !event.kind.is_planned());
    Server {
        server: of.server.to_string(),
        datacenter: of.datacenter.to_string(),
        msb: of.msb.to_string(),
        rack: of.rack.to_string(),
        hardware_type: of.hardware_type.to_string(),
        reservation: of.current.map(|name| name.to_string()),
        target: of.target.map(target),
        target_version: version,
        target_origin: origin.map(|origin| origin.as_str().to_owned()),
        loaned_to: of.loaned_to.map(|name| name.to_string()),
        in_use: of.in_use,
        power_watts: of.power_watts,
        generation: of.generation,
        available,
        events: of.events.into_iter().map(unavailability::view).collect(),
        maintenance: of.maintenance.into_iter().map(window).collect(),
        moving: of.moving.map(moves::view),
    }
}

fn unknown(name: &str) -> Problem {
    let detail = format!("there is no server {name:?}");
    Problem::new(StatusCode::NOT_FOUND, "unknown_server", detail)
}

/// A server: place, owner, target, events and move
#[utoipa::path(get, path = "/servers/{name}", operation_id = "get_server",
    params(("name" = String, Path, description = "the server")),
    responses((status = 200, description = "the server", body = Server)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Server>, Problem> {
    caller.reads_region()?;
    let found = in_time(site.broker.server(&name)).await?.ok_or_else(|| unknown(&name))?;
    Ok(Json(view(found)))
}

/// History of a server, newest first
///
/// Its targets, moves, events and entries of the audit trail. Targets and trail remain after it is removed.
#[utoipa::path(get, path = "/servers/{name}/history", operation_id = "get_server_history",
    params(("name" = String, Path, description = "the server"), ListQuery),
    responses((status = 200, description = "a page", body = ServerHistory)))]
pub(super) async fn history(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    StoredListRequest { list, .. }: StoredListRequest<HistoryFilters>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let (broker, name) = (&site.broker, name.as_str());
    let read = move |before: Option<PastEnd>, limit| async move {
        let rows = in_time(broker.server_history(name, before.as_ref(), limit)).await?;
        if rows.is_empty() && before.is_none() {
            in_time(broker.server(name)).await?.ok_or_else(|| unknown(name))?;
        }
        Ok(rows)
    };
    let past = |of: broker::ServerPast| ServerPast {
        at: of.at,
        kind: of.kind.as_str().to_owned(),
        key: of.key,
        detail: json(&of.detail),
    };
    let page = list.page(HISTORY, &name, read, broker::ServerPast::end, past).await?;
    Ok(page.response(&ServerHistory { history: Vec::new(), next_page_token: None }))
}

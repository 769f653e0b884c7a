//! `/ops/v1/servers/{name}`: one server and its history.

use super::moves::MoveView;
use super::unavailability::EventView;
use crate::http::auth::Caller;
use crate::http::page::PageCursor;
use crate::http::query::{self, StrictQuery};
use crate::http::{Problem, Site, in_time, schema};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use broker::{
    MaintenanceState, ServerDetail, ServerMaintenance, ServerPast, ServerTarget, State as _,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// Rows of a page: the default, and the limit.
const PAGE: u32 = 100;
const PAGE_MAX: u32 = 1_000;

/// Query of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryPageQuery {
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<u32>,
    /// `next_page_token` of the previous page.
    page_token: Option<String>,
}

/// A server, at one instant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Server)]
pub(super) struct ServerView {
    server: String,
    datacenter: String,
    msb: String,
    rack: String,
    hardware_type: String,
    /// Its owner; null: none.
    reservation: Option<String>,
    /// Its pending target.
    target: Option<TargetView>,
    /// The elastic reservation that borrows it.
    loaned_to: Option<String>,
    /// Whether it is known to run containers.
    in_use: bool,
    /// Typical draw under load, in watts.
    power_watts: Option<f64>,
    /// Counter of its changes that invalidate decisions.
    generation: i64,
    /// Whether it is in service, or only in planned maintenance.
    available: bool,
    /// Open events that cover it, oldest first.
    events: Vec<EventView>,
    /// Open windows of planned maintenance.
    maintenance: Vec<WindowView>,
    /// Its open move.
    #[serde(rename = "move")]
    moving: Option<MoveView>,
}

/// Pending target of a server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ServerTarget)]
struct TargetView {
    /// Next owner; null: none.
    reservation: Option<String>,
    /// Version of the targets.
    version: i64,
    /// If decided between two solves: the cause.
    origin: Option<String>,
}

/// A window of maintenance of a server or its rack.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ServerMaintenance)]
struct WindowView {
    #[schema(value_type = Uuid)]
    window: String,
    /// server or rack.
    scope: String,
    #[schema(schema_with = schema::state::<MaintenanceState>)]
    state: &'static str,
    starts_at: DateTime<Utc>,
    ends_at: DateTime<Utc>,
}

/// An entry of the history of a server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ServerPast)]
struct PastView {
    at: DateTime<Utc>,
    /// target: its target in a version; move: a move was opened; event: an event began; trail: an entry of the audit
    /// trail.
    #[schema(schema_with = kinds)]
    kind: String,
    /// Further data, by kind.
    #[schema(value_type = Object)]
    detail: Value,
}

fn kinds() -> utoipa::openapi::Schema {
    schema::words(["target", "move", "event", "trail"])
}

/// History of a server, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServerHistory {
    history: Vec<PastView>,
    /// Null: this is the last page.
    next_page_token: Option<String>,
}

impl From<ServerDetail> for ServerView {
    fn from(of: ServerDetail) -> ServerView {
        let target = |of: ServerTarget| TargetView {
            reservation: of.reservation.map(|name| name.to_string()),
            version: of.version.0,
            origin: of.origin.map(|origin| origin.as_str().to_owned()),
        };
        let window = |of: ServerMaintenance| WindowView {
            window: of.window.to_string(),
            scope: of.scope.as_str().to_owned(),
            state: of.state.as_str(),
            starts_at: of.starts_at,
            ends_at: of.ends_at,
        };
        let available = !of.events.iter().any(|event| event.active && !event.kind.is_planned());
        ServerView {
            server: of.server.to_string(),
            datacenter: of.datacenter.to_string(),
            msb: of.msb.to_string(),
            rack: of.rack.to_string(),
            hardware_type: of.hardware_type.to_string(),
            reservation: of.current.map(|name| name.to_string()),
            target: of.target.map(target),
            loaned_to: of.loaned_to.map(|name| name.to_string()),
            in_use: of.in_use,
            power_watts: of.power_watts,
            generation: of.generation,
            available,
            events: of.events.into_iter().map(EventView::from).collect(),
            maintenance: of.maintenance.into_iter().map(window).collect(),
            moving: of.moving.map(MoveView::from),
        }
    }
}

fn unknown(name: &str) -> Problem {
    let detail = format!("there is no server {name:?}");
    Problem::new(StatusCode::NOT_FOUND, "unknown_server", detail)
}

/// A server: place, owner, target, events and move
#[utoipa::path(get, path = "/servers/{name}", operation_id = "get_server",
    params(("name" = String, Path, description = "the server")),
    responses((status = 200, description = "the server", body = ServerView)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ServerView>, Problem> {
    caller.reads_region()?;
    let found = in_time(site.broker.server(&name)).await?.ok_or_else(|| unknown(&name))?;
    Ok(Json(found.into()))
}

/// History of a server, newest first
///
/// Its targets, moves, events and entries of the audit trail. Targets and trail remain after it is removed.
#[utoipa::path(get, path = "/servers/{name}/history", operation_id = "get_server_history",
    params(("name" = String, Path, description = "the server"), HistoryPageQuery),
    responses((status = 200, description = "a page", body = ServerHistory)))]
pub(super) async fn history(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    StrictQuery(which): StrictQuery<HistoryPageQuery>,
) -> Result<Json<ServerHistory>, Problem> {
    caller.reads_region()?;
    let cursor = PageCursor::new(&("history", &name));
    let before = cursor.position(which.page_token.as_deref())?;
    let limit = query::limit(which.limit, PAGE, PAGE_MAX)?;
    let rows = in_time(site.broker.server_history(&name, before.as_ref(), limit + 1)).await?;
    if rows.is_empty() && before.is_none() {
        in_time(site.broker.server(&name)).await?.ok_or_else(|| unknown(&name))?;
    }
    let position = |of: &ServerPast| (of.at, of.kind.clone(), of.key.clone());
    let (rows, next_page_token) = cursor.page(rows, limit, position);
    let past = |of: ServerPast| PastView { at: of.at, kind: of.kind, detail: of.detail };
    Ok(Json(ServerHistory { history: rows.into_iter().map(past).collect(), next_page_token }))
}

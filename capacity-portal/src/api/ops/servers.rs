//! `/ops/v1/servers/{name}`: one server, and what became of it.

use super::moves::MoveView;
use super::unavailability::EventView;
use crate::api::asked::{self, Asked};
use crate::api::authority::Caller;
use crate::api::page::Question;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::extract::{Path, State as Extension};
use axum::http::StatusCode;
use broker::{
    MaintenanceState, ServerDetail, ServerMaintenance, ServerPast, ServerTarget, State as _,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// Rows of a page, unless told otherwise, and at most.
const PAGE: u32 = 100;
const PAGE_MAX: u32 = 1_000;

/// Which page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<u32>,
    /// `next_page_token` of the page before.
    page_token: Option<String>,
}

/// A server, as of one instant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Server)]
pub(super) struct ServerView {
    server: String,
    datacenter: String,
    msb: String,
    rack: String,
    hardware_type: String,
    /// The reservation that owns it now; null: none.
    reservation: Option<String>,
    /// What was decided about it and is not done yet.
    target: Option<TargetView>,
    /// The elastic reservation that borrows it.
    loaned_to: Option<String>,
    /// Whether containers are known to run on it.
    in_use: bool,
    /// Typical draw under load, in watts.
    power_watts: Option<f64>,
    /// Changes of what a decision about it rests on, so far.
    generation: i64,
    /// Whether nothing but planned maintenance covers it now.
    available: bool,
    /// Events that cover it and have not ended, the oldest first.
    events: Vec<EventView>,
    /// Windows of planned maintenance to come or under way.
    maintenance: Vec<WindowView>,
    /// The move under way.
    #[serde(rename = "move")]
    moving: Option<MoveView>,
}

/// What was decided about a server and is not done yet.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ServerTarget)]
struct TargetView {
    /// The reservation that shall own it; null: none.
    reservation: Option<String>,
    /// The version of the targets that says so.
    version: i64,
    /// Of what was decided between two solves: for what.
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
    #[schema(schema_with = asked::state::<MaintenanceState>)]
    state: &'static str,
    starts_at: DateTime<Utc>,
    ends_at: DateTime<Utc>,
}

/// Something that became of a server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ServerPast)]
struct PastView {
    at: DateTime<Utc>,
    /// target: what a version of the targets says of it; move: one that was opened then; event: one that
    /// began then; trail: an entry of the audit trail.
    #[schema(schema_with = kinds)]
    kind: String,
    /// The rest, by kind.
    #[schema(value_type = Object)]
    detail: Value,
}

fn kinds() -> utoipa::openapi::Schema {
    asked::words(["target", "move", "event", "trail"])
}

/// What became of a server, the youngest first.
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

/// A server: where it is, what it is to whom, whether it can be used, and where it goes
#[utoipa::path(get, path = "/servers/{name}", operation_id = "get_server",
    params(("name" = String, Path, description = "the server")),
    responses((status = 200, description = "the server", body = ServerView)))]
pub(super) async fn find(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ServerView>, Problem> {
    caller.reads_region()?;
    let found = in_time(site.broker.server(&name)).await?.ok_or_else(|| unknown(&name))?;
    Ok(Json(found.into()))
}

/// What became of a server, the youngest first
///
/// What was decided about it, its moves, its own events and its entries of the audit trail. Of a server
/// that is gone the targets and the trail stay.
#[utoipa::path(get, path = "/servers/{name}/history", operation_id = "get_server_history",
    params(("name" = String, Path, description = "the server"), Which),
    responses((status = 200, description = "a page", body = ServerHistory)))]
pub(super) async fn history(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(name): Path<String>,
    Asked(which): Asked<Which>,
) -> Result<Json<ServerHistory>, Problem> {
    caller.reads_region()?;
    let question = Question::new(&("history", &name));
    let before = question.cursor(which.page_token.as_deref())?;
    let limit = asked::limit(which.limit, PAGE, PAGE_MAX)?;
    let rows = in_time(site.broker.server_history(&name, before.as_ref(), limit + 1)).await?;
    if rows.is_empty() && before.is_none() {
        in_time(site.broker.server(&name)).await?.ok_or_else(|| unknown(&name))?;
    }
    let cursor = |of: &ServerPast| (of.at, of.kind.clone(), of.key.clone());
    let (rows, next_page_token) = question.page(rows, limit, cursor);
    let past = |of: ServerPast| PastView { at: of.at, kind: of.kind, detail: of.detail };
    Ok(Json(ServerHistory { history: rows.into_iter().map(past).collect(), next_page_token }))
}

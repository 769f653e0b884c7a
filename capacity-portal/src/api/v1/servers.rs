//! `GET /v1/reservations/{name}/servers`: what an allocator may place containers on.

use super::reservation;
use crate::api::asked::{self, Asked};
use crate::api::authority::Caller;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::extract::{Path, State};
use broker::{ReservedPage, ReservedServer, SERVERS_PAGE_MAX, ServerState};
use fleet::Name;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Servers of a page, unless told otherwise.
const PAGE: u32 = 1_000;

/// Which page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ServersAsked {
    /// Servers after this name; absent: from the first.
    #[serde(default)]
    after: String,
    /// The most servers of the page; 1,000 unless told otherwise.
    #[param(minimum = 1, maximum = 10_000)]
    limit: Option<u32>,
}

/// A server of a reservation.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServerOfReservation {
    #[schema(value_type = String)]
    server: Name,
    #[schema(schema_with = states)]
    state: ServerState,
    /// Whether the reservation owns it now.
    bound: bool,
    /// Whether containers are known to run on it.
    in_use: bool,
    #[schema(value_type = String)]
    datacenter: Name,
    #[schema(value_type = String)]
    msb: Name,
    #[schema(value_type = String)]
    rack: Name,
    #[schema(value_type = String)]
    hardware_type: Name,
    /// What it is worth to the reservation, in RRU.
    rru: f64,
    /// The elastic reservation that borrows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    loaned_to: Option<Name>,
}

fn states() -> utoipa::openapi::Schema {
    asked::words([
        "unavailable",
        "leaving",
        "in_maintenance",
        "on_loan",
        "borrowed",
        "arriving",
        "available",
    ])
}

impl From<ReservedServer> for ServerOfReservation {
    fn from(of: ReservedServer) -> ServerOfReservation {
        ServerOfReservation {
            server: of.server,
            state: of.state,
            bound: of.bound,
            in_use: of.in_use,
            datacenter: of.datacenter,
            msb: of.msb,
            rack: of.rack,
            hardware_type: of.hardware_type,
            rru: of.rru.to_f64(),
            loaned_to: of.loaned_to,
        }
    }
}

/// A page of a reservation's servers, as of one instant.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServersPage {
    /// The last entry of the audit trail at that instant: where to follow from.
    seq: i64,
    /// What was promised, in RRU; on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity_rru: Option<f64>,
    /// What containers may be placed on, in RRU: servers that are available or borrowed; on the
    /// first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    available_rru: Option<f64>,
    /// The largest share of one MSB in what it owns and is not out of use, in RRU; on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    embedded_buffer_rru: Option<f64>,
    /// The servers, in order of name.
    servers: Vec<ServerOfReservation>,
    /// Where the next page begins; null: this is the last.
    next: Option<String>,
}

impl From<ReservedPage> for ServersPage {
    fn from(page: ReservedPage) -> ServersPage {
        let totals = page.totals;
        ServersPage {
            seq: page.seq.0,
            capacity_rru: totals.map(|totals| totals.capacity.to_f64()),
            available_rru: totals.map(|totals| totals.available.to_f64()),
            embedded_buffer_rru: totals.map(|totals| totals.embedded_buffer.to_f64()),
            servers: page.servers.into_iter().map(ServerOfReservation::from).collect(),
            next: page.next.map(|name| name.to_string()),
        }
    }
}

/// The servers that a reservation owns, gets or borrows
///
/// Each in one state, which says what may be done with it; in order of name, page by page.
#[utoipa::path(get, path = "/reservations/{name}/servers", operation_id = "list_servers",
    params(("name" = String, Path, description = "the reservation"), ServersAsked),
    responses((status = 200, description = "a page", body = ServersPage)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    Asked(ServersAsked { after, limit }): Asked<ServersAsked>,
) -> Result<Json<ServersPage>, Problem> {
    caller.reads()?;
    let name = reservation(&site, &caller, name).await?;
    let limit = asked::limit(limit, PAGE, SERVERS_PAGE_MAX)?;
    if after.contains('\0') {
        return Err(Problem::bad_request("malformed", "a page begins after a name"));
    }
    Ok(Json(in_time(site.broker.reserved_servers(&name, &after, limit)).await?.into()))
}

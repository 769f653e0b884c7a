//! `GET /v1/reservations/{name}/servers`: servers on which an allocator may place containers.

use super::scope::visible_reservation;
use crate::http::auth::Caller;
use crate::http::query::{self, StrictQuery};
use crate::http::{Problem, Site, in_time};
use api_types::reservations::{ServerOfReservation, ServersPage};
use axum::Json;
use axum::extract::{Path, State};
use broker::{ReservedPage, ReservedServer, SERVERS_PAGE_MAX};
use serde::Deserialize;
use utoipa::IntoParams;

/// Default number of servers in a page.
const PAGE: u32 = 1_000;

/// Query of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ServersQuery {
    /// Begin after this name; absent: at the first server.
    #[serde(default)]
    after: String,
    /// Limit of servers in the page; 1,000 by default.
    #[param(minimum = 1, maximum = 10_000)]
    limit: Option<u32>,
}

/// A server, as it is sent.
pub(super) fn server(of: ReservedServer) -> ServerOfReservation {
    ServerOfReservation {
        server: of.server.into(),
        state: of.state.as_str().into(),
        bound: of.bound,
        in_use: of.in_use,
        datacenter: of.datacenter.into(),
        msb: of.msb.into(),
        rack: of.rack.into(),
        hardware_type: of.hardware_type.into(),
        rru: of.rru.to_f64(),
        loaned_to: of.loaned_to.map(Into::into),
    }
}

/// A page, as it is sent.
fn view(page: ReservedPage) -> ServersPage {
    let totals = page.totals;
    ServersPage {
        seq: page.seq.0,
        capacity_rru: totals.map(|totals| totals.capacity.to_f64()),
        available_rru: totals.map(|totals| totals.available.to_f64()),
        embedded_buffer_rru: totals.map(|totals| totals.embedded_buffer.to_f64()),
        servers: page.servers.into_iter().map(server).collect(),
        next: page.next.map(|name| name.to_string()),
    }
}

/// Servers that a reservation owns, will own or borrows
///
/// Sorted by name, in pages. The state of a server tells whether containers may be placed on it.
#[utoipa::path(get, path = "/reservations/{name}/servers", operation_id = "list_servers",
    params(("name" = String, Path, description = "the reservation"), ServersQuery),
    responses((status = 200, description = "a page", body = ServersPage)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    StrictQuery(ServersQuery { after, limit }): StrictQuery<ServersQuery>,
) -> Result<Json<ServersPage>, Problem> {
    caller.reads()?;
    let name = visible_reservation(&site, &caller, name).await?;
    let limit = query::limit(limit, PAGE, SERVERS_PAGE_MAX)?;
    if after.contains('\0') {
        return Err(Problem::bad_request("malformed", "after must be a name"));
    }
    Ok(Json(view(in_time(site.allocators.servers(&name, &after, limit)).await?)))
}

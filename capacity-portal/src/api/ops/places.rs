//! Lists of the servers, racks and MSBs of the region, from the cached region.

use crate::http::auth::Caller;
use crate::http::list::{ListKind, ListPage, ListQuery, ListRequest, NoFilters, PAGE};
use crate::http::list_filter::{Cell, Row};
use crate::http::{Problem, Site};
use crate::region_summary::{RegionSummary, ServerCounts, ServerUse};
use api_types::inventory::{Msb, Msbs, Rack, Racks, RegionServer, RegionServers};
use api_types::servers::ServerTarget;
use axum::extract::State;
use axum::response::Response;
use control::{CachedRegion, RegionError};
use fleet::{MsbIx, RackIx, Reservation, ReservationIx, Server};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::spawn_blocking;

pub(crate) const SERVERS: ListKind =
    ListKind { rows: "servers", key: &["server"], order: "server", page: PAGE };
pub(crate) const RACKS: ListKind =
    ListKind { rows: "racks", key: &["rack"], order: "rack", page: PAGE };
pub(crate) const MSBS: ListKind =
    ListKind { rows: "msbs", key: &["msb"], order: "msb", page: PAGE };

/// A server of a region. Large regions have many, so values are read where they are.
pub(crate) struct ServerOf<'a> {
    region: &'a CachedRegion,
    server: &'a Server,
    generation: i64,
}

impl<'a> ServerOf<'a> {
    /// All servers of a region.
    pub(crate) fn all(region: &'a CachedRegion) -> impl Iterator<Item = ServerOf<'a>> {
        let rows = region.snapshot.servers.iter().zip(&region.generations);
        rows.map(move |(server, generation)| ServerOf { region, server, generation: *generation })
    }

    /// Whether it is in a rack.
    pub(crate) fn is_in_rack(&self, rack: RackIx) -> bool {
        self.server.rack == rack
    }

    fn named(&self, reservation: Option<ReservationIx>) -> Option<&'a str> {
        let named = |of: &'a Reservation| -> &'a str { &of.id };
        reservation.map(|of| named(&self.region.snapshot.reservations[of.ix()]))
    }

    fn target(&self) -> Option<&'a str> {
        self.named(self.server.pending.and_then(|pending| pending.target))
    }

    fn view(&self) -> RegionServer {
        let (region, server) = (&self.region.snapshot, self.server);
        let text = |name: Option<&str>| name.map(str::to_owned);
        RegionServer {
            server: server.id.to_string(),
            datacenter: region.datacenters[region.datacenter_of(server).ix()].id.to_string(),
            msb: region.msbs[region.msb_of(server).ix()].id.to_string(),
            rack: region.racks[server.rack.ix()].id.to_string(),
            hardware_type: region.hardware_types[server.hardware_type.ix()].to_string(),
            used_for: ServerUse::of(region, server).as_str().to_owned(),
            reservation: text(self.named(server.current)),
            moving: server.pending.is_some(),
            target: server.pending.map(|_| ServerTarget { reservation: text(self.target()) }),
            loaned_to: text(self.named(server.loaned_to)),
            in_use: server.in_use,
            available: server.available,
            power_watts: server.power_watts,
            generation: self.generation,
        }
    }
}

impl<'a> Row for ServerOf<'a> {
    type Shape = RegionServer;

    fn cell(&self, member: &str) -> Cell<'_> {
        let (region, server) = (&self.region.snapshot, self.server);
        let optional = |name: Option<&'a str>| name.map_or(Cell::Null, |of| Cell::Text(of.into()));
        match member {
            "server" => Cell::Text((&*server.id).into()),
            "datacenter" => {
                Cell::Text((&*region.datacenters[region.datacenter_of(server).ix()].id).into())
            }
            "msb" => Cell::Text((&*region.msbs[region.msb_of(server).ix()].id).into()),
            "rack" => Cell::Text((&*region.racks[server.rack.ix()].id).into()),
            "hardware_type" => {
                Cell::Text((&*region.hardware_types[server.hardware_type.ix()]).into())
            }
            "use" => Cell::Text(ServerUse::of(region, server).as_str().into()),
            "reservation" => optional(self.named(server.current)),
            "moving" => Cell::Bool(server.pending.is_some()),
            "target.reservation" => optional(self.target()),
            "loaned_to" => optional(self.named(server.loaned_to)),
            "in_use" => Cell::Bool(server.in_use),
            "available" => Cell::Bool(server.available),
            "power_watts" => server.power_watts.map_or(Cell::Null, Cell::Number),
            #[expect(clippy::cast_precision_loss, reason = "a counter")]
            "generation" => Cell::Number(self.generation as f64),
            _ => Cell::Null,
        }
    }

    fn json(&self) -> Value {
        json!(self.view())
    }
}

/// Servers of the region
///
/// From the region in memory, some seconds old in a busy region. Without `order_by`, by name.
#[utoipa::path(get, path = "/servers", operation_id = "list_region_servers",
    params(ListQuery),
    responses(
        (status = 200, description = "a page", body = RegionServers),
        (status = 409, description = "no region is loaded")))]
pub(super) async fn servers(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let held = site.cached_region().await?;
    let taken_at = held.snapshot.taken_at;
    let listed = spawn_blocking(move || list.page(SERVERS, &filters, ServerOf::all(&held)));
    let page: ListPage = listed.await.expect("it neither panics nor is cancelled")?;
    let of = RegionServers { taken_at, servers: Vec::new(), next_page_token: None };
    Ok(page.response(&of))
}

/// The region, counted.
async fn summary(site: &Site) -> Result<Arc<RegionSummary>, Problem> {
    let summary = site.region_summaries.current(&site.region).await?;
    summary.ok_or_else(|| RegionError::NothingLoaded.into())
}

pub(crate) fn rack(of: &RegionSummary, at: usize) -> Rack {
    let (region, counts) = (of.region(), &of.racks[at]);
    let rack = &region.racks[at];
    let msb = &region.msbs[rack.msb.ix()];
    let ServerCounts { in_use, idle, shared, free, down, moving, lent } = *counts;
    Rack {
        rack: rack.id.to_string(),
        msb: msb.id.to_string(),
        datacenter: region.datacenters[msb.datacenter.ix()].id.to_string(),
        servers: counts.total(),
        in_use,
        idle,
        shared_buffer: shared,
        free,
        unavailable: down,
        moving,
        lent,
    }
}

pub(crate) fn msb(of: &RegionSummary, at: usize) -> Msb {
    let (region, counts) = (of.region(), &of.msbs[at]);
    let msb = &region.msbs[at];
    let ServerCounts { in_use, idle, shared, free, down, moving, lent } = *counts;
    Msb {
        msb: msb.id.to_string(),
        datacenter: region.datacenters[msb.datacenter.ix()].id.to_string(),
        racks: of.by_msb[at].len(),
        servers: counts.total(),
        in_use,
        idle,
        shared_buffer: shared,
        free,
        unavailable: down,
        moving,
        lent,
        loss_breaks: of.broken_without(MsbIx::new(at)).len(),
    }
}

/// Racks of the region, with their servers counted
///
/// From the region in memory, some seconds old in a busy region. Without `order_by`, by name.
#[utoipa::path(get, path = "/racks", operation_id = "list_racks",
    params(ListQuery),
    responses(
        (status = 200, description = "a page", body = Racks),
        (status = 409, description = "no region is loaded")))]
pub(super) async fn racks(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest<NoFilters>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let summary = summary(&site).await?;
    let rows = (0..summary.racks.len()).map(|at| rack(&summary, at));
    let page = list.page_of(RACKS, &filters, rows)?;
    let taken_at = summary.region().taken_at;
    Ok(page.response(&Racks { taken_at, racks: Vec::new(), next_page_token: None }))
}

/// MSBs of the region, with their servers counted
///
/// From the region in memory, some seconds old in a busy region. Without `order_by`, by name.
#[utoipa::path(get, path = "/msbs", operation_id = "list_msbs",
    params(ListQuery),
    responses(
        (status = 200, description = "a page", body = Msbs),
        (status = 409, description = "no region is loaded")))]
pub(super) async fn msbs(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest<NoFilters>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let summary = summary(&site).await?;
    let rows = (0..summary.msbs.len()).map(|at| msb(&summary, at));
    let page = list.page_of(MSBS, &filters, rows)?;
    let taken_at = summary.region().taken_at;
    Ok(page.response(&Msbs { taken_at, msbs: Vec::new(), next_page_token: None }))
}

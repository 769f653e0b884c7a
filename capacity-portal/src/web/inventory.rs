//! The servers, racks, MSBs and hardware types of the region as lists, and the page of a rack.

use super::layout::{NavItem, Page, Reader, RegionReader};
use super::list::{Answer, Choice, Column, List, Params, Shown, switch};
use super::{link, ui};
use crate::api::ops::places::{self, ServerOf};
use crate::http::list::{ListKind, PAGE, Written};
use crate::http::{Problem, Site};
use crate::region_summary::{RegionSummary, ServerCounts, ServerUse};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use fleet::{RackIx, Scope};
use maud::{Markup, html};
use report::number;
use serde::Serialize;
use std::sync::Arc;
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

static SERVERS: [Column; 13] = [
    Column::new("server", "Server", Shown::Link(link::server)),
    Column::new("use", "Use", Shown::Use),
    Column::new("hardware_type", "Type", Shown::Text),
    Column::new("reservation", "Reservation", Shown::Link(link::reservation)),
    Column::new("msb", "MSB", Shown::Link(link::msb)),
    Column::new("rack", "Rack", Shown::Link(link::rack)),
    Column::new("target.reservation", "Moves to", Shown::Link(link::reservation)),
    Column::new("datacenter", "Datacenter", Shown::Text).extra(),
    Column::new("moving", "Moving", Shown::Text).extra(),
    Column::new("loaned_to", "Lent to", Shown::Link(link::reservation)).extra(),
    Column::new("in_use", "Containers run", Shown::Text).extra(),
    Column::new("available", "In service", Shown::Text).extra(),
    Column::new("power_watts", "Power, W", Shown::Count).extra(),
];

static RACKS: [Column; 10] = [
    Column::new("rack", "Rack", Shown::Link(link::rack)),
    Column::new("msb", "MSB", Shown::Link(link::msb)),
    Column::new("datacenter", "Datacenter", Shown::Text).extra(),
    Column::new("servers", "Servers", Shown::Count),
    Column::new("in_use", "In use", Shown::Count),
    Column::new("idle", "Idle", Shown::Count),
    Column::new("shared_buffer", "Shared buffer", Shown::Count),
    Column::new("free", "Free", Shown::Count),
    Column::new("unavailable", "Unavailable", Shown::Count),
    Column::new("moving", "Moving", Shown::Count).extra(),
];

static MSBS: [Column; 11] = [
    Column::new("msb", "MSB", Shown::Link(link::msb)),
    Column::new("datacenter", "Datacenter", Shown::Text),
    Column::new("racks", "Racks", Shown::Count),
    Column::new("servers", "Servers", Shown::Count),
    Column::new("in_use", "In use", Shown::Count),
    Column::new("idle", "Idle", Shown::Count),
    Column::new("shared_buffer", "Shared buffer", Shown::Count),
    Column::new("free", "Free", Shown::Count),
    Column::new("unavailable", "Unavailable", Shown::Count),
    Column::new("moving", "Moving", Shown::Count).extra(),
    Column::new("loss_breaks", "Guarantees its loss breaks", Shown::Number),
];

static TYPES: [Column; 9] = [
    Column::new("hardware_type", "Hardware type", Shown::Link(link::servers_of_type)),
    Column::new("servers", "Servers", Shown::Count),
    Column::new("in_use", "In use", Shown::Count),
    Column::new("idle", "Idle", Shown::Count),
    Column::new("shared_buffer", "Shared buffer", Shown::Count),
    Column::new("shared_buffer_promised", "Buffer promised", Shown::Count),
    Column::new("free", "Free", Shown::Count),
    Column::new("unavailable", "Unavailable", Shown::Count),
    Column::new("moving", "Moving", Shown::Count).extra(),
];

/// A hardware type with its servers counted.
#[derive(Serialize, ToSchema)]
struct CountedType {
    hardware_type: String,
    servers: usize,
    in_use: usize,
    idle: usize,
    shared_buffer: usize,
    shared_buffer_promised: Option<f64>,
    free: usize,
    unavailable: usize,
    moving: usize,
}

fn counted_type(summary: &RegionSummary, at: usize) -> CountedType {
    let ty = fleet::HardwareTypeIx::new(at);
    let ServerCounts { in_use, idle, shared, free, down, moving, .. } = summary.types[at];
    CountedType {
        hardware_type: summary.region().hardware_types[at].to_string(),
        servers: summary.types[at].total(),
        in_use,
        idle,
        shared_buffer: shared,
        shared_buffer_promised: summary.shared_buffer(ty).map(|(promised, _)| promised.to_f64()),
        free,
        unavailable: down,
        moving,
    }
}

/// The lists, in the order of their links.
pub(super) const LISTS: [(&str, &str); 6] = [
    ("/servers", "Servers"),
    ("/racks", "Racks"),
    ("/msbs", "MSBs"),
    ("/hardware-types", "Hardware types"),
    ("/supply", "Supply"),
    ("/warm-capacity", "Warm capacity"),
];

async fn region(site: &Site) -> Result<Option<Arc<RegionSummary>>, Problem> {
    site.region_summaries.current(&site.region).await
}

/// Runs what takes as long as sorting a region's servers.
async fn blocking(
    work: impl FnOnce() -> Result<Answer, Problem> + Send + 'static,
) -> Result<Answer, Problem> {
    spawn_blocking(work).await.expect("it neither panics nor is cancelled")
}

fn shown(answer: Answer, title: &str, path: &str, reader: &Reader) -> Response {
    match answer {
        Answer::File(file) => file,
        Answer::Part(part) => {
            let body = html! { h1 { (title) } (switch(&LISTS, path)) (part) };
            let nav = NavItem::Inventory;
            Page { nav, title, charts: false, body }.show(reader).into_response()
        }
    }
}

/// A list of the region; `answer` selects its rows.
async fn list(
    site: &Site,
    reader: &Reader,
    (path, title): (&'static str, &'static str),
    answer: impl FnOnce(&RegionSummary) -> Result<Answer, Problem> + Send + 'static,
) -> Result<Response, Problem> {
    let answer = match region(site).await? {
        None => Answer::Part(ui::missing("No region is loaded.")),
        Some(summary) => blocking(move || answer(&summary)).await?,
    };
    Ok(shown(answer, title, path, reader))
}

fn servers_list(path: String, fixed: Vec<(&'static str, String)>) -> List {
    List {
        kind: places::SERVERS,
        noun: "server",
        path,
        api: Some("/ops/v1/servers"),
        columns: &SERVERS,
        search: (&["server"], "Part of the name"),
        fixed,
        own: &[],
    }
}

fn use_choice() -> Choice {
    Choice::new("use", "Use", ServerUse::ALL.map(|of| of.as_str()))
}

/// Handler of `GET /servers`.
pub(super) async fn servers(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    list(&site, &reader, LISTS[0], move |summary| {
        let region = summary.region();
        let choices = [
            use_choice(),
            Choice::new("hardware_type", "Hardware type", &region.hardware_types),
            Choice::new("msb", "MSB", region.msbs.iter().map(|msb| &msb.id)),
            Choice::new("reservation", "Reservation", region.reservations.iter().map(|of| &of.id)),
        ];
        let list = servers_list("/servers".to_owned(), Vec::new());
        list.answer(&params, &choices, ServerOf::all(&summary.held))
    })
    .await
}

fn datacenters(summary: &RegionSummary) -> Choice {
    Choice::new("datacenter", "Datacenter", summary.region().datacenters.iter().map(|of| &of.id))
}

/// Handler of `GET /racks`.
pub(super) async fn racks(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    list(&site, &reader, LISTS[1], move |summary| {
        let msbs = summary.region().msbs.iter().map(|msb| &msb.id);
        let choices = [Choice::new("msb", "MSB", msbs), datacenters(summary)];
        let list = List {
            kind: places::RACKS,
            noun: "rack",
            path: "/racks".to_owned(),
            api: Some("/ops/v1/racks"),
            columns: &RACKS,
            search: (&["rack"], "Part of the name"),
            fixed: Vec::new(),
            own: &[],
        };
        let rows = (0..summary.racks.len()).map(|at| Written::new(&places::rack(summary, at)));
        list.answer(&params, &choices, rows)
    })
    .await
}

/// Handler of `GET /msbs`.
pub(super) async fn msbs(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    list(&site, &reader, LISTS[2], move |summary| {
        let list = List {
            kind: places::MSBS,
            noun: "MSB",
            path: "/msbs".to_owned(),
            api: Some("/ops/v1/msbs"),
            columns: &MSBS,
            search: (&["msb"], "Part of the name"),
            fixed: Vec::new(),
            own: &[],
        };
        let rows = (0..summary.msbs.len()).map(|at| Written::new(&places::msb(summary, at)));
        list.answer(&params, &[datacenters(summary)], rows)
    })
    .await
}

/// Handler of `GET /hardware-types`.
pub(super) async fn hardware_types(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    const KIND: ListKind = ListKind {
        rows: "hardware_types",
        key: &["hardware_type"],
        order: "hardware_type",
        page: PAGE,
    };
    list(&site, &reader, LISTS[3], move |summary| {
        let list = List {
            kind: KIND,
            noun: "hardware type",
            path: "/hardware-types".to_owned(),
            api: Some("/ops/v1/hardware-types"),
            columns: &TYPES,
            search: (&["hardware_type"], "Part of the name"),
            fixed: Vec::new(),
            own: &[],
        };
        let rows = (0..summary.types.len()).map(|at| Written::new(&counted_type(summary, at)));
        list.answer(&params, &[], rows)
    })
    .await
}

/// Handler of `GET /racks/{name}`.
pub(super) async fn rack(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(name): Path<String>,
    params: Params,
) -> Result<Response, Problem> {
    let unknown =
        || Problem::new(StatusCode::NOT_FOUND, "not_found", format!("there is no rack {name:?}"));
    let summary = region(&site).await?.ok_or_else(unknown)?;
    let racks = &summary.region().racks;
    let at = racks.binary_search_by(|rack| rack.id.as_ref().cmp(&name)).map_err(|_| unknown())?;
    let (path, title) = (link::rack(&name), format!("Rack {name}"));
    let fixed = vec![("rack", name)];
    let head = rack_head(&summary, RackIx::new(at));
    let answer = blocking(move || {
        let rows = ServerOf::all(&summary.held).filter(|of| of.is_in_rack(RackIx::new(at)));
        servers_list(path, fixed).answer(&params, &[use_choice()], rows)
    });
    Ok(match answer.await? {
        Answer::File(file) => file,
        Answer::Part(part) => {
            let body = html! { (head) section { h2 { "Servers" } (part) } };
            Page { nav: NavItem::Inventory, title: &title, charts: false, body }
                .show(&reader)
                .into_response()
        }
    })
}

fn rack_head(summary: &RegionSummary, ix: RackIx) -> Markup {
    let region = summary.region();
    let (rack, counts) = (&region.racks[ix.ix()], &summary.racks[ix.ix()]);
    let msb = &region.msbs[rack.msb.ix()];
    let datacenter = &region.datacenters[msb.datacenter.ix()].id;
    let events: Vec<_> = (region.unavailability.iter())
        .filter(|of| of.is_active(region.taken_at))
        .filter(|of| match of.scope {
            Scope::Server => false,
            Scope::Rack => *of.scope_id == *rack.id,
            Scope::Msb => *of.scope_id == *msb.id,
            Scope::Datacenter => *of.scope_id == **datacenter,
        })
        .collect();
    html! {
        (ui::crumbs(&[("/racks", "Racks"), (&link::msb(&msb.id), &msb.id)]))
        h1 { (ui::copyable(&rack.id)) }
        p.facts {
            span { "Datacenter " (datacenter) }
            span { (number::counted(counts.total(), "server")) }
            @for (_, label, count) in counts.by_use() { @if count > 0 { span { (number::count(count)) " " (label) } } }
        }
        (ui::bar(&counts.bar(), counts.total() as f64))
        @if !events.is_empty() { div.notice.bad {
            p { strong { "Out of service." } " Events that cover the whole rack:" }
            ul { @for of in events { li {
                (of.kind.as_str().replace('_', " ")) " of the " (of.scope.as_str()) " since " (ui::when(of.started_at))
                @if let Some(end) = of.ended_at { ", until " (ui::when(end)) }
            } } }
        } }
    }
}

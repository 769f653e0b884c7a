//! The servers of a reservation with their states.

use super::layout::{NavItem, Page, Reader};
use super::link;
use super::list::{Answer, Choice, Column, List, Params, Shown};
use super::ui::{self, Mood};
use crate::http::list::{ListKind, PAGE, Written};
use crate::http::{Problem, Site, in_time};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use broker::{
    ReservationError, ReservedFilter, ReservedServer, ReservedTotals, SERVERS_PAGE_MAX, ServerState,
};
use maud::{Markup, html};
use report::number;
use serde::Serialize;
use utoipa::ToSchema;

static COLUMNS: [Column; 9] = [
    Column::new("server", "Server", Shown::Link(link::server)),
    Column::new("state", "State", Shown::State(mood)),
    Column::new("in_use", "In use", Shown::Text),
    Column::new("hardware_type", "Type", Shown::Text),
    Column::new("rru", "RRU", Shown::Count),
    Column::new("msb", "MSB", Shown::Text),
    Column::new("datacenter", "Datacenter", Shown::Text),
    Column::new("rack", "Rack", Shown::Text),
    Column::new("loaned_to", "Lent to", Shown::Text),
];

const STATES: [ServerState; 7] = [
    ServerState::Available,
    ServerState::Arriving,
    ServerState::Leaving,
    ServerState::Unavailable,
    ServerState::InMaintenance,
    ServerState::OnLoan,
    ServerState::Borrowed,
];

/// A server, as the page lists it.
#[derive(Serialize, ToSchema)]
struct ListedServer {
    server: String,
    state: &'static str,
    in_use: bool,
    hardware_type: String,
    rru: f64,
    msb: String,
    datacenter: String,
    rack: String,
    loaned_to: Option<String>,
}

impl ListedServer {
    fn new(of: ReservedServer) -> ListedServer {
        ListedServer {
            server: of.server.to_string(),
            state: word(of.state),
            in_use: of.in_use,
            hardware_type: of.hardware_type.to_string(),
            rru: of.rru.to_f64(),
            msb: of.msb.to_string(),
            datacenter: of.datacenter.to_string(),
            rack: of.rack.to_string(),
            loaned_to: of.loaned_to.map(|name| name.to_string()),
        }
    }
}

/// Handler of `GET /reservations/{name}/servers`. `after` is the name of a server: only those after it are listed.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Path(name): Path<String>,
    params: Params,
) -> Result<Response, Problem> {
    const KIND: ListKind =
        ListKind { rows: "servers", key: &["server"], order: "server", page: PAGE };
    let unknown = || Problem::from(ReservationError::Unknown { name: name.clone() });
    if name.contains('\0') {
        let detail = "names contain no zero character";
        return Err(Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail));
    }
    let owner = in_time(site.broker.reservation_owner(&name)).await?.ok_or_else(unknown)?;
    if !reader.sees(&owner) {
        return Err(unknown());
    }
    let given = |name: &str| Some(params.get(name).to_owned()).filter(|text| !text.is_empty());
    let filter = ReservedFilter { msb: given("msb"), hardware_type: given("hardware") };
    let after = params.get("after");
    let page = site.allocators.servers_matching(&name, &filter, after, SERVERS_PAGE_MAX);
    let page = in_time(page).await?;
    let summary = site.region_summaries.current(&site.region).await?;
    let region = summary.as_deref().map(|summary| summary.region());
    let choices = [
        Choice::new("state", "State", STATES.map(word)),
        Choice::new("msb", "MSB", region.into_iter().flat_map(|of| &of.msbs).map(|of| &of.id)),
        Choice {
            any_of: &["hardware_type"],
            ..Choice::new(
                "hardware",
                "Hardware type",
                region.into_iter().flat_map(|of| &of.hardware_types),
            )
        },
    ];
    let list = List {
        kind: KIND,
        noun: "server",
        path: link::servers(&name),
        api: None,
        columns: &COLUMNS,
        search: (&["server", "rack"], "Server or rack"),
        fixed: Vec::new(),
        own: &["after"],
    };
    let rows = page.servers.into_iter().map(|of| Written::new(&ListedServer::new(of)));
    let part = match list.answer(&params, &choices, rows)? {
        Answer::File(file) => return Ok(file),
        Answer::Part(part) => part,
    };
    let title = format!("Servers of {name}");
    let body = html! {
        (ui::crumbs(&[("/reservations", "Reservations"), (&link::reservation(&name), &name)]))
        h1 { (title) }
        @if let Some(totals) = &page.totals { (facts(totals)) }
        (part)
        @if let Some(next) = &page.next { p.note {
            "Listed are " (number::count(SERVERS_PAGE_MAX as usize)) " servers by name. "
            a href=(params.path(&link::servers(&name), &[("after", next), ("page", "")])) { "Those after them" }
        } }
    };
    Ok(Page { nav: NavItem::Reservations, title: &title, charts: false, body }
        .show(&reader)
        .into_response())
}

fn facts(totals: &ReservedTotals) -> Markup {
    html! {
        p.facts {
            span { (number::rru(totals.capacity)) " RRU promised" }
            span { (number::rru(totals.available)) " RRU available for containers" }
            span { (number::rru(totals.embedded_buffer)) " RRU in its largest MSB" }
        }
    }
}

const fn word(of: ServerState) -> &'static str {
    match of {
        ServerState::Unavailable => "unavailable",
        ServerState::Leaving => "leaving",
        ServerState::InMaintenance => "in_maintenance",
        ServerState::OnLoan => "on_loan",
        ServerState::Borrowed => "borrowed",
        ServerState::Arriving => "arriving",
        ServerState::Available => "available",
    }
}

fn mood(state: &str) -> Mood {
    match state {
        "unavailable" => Mood::Bad,
        "leaving" | "in_maintenance" => Mood::Warn,
        "available" => Mood::Good,
        _ => Mood::Plain,
    }
}

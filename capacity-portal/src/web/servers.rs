//! The servers of a reservation with their states, page by page.

use super::layout::{NavItem, Page, Reader};
use super::link;
use super::ui::{self, Mood};
use crate::http::{Problem, Site, in_time};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Html;
use broker::{ReservationError, ReservedFilter, ReservedPage, ReservedTotals, ServerState};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;

/// Servers on a page.
const ROWS: u32 = 100;

/// Filter and page.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServersQuery {
    /// Name of an MSB; empty for any.
    msb: String,
    /// Name of a hardware type; empty for any.
    hardware: String,
    /// The last name of the page before; empty for the first page.
    after: String,
}

impl ServersQuery {
    fn filter(&self) -> ReservedFilter {
        let non_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        ReservedFilter { msb: non_empty(&self.msb), hardware_type: non_empty(&self.hardware) }
    }

    /// Path of the page after this name, with the same filter.
    fn path(&self, reservation: &str, after: &str) -> String {
        let mut path = link::servers(reservation);
        let query = [("msb", self.msb.as_str()), ("hardware", &self.hardware), ("after", after)];
        let query = query.into_iter().filter(|(_, value)| !value.is_empty());
        for (position, (name, value)) in query.enumerate() {
            let mark = if position == 0 { '?' } else { '&' };
            path.push_str(&format!("{mark}{name}={}", link::segment(value)));
        }
        path
    }
}

/// Handler of `GET /reservations/{name}/servers`.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Path(name): Path<String>,
    Query(query): Query<ServersQuery>,
) -> Result<Html<String>, Problem> {
    let unknown = || Problem::from(ReservationError::Unknown { name: name.clone() });
    if [&name, &query.msb, &query.hardware, &query.after].iter().any(|text| text.contains('\0')) {
        let detail = "names contain no zero character";
        return Err(Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail));
    }
    let owner = in_time(site.broker.reservation_owner(&name)).await?.ok_or_else(unknown)?;
    if !reader.sees(&owner) {
        return Err(unknown());
    }
    let filter = query.filter();
    let page = site.allocators.servers_matching(&name, &filter, &query.after, ROWS);
    let page = in_time(page).await?;
    let summary = site.region_summaries.current(&site.region).await?;
    let region = summary.as_deref().map(|summary| summary.region());
    let msbs: Vec<&str> = region.into_iter().flat_map(|of| &of.msbs).map(|msb| &*msb.id).collect();
    let types: Vec<&str> =
        region.into_iter().flat_map(|of| &of.hardware_types).map(|name| &**name).collect();
    let title = format!("Servers of {name}");
    let body = html! {
        (ui::crumbs(&[("/reservations", "Reservations"), (&link::reservation(&name), &name)]))
        h1 { (title) }
        @if let Some(totals) = &page.totals { (facts(totals)) }
        form.toolbar method="get" action=(link::servers(&name)) {
            (choice("msb", "MSB", &msbs, &query.msb))
            (choice("hardware", "Hardware type", &types, &query.hardware))
            button type="submit" { "Show" }
        }
        @if page.servers.is_empty() {
            (ui::missing(if query.after.is_empty() { "The reservation has no such server." } else { "There are no more servers." }))
        } @else { (table(&page, &query)) }
        nav.pages aria-label="Pages" {
            @if !query.after.is_empty() { a href=(query.path(&name, "")) rel="start" { "First page" } }
            @if let Some(next) = &page.next { a href=(query.path(&name, next)) rel="next" { "Next" } }
        }
    };
    Ok(Page { nav: NavItem::Reservations, title: &title, charts: false, body }.show(&reader))
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

fn choice(name: &str, label: &str, all: &[&str], chosen: &str) -> Markup {
    html! {
        div.field { label for=(name) { (label) }
            select id=(name) name=(name) {
                option value="" { "Any" }
                // An unknown value of the query stays chosen, so that the page shows its own filter.
                @if !chosen.is_empty() && !all.contains(&chosen) { option value=(chosen) selected { (chosen) } }
                @for of in all { option value=(of) selected[*of == chosen] { (of) } }
            } }
    }
}

/// Label of the state of a server.
pub(super) fn state(of: ServerState) -> Markup {
    let (mood, word) = match of {
        ServerState::Unavailable => (Mood::Bad, "unavailable"),
        ServerState::Leaving => (Mood::Warn, "leaving"),
        ServerState::InMaintenance => (Mood::Warn, "in maintenance"),
        ServerState::OnLoan => (Mood::Plain, "on loan"),
        ServerState::Borrowed => (Mood::Plain, "borrowed"),
        ServerState::Arriving => (Mood::Plain, "arriving"),
        ServerState::Available => (Mood::Good, "available"),
    };
    ui::state(mood, word)
}

fn table(page: &ReservedPage, query: &ServersQuery) -> Markup {
    let filtered = query.filter() != ReservedFilter::default();
    html! {
        div.scroll { table {
            caption { (number::counted(page.servers.len(), "server")) ", by name"
                @if filtered { ", filtered" }
                @if !query.after.is_empty() { ", after " (query.after) } }
            thead { tr { th scope="col" { "Server" } th scope="col" { "State" } th scope="col" { "In use" }
                th scope="col" { "Type" } th.n scope="col" { "RRU" } th scope="col" { "MSB" }
                th.spare scope="col" { "Rack" } th.spare scope="col" { "Lent to" } } }
            tbody { @for of in &page.servers { tr {
                th scope="row" { a href=(link::server(&of.server)) { (of.server) } }
                td { (state(of.state)) }
                td { @if of.in_use { "yes" } @else { "no" } }
                td { (of.hardware_type) }
                td.n { (number::rru(of.rru)) }
                td { (of.msb) " " span.dim.spare { (of.datacenter) } }
                td.spare { (of.rack) }
                td.spare { @match &of.loaned_to { Some(name) => (name), None => (number::NOTHING) } }
            } } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::ServersQuery;

    #[test]
    fn path_of_a_page_keeps_the_filter() {
        let query = ServersQuery { msb: "m 1".to_owned(), ..ServersQuery::default() };
        assert_eq!(
            query.path("b/ü", "s&1"),
            "/reservations/b%2F%C3%BC/servers?msb=m%201&after=s%261"
        );
        assert_eq!(ServersQuery::default().path("web", ""), "/reservations/web/servers");
        assert_eq!(ServersQuery::default().path("web", "s1"), "/reservations/web/servers?after=s1");
    }
}

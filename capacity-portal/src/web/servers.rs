//! The servers of a reservation: what may be done with each, page by page.

use super::frame::{Page, Place, Reader};
use super::link;
use super::part::{self, Mood};
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Html;
use broker::{ReservationError, ReservedFilter, ReservedPage, ReservedTotals, ServerState};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;

/// Servers of a page.
const ROWS: u32 = 100;

/// Which of them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Asked {
    /// In this MSB; empty: in any.
    msb: String,
    /// Of this hardware type; empty: of any.
    hardware: String,
    /// Those after this name; empty: from the first.
    after: String,
}

impl Asked {
    fn filter(&self) -> ReservedFilter {
        let said = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        ReservedFilter { msb: said(&self.msb), hardware_type: said(&self.hardware) }
    }

    /// The path with the same filter from after this name.
    fn path(&self, reservation: &str, after: &str) -> String {
        let mut path = link::servers(reservation);
        let asked = [("msb", self.msb.as_str()), ("hardware", &self.hardware), ("after", after)];
        let asked = asked.into_iter().filter(|(_, value)| !value.is_empty());
        for (place, (name, value)) in asked.enumerate() {
            let mark = if place == 0 { '?' } else { '&' };
            path.push_str(&format!("{mark}{name}={}", link::segment(value)));
        }
        path
    }
}

/// The page.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Html<String>, Problem> {
    let none = || Problem::from(ReservationError::Unknown { name: name.clone() });
    if [&name, &asked.msb, &asked.hardware, &asked.after].iter().any(|text| text.contains('\0')) {
        let detail = "nothing has a zero character in its name";
        return Err(Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail));
    }
    let owner = in_time(site.broker.reservation_owner(&name)).await?.ok_or_else(none)?;
    if !reader.sees(&owner) {
        return Err(none());
    }
    let filter = asked.filter();
    let page = site.broker.reserved_servers_in(&name, &filter, &asked.after, ROWS);
    let page = in_time(page).await?;
    let picture = site.pictures.now(&site.region).await?;
    let region = picture.as_deref().map(|picture| picture.region());
    let msbs: Vec<&str> = region.into_iter().flat_map(|of| &of.msbs).map(|msb| &*msb.id).collect();
    let types: Vec<&str> =
        region.into_iter().flat_map(|of| &of.hardware_types).map(|name| &**name).collect();
    let title = format!("Servers of {name}");
    let body = html! {
        p.kicker { a href="/reservations" { "Reservations" } " · " a href=(link::reservation(&name)) { (name) } }
        h1 { (title) }
        @if let Some(totals) = &page.totals { (facts(totals)) }
        form.toolbar method="get" action=(link::servers(&name)) {
            (choice("msb", "MSB", &msbs, &asked.msb))
            (choice("hardware", "Hardware type", &types, &asked.hardware))
            button type="submit" { "Show" }
        }
        @if page.servers.is_empty() {
            (part::missing(if asked.after.is_empty() { "It has no such server." } else { "There are no more." }))
        } @else { (table(&page, &asked)) }
        nav.pages aria-label="Pages" {
            @if !asked.after.is_empty() { a href=(asked.path(&name, "")) rel="start" { "From the first" } }
            @if let Some(next) = &page.next { a href=(asked.path(&name, next)) rel="next" { "Next" } }
        }
    };
    Ok(Page { place: Place::Reservations, title: &title, charts: false, body }.show(&reader))
}

fn facts(totals: &ReservedTotals) -> Markup {
    html! {
        p.facts {
            span { (number::rru(totals.capacity)) " RRU promised" }
            span { (number::rru(totals.available)) " RRU to place containers on" }
            span { (number::rru(totals.embedded_buffer)) " RRU in its largest MSB" }
        }
    }
}

fn choice(name: &str, label: &str, all: &[&str], said: &str) -> Markup {
    html! {
        div.field { label for=(name) { (label) }
            select id=(name) name=(name) {
                option value="" { "Any" }
                // What was asked for stays chosen, whether there is such a thing or not.
                @if !said.is_empty() && !all.contains(&said) { option value=(said) selected { (said) } }
                @for of in all { option value=(of) selected[*of == said] { (of) } }
            } }
    }
}

/// What the state of a server is called, and whether that is good.
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
    part::state(mood, word)
}

fn table(page: &ReservedPage, asked: &Asked) -> Markup {
    let filtered = asked.filter() != ReservedFilter::default();
    html! {
        div.scroll { table {
            caption { (number::counted(page.servers.len(), "server")) ", by name"
                @if filtered { ", of those asked for" }
                @if !asked.after.is_empty() { ", after " (asked.after) } }
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
    use super::Asked;

    #[test]
    fn a_page_keeps_its_filter() {
        let asked = Asked { msb: "m 1".to_owned(), ..Asked::default() };
        assert_eq!(
            asked.path("b/ü", "s&1"),
            "/reservations/b%2F%C3%BC/servers?msb=m%201&after=s%261"
        );
        assert_eq!(Asked::default().path("web", ""), "/reservations/web/servers");
        assert_eq!(Asked::default().path("web", "s1"), "/reservations/web/servers?after=s1");
    }
}

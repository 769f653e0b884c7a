//! The list of reservations: promised capacity and what of it is in force.

use super::layout::{NavItem, Page, Reader};
use super::link;
use super::ui::{self, Mood};
use crate::api::v1::not_reserved_until;
use crate::http::{Problem, Site, in_time};
use crate::region_summary::RegionSummary;
use axum::extract::{Query, State};
use axum::response::Html;
use broker::{REQUESTS_PAGE_MAX, Request, RequestFilter, RequestState};
use chrono::{DateTime, Utc};
use control::reservation_status::ServerCount;
use fleet::audit::{Certified, ReservationAudit};
use fleet::{ReservationKind, Rru};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;

/// Rows on a page.
const ROWS: usize = 100;

/// Filter and page.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// Part of the name or of the owner.
    #[serde(default)]
    q: String,
    #[serde(default)]
    show: ListFilter,
    #[serde(default)]
    page: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ListFilter {
    #[default]
    Guaranteed,
    Short,
    SharedBuffer,
    Elastic,
}

impl ListFilter {
    const ALL: [(ListFilter, &'static str, &'static str); 4] = [
        (ListFilter::Guaranteed, "guaranteed", "Guaranteed"),
        (ListFilter::Short, "short", "Short of promised capacity"),
        (ListFilter::SharedBuffer, "shared_buffer", "Shared buffers"),
        (ListFilter::Elastic, "elastic", "Elastic"),
    ];

    fn word(self) -> &'static str {
        let found = ListFilter::ALL.into_iter().find(|(filter, ..)| *filter == self);
        found.map_or("", |(_, word, _)| word)
    }

    fn takes(self, row: &ReservationAudit, summary: &RegionSummary) -> bool {
        match self {
            ListFilter::Guaranteed => row.kind == ReservationKind::Guaranteed,
            ListFilter::Short => missing(row, summary) > Rru::ZERO,
            ListFilter::SharedBuffer => row.kind == ReservationKind::SharedBuffer,
            ListFilter::Elastic => row.kind == ReservationKind::Elastic,
        }
    }
}

/// Handler of `GET /reservations`.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Query(query): Query<ListQuery>,
) -> Result<Html<String>, Problem> {
    let summary = site.region_summaries.current(&site.region).await?;
    let body = html! {
        div.head { div { h1 { "Reservations" }
            p.facts { span { "Promised capacity, and the capacity that the worst MSB loss would leave." } } }
            div.actions { a.button.main href="/request" { "Request capacity" } } }
        (waiting(&site, &reader, None).await?)
        (search(&query))
        @match &summary {
            Some(summary) => (list(summary, &query, &reader)),
            None => (ui::missing("No region is loaded.")),
        }
    };
    let title = "Reservations";
    Ok(Page { nav: NavItem::Reservations, title, charts: false, body }.show(&reader))
}

/// Notice about requests that start later, of one reservation or of all. No capacity is set aside for them.
pub(super) async fn waiting(
    site: &Site,
    reader: &Reader,
    reservation: Option<&str>,
) -> Result<Markup, Problem> {
    let filter = RequestFilter {
        reservation: reservation.map(str::to_owned),
        state: Some(RequestState::Submitted),
        ..RequestFilter::default()
    };
    let found = in_time(site.broker.requests(&filter, None, REQUESTS_PAGE_MAX)).await?;
    let later = found.iter().filter(|of| of.starts_later && reader.sees(&of.asking.owner));
    let later: Vec<(&Request, DateTime<Utc>)> =
        later.filter_map(|of| Some((of, of.asking.starts_at?))).collect();
    Ok(html! {
        @if !later.is_empty() { div.notice {
            strong.verdict { (number::counted(later.len(), "request")) " to be decided later" }
            ul { @for (of, at) in later { li {
                strong { (of.asking.reservation()) } ": " (of.asking.kind.as_str())
                @if let Some(rru) = of.asking.change.capacity_rru { ", " (rru) " RRU" }
                ". " (not_reserved_until(at)) "."
            } } }
        } }
    })
}

fn search(query: &ListQuery) -> Markup {
    html! {
        form.toolbar role="search" method="get" action="/reservations" {
            div.field { label for="q" { "Name or owner" }
                input #q type="search" name="q" value=(query.q) autocomplete="off"; }
            div.field { label for="show" { "Show" }
                select #show name="show" {
                    @for (filter, word, title) in ListFilter::ALL {
                        option value=(word) selected[filter == query.show] { (title) }
                    }
                } }
            button type="submit" { "Search" }
        }
    }
}

fn list(summary: &RegionSummary, query: &ListQuery, reader: &Reader) -> Markup {
    let wanted = query.q.to_lowercase();
    let named = |row: &&ReservationAudit| {
        wanted.is_empty()
            || row.reservation_id.to_lowercase().contains(&wanted)
            || row.owner.to_lowercase().contains(&wanted)
    };
    let rows = summary.audit.reservations.iter();
    let rows: Vec<_> = rows
        .filter(|row| query.show.takes(row, summary) && reader.sees(&row.owner))
        .filter(named)
        .collect();
    let from = query.page.saturating_mul(ROWS).min(rows.len());
    let shown = &rows[from..rows.len().min(from + ROWS)];
    let to = |page: usize| {
        let q = link::segment(&query.q);
        format!("/reservations?q={q}&show={}&page={page}", query.show.word())
    };
    let elastic = query.show == ListFilter::Elastic;
    html! {
        @if shown.is_empty() { (ui::missing("No reservation matches.")) } @else {
            div.scroll { table {
                caption { (number::counted(rows.len(), "reservation"))
                    @if shown.len() < rows.len() { ", " (number::count(from + 1)) " to " (number::count(from + shown.len())) } }
                thead { tr {
                    th scope="col" { "Reservation" } th scope="col" { "Owner" } th scope="col" { "State" }
                    th.n.spare scope="col" { "Priority" } th.n.spare scope="col" { "Servers" }
                    @if !elastic {
                        th.n scope="col" { "Requested, RRU" } th.n scope="col" { "Guaranteed, RRU" }
                        th.n.spare scope="col" { "Held, RRU" } th.spare scope="col" { "Worst MSB" }
                    }
                } }
                tbody { @for row in shown { (line(row, summary, elastic, reader)) } }
            } }
            (ui::pages((query.page > 0).then(|| to(query.page - 1)), (from + ROWS < rows.len()).then(|| to(query.page + 1))))
        }
    }
}

/// The RRU in force. For guaranteed reservations the certificate counts the servers they own now; for others the
/// audit counts the servers they hold.
pub(super) fn in_force(row: &ReservationAudit, summary: &RegionSummary) -> Rru {
    let certified = summary.held.certificate.row(&row.reservation_id);
    certified.map_or(row.holding.guaranteed, Certified::kept)
}

/// Missing RRU of the promise.
pub(super) fn missing(row: &ReservationAudit, summary: &RegionSummary) -> Rru {
    (row.capacity - in_force(row, summary)).or_zero()
}

/// Servers that are arriving; `None` if no server is.
pub(super) fn arriving(row: &ReservationAudit, summary: &RegionSummary) -> Option<ServerCount> {
    let standing = summary.held.statuses.get(&row.reservation_id)?;
    Some(standing.arriving).filter(|part| part.servers > 0)
}

/// Whether the promise is in force once all open moves are done.
pub(super) fn is_decided(row: &ReservationAudit, summary: &RegionSummary) -> bool {
    let standing = summary.held.statuses.get(&row.reservation_id);
    standing.is_some_and(|of| of.arriving.servers > 0 && of.decided >= row.capacity)
}

/// Label of the state of a reservation.
pub(super) fn state(row: &ReservationAudit, summary: &RegionSummary) -> Markup {
    match row.kind {
        ReservationKind::Elastic => ui::state(Mood::Plain, "borrows"),
        _ if missing(row, summary) > Rru::ZERO && is_decided(row, summary) => {
            let arriving = arriving(row, summary).unwrap_or_default().servers;
            let (arriving, all) = (number::count(arriving), number::count(row.holding.servers));
            ui::state(Mood::Warn, &format!("arriving {arriving} of {all}"))
        }
        _ if missing(row, summary) > Rru::ZERO => ui::state(Mood::Bad, "short"),
        ReservationKind::Guaranteed if row.msb_buffer => ui::state(Mood::Good, "guaranteed"),
        _ => ui::state(Mood::Good, "complete"),
    }
}

fn line(row: &ReservationAudit, summary: &RegionSummary, elastic: bool, reader: &Reader) -> Markup {
    let holding = &row.holding;
    html! {
        tr {
            th scope="row" { a href=(link::reservation(&row.reservation_id)) { (row.reservation_id) } }
            td { (row.owner) }
            td { (state(row, summary)) }
            td.n.spare { (row.priority) }
            td.n.spare { (number::count(holding.servers)) }
            @if !elastic {
                td.n { (number::rru(row.capacity)) }
                td.n { @if missing(row, summary) > Rru::ZERO && !is_decided(row, summary) { strong.error { (number::rru(in_force(row, summary))) } }
                    @else { (number::rru(in_force(row, summary))) } }
                td.n.spare { (number::rru(holding.assigned)) }
                td.spare { @match &holding.largest_msb_id {
                    Some(msb) => { (reader.msb(msb)) " " span.dim { (number::rru(holding.largest_msb)) } }
                    None => (number::NOTHING),
                } }
            }
        }
    }
}

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
use fleet::audit::{ReservationAudit, Standing};
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
        (ListFilter::Short, "short", "Short or at risk"),
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
            ListFilter::Short => is_broken(row, summary),
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
            p.facts { span { "What is promised, what each has now, and what is guaranteed: what it would have after one more MSB loss." } } }
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
                        th.n scope="col" { "Promised, RRU" } th.n scope="col" { "Held now, RRU" }
                        th.n scope="col" { "Guaranteed now, RRU" } th.spare scope="col" { "Largest MSB" }
                    }
                } }
                tbody { @for row in shown { (line(row, summary, elastic, reader)) } }
            } }
            (ui::pages((query.page > 0).then(|| to(query.page - 1)), (from + ROWS < rows.len()).then(|| to(query.page + 1))))
        }
    }
}

/// Whether the promise does not hold: it is short or at risk.
fn is_broken(row: &ReservationAudit, summary: &RegionSummary) -> bool {
    row.kind != ReservationKind::Elastic && summary.figures(row).standing() != Standing::Guaranteed
}

/// Servers that are arriving; `None` if no server is.
pub(super) fn arriving(row: &ReservationAudit, summary: &RegionSummary) -> Option<ServerCount> {
    let standing = summary.held.statuses.get(&row.reservation_id)?;
    Some(standing.arriving).filter(|part| part.servers > 0)
}

/// Whether the promise does not hold yet, and holds once the servers that are arriving have arrived.
pub(super) fn is_decided(row: &ReservationAudit, summary: &RegionSummary) -> bool {
    is_broken(row, summary) && arriving(row, summary).is_some() && summary.figures(row).is_decided()
}

/// Label of the state of a reservation.
pub(super) fn state(row: &ReservationAudit, summary: &RegionSummary) -> Markup {
    if row.kind == ReservationKind::Elastic {
        return ui::state(Mood::Plain, "borrows");
    }
    if is_decided(row, summary) {
        let arriving = arriving(row, summary).unwrap_or_default().servers;
        return ui::state(Mood::Warn, &format!("{} arriving", number::count(arriving)));
    }
    match summary.figures(row).standing() {
        Standing::Short => ui::state(Mood::Bad, "short"),
        Standing::AtRisk => ui::state(Mood::Warn, "at risk"),
        Standing::Guaranteed if row.kind == ReservationKind::Guaranteed && row.msb_buffer => {
            ui::state(Mood::Good, "guaranteed")
        }
        Standing::Guaranteed => ui::state(Mood::Good, "complete"),
    }
}

fn line(row: &ReservationAudit, summary: &RegionSummary, elastic: bool, reader: &Reader) -> Markup {
    let has = summary.held.statuses.get(&row.reservation_id);
    let servers = has.map_or(0, |has| has.owned.servers);
    html! {
        tr {
            th scope="row" { a href=(link::reservation(&row.reservation_id)) { (row.reservation_id) } }
            td { (row.owner) }
            td { (state(row, summary)) }
            td.n.spare { (row.priority) }
            td.n.spare { (number::count(servers)) }
            @if !elastic {
                @let figures = summary.figures(row);
                td.n { (number::rru(figures.promised)) }
                td.n { @if figures.missing_now() > Rru::ZERO { strong.error { (number::rru(figures.held)) } }
                    @else { (number::rru(figures.held)) } }
                td.n { @if figures.missing_after_loss() > Rru::ZERO { strong.error { (number::rru(figures.guaranteed())) } }
                    @else { (number::rru(figures.guaranteed())) } }
                td.spare { @match has.and_then(|has| has.worst_msb.as_ref()) {
                    Some((msb, rru)) => { (reader.msb(msb)) " " span.dim { (number::rru(*rru)) } }
                    None => (number::NOTHING),
                } }
            }
        }
    }
}

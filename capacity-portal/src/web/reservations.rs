//! All reservations: what was promised to each and what of it is in force.

use super::frame::{Page, Place, Reader};
use super::link;
use super::part::{self, Mood};
use super::picture::Picture;
use crate::api::problem::Problem;
use crate::api::v1::not_set_aside;
use crate::api::{Site, in_time};
use axum::extract::{Query, State};
use axum::response::Html;
use broker::{REQUESTS_PAGE_MAX, Request, RequestFilter, RequestState};
use chrono::{DateTime, Utc};
use control::standing::Part;
use fleet::audit::{Certified, ReservationAudit};
use fleet::{ReservationKind, Rru};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;

/// Rows of a page.
const ROWS: usize = 100;

/// Which of them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// Part of a name or of an owner.
    #[serde(default)]
    q: String,
    #[serde(default)]
    show: Which,
    #[serde(default)]
    page: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Which {
    #[default]
    Guaranteed,
    Short,
    SharedBuffer,
    Elastic,
}

impl Which {
    const ALL: [(Which, &'static str, &'static str); 4] = [
        (Which::Guaranteed, "guaranteed", "Guaranteed"),
        (Which::Short, "short", "Short of what was promised"),
        (Which::SharedBuffer, "shared_buffer", "Shared buffers"),
        (Which::Elastic, "elastic", "Elastic"),
    ];

    fn word(self) -> &'static str {
        Which::ALL.into_iter().find(|(which, ..)| *which == self).map_or("", |(_, word, _)| word)
    }

    fn takes(self, row: &ReservationAudit, picture: &Picture) -> bool {
        match self {
            Which::Guaranteed => row.kind == ReservationKind::Guaranteed,
            Which::Short => missing(row, picture) > Rru::ZERO,
            Which::SharedBuffer => row.kind == ReservationKind::SharedBuffer,
            Which::Elastic => row.kind == ReservationKind::Elastic,
        }
    }
}

/// The page.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Query(asked): Query<Asked>,
) -> Result<Html<String>, Problem> {
    let picture = site.pictures.now(&site.region).await?;
    let body = html! {
        div.head { div { h1 { "Reservations" }
            p.facts { span { "What was promised to whom, and what of it would be left after the worst loss of an MSB." } } }
            div.actions { a.button.main href="/request" { "Request capacity" } } }
        (waiting(&site, &reader, None).await?)
        (search(&asked))
        @match &picture {
            Some(picture) => (list(picture, &asked, &reader)),
            None => (part::missing("No region is loaded.")),
        }
    };
    let title = "Reservations";
    Ok(Page { place: Place::Reservations, title, charts: false, body }.show(&reader))
}

/// Requests that start later, of one reservation or of all, and that nothing is set aside for them.
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
                ". " (not_set_aside(at)) "."
            } } }
        } }
    })
}

fn search(asked: &Asked) -> Markup {
    html! {
        form.toolbar role="search" method="get" action="/reservations" {
            div.field { label for="q" { "Name or owner" }
                input #q type="search" name="q" value=(asked.q) autocomplete="off"; }
            div.field { label for="show" { "Which" }
                select #show name="show" {
                    @for (which, word, title) in Which::ALL {
                        option value=(word) selected[which == asked.show] { (title) }
                    }
                } }
            button type="submit" { "Show" }
        }
    }
}

fn list(picture: &Picture, asked: &Asked, reader: &Reader) -> Markup {
    let wanted = asked.q.to_lowercase();
    let named = |row: &&ReservationAudit| {
        wanted.is_empty()
            || row.reservation_id.to_lowercase().contains(&wanted)
            || row.owner.to_lowercase().contains(&wanted)
    };
    let rows = picture.audit.reservations.iter();
    let rows: Vec<_> = rows
        .filter(|row| asked.show.takes(row, picture) && reader.sees(&row.owner))
        .filter(named)
        .collect();
    let from = asked.page.saturating_mul(ROWS).min(rows.len());
    let shown = &rows[from..rows.len().min(from + ROWS)];
    let to = |page: usize| {
        let q = link::segment(&asked.q);
        format!("/reservations?q={q}&show={}&page={page}", asked.show.word())
    };
    let elastic = asked.show == Which::Elastic;
    html! {
        @if shown.is_empty() { (part::missing("There is no such reservation.")) } @else {
            div.scroll { table {
                caption { (number::counted(rows.len(), "reservation"))
                    @if shown.len() < rows.len() { ", from " (number::count(from + 1)) " to " (number::count(from + shown.len())) } }
                thead { tr {
                    th scope="col" { "Reservation" } th scope="col" { "Owner" } th scope="col" { "State" }
                    th.n.spare scope="col" { "Priority" } th.n.spare scope="col" { "Servers" }
                    @if !elastic {
                        th.n scope="col" { "Requested, RRU" } th.n scope="col" { "Guaranteed, RRU" }
                        th.n.spare scope="col" { "Held, RRU" } th.spare scope="col" { "Worst MSB" }
                    }
                } }
                tbody { @for row in shown { (line(row, picture, elastic, reader)) } }
            } }
            (part::pages((asked.page > 0).then(|| to(asked.page - 1)), (from + ROWS < rows.len()).then(|| to(asked.page + 1))))
        }
    }
}

/// What is in force of what was promised: of guaranteed reservations by the certificate, which counts what
/// they own now; of others what they hold.
pub(super) fn in_force(row: &ReservationAudit, picture: &Picture) -> Rru {
    let certified = picture.held.certificate.row(&row.reservation_id);
    certified.map_or(row.holding.guaranteed, Certified::kept)
}

/// What is missing to what was promised.
pub(super) fn missing(row: &ReservationAudit, picture: &Picture) -> Rru {
    (row.capacity - in_force(row, picture)).or_zero()
}

/// Servers on their way to it; `None`: there are none.
pub(super) fn arriving(row: &ReservationAudit, picture: &Picture) -> Option<Part> {
    let standing = picture.held.standings.get(&row.reservation_id)?;
    Some(standing.arriving).filter(|part| part.servers > 0)
}

/// Whether it will have what was promised once every move is done.
pub(super) fn is_decided(row: &ReservationAudit, picture: &Picture) -> bool {
    let standing = picture.held.standings.get(&row.reservation_id);
    standing.is_some_and(|of| of.arriving.servers > 0 && of.decided >= row.capacity)
}

/// Whether a reservation has what was promised.
pub(super) fn standing(row: &ReservationAudit, picture: &Picture) -> Markup {
    match row.kind {
        ReservationKind::Elastic => part::state(Mood::Plain, "borrows"),
        _ if missing(row, picture) > Rru::ZERO && is_decided(row, picture) => {
            let arriving = arriving(row, picture).unwrap_or_default().servers;
            let (arriving, all) = (number::count(arriving), number::count(row.holding.servers));
            part::state(Mood::Warn, &format!("arriving {arriving} of {all}"))
        }
        _ if missing(row, picture) > Rru::ZERO => part::state(Mood::Bad, "short"),
        ReservationKind::Guaranteed if row.msb_buffer => part::state(Mood::Good, "guaranteed"),
        _ => part::state(Mood::Good, "complete"),
    }
}

fn line(row: &ReservationAudit, picture: &Picture, elastic: bool, reader: &Reader) -> Markup {
    let holding = &row.holding;
    html! {
        tr {
            th scope="row" { a href=(link::reservation(&row.reservation_id)) { (row.reservation_id) } }
            td { (row.owner) }
            td { (standing(row, picture)) }
            td.n.spare { (row.priority) }
            td.n.spare { (number::count(holding.servers)) }
            @if !elastic {
                td.n { (number::rru(row.capacity)) }
                td.n { @if missing(row, picture) > Rru::ZERO && !is_decided(row, picture) { strong.error { (number::rru(in_force(row, picture))) } }
                    @else { (number::rru(in_force(row, picture))) } }
                td.n.spare { (number::rru(holding.assigned)) }
                td.spare { @match &holding.largest_msb_id {
                    Some(msb) => { (reader.msb(msb)) " " span.dim { (number::rru(holding.largest_msb)) } }
                    None => (number::NOTHING),
                } }
            }
        }
    }
}

//! The list of reservations: promised capacity and what of it is in force.

use super::layout::{NavItem, Page, Reader};
use super::link;
use super::list::{Answer, Choice, Column, List, Params, Shown};
use super::ui::{self, Mood};
use crate::api::v1::not_reserved_until;
use crate::http::list::Written;
use crate::http::{Problem, Site, in_time};
use crate::region_summary::RegionSummary;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use broker::{REQUESTS_PAGE_MAX, Request, RequestFilter, RequestState};
use chrono::{DateTime, Utc};
use control::reservation_status::ServerCount;
use fleet::ReservationKind;
use fleet::audit::{ReservationAudit, Standing};
use maud::{Markup, html};
use report::number;
use serde::Serialize;
use std::collections::BTreeSet;
use utoipa::ToSchema;

static COLUMNS: [Column; 14] = [
    Column::new("reservation", "Reservation", Shown::Link(link::reservation)),
    Column::new("owner", "Owner", Shown::Link(link::reservations_of)),
    Column::new("kind", "Kind", Shown::Text).extra(),
    Column::new("state", "State", Shown::State(mood)),
    Column::new("promise", "Promise", Shown::Text).extra(),
    Column::new("priority", "Priority", Shown::Number),
    Column::new("servers", "Servers", Shown::Count),
    Column::new("arriving", "Arriving", Shown::Count),
    Column::new("promised_rru", "Promised, RRU", Shown::Number),
    Column::new("held_rru", "Held now, RRU", Shown::Number),
    Column::new("guaranteed_rru", "Guaranteed now, RRU", Shown::Number),
    Column::new("missing_now_rru", "Missing now, RRU", Shown::Number).extra(),
    Column::new("missing_after_loss_rru", "Missing after one more loss, RRU", Shown::Number)
        .extra(),
    Column::new("largest_msb", "Largest MSB", Shown::Text),
];

/// A reservation, as the page lists it.
#[derive(Serialize, ToSchema)]
struct ListedReservation {
    reservation: String,
    owner: String,
    kind: &'static str,
    /// A word of [`STATES`].
    state: &'static str,
    /// `holds` or `broken`; elastic reservations are promised nothing.
    promise: Option<&'static str>,
    priority: i32,
    servers: usize,
    arriving: usize,
    promised_rru: f64,
    held_rru: f64,
    guaranteed_rru: f64,
    missing_now_rru: f64,
    missing_after_loss_rru: f64,
    largest_msb: Option<String>,
}

const STATES: [&str; 6] = ["short", "at_risk", "arriving", "guaranteed", "complete", "borrows"];

const PROMISES: [&str; 2] = ["holds", "broken"];

fn mood(state: &str) -> Mood {
    match state {
        "short" => Mood::Bad,
        "at_risk" | "arriving" => Mood::Warn,
        "guaranteed" | "complete" => Mood::Good,
        _ => Mood::Plain,
    }
}

impl ListedReservation {
    fn new(row: &ReservationAudit, summary: &RegionSummary) -> ListedReservation {
        let has = summary.held.statuses.get(&row.reservation_id);
        let figures = summary.figures(row);
        let is_elastic = row.kind == ReservationKind::Elastic;
        let largest = has.and_then(|has| has.worst_msb.as_ref());
        ListedReservation {
            reservation: row.reservation_id.to_string(),
            owner: row.owner.to_string(),
            kind: row.kind.as_str(),
            state: state_word(row, summary),
            promise: (!is_elastic).then(|| PROMISES[usize::from(is_broken(row, summary))]),
            priority: row.priority,
            servers: has.map_or(0, |has| has.owned.servers),
            arriving: arriving(row, summary).unwrap_or_default().servers,
            promised_rru: figures.promised.to_f64(),
            held_rru: figures.held.to_f64(),
            guaranteed_rru: figures.guaranteed().to_f64(),
            missing_now_rru: figures.missing_now().to_f64(),
            missing_after_loss_rru: figures.missing_after_loss().to_f64(),
            largest_msb: largest.map(|(msb, _)| msb.to_string()),
        }
    }
}

/// Handler of `GET /reservations`.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    params: Params,
) -> Result<Response, Problem> {
    let part = match site.region_summaries.current(&site.region).await? {
        None => Answer::Part(ui::missing("No region is loaded.")),
        Some(summary) => {
            let rows = summary.audit.reservations.iter().filter(|row| reader.sees(&row.owner));
            let owners: BTreeSet<String> = rows.clone().map(|row| row.owner.to_string()).collect();
            let kinds = [
                ReservationKind::Guaranteed,
                ReservationKind::SharedBuffer,
                ReservationKind::Elastic,
            ]
            .map(|kind| kind.as_str());
            let choices = [
                Choice::new("kind", "Kind", kinds),
                Choice::new("state", "State", STATES),
                Choice::new("promise", "Promise", PROMISES),
                Choice::new("owner", "Owner", owners.iter().map(String::as_str)),
            ];
            let list = List {
                kind: crate::api::v1::reservations::RESERVATIONS,
                noun: "reservation",
                path: "/reservations".to_owned(),
                api: None,
                columns: &COLUMNS,
                search: (&["reservation", "owner"], "Name or owner"),
                fixed: Vec::new(),
                own: &[],
            };
            let rows = rows.map(|row| Written::new(&ListedReservation::new(row, &summary)));
            list.answer(&params, &choices, rows)?
        }
    };
    let part = match part {
        Answer::File(file) => return Ok(file),
        Answer::Part(part) => part,
    };
    let body = html! {
        div.head { div { h1 { "Reservations" }
            p.facts { span { "What is promised, what each has now, and what is guaranteed: what it would have after one more MSB loss." } } }
            div.actions { a.button.main href="/request" { "Request capacity" } } }
        (waiting(&site, &reader, None).await?)
        (part)
    };
    let title = "Reservations";
    Ok(Page { nav: NavItem::Reservations, title, charts: false, body }
        .show(&reader)
        .into_response())
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

/// The state of a reservation, a word of [`STATES`].
fn state_word(row: &ReservationAudit, summary: &RegionSummary) -> &'static str {
    if row.kind == ReservationKind::Elastic {
        return "borrows";
    }
    if is_decided(row, summary) {
        return "arriving";
    }
    match summary.figures(row).standing() {
        Standing::Short => "short",
        Standing::AtRisk => "at_risk",
        Standing::Guaranteed
            if row.kind == ReservationKind::Guaranteed
                && (row.msb_buffer || !row.partitions.is_empty()) =>
        {
            "guaranteed"
        }
        Standing::Guaranteed => "complete",
    }
}

/// Label of the state of a reservation.
pub(super) fn state(row: &ReservationAudit, summary: &RegionSummary) -> Markup {
    let word = state_word(row, summary);
    match word {
        "arriving" => {
            let arriving = arriving(row, summary).unwrap_or_default().servers;
            ui::state(mood(word), &format!("{} arriving", number::count(arriving)))
        }
        _ => ui::state(mood(word), word),
    }
}

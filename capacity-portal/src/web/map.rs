//! Racks as cells: a small map of each MSB, and one MSB in full.

use super::frame::{Page, Place, Whole};
use super::link;
use super::part;
use super::picture::{Parts, Picture};
use crate::api::Site;
use crate::api::problem::Problem;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Html;
use fleet::audit::Certified;
use fleet::{MsbIx, RackIx, Rru};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use std::cmp::Reverse;

/// The most racks that a page lists one by one.
const RACKS_MAX: usize = 1_200;

/// What share of a rack makes a part stand out.
const STANDS_OUT: f64 = 0.25;

/// Side of a cell and the gap to the next, in units of the map.
const CELL: usize = 8;
const PITCH: usize = 10;

/// Upper ends of the colour steps of shares; beyond is the last.
const STEPS: [f64; 6] = [0.0, 0.05, 0.15, 0.35, 0.65, 0.9];
const STEP_CLASSES: [&str; 7] = ["none", "h2", "h3", "h4", "h5", "h6", "h7"];

/// What the cells of a map show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum View {
    /// The part that stands out.
    #[default]
    State,
    InUse,
    Idle,
    Shared,
    Free,
    Down,
}

/// How many servers of a rack a view is about.
type CountOf = fn(&Parts) -> usize;

impl View {
    /// Every view: its word in the path and its title.
    const ALL: [(View, &'static str, &'static str); 6] = [
        (View::State, "state", "What stands out"),
        (View::InUse, "in_use", "In use"),
        (View::Idle, "idle", "Held, idle"),
        (View::Shared, "shared", "Shared buffer"),
        (View::Free, "free", "Free"),
        (View::Down, "down", "Unavailable"),
    ];

    /// The colour of a rack.
    fn class(self, rack: &Parts) -> &'static str {
        let whole = rack.total().max(1) as f64;
        let share = |count: usize| count as f64 / whole;
        let step = |count: usize| {
            STEP_CLASSES[STEPS.iter().take_while(|end| share(count) > **end).count()]
        };
        match self {
            View::State => {
                let order = [
                    ("down", rack.down),
                    ("free", rack.free),
                    ("shared", rack.shared),
                    ("idle", rack.idle),
                ];
                let found = order.into_iter().find(|(_, count)| share(*count) >= STANDS_OUT);
                found.map_or("in-use", |(class, _)| class)
            }
            View::InUse => step(rack.in_use),
            View::Idle => step(rack.idle),
            View::Shared => step(rack.shared),
            View::Free => step(rack.free),
            View::Down => step(rack.down),
        }
    }

    /// What the colours mean.
    pub(super) fn legend(self) -> Markup {
        if self == View::State {
            return part::legend([
                ("down", "at least a quarter unavailable".to_owned()),
                ("free", "else: a quarter free".to_owned()),
                ("shared", "else: a quarter shared buffer".to_owned()),
                ("idle", "else: a quarter held and idle".to_owned()),
                ("in-use", "else: in use".to_owned()),
            ]);
        }
        let mut entries = vec![("none", "none".to_owned())];
        for (class, end) in STEP_CLASSES[1..].iter().zip(&STEPS[1..]) {
            entries.push((class, format!("up to {}", number::percent_round(*end))));
        }
        entries.push((STEP_CLASSES[6], "more".to_owned()));
        part::legend(entries)
    }

    /// The part that it is about: class of the style sheet, title, count; `None`: all of them.
    fn part(self) -> Option<(&'static str, &'static str, CountOf)> {
        let of: (&str, CountOf) = match self {
            View::State => return None,
            View::InUse => ("in-use", |parts| parts.in_use),
            View::Idle => ("idle", |parts| parts.idle),
            View::Shared => ("shared", |parts| parts.shared),
            View::Free => ("free", |parts| parts.free),
            View::Down => ("down", |parts| parts.down),
        };
        let title = View::ALL.into_iter().find(|(view, ..)| *view == self);
        Some((of.0, title.map_or("", |(_, _, title)| title), of.1))
    }

    /// Racks by what they have of the part, most first; of all parts by name.
    fn order(self, racks: &[RackIx], picture: &Picture) -> Vec<RackIx> {
        let mut racks = racks.to_vec();
        if let Some((_, _, of)) = self.part() {
            racks.sort_by_key(|rack| Reverse(of(&picture.racks[rack.ix()])));
        }
        racks
    }

    /// One rack: its parts, or the part.
    fn rack(self, name: &str, parts: &Parts) -> Markup {
        let total = parts.total();
        html! {
            div.name { (name) }
            @if let Some((class, _, of)) = self.part() {
                (part::bar(&[(class, of(parts) as f64)], total as f64))
                span.dim { (number::count(of(parts))) " of " (number::count(total)) }
            } @else {
                (part::bar(&parts.bar(), total as f64))
                span.dim { (number::counted(total, "server")) ", " (number::count(parts.free)) " free"
                    @if parts.down > 0 { ", " (number::count(parts.down)) " out" } }
            }
        }
    }

    /// Links to the other views.
    pub(super) fn switch(self, path: &str) -> Markup {
        html! {
            nav aria-label="What the map shows" { ul.switch {
                @for (view, word, title) in View::ALL {
                    li { a href={ (path) "?show=" (word) "#map" }
                        aria-current=[(view == self).then_some("true")] { (title) } }
                }
            } }
        }
    }
}

/// The racks of an MSB as a picture: one path per colour, far smaller than one element per rack.
pub(super) fn cells(picture: &Picture, msb: MsbIx, view: View) -> Markup {
    let racks = &picture.by_msb[msb.ix()];
    let columns = ((racks.len() as f64 * 2.2).sqrt().ceil() as usize).clamp(6, 64);
    let rows = racks.len().div_ceil(columns).max(1);
    let mut paths: Vec<(&str, String)> = Vec::new();
    for (position, rack) in racks.iter().enumerate() {
        let class = view.class(&picture.racks[rack.ix()]);
        let (x, y) = (position % columns * PITCH, position / columns * PITCH);
        let cell = format!("M{x} {y}h{CELL}v{CELL}h-{CELL}z");
        match paths.iter_mut().find(|(of, _)| *of == class) {
            Some((_, path)) => path.push_str(&cell),
            None => paths.push((class, cell)),
        }
    }
    html! {
        svg viewBox={ "0 0 " (columns * PITCH - 2) " " (rows * PITCH - 2) } aria-hidden="true" {
            @for (class, path) in &paths { path class=(class) d=(path) {} }
        }
    }
}

/// What a page of a map may be asked.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shown {
    #[serde(default)]
    pub(super) show: View,
}

/// The page of one MSB.
pub(super) async fn show(
    State(site): State<Site>,
    Whole(reader): Whole,
    Path(name): Path<String>,
    Query(Shown { show }): Query<Shown>,
) -> Result<Html<String>, Problem> {
    let unknown =
        || Problem::new(StatusCode::NOT_FOUND, "unknown_msb", format!("there is no MSB {name:?}"));
    let picture = site.pictures.now(&site.region).await?.ok_or_else(unknown)?;
    let found = picture.region().msbs.binary_search_by(|msb| msb.id.as_ref().cmp(name.as_str()));
    let msb = MsbIx::new(found.map_err(|_| unknown())?);
    let title = format!("MSB {name}");
    Ok(Page {
        place: Place::Overview,
        title: &title,
        charts: false,
        body: body(&picture, msb, show),
    }
    .show(&reader))
}

/// What a reservation has in an MSB.
struct Here<'a> {
    reservation: &'a str,
    here: Rru,
    everywhere: Rru,
    requested: Rru,
    /// What its loss would leave; `None`: nothing is promised for that.
    certified: Option<&'a Certified>,
}

/// Who has servers in an MSB, the most first: what guaranteed reservations own by the certificate, what
/// others hold.
fn held(picture: &Picture, ix: MsbIx) -> Vec<Here<'_>> {
    let here = picture.audit.reservations.iter().map(|row| {
        let certified = picture.held.certificate.row(&row.reservation_id);
        let (held, assigned) = (row.msb_amounts[ix.ix()], row.holding.assigned);
        Here {
            reservation: &row.reservation_id,
            here: certified.map_or(held, |row| row.by_msb[ix.ix()]),
            everywhere: certified.map_or(assigned, |row| row.owned),
            requested: row.capacity,
            certified,
        }
    });
    let mut here: Vec<Here> = here.filter(|of| of.here > Rru::ZERO).collect();
    here.sort_by_key(|of| (Reverse(of.here), of.reservation));
    here
}

fn body(picture: &Picture, ix: MsbIx, view: View) -> Markup {
    let region = picture.region();
    let (msb, parts) = (&region.msbs[ix.ix()], &picture.msbs[ix.ix()]);
    let datacenter = &region.datacenters[msb.datacenter.ix()].id;
    let broken = picture.broken_without(ix);
    let held = held(picture, ix);
    let racks = &picture.by_msb[ix.ix()];
    html! {
        p.kicker { "MSB in datacenter " (datacenter) }
        h1 { (msb.id) }
        p.facts {
            span { (number::counted(parts.total(), "server")) }
            span { (number::counted(racks.len(), "rack")) }
            @for (_, words, count) in parts.each() { span { (number::count(count)) " " (words) } }
        }
        @if broken.is_empty() {
            div.notice.good { p { strong { "May be lost." } " No reservation with an embedded buffer falls below what it was \
                promised by that." } }
        } @else {
            div.notice.bad {
                p { strong { "Its loss would break " (number::counted(broken.len(), "guarantee")) "." } }
                ul { @for row in broken.iter().take(8) {
                    li { a href=(link::reservation(&row.reservation_id)) { (row.reservation_id) } ": at once "
                        (number::rru(row.at_once_after_loss(ix))) " of " (number::rru(row.needed_at_once()))
                        " RRU needed, within 30 minutes " (number::rru(row.after_loss(ix))) " of " (number::rru(row.capacity)) }
                } }
                @if broken.len() > 8 { p.note { "And " (number::count(broken.len() - 8)) " more." } }
            }
        }
        section #map {
            h2 { "Racks" }
            (view.switch(&link::msb(&msb.id)))
            @if let Some((_, title, of)) = view.part() {
                p.lead { (title) ": " (number::counted(of(parts), "server")) ", racks with most of them first." }
            } @else {
                (part::legend(Parts::default().each().map(|(class, words, _)| (class, words.to_owned()))))
            }
            ul.racks {
                @for rack in view.order(racks, picture).into_iter().take(RACKS_MAX) {
                    li { (view.rack(&region.racks[rack.ix()].id, &picture.racks[rack.ix()])) }
                }
            }
            @if racks.len() > RACKS_MAX {
                p.note { "Shown: " (number::count(RACKS_MAX)) " of " (number::counted(racks.len(), "rack")) "." }
            }
        }
        section {
            h2 { "Who has servers here" }
            @if held.is_empty() { (part::missing("No reservation has a server in this MSB.")) } @else {
                div.scroll { table {
                    caption { "What would be lost with this MSB, largest first" }
                    thead { tr { th scope="col" { "Reservation" } th.n scope="col" { "Here, RRU" }
                        th.n scope="col" { "Of what it has" } th.n scope="col" { "Left at once, RRU" }
                        th.n scope="col" { "Within 30 minutes" } th.n scope="col" { "Requested, RRU" } } }
                    tbody { @for of in held.iter().take(40) {
                        tr {
                            th scope="row" { a href=(link::reservation(of.reservation)) { (of.reservation) } }
                            td.n { (number::rru(of.here)) }
                            td.n { (number::percent(of.here.to_f64() / of.everywhere.to_f64())) }
                            @match of.certified {
                                Some(row) => {
                                    td.n { (number::rru(row.at_once_after_loss(ix))) }
                                    td.n { (number::rru(row.after_loss(ix))) }
                                }
                                None => { td.n { (number::NOTHING) } td.n { (number::NOTHING) } }
                            }
                            td.n { (number::rru(of.requested)) }
                        }
                    } }
                } }
                @if held.len() > 40 { p.note { "Shown: 40 of " (number::counted(held.len(), "reservation")) "." } }
            }
        }
    }
}

//! Maps with a cell for each rack, and the page of an MSB.

use super::layout::{NavItem, Page, RegionReader};
use super::link;
use super::live::{AsOf, topics};
use super::ui;
use crate::http::{Problem, Site, in_time};
use crate::region_summary::{OwnedHere, RegionSummary, ServerCounts};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Html;
use broker::Outage;
use control::Topic;
use fleet::audit::{Certified, Figures, Standing};
use fleet::{MsbIx, RackIx, Rru};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use std::cmp::Reverse;

/// The most racks that a page lists one by one.
const RACKS_MAX: usize = 1_200;

/// The most lost MSBs that are read.
const OUTAGES_MAX: u32 = 1_000;

/// From this share of a rack on, a use decides the colour of its cell.
const DOMINANT_SHARE: f64 = 0.25;

/// Side of a cell, and the distance from one cell to the next, in units of the map.
const CELL: usize = 8;
const PITCH: usize = 10;

/// Upper ends of the colour steps of shares. The last class is for shares above all of them.
const STEPS: [f64; 6] = [0.0, 0.05, 0.15, 0.35, 0.65, 0.9];
const STEP_CLASSES: [&str; 7] = ["none", "h2", "h3", "h4", "h5", "h6", "h7"];

/// What the colour of a cell shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum View {
    /// The most critical use of at least a quarter of the rack.
    #[default]
    State,
    InUse,
    Idle,
    Shared,
    Free,
    Down,
}

/// Counts the servers that a view is about.
type CountOf = fn(&ServerCounts) -> usize;

impl View {
    /// Every view: value of the query parameter, and title.
    const ALL: [(View, &'static str, &'static str); 6] = [
        (View::State, "state", "Most critical"),
        (View::InUse, "in_use", "In use"),
        (View::Idle, "idle", "Idle"),
        (View::Shared, "shared", "Shared buffer"),
        (View::Free, "free", "Free"),
        (View::Down, "down", "Unavailable"),
    ];

    /// Colour class of a rack.
    fn class(self, rack: &ServerCounts) -> &'static str {
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
                let found = order.into_iter().find(|(_, count)| share(*count) >= DOMINANT_SHARE);
                found.map_or("in-use", |(class, _)| class)
            }
            View::InUse => step(rack.in_use),
            View::Idle => step(rack.idle),
            View::Shared => step(rack.shared),
            View::Free => step(rack.free),
            View::Down => step(rack.down),
        }
    }

    /// The legend of the colours.
    pub(super) fn legend(self) -> Markup {
        if self == View::State {
            return ui::legend([
                ("down", "at least a quarter unavailable".to_owned()),
                ("free", "otherwise at least a quarter free".to_owned()),
                ("shared", "otherwise a quarter shared buffer".to_owned()),
                ("idle", "otherwise a quarter idle".to_owned()),
                ("in-use", "otherwise in use".to_owned()),
            ]);
        }
        let mut entries = vec![("none", "none".to_owned())];
        for (class, end) in STEP_CLASSES[1..].iter().zip(&STEPS[1..]) {
            entries.push((class, format!("up to {}", number::percent_round(*end))));
        }
        entries.push((STEP_CLASSES[6], "more".to_owned()));
        ui::legend(entries)
    }

    /// The single use that a view is about: class of the style sheet, title, count. `None` for the view of all uses.
    fn single_use(self) -> Option<(&'static str, &'static str, CountOf)> {
        let of: (&str, CountOf) = match self {
            View::State => return None,
            View::InUse => ("in-use", |counts| counts.in_use),
            View::Idle => ("idle", |counts| counts.idle),
            View::Shared => ("shared", |counts| counts.shared),
            View::Free => ("free", |counts| counts.free),
            View::Down => ("down", |counts| counts.down),
        };
        let title = View::ALL.into_iter().find(|(view, ..)| *view == self);
        Some((of.0, title.map_or("", |(_, _, title)| title), of.1))
    }

    /// Racks in the order of the view: those with most servers of its use first, by name for the view of all uses.
    fn order(self, racks: &[RackIx], summary: &RegionSummary) -> Vec<RackIx> {
        let mut racks = racks.to_vec();
        if let Some((_, _, of)) = self.single_use() {
            racks.sort_by_key(|rack| Reverse(of(&summary.racks[rack.ix()])));
        }
        racks
    }

    /// A rack with the bar of the view.
    fn rack(self, name: &str, counts: &ServerCounts) -> Markup {
        let total = counts.total();
        html! {
            div.name { (name) }
            @if let Some((class, _, of)) = self.single_use() {
                (ui::bar(&[(class, of(counts) as f64)], total as f64))
                span.dim { (number::count(of(counts))) " of " (number::count(total)) }
            } @else {
                (ui::bar(&counts.bar(), total as f64))
                span.dim { (number::counted(total, "server")) ", " (number::count(counts.free)) " free"
                    @if counts.down > 0 { ", " (number::count(counts.down)) " unavailable" } }
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

/// The racks of an MSB as cells: one path for each colour is far smaller than one element for each rack.
pub(super) fn cells(summary: &RegionSummary, msb: MsbIx, view: View) -> Markup {
    let racks = &summary.by_msb[msb.ix()];
    let columns = ((racks.len() as f64 * 2.2).sqrt().ceil() as usize).clamp(6, 64);
    let rows = racks.len().div_ceil(columns).max(1);
    let mut paths: Vec<(&str, String)> = Vec::new();
    for (position, rack) in racks.iter().enumerate() {
        let class = view.class(&summary.racks[rack.ix()]);
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

/// Query of a page with a map.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ViewQuery {
    #[serde(default)]
    pub(super) show: View,
}

/// Handler of `GET /msbs/{name}`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(name): Path<String>,
    Query(ViewQuery { show }): Query<ViewQuery>,
) -> Result<Html<String>, Problem> {
    let unknown =
        || Problem::new(StatusCode::NOT_FOUND, "unknown_msb", format!("there is no MSB {name:?}"));
    let as_of = AsOf::begin(&site).await?;
    let summary = site.region_summaries.current(&site.region).await?.ok_or_else(unknown)?;
    let found = summary.region().msbs.binary_search_by(|msb| msb.id.as_ref().cmp(name.as_str()));
    let msb = MsbIx::new(found.map_err(|_| unknown())?);
    let as_of = as_of.with(&site, Some(&summary)).await?;
    let outages = in_time(site.broker.outages(true, OUTAGES_MAX)).await?;
    let lost = outages.into_iter().find(|outage| *outage.msb == *name);
    let title = format!("MSB {name}");
    let body = MsbPage { summary: &summary, ix: msb, lost, as_of }.body(show);
    Ok(Page { nav: NavItem::Inventory, title: &title, charts: false, body }.show(&reader))
}

/// A reservation with servers in an MSB.
struct Holding<'a> {
    reservation: &'a str,
    /// What it owns here.
    here: OwnedHere,
    /// RRU that it owns in all MSBs, in service or not.
    everywhere: Rru,
    figures: Figures,
    /// Row of the certificate; `None` for reservations that are not guaranteed.
    certified: Option<&'a Certified>,
}

struct MsbPage<'a> {
    summary: &'a RegionSummary,
    ix: MsbIx,
    /// The outage, if the MSB is lost.
    lost: Option<Outage>,
    as_of: AsOf,
}

impl MsbPage<'_> {
    /// Reservations that own servers in the MSB, those with most RRU here first.
    fn holdings(&self) -> Vec<Holding<'_>> {
        let summary = self.summary;
        let owned = OwnedHere::all(summary.region(), self.ix).into_iter();
        let here = summary.region().reservations.iter().zip(owned).filter(|(_, of)| of.servers > 0);
        let here = here.map(|(reservation, here)| {
            let status = summary.held.statuses.get(&reservation.id);
            let everywhere = status.map(|of| of.owned.rru + of.out_of_use.rru);
            Holding {
                reservation: &reservation.id,
                here,
                everywhere: everywhere.unwrap_or_default(),
                figures: status.map(|of| of.figures).unwrap_or_default(),
                certified: summary.held.certificate.row(&reservation.id),
            }
        });
        let mut here: Vec<Holding> = here.collect();
        here.sort_by_key(|of| (Reverse(of.here.rru), of.reservation));
        here
    }

    fn body(&self, view: View) -> Markup {
        let (summary, ix) = (self.summary, self.ix);
        let region = summary.region();
        let (msb, counts) = (&region.msbs[ix.ix()], &summary.msbs[ix.ix()]);
        let datacenter = &region.datacenters[msb.datacenter.ix()].id;
        let holdings = self.holdings();
        let racks = &summary.by_msb[ix.ix()];
        let follows = topics(&[Topic::Region, Topic::Failures]);
        html! {
            (ui::crumbs(&[("/msbs", "MSBs")]))
            h1 { (msb.id) }
            p.facts { span { "MSB in datacenter " (datacenter) } (self.as_of.show()) }
            p.facts #uses data-live=(follows) {
                span { (number::counted(counts.total(), "server")) }
                span { (number::counted(racks.len(), "rack")) }
                @for (_, label, count) in counts.by_use() { span { (number::count(count)) " " (label) } }
            }
            div #standing data-live=(follows) {
                @match &self.lost {
                    Some(outage) => (self.outage(outage, &holdings)),
                    None => (self.loss()),
                }
            }
            section #map data-live=(follows) {
                h2 { "Racks" }
                (view.switch(&link::msb(&msb.id)))
                @if let Some((_, title, of)) = view.single_use() {
                    p.lead { (title) ": " (number::counted(of(counts), "server")) ". Racks with the most are first." }
                } @else {
                    (ui::legend(ServerCounts::default().by_use().map(|(class, label, _)| (class, label.to_owned()))))
                }
                ul.racks {
                    @for rack in view.order(racks, summary).into_iter().take(RACKS_MAX) {
                        li { (view.rack(&region.racks[rack.ix()].id, &summary.racks[rack.ix()])) }
                    }
                }
                @if racks.len() > RACKS_MAX {
                    p.note { "Shown: " (number::count(RACKS_MAX)) " of " (number::counted(racks.len(), "rack")) "." }
                }
            }
            section #holdings data-live=(follows) {
                h2 { "Reservations with servers here" }
                @if holdings.is_empty() { (ui::missing("No reservation owns a server in this MSB.")) }
                @else { (self.table(&holdings)) }
            }
        }
    }

    /// What the loss has taken.
    fn outage(&self, outage: &Outage, holdings: &[Holding]) -> Markup {
        // Shared buffers have no promise that an owner relies on.
        let promised = holdings.iter().filter(|of| of.certified.is_some());
        let short = promised.filter(|of| of.figures.standing() == Standing::Short).count();
        let out: usize = holdings.iter().map(|of| of.here.out).sum();
        html! {
            div.notice.bad {
                strong.verdict { "This MSB is lost" }
                p { "Since " (ui::when(outage.began_at)) " (" (ui::ago(outage.began_at, self.as_of.now())) "), "
                    (outage.reason.as_str()) ". " (number::counted(self.summary.msbs[self.ix.ix()].down, "server"))
                    " of it are out of service, " (number::count(out)) " of them owned by "
                    (number::counted(holdings.len(), "reservation")) "." }
                p { @if short == 0 { "None of these reservations has less than promised now." }
                    @else { (number::count(short)) " of these reservations have less than promised now." } }
            }
        }
    }

    /// What the loss would take.
    fn loss(&self) -> Markup {
        let broken = self.summary.broken_without(self.ix);
        let gone = self.summary.lost_with(self.ix);
        html! {
            @if broken.is_empty() {
                div.notice.good { p { strong { "Its loss breaks no guarantee." } " It would take " (number::counted(gone.servers, "server")) ", "
                    (number::count(gone.in_use)) " of them in use, and every reservation with an embedded buffer would keep its promised capacity." } }
            } @else {
                div.notice.warn {
                    p { strong { "Its loss would leave " (number::counted(broken.len(), "reservation")) " with less than promised." }
                        " It would take " (number::counted(gone.servers, "server")) ", " (number::count(gone.in_use)) " of them in use." }
                    ul { @for row in broken.iter().take(8) {
                        li { a href=(link::reservation(&row.reservation_id)) { (row.reservation_id) } ": "
                            (number::rru(row.at_once_after_loss(self.ix))) " of " (number::rru(row.needed_at_once()))
                            " RRU at once, " (number::rru(row.after_loss(self.ix))) " of " (number::rru(row.capacity)) " RRU within 30 minutes" }
                    } }
                    @if broken.len() > 8 { p.note { "And " (number::count(broken.len() - 8)) " more: "
                        a href={ "/drills?msb=" (link::segment(&self.summary.region().msbs[self.ix.ix()].id)) } { "simulate the loss" } "." } }
                }
            }
        }
    }

    fn table(&self, holdings: &[Holding]) -> Markup {
        let any_out = holdings.iter().any(|of| of.here.out > 0);
        html! {
            div.scroll { table {
                caption { (number::counted(holdings.len(), "reservation")) ", those with most RRU here first" }
                thead { tr { th scope="col" { "Reservation" } th.n scope="col" { "Servers here" }
                    @if any_out { th.n scope="col" { "Out of service" } }
                    th.n scope="col" { "Here, RRU" } th.n scope="col" { "Share of its RRU" }
                    th.n scope="col" { "Promised, RRU" } th.n scope="col" { "Held now, RRU" }
                    @if self.lost.is_some() { th.n scope="col" { "Guaranteed now, RRU" } }
                    @else { th.n scope="col" { "Left at once, RRU" } th.n scope="col" { "Left within 30 minutes" } } } }
                tbody { @for of in holdings {
                    tr {
                        th scope="row" { a href=(link::reservation(of.reservation)) { (of.reservation) } }
                        td.n { (number::count(of.here.servers)) }
                        @if any_out { td.n { (number::count(of.here.out)) } }
                        td.n { (number::rru(of.here.rru)) }
                        td.n { (number::percent(of.here.rru.to_f64() / of.everywhere.to_f64().max(1e-9))) }
                        td.n { (number::rru(of.figures.promised)) }
                        td.n { @if of.figures.missing_now() > Rru::ZERO { strong.error { (number::rru(of.figures.held)) } }
                            @else { (number::rru(of.figures.held)) } }
                        @if self.lost.is_some() { td.n { (number::rru(of.figures.guaranteed())) } }
                        @else {
                            @match of.certified {
                                Some(row) => {
                                    td.n { (number::rru(row.at_once_after_loss(self.ix))) }
                                    td.n { (number::rru(row.after_loss(self.ix))) }
                                }
                                None => { td.n { (number::NOTHING) } td.n { (number::NOTHING) } }
                            }
                        }
                    }
                } }
            } }
        }
    }
}

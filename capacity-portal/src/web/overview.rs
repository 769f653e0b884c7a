//! The region at a glance: guarantees, rack maps, hardware, moves under way, latest solves.

use super::layout::{NavItem, Page, Reader};
use super::live::{AsOf, topics};
use super::rack_map::{self, View, ViewQuery};
use super::ui::{self, Mood};
use super::{link, solves, supply};
use crate::http::{Problem, Site, in_time};
use crate::region_summary::RegionSummary;
use crate::supply::RegionSupply;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use broker::{Metrics, OpenMove, Outage, SolveRow};
use chrono::{DateTime, Utc};
use control::Topic;
use fleet::audit::{Certified, Standing};
use fleet::{DatacenterIx, HardwareTypeIx, Rru};
use maud::{Markup, html};
use report::number;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reservations listed before the rest is only linked.
const ROWS: usize = 6;

/// Solves listed.
const SOLVES: u32 = 5;

/// Handler of `GET /`.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Query(ViewQuery { show }): Query<ViewQuery>,
) -> Result<Response, Problem> {
    if reader.is_scoped() {
        return Ok(Redirect::to("/reservations").into_response());
    }
    let broker = &site.broker;
    let as_of = AsOf::begin(&site).await?;
    let summary = site.region_summaries.current(&site.region).await?;
    let as_of = as_of.with(&site, summary.as_deref()).await?;
    let metrics = in_time(broker.metrics()).await?;
    let moves = in_time(broker.moves_under_way()).await?;
    let distance = in_time(broker.mover_status()).await?.distance;
    let cannot_act = distance.and_then(|of| of.cannot_act());
    let solves = in_time(broker.solves(DateTime::UNIX_EPOCH, SOLVES)).await?;
    let outages = in_time(broker.outages(true, 20)).await?;
    let body = match &summary {
        Some(summary) => {
            let now = as_of.now();
            let supply = site.supply.latest();
            let of = Overview {
                summary,
                as_of,
                now,
                metrics,
                moves,
                cannot_act,
                solves,
                outages,
                supply,
            };
            body(&of, show)
        }
        None => empty(),
    };
    let title = summary.as_ref().map_or("Overview", |summary| &summary.region().region);
    Ok(Page { nav: NavItem::Overview, title, charts: false, body }.show(&reader).into_response())
}

/// What the page shows.
struct Overview<'a> {
    summary: &'a RegionSummary,
    as_of: AsOf,
    now: DateTime<Utc>,
    metrics: Metrics,
    moves: Vec<OpenMove>,
    /// Why the mover cannot act: its connection to Postgres is too slow.
    cannot_act: Option<String>,
    solves: Vec<SolveRow>,
    outages: Vec<Outage>,
    /// How long servers last, as computed last.
    supply: Option<Arc<RegionSupply>>,
}

fn empty() -> Markup {
    html! {
        h1 { "No region yet" }
        p.missing { "No snapshot is loaded. " code { "ras up FOLDER" } " serves a snapshot folder; "
            code { "ras snapshot import" } " converts CSV files, and " code { "ras snapshot generate" } " generates a synthetic region." }
    }
}

fn body(of: &Overview, view: View) -> Markup {
    let region = of.summary.region();
    html! {
        div.head {
            div {
                p.kicker { "Region" }
                h1 { (region.region) }
                p.facts {
                    (of.as_of.show())
                    span #versions data-live=(topics(&Topic::ALL)) { "targets version " (ui::count(of.metrics.version)) ", "
                        a href="/trail" { "audit entry " (ui::count(of.metrics.seq)) } }
                }
            }
            div.actions { a.button.main href="/request" { "Request capacity" } }
        }
        div #standing data-live=(topics(&[Topic::Region, Topic::Moves, Topic::Failures, Topic::Maintenance])) {
            (verdict(of))
            @if let Some(supply) = &of.supply { (supply::notice(supply)) }
            (tiles(of))
        }
        section #map data-live=(topics(&[Topic::Region, Topic::Failures])) {
            h2 { "Rack map" }
            p.lead { "Each cell is a rack and each box an MSB, the largest fault domain. \
                The label “at risk” counts the reservations that would have less than promised after the loss of that MSB." }
            (view.switch("/"))
            (view.legend())
            @for (position, datacenter) in region.datacenters.iter().enumerate() {
                (datacenter_map(of, DatacenterIx::new(position), &datacenter.id, view))
            }
        }
        (buffers(of.summary))
        div.columns {
            (under_way(&of.moves))
            section #solves data-live=(topics(&[Topic::Solves])) {
                h2 { "Latest solves" }
                (solves::table(&of.solves, of.now))
                p.note { a href="/solves" { "All solves" } }
            }
        }
    }
}

/// How the promises stand: short now, at risk from one more loss, or guaranteed.
fn verdict(of: &Overview) -> Markup {
    let certificate = &of.summary.held.certificate;
    let totals = certificate.totals();
    let lost = if of.outages.is_empty() { "one MSB" } else { "one more MSB" };
    html! {
        @for outage in &of.outages { (lost_msb(of, outage)) }
        @if totals.short > 0 {
            @let short = certificate.rows.iter().filter(|row| row.figures().standing() == Standing::Short);
            @let arriving = short.filter(|row| row.figures().is_decided()).count();
            div class={ "notice " @if arriving == totals.short { "warn" } @else { "bad" } } {
                strong.verdict { (number::counted(totals.short, "reservation"))
                    @if totals.short == 1 { " has" } @else { " have" } " less than promised now" }
                p { "At least " (number::counted(totals.missing_now, "server"))
                    @if totals.missing_now == 1 { " is" } @else { " are" } " missing now." }
                (affected(of, Standing::Short))
            }
        }
        @if totals.at_risk > 0 {
            div.notice.warn {
                strong.verdict { (number::counted(totals.at_risk, "reservation"))
                    " would have less than promised after the loss of " (lost) }
                p { @if totals.at_risk == 1 { "It has" } @else { "They have" } " all promised capacity now. Of all reservations, at least "
                    (number::counted(totals.missing_after_loss, "server")) " are missing now or would be missing after the loss of " (lost)
                    ", counted for each reservation with its worst MSB." }
                (affected(of, Standing::AtRisk))
            }
        }
        @if totals.short + totals.at_risk == 0 {
            div.notice.good {
                strong.verdict { "All guarantees are in force" }
                p { "Every reservation has its promised capacity now. After the loss of any " (lost)
                    ", every reservation with an embedded buffer has it again \
                    within 30 minutes, and at least three quarters of its buffer serve it at once. Planned maintenance is already subtracted." }
                (under_maintenance(of))
            }
        }
    }
}

/// An MSB that is lost, and what its loss has cost.
fn lost_msb(of: &Overview, outage: &Outage) -> Markup {
    let totals = of.summary.held.certificate.totals();
    html! {
        div.notice.bad {
            strong.verdict { "MSB " a href=(link::msb(&outage.msb)) { (outage.msb) } " is lost" }
            p { "Since " (ui::when(outage.began_at)) " (" (ui::ago(outage.began_at, of.now)) "), with "
                (number::counted(outage.servers.unsigned_abs() as usize, "server")) ". "
                @if totals.short == 0 { "No reservation has less than promised now. " }
                a href="/failures" { "See failures" } }
        }
    }
}

/// The reservations whose promise stands like this: those with most missing first.
fn affected(of: &Overview, standing: Standing) -> Markup {
    let rows = of.summary.held.certificate.rows.iter();
    let mut rows: Vec<&Certified> =
        rows.filter(|row| row.figures().standing() == standing).collect();
    let missing = |row: &Certified| match standing {
        Standing::Short => row.figures().missing_now(),
        Standing::AtRisk | Standing::Guaranteed => row.figures().missing_after_loss(),
    };
    rows.sort_by_key(|row| (Reverse(missing(row)), row.priority, &row.reservation_id));
    let has = |row: &Certified| of.summary.held.statuses.get(&row.reservation_id);
    let arriving = |row: &Certified| has(row).map_or(0, |has| has.arriving.servers);
    let decided = rows.iter().filter(|row| row.figures().is_decided()).count();
    html! {
        @if decided > 0 { p { @if decided == rows.len() { "The servers for all of these reservations" }
            @else { "The servers for " (number::counted(decided, "reservation")) " of these" }
            " are assigned and arriving." } }
        ul { @for row in rows.iter().take(ROWS) {
            @let figures = row.figures();
            li { a href=(link::reservation(&row.reservation_id)) { (row.reservation_id) } " ("
                (row.owner) "): has " (number::rru(figures.held)) " of " (number::rru(figures.promised)) " RRU now"
                @if row.survives_a_loss() {
                    ", after one more loss " (number::rru(row.left_after_loss())) " within 30 minutes"
                    @if row.maintained > Rru::ZERO {
                        " and " (number::rru(row.left_at_once_after_loss())) " of " (number::rru(row.needed_at_once())) " at once; "
                        (number::rru(row.maintained)) " in maintenance"
                    }
                }
                @if arriving(row) > 0 { "; " (number::counted(arriving(row), "server")) " arriving" }
                @if !figures.replicas_hold { "; one MSB has more replicas than its rule allows" } }
        } }
        @if rows.len() > ROWS { p { a href="/reservations?promise=broken" { "All reservations that are short or at risk" } } }
    }
}

/// While maintenance is under way: the reservation with the smallest margin over its promise.
fn under_maintenance(of: &Overview) -> Markup {
    let rows = of.summary.held.certificate.rows.iter();
    let touched = rows.filter(|row| row.survives_a_loss() && row.maintained > Rru::ZERO);
    html! {
        @if let Some(row) = touched.min_by_key(|row| row.margin()) {
            p { "Maintenance is under way. The reservation with the smallest margin is "
                a href=(link::reservation(&row.reservation_id)) { (row.reservation_id) } ": the worst loss would leave "
                (number::rru(row.left_at_once_after_loss())) " RRU at once (" (number::rru(row.needed_at_once())) " needed), "
                (number::rru(row.left_after_loss())) " within 30 minutes (" (number::rru(row.capacity)) " needed)." }
        }
    }
}

fn tiles(of: &Overview) -> Markup {
    let all = &of.summary.all;
    let (total, metrics) = (all.total(), &of.metrics);
    let share = |count: usize| number::percent(count as f64 / total.max(1) as f64);
    let totals = of.summary.held.certificate.totals();
    let promises = of.summary.held.certificate.rows.len();
    let in_use = of.moves.iter().filter(|of| of.in_use).count();
    let stuck: i64 = metrics.stuck.iter().map(|of| of.count).sum();
    let mood = |bad: bool| if bad { Mood::Bad } else { Mood::Good };
    let count = |n: usize| html! { (number::count(n)) };
    html! {
        dl.tiles {
            (ui::tile(mood(totals.short > 0), "Have what is promised",
                &html! { (number::count(promises - totals.short)) " of " (number::count(promises)) },
                &html! { "at least " (number::counted(totals.missing_now, "server")) " missing now" }))
            (ui::tile(if totals.short + totals.at_risk > 0 { Mood::Warn } else { Mood::Good }, "Guaranteed after one more loss",
                &html! { (number::count(totals.guaranteed)) " of " (number::count(promises)) },
                &html! { "at least " (number::counted(totals.missing_after_loss, "server")) " would be missing; " a href="/reservations?promise=broken" { "which" } }))
            (ui::tile(Mood::Plain, "Servers", &count(total),
                &html! { (share(all.in_use)) " in use, " (share(all.idle + all.shared)) " idle or in buffers" }))
            (ui::tile(Mood::Plain, "Free", &count(all.free), &html! { (share(all.free)) " of all servers" }))
            (ui::tile(if all.down > 0 { Mood::Warn } else { Mood::Plain }, "Unavailable", &count(all.down),
                &html! { (share(all.down)) ", " a href="/failures" { "failures" } }))
            (ui::tile(if metrics.mover_stopped { Mood::Bad } else { Mood::Plain }, "Moves under way",
                &count(of.moves.len()),
                &html! { @if metrics.mover_stopped { "stopped by an operator" } @else if !metrics.mover_acts { "no active mover" }
                    @else if let Some(why) = &of.cannot_act { (why) }
                    @else { "servers in use: " (number::count(in_use)) } }))
            (ui::tile(if stuck > 0 { Mood::Bad } else { Mood::Plain }, "Stuck", &html! { (ui::count(stuck)) },
                &html! { a href="/stuck" { "Work without progress" } }))
        }
    }
}

fn datacenter_map(of: &Overview, ix: DatacenterIx, name: &str, view: View) -> Markup {
    let summary = of.summary;
    let is_lost = |name: &str| of.outages.iter().any(|outage| *outage.msb == *name);
    let counts = summary.datacenter(ix);
    let msbs = &summary.by_datacenter[ix.ix()];
    html! {
        div.place {
            h3 { (name) }
            span.note { (number::counted(msbs.len(), "MSB")) ", " (number::counted(counts.total(), "server")) ", "
                (number::count(counts.free)) " free, " (number::count(counts.down)) " unavailable" }
        }
        ul.msbs {
            @for msb in msbs {
                @let counts = &summary.msbs[msb.ix()];
                @let name = &summary.region().msbs[msb.ix()].id;
                li { a href=(link::msb(name)) {
                    span.name { span { (name) } @let broken = summary.broken_without(*msb).len();
                        @if is_lost(name) { (ui::state(Mood::Bad, "lost")) }
                        @else if broken > 0 { (ui::state(Mood::Warn, &format!("{} at risk", number::count(broken)))) } }
                    (rack_map::cells(summary, *msb, view))
                    span.more { (number::counted(counts.total(), "server")) ", " (number::count(counts.free)) " free"
                        @if counts.down > 0 { ", " (number::count(counts.down)) " unavailable" } }
                } }
            }
        }
    }
}

fn buffers(summary: &RegionSummary) -> Markup {
    html! {
        section #buffers data-live=(topics(&[Topic::Region])) {
            h2 { "Hardware and shared buffers" }
            p.lead { "A shared buffer is a reserve of servers of one hardware type that replaces servers that fail." }
            (ui::legend(summary.all.by_use().map(|(class, label, _)| (class, label.to_owned()))))
            div.scroll { table {
                caption.quiet { "Servers of each hardware type and its shared buffer" }
                thead { tr { th scope="col" { "Type" } th scope="col" { "Use of servers" }
                    th.n scope="col" { "Servers" } th.n scope="col" { "Free" } th.n scope="col" { "Unavailable" }
                    th.n scope="col" { "In buffer" } th.n scope="col" { "Requested" } th.n scope="col" { "Lent" } } }
                tbody { @for (position, name) in summary.region().hardware_types.iter().enumerate() {
                    @let counts = &summary.types[position];
                    @let buffer = summary.shared_buffer(HardwareTypeIx::new(position));
                    tr {
                        th scope="row" { (name) }
                        td.graph { (ui::bar(&counts.bar(), counts.total() as f64)) }
                        td.n { (number::count(counts.total())) }
                        td.n { (number::count(counts.free)) }
                        td.n { (number::count(counts.down)) }
                        @match buffer {
                            Some((wanted, held)) => {
                                td.n { @if held < wanted { strong.error { (number::rru(held)) } } @else { (number::rru(held)) } }
                                td.n { (number::rru(wanted)) }
                            }
                            None => { td.n { (number::NOTHING) } td.n { (number::NOTHING) } }
                        }
                        td.n { (number::count(counts.lent)) }
                    }
                } }
            } }
        }
    }
}

fn under_way(moves: &[OpenMove]) -> Markup {
    let mut kinds: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    for of in moves {
        let (all, in_use) = kinds.entry((of.origin.as_str(), state_word(of))).or_default();
        *all += 1;
        *in_use += usize::from(of.in_use);
    }
    html! {
        section #moves data-live=(topics(&[Topic::Moves])) {
            h2 { "Moves under way" }
            @if kinds.is_empty() { (ui::missing("No server is moving.")) } @else {
                div.scroll { table {
                    caption.quiet { "Moves under way by origin and state" }
                    thead { tr { th scope="col" { "Origin" } th scope="col" { "State" } th.n scope="col" { "Servers" }
                        th.n scope="col" { "In use" } } }
                    tbody { @for ((origin, state), (all, in_use)) in &kinds { tr {
                        th scope="row" { (origin.replace('_', " ")) }
                        td { (ui::state(Mood::Plain, state)) }
                        td.n { (number::count(*all)) }
                        td.n { (number::count(*in_use)) }
                    } } }
                } }
            }
        }
    }
}

fn state_word(of: &OpenMove) -> &'static str {
    use broker::State as _;
    of.state.as_str()
}

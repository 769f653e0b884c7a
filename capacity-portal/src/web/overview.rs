//! The region at a glance: whether the guarantee holds, where servers stand, what moves.

use super::frame::{Page, Place, Reader};
use super::map::{self, Shown, View};
use super::part::{self, Mood};
use super::picture::Picture;
use super::{link, solves};
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use broker::{Metrics, OpenMove, Outage, SolveRow};
use chrono::{DateTime, Utc};
use fleet::audit::Certified;
use fleet::{DatacenterIx, HardwareTypeIx, Rru};
use maud::{Markup, html};
use report::number;
use std::collections::BTreeMap;

/// Rows of the lists that stand here before the rest is only counted.
const ROWS: usize = 6;

/// Solves that stand here.
const SOLVES: u32 = 5;

/// The page.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Query(Shown { show }): Query<Shown>,
) -> Result<Response, Problem> {
    if reader.is_scoped() {
        return Ok(Redirect::to("/reservations").into_response());
    }
    let broker = &site.broker;
    let picture = site.pictures.now(&site.region).await?;
    let (now, metrics) = (in_time(broker.clock()).await?, in_time(broker.metrics()).await?);
    let moves = in_time(broker.moves_under_way()).await?;
    let distance = in_time(broker.mover_status()).await?.distance;
    let cannot_act = distance.and_then(|of| of.cannot_act());
    let solves = in_time(broker.solves(DateTime::UNIX_EPOCH, SOLVES)).await?;
    let outages = in_time(broker.outages(true, 20)).await?;
    let body = match &picture {
        Some(picture) => {
            body(&Now { picture, now, metrics, moves, cannot_act, solves, outages }, show)
        }
        None => empty(),
    };
    let title = picture.as_ref().map_or("Overview", |picture| &picture.region().region);
    Ok(Page { place: Place::Overview, title, charts: false, body }.show(&reader).into_response())
}

struct Now<'a> {
    picture: &'a Picture,
    now: DateTime<Utc>,
    metrics: Metrics,
    moves: Vec<OpenMove>,
    /// Why the mover cannot act over its distance from Postgres.
    cannot_act: Option<String>,
    solves: Vec<SolveRow>,
    outages: Vec<Outage>,
}

fn empty() -> Markup {
    html! {
        h1 { "No region yet" }
        p.missing { "Nothing is loaded. " code { "ras up FOLDER" } " serves a snapshot folder, "
            code { "ras snapshot import" } " makes one of CSV files, " code { "ras snapshot generate" } " makes one up." }
    }
}

fn body(of: &Now, view: View) -> Markup {
    let region = of.picture.region();
    html! {
        div.head {
            div {
                p.kicker { "Region" }
                h1 { (region.region) }
                p.facts {
                    span { "as of " (part::ago(of.picture.region().taken_at, of.now)) }
                    span { "targets version " (part::count(of.metrics.version)) }
                    span { a href="/trail" { "entry " (part::count(of.metrics.seq)) } }
                }
            }
            div.actions { a.button.main href="/request" { "Request capacity" } }
        }
        (verdict(of))
        (tiles(of))
        section #map {
            h2 { "Where servers stand" }
            p.lead { "A cell is a rack, a box an MSB: the largest part that may fail at once. \
                Where one says that some are short, so many reservations would be without it." }
            (view.switch("/"))
            (view.legend())
            @for (position, datacenter) in region.datacenters.iter().enumerate() {
                (place(of.picture, DatacenterIx::new(position), &datacenter.id, view))
            }
        }
        (buffers(of.picture))
        div.columns {
            (under_way(&of.moves))
            section {
                h2 { "Latest solves" }
                (solves::table(&of.solves, of.now))
                p.note { a href="/solves" { "All solves" } }
            }
        }
    }
}

/// Whether the guarantee is in force: the first thing anybody wants to know.
fn verdict(of: &Now) -> Markup {
    let short = of.picture.broken();
    let missing: Rru = short.iter().map(|row| row.missing()).sum();
    let standing = |row: &Certified| of.picture.held.standings.get(&row.reservation_id);
    let arriving = |row: &Certified| {
        standing(row).map(|of| of.arriving.servers).filter(|servers| *servers > 0)
    };
    let is_coming =
        |row: &&&Certified| standing(row).is_some_and(|has| has.decided >= row.capacity);
    let coming = short.iter().filter(is_coming).count();
    html! {
        @for outage in &of.outages {
            div.notice.bad {
                strong.verdict { "MSB " a href=(link::msb(&outage.msb)) { (outage.msb) } " is lost" }
                p { "Since " (part::when(outage.began_at)) ", with "
                    (part::count(outage.servers.into())) " servers. " a href="/failures" { "Failures" } }
            }
        }
        @if short.is_empty() {
            div.notice.good {
                strong.verdict { "The guarantee is in force" }
                p { "Any one MSB may be lost, and every reservation with an embedded buffer keeps what it was promised: \
                    at least three quarters of its buffer at once, all of it within 30 minutes. Planned maintenance is taken off." }
                (under_maintenance(of))
            }
        } @else {
            div class={ "notice " (if coming == short.len() { "warn" } else { "bad" }) } {
                strong.verdict {
                    @if coming == short.len() { "The guarantee is not in force yet for " } @else { "The guarantee is broken for " }
                    (number::counted(short.len(), "reservation"))
                }
                p { (number::rru(missing)) " RRU are missing to what was promised."
                    @if coming > 0 { " For " (if coming == short.len() { "all of them".to_owned() } else { number::count(coming) })
                        " it is decided, and servers are on their way." } }
                ul { @for row in short.iter().take(ROWS) {
                    li { a href=(link::reservation(&row.reservation_id)) { (row.reservation_id) } " ("
                        (row.owner) "): " (number::rru(row.kept())) " of "
                        (number::rru(row.capacity)) " RRU"
                        @if row.msb_buffer && row.maintained > Rru::ZERO { " (" (number::rru(row.left_at_once)) " of "
                            (number::rru(row.needed_at_once())) " at once after the worst loss, " (number::rru(row.left))
                            " within 30 minutes; " (number::rru(row.maintained)) " in maintenance)" }
                        @if let Some(arriving) = arriving(row) { ", " (number::counted(arriving, "server")) " arriving" } }
                } }
                @if short.len() > ROWS { p { a href="/reservations?show=short" { "All of them" } } }
            }
        }
    }
}

/// What maintenance has taken, and both figures of the reservation that it leaves closest to its promise.
fn under_maintenance(of: &Now) -> Markup {
    let rows = of.picture.held.certificate.rows.iter();
    let touched = rows.filter(|row| row.msb_buffer && row.maintained > Rru::ZERO);
    let margin =
        |row: &&Certified| (row.left - row.capacity).min(row.left_at_once - row.needed_at_once());
    html! {
        @if let Some(row) = touched.min_by_key(margin) {
            p { "With maintenance under way, closest to its limit is "
                a href=(link::reservation(&row.reservation_id)) { (row.reservation_id) } ": the worst loss leaves "
                (number::rru(row.left_at_once)) " RRU at once (" (number::rru(row.needed_at_once())) " needed), "
                (number::rru(row.left)) " within 30 minutes (" (number::rru(row.capacity)) " needed)." }
        }
    }
}

fn tiles(of: &Now) -> Markup {
    let all = &of.picture.all;
    let (total, metrics) = (all.total(), &of.metrics);
    let share = |count: usize| number::percent(count as f64 / total.max(1) as f64);
    let guaranteed = of.picture.held.certificate.rows.len();
    let short = of.picture.broken().len();
    let in_use = of.moves.iter().filter(|of| of.in_use).count();
    let stuck: i64 = metrics.stuck.iter().map(|(_, _, count)| count).sum();
    let mood = |bad: bool| if bad { Mood::Bad } else { Mood::Good };
    let count = |n: usize| html! { (number::count(n)) };
    html! {
        dl.tiles {
            (part::tile(mood(short > 0), "Guarantees in force",
                &html! { (number::count(guaranteed - short)) " of " (number::count(guaranteed)) },
                &html! { a href="/reservations" { "Reservations" } }))
            (part::tile(Mood::Plain, "Servers", &count(total),
                &html! { (share(all.in_use)) " in use, " (share(all.idle + all.shared)) " held or buffer" }))
            (part::tile(Mood::Plain, "Free", &count(all.free), &html! { (share(all.free)) " of all" }))
            (part::tile(if all.down > 0 { Mood::Warn } else { Mood::Plain }, "Unavailable", &count(all.down),
                &html! { (share(all.down)) ", " a href="/failures" { "failures" } }))
            (part::tile(if metrics.mover_stopped { Mood::Bad } else { Mood::Plain }, "Moves under way",
                &count(of.moves.len()),
                &html! { @if metrics.mover_stopped { "stopped by hand" } @else if !metrics.mover_acts { "no mover acts" }
                    @else if let Some(why) = &of.cannot_act { (why) }
                    @else { (number::count(in_use)) " in use when opened" } }))
            (part::tile(if stuck > 0 { Mood::Bad } else { Mood::Plain }, "Stuck", &html! { (part::count(stuck)) },
                &html! { a href="/stuck" { "what does not go on" } }))
        }
    }
}

fn place(picture: &Picture, ix: DatacenterIx, name: &str, view: View) -> Markup {
    let parts = picture.datacenter(ix);
    let msbs = &picture.by_datacenter[ix.ix()];
    html! {
        div.place {
            h3 { (name) }
            span.note { (number::counted(msbs.len(), "MSB")) ", " (number::counted(parts.total(), "server")) ", "
                (number::count(parts.free)) " free, " (number::count(parts.down)) " unavailable" }
        }
        ul.msbs {
            @for msb in msbs {
                @let parts = &picture.msbs[msb.ix()];
                @let name = &picture.region().msbs[msb.ix()].id;
                li { a href=(link::msb(name)) {
                    span.name { span { (name) } @let broken = picture.broken_without(*msb).len();
                        @if broken > 0 { (part::state(Mood::Bad, &format!("{} short", number::count(broken)))) } }
                    (map::cells(picture, *msb, view))
                    span.more { (number::counted(parts.total(), "server")) ", " (number::count(parts.free)) " free"
                        @if parts.down > 0 { ", " (number::count(parts.down)) " out" } }
                } }
            }
        }
    }
}

fn buffers(picture: &Picture) -> Markup {
    html! {
        section #buffers {
            h2 { "Hardware and shared buffers" }
            p.lead { "A shared buffer keeps servers of one hardware type for single failures." }
            (part::legend(picture.all.each().map(|(class, words, _)| (class, words.to_owned()))))
            div.scroll { table {
                caption.quiet { "Servers and shared buffer of each hardware type" }
                thead { tr { th scope="col" { "Type" } th scope="col" { "Servers by what they are for" }
                    th.n scope="col" { "Servers" } th.n scope="col" { "Free" } th.n scope="col" { "Unavailable" }
                    th.n scope="col" { "Buffer has" } th.n scope="col" { "of" } th.n scope="col" { "Lent" } } }
                tbody { @for (position, name) in picture.region().hardware_types.iter().enumerate() {
                    @let parts = &picture.types[position];
                    @let buffer = picture.shared_buffer(HardwareTypeIx::new(position));
                    tr {
                        th scope="row" { (name) }
                        td.graph { (part::bar(&parts.bar(), parts.total() as f64)) }
                        td.n { (number::count(parts.total())) }
                        td.n { (number::count(parts.free)) }
                        td.n { (number::count(parts.down)) }
                        @match buffer {
                            Some((wanted, held)) => {
                                td.n { @if held < wanted { strong.error { (number::rru(held)) } } @else { (number::rru(held)) } }
                                td.n { (number::rru(wanted)) }
                            }
                            None => { td.n { (number::NOTHING) } td.n { (number::NOTHING) } }
                        }
                        td.n { (number::count(parts.lent)) }
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
        section #moves {
            h2 { "Moves under way" }
            @if kinds.is_empty() { (part::missing("No server is on the move.")) } @else {
                div.scroll { table {
                    caption.quiet { "Moves by why they were opened and how far they are" }
                    thead { tr { th scope="col" { "Why" } th scope="col" { "How far" } th.n scope="col" { "Servers" }
                        th.n scope="col" { "In use" } } }
                    tbody { @for ((origin, state), (all, in_use)) in &kinds { tr {
                        th scope="row" { (origin.replace('_', " ")) }
                        td { (part::state(Mood::Plain, state)) }
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

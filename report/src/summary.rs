//! The top of the page: which region, the verdict in tiles, and who is short.

use crate::buffer::BufferShares;
use crate::facts::Facts;
use crate::figures::Figures;
use crate::number::{self, NOTHING};
use crate::svg;
use fleet::audit::{Claims, ReservationAudit};
use fleet::{RegionSnapshot, ReservationKind, Rru};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

/// Shortfalls listed at the top; the table of all reservations has the rest.
const SHORTFALLS_SHOWN: usize = 40;

/// Objections of the audit listed.
const OBJECTIONS_SHOWN: usize = 20;

/// Regions that the project's generator made bear a name that begins with this.
const GENERATED_PREFIX: &str = "generated";

/// The region, the instant and what kind of data this is.
pub fn head(snapshot: &RegionSnapshot, figures: &Figures) -> Markup {
    let generated = snapshot.region.starts_with(GENERATED_PREFIX);
    let unavailable = figures.audit.servers.total - figures.audit.servers.available;
    let kinds = |kind| snapshot.reservations.iter().filter(|r| r.kind == kind).count();
    html! {
        header {
            p.kicker { "Region solve" }
            h1 { (snapshot.region) }
            p.facts {
                span { (snapshot.taken_at.format("%Y-%m-%d %H:%M UTC")) }
                span { (number::counted(snapshot.servers.len(), "server"))
                    @if unavailable > 0 { " (" (number::count(unavailable)) " unavailable)" } }
                span { (number::counted(snapshot.hardware_types.len(), "hardware type")) }
                span { (number::counted(snapshot.racks.len(), "rack")) ", "
                    (number::counted(snapshot.msbs.len(), "MSB")) ", "
                    (number::counted(figures.datacenters.len(), "datacenter")) }
                span { (number::counted(kinds(ReservationKind::Guaranteed), "guaranteed reservation")) }
            }
            @if generated {
                p.origin { strong { "Synthetic region." }
                    " The generator made it from published statistics; no such fleet exists." }
            } @else {
                p.origin { strong { "Not synthetic." }
                    " An inventory that was imported or recorded, not one that the generator made." }
            }
        }
    }
}

/// The verdict, one number a tile.
pub fn tiles(figures: &Figures, facts: &Facts, buffer: &BufferShares) -> Markup {
    html! {
        section.tiles aria-label="Verdict" {
            (guarantee(figures))
            (buffer_tile(buffer))
            (gap(facts))
            (moves(figures, facts))
            (cost(facts))
        }
    }
}

fn tile(state: &str, label: &str, value: &str, note: Markup) -> Markup {
    html! {
        div class={ "tile " (state) } {
            p.label { (label) }
            p.value { (value) }
            p.note { (note) }
        }
    }
}

fn guarantee(figures: &Figures) -> Markup {
    let asked = figures.by_capacity();
    let buffered = asked.iter().filter(|r| figures.row(**r).msb_buffer).count();
    let (short, shared): (Vec<_>, Vec<_>) =
        figures.short().into_iter().partition(|row| row.kind == ReservationKind::Guaranteed);
    let missing: Rru = short.iter().map(|row| row.holding.shortfall).sum();
    let shared_note = html! {
        @if !shared.is_empty() {
            br; (number::counted(shared.len(), "shared buffer")) " below size"
        }
    };
    if asked.is_empty() {
        let note = html! { "No guaranteed reservation in this region" (shared_note) };
        return tile("", "Guarantee", NOTHING, note);
    }
    if short.is_empty() {
        let note = html! {
            @if buffered == asked.len() {
                "All " (number::counted(asked.len(), "reservation"))
                " keep their capacity if any one MSB is lost"
            } @else {
                "All " (number::counted(asked.len(), "reservation")) " have their capacity; "
                (number::count(buffered)) " keep it if any one MSB is lost, the others do not ask to"
            }
            (shared_note)
        };
        return tile("good", "Guarantee", "✓ holds", note);
    }
    let note = html! {
        "of " (number::counted(asked.len(), "reservation")) "; " (number::rru(missing))
        " RRU missing in all: " a href="#shortfalls" { "who and why" } (shared_note)
    };
    tile("bad", "Guarantee", &format!("! {} short", number::count(short.len())), note)
}

fn buffer_tile(buffer: &BufferShares) -> Markup {
    let Some(after) = buffer.after else {
        let note = html! { "No reservation asks for an embedded buffer" };
        return tile("", "Embedded buffer", NOTHING, note);
    };
    let note = html! {
        "of the RRU requested"
        @if let Some((name, bound)) = buffer.best_bound() {
            "; " (name) " " (number::percent(bound))
        }
        br; "RAS in production: 4.2\u{202f}% against 4.06\u{202f}%"
    };
    tile("", "Embedded buffer", &number::percent(after), note)
}

fn gap(facts: &Facts) -> Markup {
    let Some(gap) = facts.gap else {
        return tile("", "Gap to the proved bound", NOTHING, html! { "Not in the report" });
    };
    let note = html! {
        @if let Some(moves) = facts.gap_in_use_moves {
            "worth " (number::decimal(moves)) " in-use moves"
        }
        @if let Some(termination) = &facts.termination {
            br; "Phase 1 ended: " (ending(termination))
        }
    };
    tile("", "Gap to the proved bound", &number::percent(gap), note)
}

/// The words for a termination; a word not known here stands as it is.
fn ending(termination: &str) -> &str {
    match termination {
        "optimal" => "within the gap asked for",
        "last_gap" => "about as near to the bound as the solve before",
        "stalled" => "nothing better in several rounds",
        "deadline" => "at the deadline",
        "interrupted" => "by request",
        "unsolved" => "not solved",
        other => other,
    }
}

fn moves(figures: &Figures, facts: &Facts) -> Markup {
    let moves = &figures.audit.moves;
    let freed = facts.handed_back.map_or(moves.handed_back, |(in_use, idle)| in_use + idle);
    let note = html! {
        "and " (number::count(moves.idle)) " idle servers leave a reservation"
        br; (number::count(freed)) " handed back, " (number::count(moves.acquired))
        " free ones taken up"
    };
    tile("", "Moves", &format!("{} in use", number::count(moves.in_use)), note)
}

fn cost(facts: &Facts) -> Markup {
    let value = facts.seconds_total.map_or_else(|| NOTHING.to_owned(), number::seconds);
    let cut = match facts.ending.as_deref() {
        Some("cut_at_deadline") => Some("Cut at the deadline: the last incumbent"),
        Some("cut_by_interrupt") => Some("Cut on request: the last incumbent"),
        Some("solver_failed") => Some("The solver failed: the last incumbent"),
        Some("unsolved") => Some("Nothing solved: today's assignment"),
        _ => None,
    };
    let note = html! {
        @match facts.peak_memory_bytes {
            Some(bytes) => { "Peak memory " (number::bytes(bytes)) },
            None => { "Peak memory not in the report" },
        }
        @if let Some(bytes) = facts.highs_peak_memory_bytes { ", HiGHS " (number::bytes(bytes)) }
        @if let Some(classes) = facts.sizes.get("classes").filter(|classes| **classes > 0) {
            br; (number::count(*classes)) @if *classes == 1 { " server class" } @else { " server classes" }
        }
        @if let Some(cut) = cut { br; (cut) }
    };
    tile("", "Run time", &value, note)
}

/// Broken rules, and claims of the report that the audit did not find. Nothing where all is well.
pub fn alarm(figures: &Figures, report: &Value) -> Markup {
    let mut lines: Vec<String> = figures.audit.violations.iter().map(ToString::to_string).collect();
    // A report without the members of the format claims nothing that could be wrong.
    if let Ok(claims) = Claims::deserialize(report) {
        lines.extend(figures.audit.compare(&claims).iter().map(ToString::to_string));
    }
    html! {
        @if !lines.is_empty() {
            section.alarm {
                h2 { "The audit objects" }
                ul { @for line in lines.iter().take(OBJECTIONS_SHOWN) { li { (line) } } }
                (svg::left_out(OBJECTIONS_SHOWN, lines.len(), "objection"))
                p { "The figures below are the audit's where the two differ." }
            }
        }
    }
}

/// Short reservations and the reasons; empty if no reservation is short.
pub fn shortfalls(figures: &Figures, facts: &Facts) -> Markup {
    let short = figures.short();
    html! {
        @if !short.is_empty() {
            section #shortfalls {
                h2 { "Shortfalls" }
                @if figures.msbs_in_use == 1 {
                    p { "The region has one MSB: no capacity in it can survive the loss of an MSB." }
                }
                div.scroll tabindex="0" role="region" aria-label="Shortfalls" {
                    table.data {
                        thead { tr {
                            th scope="col" { "Reservation" }
                            th.n scope="col" { "Missing" span.unit { "RRU" } }
                            th.n scope="col" { "Missing" span.unit { "of asked" } }
                            th.n scope="col" { "Asked" span.unit { "RRU" } }
                            th.n.wide scope="col" { "Guaranteed" span.unit { "RRU" } }
                            th.n.wide scope="col" { "Prio" }
                            th scope="col" { "Reason" }
                        } }
                        tbody {
                            @for row in short.iter().take(SHORTFALLS_SHOWN) { (shortfall(row, facts)) }
                        }
                    }
                }
                (svg::left_out(SHORTFALLS_SHOWN, short.len(), "shortfall"))
            }
        }
    }
}

fn shortfall(row: &ReservationAudit, facts: &Facts) -> Markup {
    let id = &row.reservation_id;
    let share = row.holding.shortfall.to_f64() / row.capacity.to_f64();
    let why = facts.why(id);
    html! {
        tr.explained[why.is_some()] {
            th scope="row" title=(id) { (id) }
            td.n { strong { (number::rru(row.holding.shortfall)) } }
            td.n { (number::percent(share)) }
            td.n { (number::rru(row.capacity)) }
            td.n.wide { (number::rru(row.holding.guaranteed)) }
            td.n.wide { (row.priority) }
            td.reason { (facts.reason(id)) }
        }
        @if let Some(why) = why {
            tr { td.why colspan="7" { (why) } }
        }
    }
}

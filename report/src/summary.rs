//! The top of the page: region, verdict, objections of the audit, shortfalls.

use crate::assignment::AssignmentSummary;
use crate::buffer::BufferShares;
use crate::number::{self, NOTHING};
use crate::solve_report::{Ending, SolveReport};
use crate::svg;
use fleet::audit::ReservationAudit;
use fleet::{RegionSnapshot, ReservationKind};
use maud::{Markup, html};

/// Shortfalls listed; the table of all reservations has the rest.
const SHORTFALLS_SHOWN: usize = 40;

/// Objections of the audit listed.
const OBJECTIONS_SHOWN: usize = 20;

/// Prefix of the names of generated regions.
const GENERATED_PREFIX: &str = "generated";

/// Region, instant and origin of the data.
pub fn head(snapshot: &RegionSnapshot, assignment: &AssignmentSummary) -> Markup {
    let generated = snapshot.region.starts_with(GENERATED_PREFIX);
    let unavailable = assignment.audit.servers.total - assignment.audit.servers.available;
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
                    (number::counted(assignment.datacenters.len(), "datacenter")) }
                span { (number::counted(kinds(ReservationKind::Guaranteed), "guaranteed reservation")) }
            }
            @if generated {
                p.origin { strong { "Synthetic region." }
                    " It was generated from published statistics; no such fleet exists." }
            } @else {
                p.origin { strong { "Not synthetic." }
                    " The inventory was imported or recorded, not generated." }
            }
        }
    }
}

/// The verdict: a tile for each figure.
pub fn tiles(assignment: &AssignmentSummary, solve: &SolveReport, buffer: &BufferShares) -> Markup {
    html! {
        section.tiles aria-label="Verdict" {
            (guarantee(assignment))
            (buffer_tile(buffer))
            (gap(solve))
            (moves(assignment, solve))
            (cost(solve))
        }
    }
}

pub(crate) fn tile(state: &str, label: &str, value: &str, note: Markup) -> Markup {
    html! {
        div class={ "tile " (state) } {
            p.label { (label) }
            p.value { (value) }
            p.note { (note) }
        }
    }
}

fn guarantee(assignment: &AssignmentSummary) -> Markup {
    let guaranteed = assignment.by_capacity();
    let buffered = guaranteed.iter().filter(|r| assignment.row(**r).msb_buffer).count();
    let (short, shared): (Vec<_>, Vec<_>) =
        assignment.short().into_iter().partition(|row| row.kind == ReservationKind::Guaranteed);
    let missing: usize = short.iter().map(|row| row.holding.shortfall_servers).sum();
    let shared_note = html! {
        @if !shared.is_empty() {
            br; (number::counted(shared.len(), "shared buffer")) " below size"
        }
    };
    if guaranteed.is_empty() {
        let note = html! { "No guaranteed reservation in this region" (shared_note) };
        return tile("", "Guarantee", NOTHING, note);
    }
    if short.is_empty() {
        let note = html! {
            @if buffered == guaranteed.len() {
                "All " (number::counted(guaranteed.len(), "reservation"))
                " keep their capacity if any one MSB is lost"
            } @else {
                "All " (number::counted(guaranteed.len(), "reservation")) " have their capacity; "
                (number::count(buffered)) " keep it if any one MSB is lost, the others have no embedded buffer"
            }
            (shared_note)
        };
        return tile("good", "Guarantee", "✓ holds", note);
    }
    let note = html! {
        "of " (number::counted(guaranteed.len(), "reservation")) "; at least "
        (number::counted(missing, "server")) " missing: " a href="#shortfalls" { "shortfalls and reasons" } (shared_note)
    };
    tile("bad", "Guarantee", &format!("! {} short", number::count(short.len())), note)
}

fn buffer_tile(buffer: &BufferShares) -> Markup {
    let Some(after) = buffer.after else {
        let note = html! { "No reservation has an embedded buffer" };
        return tile("", "Embedded buffer", NOTHING, note);
    };
    let note = html! {
        "of the requested RRU"
        @if let Some((name, bound)) = buffer.best_bound() {
            "; " (name) " " (number::percent(bound))
        }
        br; "RAS in production: 4.2\u{202f}% against 4.06\u{202f}%"
    };
    tile("", "Embedded buffer", &number::percent(after), note)
}

fn gap(solve: &SolveReport) -> Markup {
    let (whole, phase1) = (solve.whole.unwrap_or_default(), &solve.phase1);
    let Some(gap) = solve.gap() else {
        return tile("", "Gap to the proved bound", NOTHING, html! { "Not in the report" });
    };
    let note = html! {
        @if let (Some(_), Some(search)) = (whole.gap, phase1.gap) {
            "of the whole objective; phase 1: " (number::percent(search)) br;
        }
        @if let Some(moves) = whole.gap_in_use_moves.or(phase1.gap_in_use_moves) {
            "worth " (number::decimal(moves)) " in-use moves"
        }
        @if let Some(termination) = phase1.termination {
            br; "Phase 1 ended: " (termination.text())
        }
    };
    tile("", "Gap to the proved bound", &number::percent(gap), note)
}

fn moves(assignment: &AssignmentSummary, solve: &SolveReport) -> Markup {
    let moves = &assignment.audit.moves;
    let freed = solve.handed_back.map_or(moves.handed_back, |of| of.in_use + of.idle);
    let note = html! {
        "and " (number::count(moves.idle)) " idle servers leave a reservation"
        br; (number::count(freed)) " released, " (number::count(moves.acquired))
        " free servers assigned"
    };
    tile("", "Moves", &format!("{} in use", number::count(moves.in_use)), note)
}

fn cost(solve: &SolveReport) -> Markup {
    let value = solve.seconds.total.map_or_else(|| NOTHING.to_owned(), number::seconds);
    let cut = match solve.ending {
        Some(Ending::Deadline) => Some("Cut at the deadline: the last incumbent"),
        Some(Ending::Interrupted) => Some("Cut on request: the last incumbent"),
        Some(Ending::Panicked) => Some("The solver failed: the last incumbent"),
        Some(Ending::Unsolved) => Some("Nothing solved: today's assignment"),
        Some(Ending::Returned) | None => None,
    };
    let note = html! {
        @match solve.peak_memory_bytes {
            Some(bytes) => { "Peak memory " (number::bytes(bytes as f64)) },
            None => { "Peak memory not in the report" },
        }
        @if let Some(bytes) = solve.highs_peak_memory_bytes { ", HiGHS " (number::bytes(bytes as f64)) }
        @if let Some(classes) = solve.sizes.map(|of| of.classes).filter(|classes| *classes > 0) {
            br; (number::count(classes)) @if classes == 1 { " server class" } @else { " server classes" }
        }
        @if let Some(cut) = cut { br; (cut) }
    };
    tile("", "Run time", &value, note)
}

/// Broken rules, and claims of the report that the audit contradicts; empty if both lists are empty.
pub fn alarm(assignment: &AssignmentSummary, solve: &SolveReport) -> Markup {
    let mut lines: Vec<String> =
        assignment.audit.violations.iter().map(ToString::to_string).collect();
    // A report without these members makes no claims.
    if let Ok(claims) = solve.claims() {
        lines.extend(assignment.audit.compare(&claims).iter().map(ToString::to_string));
    }
    html! {
        @if !lines.is_empty() {
            section.alarm {
                h2 { "Objections of the audit" }
                ul { @for line in lines.iter().take(OBJECTIONS_SHOWN) { li { (line) } } }
                (svg::left_out(OBJECTIONS_SHOWN, lines.len(), "objection"))
                p { "Where report and audit differ, the figures below are those of the audit." }
            }
        }
    }
}

/// Short reservations with reasons; empty if no reservation is short.
pub fn shortfalls(assignment: &AssignmentSummary, solve: &SolveReport) -> Markup {
    let short = assignment.short();
    html! {
        @if !short.is_empty() {
            section #shortfalls {
                h2 { "Shortfalls" }
                @if assignment.msbs_in_use == 1 {
                    p { "The region has one MSB: no capacity in it can survive the loss of an MSB." }
                }
                div.scroll tabindex="0" role="region" aria-label="Shortfalls" {
                    table.data {
                        thead { tr {
                            th scope="col" { "Reservation" }
                            th.n scope="col" { "Missing" span.unit { "RRU" } }
                            th.n scope="col" { "Missing" span.unit { "of requested" } }
                            th.n scope="col" { "Requested" span.unit { "RRU" } }
                            th.n.wide scope="col" { "Guaranteed" span.unit { "RRU" } }
                            th.n.wide scope="col" { "Unguaranteed" span.unit { "RRU" } }
                            th.n.wide scope="col" { "Prio" }
                            th scope="col" { "Reason" }
                        } }
                        tbody {
                            @for row in short.iter().take(SHORTFALLS_SHOWN) { (shortfall(row, solve)) }
                        }
                    }
                }
                (svg::left_out(SHORTFALLS_SHOWN, short.len(), "shortfall"))
            }
        }
    }
}

fn shortfall(row: &ReservationAudit, solve: &SolveReport) -> Markup {
    let id = &row.reservation_id;
    let share = row.holding.shortfall.to_f64() / row.capacity.to_f64();
    let why = solve.reservation(id).and_then(|row| row.why.as_deref());
    html! {
        tr.explained[why.is_some()] {
            th scope="row" title=(id) { (id) }
            td.n { strong { (number::rru(row.holding.shortfall)) } }
            td.n { (number::percent(share)) }
            td.n { (number::rru(row.capacity)) }
            td.n.wide { (number::rru(row.holding.guaranteed)) }
            td.n.wide title="Has these servers now; the loss of one MSB could take them" {
                (number::rru(row.unguaranteed()))
            }
            td.n.wide { (row.priority) }
            td.reason { (solve.reason(id)) }
        }
        @if let Some(why) = why {
            tr { td.why colspan="8" { (why) } }
        }
    }
}

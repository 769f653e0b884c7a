//! Tables of hardware types and of all reservations.

use crate::assignment::AssignmentSummary;
use crate::number;
use crate::solve_report::SolveReport;
use crate::svg;
use fleet::{RegionSnapshot, ReservationIx, ReservationKind, Rru};
use maud::{Markup, html};
use std::cmp::Reverse;

/// The most rows of the table of reservations: about 400 bytes each.
const RESERVATIONS_MAX: usize = 3_000;

/// The most hardware types listed.
const TYPES_MAX: usize = 200;

/// Hardware types with their servers by use.
pub fn hardware(snapshot: &RegionSnapshot, assignment: &AssignmentSummary) -> Markup {
    let mut order: Vec<usize> = (0..assignment.types.len()).collect();
    order.sort_by_key(|ix| (Reverse(assignment.types[*ix].servers), *ix));
    let all = order.len();
    order.truncate(TYPES_MAX);
    html! {
        section #hardware {
            h2 { "Hardware types" }
            @if order.is_empty() {
                (svg::missing("The region has no servers."))
            } @else {
                (svg::legend([
                    ("after", "held".to_owned()),
                    ("shared", "shared buffer".to_owned()),
                    ("free", "free".to_owned()),
                    ("down", "unavailable".to_owned()),
                ]))
                div.scroll tabindex="0" role="region" aria-label="Hardware types" {
                    table.data.sortable {
                        thead { tr {
                            (column("Type", false, None))
                            th.c { "After the solve" }
                            (column("Servers", true, None))
                            (column("Held", true, None))
                            (column("Shared buffer", true, None))
                            (column("Free", true, None))
                            (column("Unavailable", true, None))
                        } }
                        tbody { @for ix in &order { (hardware_row(snapshot, assignment, *ix)) } }
                    }
                }
                (svg::left_out(order.len(), all, "type"))
            }
        }
    }
}

fn hardware_row(snapshot: &RegionSnapshot, assignment: &AssignmentSummary, ix: usize) -> Markup {
    let (name, used) = (&snapshot.hardware_types[ix], &assignment.types[ix]);
    let parts = [
        ("after", used.guaranteed),
        ("shared", used.shared_buffer),
        ("free", used.free),
        ("down", used.unavailable),
    ];
    let mut start = 0;
    let bars = parts.map(|(class, servers)| {
        let x = start;
        start += servers;
        (class, x, servers)
    });
    let share = |servers: usize| svg::percent(servers as f64 / used.servers.max(1) as f64);
    html! {
        tr {
            th scope="row" title=(name) { (name) }
            td.c { svg width="100%" height="14" aria-hidden="true" {
                @for (class, x, servers) in bars {
                    @if servers > 0 { rect class=(class) x=(share(x)) width=(share(servers)) height="14" {} }
                }
            } }
            td.n { (number::count(used.servers)) }
            td.n { (number::count(used.guaranteed)) }
            td.n { (number::count(used.shared_buffer)) }
            td.n { (number::count(used.free)) }
            td.n { (number::count(used.unavailable)) }
        }
    }
}

/// A column header that sorts its table.
fn column(name: &str, numeric: bool, unit: Option<&str>) -> Markup {
    html! {
        th.n[numeric] scope="col" {
            button type="button" { (name) @if let Some(unit) = unit { span.unit { (unit) } } }
        }
    }
}

/// All reservations, sortable.
pub fn reservations(
    snapshot: &RegionSnapshot,
    assignment: &AssignmentSummary,
    solve: &SolveReport,
) -> Markup {
    let mut order = assignment.by_capacity();
    let others = (0..snapshot.reservations.len()).map(ReservationIx::new);
    order.extend(
        others.filter(|r| snapshot.reservations[r.ix()].kind != ReservationKind::Guaranteed),
    );
    let all = order.len();
    order.truncate(RESERVATIONS_MAX);
    html! {
        section #reservations {
            h2 { "All reservations" }
            @if order.is_empty() {
                (svg::missing("The region has no reservations."))
            } @else {
                p.filter { label { "Filter " input type="search" data-filter="all" placeholder="name, owner, reason"; } }
                div.scroll.tall tabindex="0" role="region" aria-label="All reservations" {
                    table.data.sortable #all {
                        thead { tr {
                            (column("Reservation", false, None))
                            (column("Owner", false, None))
                            (column("Prio", true, None))
                            (column("Capacity", true, Some("RRU")))
                            (column("Assigned", true, Some("RRU")))
                            (column("Servers", true, None))
                            (column("Worst MSB", false, None))
                            (column("In it", true, Some("RRU")))
                            (column("Guaranteed", true, Some("RRU")))
                            (column("Short", true, Some("RRU")))
                            (column("Reason", false, None))
                            (column("Leave", true, Some("in use")))
                            (column("Leave", true, Some("idle")))
                            (column("Arrive", true, None))
                        } }
                        tbody { @for r in &order { (reservation_row(snapshot, assignment, solve, *r)) } }
                    }
                }
                (svg::left_out(order.len(), all, "reservation"))
            }
        }
    }
}

fn reservation_row(
    snapshot: &RegionSnapshot,
    assignment: &AssignmentSummary,
    solve: &SolveReport,
    r: ReservationIx,
) -> Markup {
    let reservation = &snapshot.reservations[r.ix()];
    let (moves, holding) = (&assignment.moves[r.ix()], &assignment.row(r).holding);
    let short = holding.shortfall > Rru::ZERO;
    let kind = match reservation.kind {
        ReservationKind::Guaranteed if reservation.msb_buffer => None,
        ReservationKind::Guaranteed => Some("no embedded buffer"),
        ReservationKind::SharedBuffer => Some("shared buffer, in servers"),
        ReservationKind::Elastic => Some("elastic"),
    };

    html! {
        tr class=[short.then_some("short")] {
            th scope="row" title=(reservation.id) { (reservation.id) @if let Some(kind) = kind { span.unit { (kind) } } }
            td.clip title=(reservation.owner) { (reservation.owner) }
            td.n { (reservation.priority) }
            td.n { (number::rru(reservation.capacity)) }
            td.n { (number::rru(holding.assigned)) }
            td.n { (number::count(holding.servers)) }
            td.clip { (holding.largest_msb_id.as_deref().unwrap_or(number::NOTHING)) }
            td.n { (number::rru(holding.largest_msb)) }
            td.n { (number::rru(holding.guaranteed)) }
            td.n { (number::rru(holding.shortfall)) }
            td.clip { @if short { (solve.reason(&reservation.id)) } }
            td.n { (number::count(moves.left_in_use)) }
            td.n { (number::count(moves.left_idle)) }
            td.n { (number::count(moves.gained)) }
        }
    }
}

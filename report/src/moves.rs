//! Servers that leave and join reservations.

use crate::assignment::{AssignmentSummary, Moves};
use crate::number;
use crate::svg::{self, Scale};
use fleet::{RegionSnapshot, ReservationIx};
use maud::{Markup, html};
use std::cmp::Reverse;

/// Reservations drawn, those with the most moves first.
const ROWS: usize = 20;

fn moved(moves: &Moves) -> usize {
    moves.left_in_use + moves.left_idle + moves.gained
}

/// The section.
pub fn section(snapshot: &RegionSnapshot, assignment: &AssignmentSummary) -> Markup {
    let mut order: Vec<ReservationIx> = (0..assignment.moves.len())
        .map(ReservationIx::new)
        .filter(|r| moved(&assignment.moves[r.ix()]) > 0)
        .collect();
    order.sort_by_key(|r| {
        let moves = &assignment.moves[r.ix()];
        (Reverse(moved(moves)), Reverse(moves.left_in_use), *r)
    });
    let shown = &order[..order.len().min(ROWS)];
    let most = |count: fn(&Moves) -> usize| {
        shown.iter().map(|r| count(&assignment.moves[r.ix()])).max().unwrap_or(0)
    };
    let largest = most(|h| h.left_in_use + h.left_idle).max(most(|h| h.gained)) as f64;
    // The numbers are printed beyond the ends of the bars.
    let scale = Scale::new(largest * 1.3, 4);
    html! {
        section #moves {
            h2 { "Moves by reservation" }
            @if order.is_empty() {
                (svg::missing("Nothing moves: every server keeps its holder."))
            } @else {
                (svg::legend([
                    ("in-use", "leave in use".to_owned()),
                    ("idle", "leave idle".to_owned()),
                    ("after", "arrive".to_owned()),
                ]))
                table.rows.pair {
                    thead { tr { td {}
                        td.c.left { "servers that leave" }
                        td.c { "servers that arrive" }
                        td.n { "net" }
                    } }
                    tbody {
                        @for r in shown { (row(snapshot, &assignment.moves[r.ix()], *r, &scale)) }
                    }
                }
                (svg::left_out(shown.len(), order.len(), "reservation"))
            }
        }
    }
}

fn row(snapshot: &RegionSnapshot, moves: &Moves, r: ReservationIx, scale: &Scale) -> Markup {
    let id = &snapshot.reservations[r.ix()].id;
    let share = |count: usize| scale.at(count as f64);
    let (in_use, idle, gained) =
        (share(moves.left_in_use), share(moves.left_idle), share(moves.gained));
    let left = moves.left_in_use + moves.left_idle;
    let net = moves.gained as i64 - left as i64;
    let sign = match net {
        0 => "±",
        net if net > 0 => "+",
        _ => "−",
    };
    html! {
        tr data-tip={ (id) ": " (number::count(moves.left_in_use)) " leave in use, "
            (number::count(moves.left_idle)) " leave idle, " (number::count(moves.gained)) " arrive" } {
            th scope="row" title=(id) { (id) }
            td.c.left { svg width="100%" height="20" aria-hidden="true" {
                rect.in-use x=(svg::percent(1.0 - in_use)) width=(svg::percent(in_use)) y="3" height="14" {}
                rect.idle x=(svg::percent(1.0 - in_use - idle)) width=(svg::percent(idle)) y="3" height="14" {}
                line.axis-line x1="100%" x2="100%" y1="0" y2="100%" {}
                @if left > 0 {
                    (beside(1.0 - in_use - idle, number::count(left), false))
                }
            } }
            td.c { svg width="100%" height="20" aria-hidden="true" {
                rect.after width=(svg::percent(gained)) y="3" height="14" {}
                line.axis-line x1="0" x2="0" y1="0" y2="100%" {}
                @if moves.gained > 0 {
                    (beside(gained, number::count(moves.gained), true))
                }
            } }
            td.n { (sign) (number::count(net.unsigned_abs() as usize)) }
        }
    }
}

/// The number at the outer end of a bar.
fn beside(end: f64, text: String, to_the_right: bool) -> Markup {
    let (anchor, shift) = if to_the_right { ("start", "4") } else { ("end", "-4") };
    html! { text x=(svg::percent(end)) dx=(shift) y="14" text-anchor=(anchor) { (text) } }
}

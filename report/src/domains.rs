//! Fault domains other than MSBs: what the worst loss of one leaves of each reservation that must survive it.

use crate::assignment::AssignmentSummary;
use crate::number;
use crate::svg;
use fleet::audit::{PartitionLoss, ReservationAudit};
use maud::{Markup, html};

/// The most rows of the table.
const ROWS_MAX: usize = 1_000;

/// Whether any reservation must survive the loss of such a domain.
pub fn are_there(assignment: &AssignmentSummary) -> bool {
    assignment.by_capacity().into_iter().any(|r| !assignment.row(r).partitions.is_empty())
}

/// The section; nothing where no reservation must survive the loss of such a domain.
pub fn section(assignment: &AssignmentSummary) -> Markup {
    let order = assignment.by_capacity();
    let rows = order.iter().map(|r| assignment.row(*r));
    let mut all: Vec<(&ReservationAudit, &PartitionLoss)> =
        rows.flat_map(|row| row.partitions.iter().map(move |of| (row, of))).collect();
    if all.is_empty() {
        return Markup::default();
    }
    let survive = all.iter().filter(|(_, of)| of.survives).count();
    let before = all.iter().filter(|(row, of)| of.initial_left >= row.capacity).count();
    let count = all.len();
    // Those that do not survive first; stable, so that the largest come first among both.
    all.sort_by_key(|(_, of)| of.survives);
    all.truncate(ROWS_MAX);
    html! {
        section #domains {
            h2 { "Loss of fault domains other than MSBs" }
            p.lead {
                (if survive == count { "✓ " } else { "! " })
                (number::count(survive)) " of " (number::counted(count, "promise"))
                " to survive the loss of any one domain kept; today " (number::count(before)) "."
            }
            div.scroll tabindex="0" role="region" aria-label="Fault domains" {
                table.data {
                    thead { tr {
                        th scope="col" { "Reservation" }
                        th scope="col" { "Partition" }
                        th scope="col" { "Worst domain" }
                        th.n scope="col" { "In it" span.unit { "RRU" } }
                        th.n scope="col" { "Left" span.unit { "RRU" } }
                        th.n scope="col" { "Capacity" span.unit { "RRU" } }
                        th.n scope="col" { "Left today" span.unit { "RRU" } }
                    } }
                    tbody { @for (row, of) in &all {
                        tr class=[(!of.survives).then_some("short")] {
                            th scope="row" title=(row.reservation_id) { (row.reservation_id) }
                            td { (of.partition) }
                            td.clip { (of.domain.as_deref().unwrap_or(number::NOTHING)) }
                            td.n { (number::rru(of.lost)) }
                            td.n { (number::rru(of.left)) }
                            td.n { (number::rru(row.capacity)) }
                            td.n { (number::rru(of.initial_left)) }
                        }
                    } }
                }
            }
            (svg::left_out(all.len(), count, "row"))
        }
    }
}

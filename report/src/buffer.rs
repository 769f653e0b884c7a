//! Embedded buffers (RAS, SOSP'21, figure 12) today and after the solve, with their lower bounds.

use crate::assignment::AssignmentSummary;
use crate::number;
use crate::solve_report::SolveReport;
use crate::svg::{self, Scale};
use fleet::audit::ReservationAudit;
use fleet::{RegionSnapshot, Rru};
use maud::{Markup, html};

/// The most reservations drawn.
const ROWS: usize = 20;

/// Buffers and bounds as shares of the RRU requested by reservations with an embedded buffer.
#[derive(Default)]
pub struct BufferShares {
    /// Today; `None` if these reservations hold nothing today.
    before: Option<f64>,
    /// After the solve; `None` if no reservation has an embedded buffer.
    pub after: Option<f64>,
    /// After the solve, as a share of the assigned RRU, as the paper counts.
    after_of_assigned: Option<f64>,
    /// An even spread over all MSBs: 1 / (m - 1).
    even: Option<f64>,
    /// With the present hardware, each reservation alone in the region.
    hardware: Option<f64>,
    /// From the dual bound of phase 1.
    proved: Option<f64>,
    /// Number of reservations with an embedded buffer that are short today.
    short_today: usize,
}

impl BufferShares {
    /// Shares from the audit, with the bound that the report proves.
    pub fn new(
        snapshot: &RegionSnapshot,
        assignment: &AssignmentSummary,
        solve: &SolveReport,
    ) -> BufferShares {
        let found = &assignment.audit.buffer;
        let capacity = found.capacity.to_f64();
        if capacity <= 0.0 {
            return BufferShares::default();
        }
        let all = with_buffer(assignment);
        let assigned: Rru = all.iter().map(|row| row.holding.assigned).sum();
        let short_today = all.iter().filter(|row| row.initial.shortfall > Rru::ZERO).count();
        BufferShares {
            before: Some(found.initial_share).filter(|share| *share > 0.0),
            after: Some(found.share),
            after_of_assigned: (assigned > Rru::ZERO)
                .then(|| found.buffer.to_f64() / assigned.to_f64()),
            even: (assignment.msbs_in_use > 1).then_some(found.bounds.even),
            hardware: Some(found.bounds.hardware),
            proved: proved(solve, snapshot.weights.buffer_tau).map(|rru| rru / capacity),
            short_today,
        }
    }

    /// Name and value of the highest bound.
    pub fn best_bound(&self) -> Option<(&'static str, f64)> {
        let bounds = [("hardware bound", self.hardware), ("proved bound", self.proved)];
        let known = bounds.into_iter().filter_map(|(name, bound)| Some((name, bound?)));
        known.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Reservations with an embedded buffer, largest first.
fn with_buffer(assignment: &AssignmentSummary) -> Vec<&ReservationAudit> {
    let rows = assignment.by_capacity().into_iter().map(|r| assignment.row(r));
    rows.filter(|row| row.msb_buffer && row.capacity > Rru::ZERO).collect()
}

/// Lower bound of the buffers in RRU, from the dual bound of expressions 1 to 4: (bound - other costs) / tau, for
/// every assignment whose moves, spread and shortfalls cost no more than those of this one.
fn proved(solve: &SolveReport, tau: f64) -> Option<f64> {
    let of = solve.objective?;
    let broken = solve.phase1.shortfall_cost? + solve.phase1.excess_cost.unwrap_or(0.0);
    let others = of.stability + of.rack_spread + of.msb_spread + broken;
    let rru = (solve.phase1.dual_bound? - others) / tau;
    (rru.is_finite() && rru > 0.0).then_some(rru)
}

/// The section.
pub fn section(assignment: &AssignmentSummary, shares: &BufferShares) -> Markup {
    html! {
        section #buffer {
            h2 { "Embedded buffer " span.ref { "figure 12" } }
            @match shares.after {
                None => (svg::missing("No reservation with a capacity has an embedded buffer.")),
                Some(after) => {
                    p.lead { "The sum of the RRU in the largest MSB of each reservation: they are needed in addition to "
                        "the requested capacity. Less is better, down to the bounds. RRU of all reservations are added, as the objective "
                        "does; where their units differ, read the rows of the reservations." }
                    (whole(shares, after, assignment.msbs_in_use))
                    (rows(assignment))
                }
            }
        }
    }
}

fn whole(shares: &BufferShares, after: f64, msbs: usize) -> Markup {
    let bars = [("Today", "today", shares.before), ("After", "after", Some(after))];
    let bounds = [
        ("Even spread", "b-even", shares.even),
        ("Hardware bound", "b-hardware", shares.hardware),
        ("Proved bound", "b-proved", shares.proved),
    ];
    let values = bars.iter().chain(&bounds).filter_map(|(_, _, share)| *share);
    let scale = Scale::new(values.fold(0.0, f64::max) * 1.02, 5);
    html! {
        table.rows {
            thead { tr { td {} td.c { (svg::axis(&scale, number::percent_round)) } td {} } }
            tbody {
                @for (name, class, share) in bars {
                    tr {
                        th scope="row" { (name) }
                        td.c { svg width="100%" height="22" aria-hidden="true" {
                            (svg::grid(&scale))
                            @if let Some(share) = share {
                                rect class=(class) y="4" height="14" width=(svg::percent(scale.at(share))) rx="2" {}
                            }
                        } }
                        td.n { (share.map_or_else(|| "none held".to_owned(), number::percent)) }
                    }
                }
                @for (name, class, share) in bounds {
                    tr {
                        th scope="row" { (name) }
                        td.c { svg width="100%" height="22" aria-hidden="true" {
                            (svg::grid(&scale))
                            @if let Some(share) = share {
                                @let x = svg::percent(scale.at(share));
                                line class={ "bound " (class) } x1=(x) x2=(x) y1="2" y2="20" {}
                                line class={ "to " (class) } x1="0" x2=(x) y1="11" y2="11" {}
                            }
                        } }
                        td.n { (share.map_or_else(|| number::NOTHING.to_owned(), number::percent)) }
                    }
                }
            }
        }
        p.note {
            "In percent of the requested RRU. Even spread: if all "
            (number::counted(msbs, "MSB")) " had the same hardware. "
            "Hardware bound: each reservation alone in the region, with its servers. "
            @if shares.proved.is_some() {
                "Proved bound: no assignment with at most the same cost of moves, spread and shortfalls has smaller buffers. "
            } @else {
                "The report gives no proved bound for the buffers alone. "
            }
            @if shares.before.is_some() && shares.short_today > 0 {
                "Today " (number::counted(shares.short_today, "reservation"))
                @if shares.short_today == 1 { " is" } @else { " are" }
                " short, so the share of today is too low. "
            }
            @if let Some(share) = shares.after_of_assigned {
                "RAS counted in percent of the servers held (from 15.1\u{202f}% to 4.2\u{202f}%, bound "
                "4.06\u{202f}%, even 2.8\u{202f}%); in that measure this solve has " (number::percent(share)) "."
            }
        }
    }
}

fn rows(assignment: &AssignmentSummary) -> Markup {
    let all = with_buffer(assignment);
    let shown: Vec<(&ReservationAudit, [f64; 3])> = (all.iter().take(ROWS))
        .map(|row| {
            let amounts = [row.initial.largest_msb, row.holding.largest_msb, row.smallest_buffer];
            (*row, amounts.map(|rru| rru.to_f64() / row.capacity.to_f64()))
        })
        .collect();
    let largest = shown.iter().flat_map(|(_, shares)| shares).copied().fold(0.0, f64::max);
    let scale = Scale::new(largest, 5);
    html! {
        h3 { "By reservation" }
        (svg::legend([
            ("ring", "today".to_owned()),
            ("after round", "after".to_owned()),
            ("tick", "hardware bound".to_owned()),
        ]))
        table.rows {
            thead { tr { td {} td.c { (svg::axis(&scale, number::percent_round)) } td {} } }
            tbody {
                @for (row, [before, after, least]) in &shown {
                    @let id = &row.reservation_id;
                    @let [x_before, x_after, x_least] =
                        [before, after, least].map(|share| svg::percent(scale.at(*share)));
                    tr data-tip={ (id) ": today " (number::percent(*before)) ", after "
                        (number::percent(*after)) ", hardware bound " (number::percent(*least)) } {
                        th scope="row" title=(id) { (id) }
                        td.c { svg width="100%" height="20" aria-hidden="true" {
                            (svg::grid(&scale))
                            @if row.initial.servers > 0 {
                                line.link x1=(x_before) x2=(x_after) y1="10" y2="10" {}
                            }
                            line class="bound b-hardware" x1=(x_least) x2=(x_least) y1="3" y2="17" {}
                            @if row.initial.servers > 0 { circle.ring cx=(x_before) cy="10" r="4" {} }
                            circle.after cx=(x_after) cy="10" r="4.5" {}
                        } }
                        td.n { (number::percent(*after)) }
                    }
                }
            }
        }
        (svg::left_out(shown.len(), all.len(), "reservation"))
    }
}

#[cfg(test)]
mod tests {
    use super::{SolveReport, proved};
    use serde_json::json;

    /// The bound is one of all expressions: it proves a buffer only beyond what all others cost.
    #[test]
    fn proved_buffer_leaves_out_every_other_expression() {
        let report = json!({
            "objective": {"total": 33.0, "stability": 1.0, "rack_spread": 10.0, "msb_spread": 2.0,
                "buffer": 20.0},
            "phase1": {"primal": 33.0, "dual_bound": 30.0, "gap": 0.1, "shortfall_cost": 0.0},
        });
        let bound = proved(&SolveReport::read(&report).expect("a report"), 5.0);
        assert!(bound.is_some_and(|rru| (rru - 3.4).abs() < 1e-9), "{bound:?}, of 4 RRU");
    }
}

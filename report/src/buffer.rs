//! The embedded buffer (RAS, SOSP'21, figure 12): what the fleet keeps against the loss of an
//! MSB, today and after, beside what it must at least keep.

use crate::facts::Facts;
use crate::figures::Figures;
use crate::number;
use crate::svg::{self, Scale};
use fleet::audit::ReservationAudit;
use fleet::{RegionSnapshot, Rru};
use maud::{Markup, html};

/// Reservations drawn one by one.
const ROWS: usize = 20;

/// Shares of the RRU requested by the reservations that want a buffer.
#[derive(Default)]
pub struct BufferShares {
    /// Today; `None` where they hold nothing today.
    before: Option<f64>,
    /// After the solve; `None` where no reservation wants a buffer.
    pub after: Option<f64>,
    /// After the solve, as a share of the RRU assigned: the paper's way to count.
    after_of_assigned: Option<f64>,
    /// An even spread over all MSBs: 1 / (m - 1).
    even: Option<f64>,
    /// The hardware as it stands, each reservation alone in the region.
    hardware: Option<f64>,
    /// From the dual bound of phase 1.
    proved: Option<f64>,
    /// Of the reservations that want a buffer, how many are short today.
    short_today: usize,
}

impl BufferShares {
    /// Takes the audit's shares and adds what the report proves.
    pub fn new(snapshot: &RegionSnapshot, figures: &Figures, facts: &Facts) -> BufferShares {
        let found = &figures.audit.buffer;
        let capacity = found.capacity.to_f64();
        if capacity <= 0.0 {
            return BufferShares::default();
        }
        let wanting = wanting(figures);
        let assigned: Rru = wanting.iter().map(|row| row.holding.assigned).sum();
        let short_today = wanting.iter().filter(|row| row.initial.shortfall > Rru::ZERO).count();
        BufferShares {
            before: Some(found.initial_share).filter(|share| *share > 0.0),
            after: Some(found.share),
            after_of_assigned: (assigned > Rru::ZERO)
                .then(|| found.buffer.to_f64() / assigned.to_f64()),
            even: (figures.msbs_in_use > 1).then_some(found.bounds.even),
            hardware: Some(found.bounds.hardware),
            proved: proved(facts, snapshot.weights.buffer_tau).map(|rru| rru / capacity),
            short_today,
        }
    }

    /// The highest bound that holds for this region, and its name.
    pub fn best_bound(&self) -> Option<(&'static str, f64)> {
        let bounds = [("hardware bound", self.hardware), ("proved bound", self.proved)];
        let known = bounds.into_iter().filter_map(|(name, bound)| Some((name, bound?)));
        known.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// The reservations that want an embedded buffer, largest first.
fn wanting(figures: &Figures) -> Vec<&ReservationAudit> {
    let rows = figures.by_capacity().into_iter().map(|r| figures.row(r));
    rows.filter(|row| row.msb_buffer && row.capacity > Rru::ZERO).collect()
}

/// What phase 1's dual bound says of the buffers, in RRU: every assignment whose moves, spread
/// and shortfalls cost no more than this one's has tau times its buffers at or above the bound
/// less those costs.
fn proved(facts: &Facts, tau: f64) -> Option<f64> {
    let others = facts.term("stability")? + facts.term("msb_spread")? + facts.shortfall_cost?;
    let rru = (facts.dual_bound? - others) / tau;
    (rru.is_finite() && rru > 0.0).then_some(rru)
}

/// The section.
pub fn section(figures: &Figures, shares: &BufferShares) -> Markup {
    html! {
        section #buffer {
            h2 { "Embedded buffer " span.ref { "figure 12" } }
            @match shares.after {
                None => (svg::missing("No reservation with a capacity asks to survive the loss of an MSB.")),
                Some(after) => {
                    p.lead { "The RRU in each reservation's largest MSB, summed: what must be there on top of "
                        "the capacity requested. Less is better, down to the bounds." }
                    (whole(shares, after, figures.msbs_in_use))
                    (rows(figures))
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
            "In percent of the RRU requested. Even spread: what hardware in equal parts in all "
            (number::counted(msbs, "MSB")) " would need. "
            "Hardware bound: each reservation alone in the region, with the servers that are there. "
            @if shares.proved.is_some() {
                "Proved bound: no assignment that costs no more in moves, spread and shortfalls needs less. "
            } @else {
                "The report gives no proved bound for the buffers alone. "
            }
            @if shares.before.is_some() && shares.short_today > 0 {
                "Today " (number::counted(shares.short_today, "reservation"))
                @if shares.short_today == 1 { " is" } @else { " are" }
                " short, so today's share flatters. "
            }
            @if let Some(share) = shares.after_of_assigned {
                "RAS counted in percent of the servers held (from 15.1\u{202f}% to 4.2\u{202f}%, bound "
                "4.06\u{202f}%, even 2.8\u{202f}%); counted so, this solve has " (number::percent(share)) "."
            }
        }
    }
}

fn rows(figures: &Figures) -> Markup {
    let wanting = wanting(figures);
    let shown: Vec<(&ReservationAudit, [f64; 3])> = (wanting.iter().take(ROWS))
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
        (svg::left_out(shown.len(), wanting.len(), "reservation"))
    }
}

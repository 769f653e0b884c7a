//! Shares of reservations in datacenters against their affinity (RAS, SOSP'21, figure 15, eq. 7).

use crate::assignment::AssignmentSummary;
use crate::number;
use crate::svg::{self, Scale};
use fleet::audit::{DatacenterShare, ReservationAudit};
use fleet::{RegionSnapshot, Reservation, Rru};
use maud::{Markup, html};

/// Reservations drawn, the largest first.
const RESERVATIONS: usize = 16;

/// RRU beyond the tolerance that count as within: limits are rounded to whole micro-RRU.
const ROUNDING: f64 = 2e-6;

fn is_within(place: &DatacenterShare) -> bool {
    place.violation <= ROUNDING
}

/// The section.
pub fn section(snapshot: &RegionSnapshot, assignment: &AssignmentSummary) -> Markup {
    let order = assignment.by_capacity().into_iter();
    let with_affinity = order.filter(|r| {
        let reservation = &snapshot.reservations[r.ix()];
        !reservation.affinity.is_empty() && reservation.capacity > Rru::ZERO
    });
    let all: Vec<(&Reservation, &ReservationAudit)> =
        with_affinity.map(|r| (&snapshot.reservations[r.ix()], assignment.row(r))).collect();
    let within = all.iter().filter(|(_, row)| row.datacenters.iter().all(is_within)).count();
    let shown: Vec<(&ReservationAudit, f64)> = (all.iter().take(RESERVATIONS))
        .map(|(reservation, row)| {
            (*row, reservation.affinity_theta.unwrap_or(snapshot.weights.affinity_theta))
        })
        .collect();
    let ends = shown.iter().flat_map(|(row, theta)| {
        let shares = row.datacenters.iter().map(|place| shares(row, place));
        shares.flat_map(move |[wanted, before, after]| [wanted + theta, before, after])
    });
    let scale = Scale::new(ends.fold(0.0, f64::max), 5);
    html! {
        section #affinity {
            h2 { "Datacenter shares against affinity " span.ref { "figure 15" } }
            @if all.is_empty() {
                (svg::missing("No reservation of this region has affinity."))
            } @else {
                p.lead {
                    @if within == all.len() {
                        "✓ All " (number::counted(all.len(), "reservation")) " with affinity within tolerance."
                    } @else {
                        "! " (number::count(within)) " of " (number::counted(all.len(), "reservation"))
                        " with affinity within tolerance."
                    }
                    " Shares are of the requested capacity, so with an embedded buffer they add up to more than one."
                }
                (svg::legend([
                    ("band", "wanted, with tolerance".to_owned()),
                    ("ring", "today".to_owned()),
                    ("after round", "after".to_owned()),
                    ("off round", "after, outside".to_owned()),
                ]))
                table.rows {
                    thead { tr { td {} td.sub {} td.c { (svg::axis(&scale, number::percent_round)) } td {} } }
                    tbody {
                        @for (row, theta) in &shown {
                            @for (position, place) in row.datacenters.iter().enumerate() {
                                tr class=[(position == 0).then_some("first")] {
                                    @if position == 0 {
                                        th scope="rowgroup" rowspan=(row.datacenters.len())
                                            title=(row.reservation_id) { (row.reservation_id) }
                                    }
                                    (cells(row, place, *theta, &scale))
                                }
                            }
                        }
                    }
                }
                (svg::left_out(shown.len(), all.len(), "reservation"))
            }
        }
    }
}

/// Shares of the capacity: wanted, today, after the solve.
fn shares(row: &ReservationAudit, place: &DatacenterShare) -> [f64; 3] {
    let capacity = row.capacity.to_f64();
    let [before, after] = [place.initial, place.assigned].map(|rru| rru.to_f64() / capacity);
    [place.wanted.unwrap_or(0.0), before, after]
}

fn cells(row: &ReservationAudit, place: &DatacenterShare, theta: f64, scale: &Scale) -> Markup {
    let [wanted, before, after] = shares(row, place);
    let (low, high) = (scale.at(wanted - theta), scale.at(wanted + theta));
    let dot = if is_within(place) { "after" } else { "off" };
    let [x_before, x_after] = [before, after].map(|share| svg::percent(scale.at(share)));
    html! {
        td.sub title=(place.datacenter) { (place.datacenter) }
        td.c data-tip={ (row.reservation_id) " in " (place.datacenter) ": wanted " (number::percent(wanted))
            " ± " (number::percent(theta)) ", today " (number::percent(before)) ", after "
            (number::percent(after)) } {
            svg width="100%" height="20" aria-hidden="true" {
                (svg::grid(scale))
                rect.band x=(svg::percent(low)) width=(svg::percent(high - low)) y="3" height="14" rx="2" {}
                @if row.initial.servers > 0 { circle.ring cx=(x_before) cy="10" r="4" {} }
                circle class=(dot) cx=(x_after) cy="10" r="4.5" {}
            }
        }
        td.n { (number::percent(after)) @if !is_within(place) { " !" } }
    }
}

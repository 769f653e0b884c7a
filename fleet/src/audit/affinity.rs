//! Datacenter shares against affinity (RAS, SOSP'21, eq. 7), with the embedded buffer apart.
//!
//! Shares are of C. In a datacenter of share A the RRU are at least (A - theta) C and at most
//! (A + theta) C, to which the embedded buffer, the reservation's largest MSB share, is added where
//! A is not zero: where a reservation wants nothing it has no buffer either.

use super::holdings::Holdings;
use super::report::DatacenterShare;
use crate::id::{DatacenterIx, ReservationIx};
use crate::parts::Weights;
use crate::reservation::Reservation;
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;

/// theta of eq. 7: the reservation's own, else the region's.
pub(crate) fn tolerance(weights: &Weights, reservation: &Reservation) -> f64 {
    reservation.affinity_theta.unwrap_or(weights.affinity_theta)
}

/// One row per datacenter that the reservation names, holds something in, or held something in.
pub(super) fn shares(
    snapshot: &RegionSnapshot,
    ix: ReservationIx,
    before: &Holdings,
    after: &Holdings,
) -> Vec<DatacenterShare> {
    let reservation = &snapshot.reservations[ix.ix()];
    let theta = tolerance(&snapshot.weights, reservation);
    let capacity = reservation.capacity;
    let buffer = |held: &Holdings| {
        let largest = held.by_msb(ix).iter().copied().max().unwrap_or(Rru::ZERO);
        if reservation.msb_buffer { largest } else { Rru::ZERO }
    };
    let (buffer_before, buffer_after) = (buffer(before), buffer(after));
    let mut rows = Vec::new();
    for (position, datacenter) in snapshot.datacenters.iter().enumerate() {
        let at = DatacenterIx::new(position);
        let assigned = after.in_datacenter(snapshot, ix, at);
        let initial = before.in_datacenter(snapshot, ix, at);
        let wanted = reservation.share(at);
        let is_named = wanted.is_some_and(|share| share > 0.0);
        if !is_named && assigned == Rru::ZERO && initial == Rru::ZERO {
            continue;
        }
        let violation = |amount: Rru, buffer: Rru| {
            wanted.map_or(0.0, |wanted| beyond(amount, capacity, (wanted, theta), buffer))
        };
        rows.push(DatacenterShare {
            datacenter: datacenter.id.clone(),
            assigned,
            initial,
            share: of_capacity(assigned, capacity),
            wanted,
            violation: violation(assigned, buffer_after),
            initial_violation: violation(initial, buffer_before),
        });
    }
    rows
}

fn of_capacity(amount: Rru, capacity: Rru) -> Option<f64> {
    (capacity > Rru::ZERO).then(|| amount.0 as f64 / capacity.0 as f64)
}

/// How far eq. 7 is broken, in RRU, by an amount where A and theta are wanted. Shares of nothing are
/// not defined, so a reservation of no capacity breaks nothing.
fn beyond(amount: Rru, capacity: Rru, (wanted, theta): (f64, f64), buffer: Rru) -> f64 {
    if capacity <= Rru::ZERO {
        return 0.0;
    }
    let (amount, capacity) = (amount.to_f64(), capacity.to_f64());
    let beside = if wanted > 0.0 { buffer.to_f64() } else { 0.0 };
    let below = (wanted - theta) * capacity - amount;
    let above = amount - (wanted + theta) * capacity - beside;
    below.max(above).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_is_measured_on_both_sides() {
        let ten = Rru::units(10);
        let half = |amount, buffer| beyond(Rru::units(amount), ten, (0.5, 0.1), Rru::units(buffer));
        assert!((half(8, 0) - 2.0).abs() < 1e-12);
        assert!((half(2, 0) - 2.0).abs() < 1e-12);
        assert!(half(6, 0).abs() < 1e-12);
        assert!(beyond(Rru::units(9), Rru::ZERO, (0.5, 0.1), Rru::ZERO).abs() < 1e-12);
        // The buffer may come on top, and fills no share.
        assert!((half(8, 1) - 1.0).abs() < 1e-12);
        assert!(half(8, 2).abs() < 1e-12);
        assert!((half(2, 2) - 2.0).abs() < 1e-12);
        // Where nothing is wanted there is no buffer.
        assert!((beyond(Rru::units(3), ten, (0.0, 0.1), Rru::units(3)) - 2.0).abs() < 1e-12);
    }
}

//! Datacenter shares against affinity (RAS, SOSP'21, eq. 7).

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
        let violation =
            |amount: Rru| wanted.map_or(0.0, |wanted| beyond(amount, capacity, wanted, theta));
        rows.push(DatacenterShare {
            datacenter: datacenter.id.clone(),
            assigned,
            initial,
            share: of_capacity(assigned, capacity),
            wanted,
            violation: violation(assigned),
            initial_violation: violation(initial),
        });
    }
    rows
}

fn of_capacity(amount: Rru, capacity: Rru) -> Option<f64> {
    (capacity > Rru::ZERO).then(|| amount.0 as f64 / capacity.0 as f64)
}

/// max(0, |amount - A C| - theta C) in RRU: how far eq. 7 is broken. Shares of nothing are not
/// defined, so a reservation of no capacity breaks nothing.
fn beyond(amount: Rru, capacity: Rru, wanted: f64, theta: f64) -> f64 {
    if capacity <= Rru::ZERO {
        return 0.0;
    }
    let capacity = capacity.to_f64();
    ((amount.to_f64() - wanted * capacity).abs() - theta * capacity).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_is_measured_on_both_sides() {
        let ten = Rru::units(10);
        assert!((beyond(Rru::units(8), ten, 0.5, 0.1) - 2.0).abs() < 1e-12);
        assert!((beyond(Rru::units(2), ten, 0.5, 0.1) - 2.0).abs() < 1e-12);
        assert!(beyond(Rru::units(6), ten, 0.5, 0.1).abs() < 1e-12);
        assert!(beyond(Rru::units(9), Rru::ZERO, 0.5, 0.1).abs() < 1e-12);
    }
}

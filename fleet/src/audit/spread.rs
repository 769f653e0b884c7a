//! Spread limits and what exceeds them (RAS, SOSP'21, eq. 2 and 3).

use super::holdings::Holdings;
use super::report::Spread;
use crate::id::{HardwareTypeIx, ReservationIx};
use crate::reservation::Reservation;
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;
use std::collections::BTreeMap;

/// How many scopes of one level hold available servers of exactly this set of types. Racks are
/// many, but the sets they hold are few, and the default rule asks for nothing else of them.
type Signatures = BTreeMap<Vec<HardwareTypeIx>, usize>;

/// The limits alpha C_r of every reservation.
pub(super) struct Limits {
    msbs: Signatures,
    racks: Signatures,
}

impl Limits {
    pub(super) fn new(snapshot: &RegionSnapshot) -> Limits {
        let mut on_rack: Vec<Vec<HardwareTypeIx>> = vec![Vec::new(); snapshot.racks.len()];
        for server in snapshot.servers.iter().filter(|server| server.available) {
            insert(&mut on_rack[server.rack.ix()], server.hardware_type);
        }
        let mut in_msb: Vec<Vec<HardwareTypeIx>> = vec![Vec::new(); snapshot.msbs.len()];
        for (rack, types) in snapshot.racks.iter().zip(&on_rack) {
            for &hardware_type in types {
                insert(&mut in_msb[rack.msb.ix()], hardware_type);
            }
        }
        Limits { msbs: signatures(in_msb), racks: signatures(on_rack) }
    }

    /// alpha^F C_r: the reservation's own alpha, else the region's, else the default rule in the
    /// documentation of [`Reservation`].
    fn msb_limit(&self, snapshot: &RegionSnapshot, reservation: &Reservation) -> Rru {
        let capacity = reservation.capacity;
        if let Some(alpha) = reservation.msb_alpha.or(snapshot.weights.msb_alpha) {
            return share(alpha, capacity);
        }
        let (scopes, largest_value) = eligible(&self.msbs, reservation);
        let even = if scopes <= 1 { capacity } else { ratio(capacity, 3, 2 * (scopes - 1)) };
        even.max(largest_value)
    }

    /// alpha^K C_r, likewise.
    fn rack_limit(&self, snapshot: &RegionSnapshot, reservation: &Reservation) -> Rru {
        let capacity = reservation.capacity;
        if let Some(alpha) = reservation.rack_alpha.or(snapshot.weights.rack_alpha) {
            return share(alpha, capacity);
        }
        let (scopes, largest_value) = eligible(&self.racks, reservation);
        let even = if scopes == 0 { capacity } else { ratio(capacity, 2, scopes) };
        even.max(largest_value)
    }

    /// Expression 3 of one reservation, before its price.
    pub(super) fn msb_spread(
        &self,
        snapshot: &RegionSnapshot,
        ix: ReservationIx,
        held: &Holdings,
    ) -> Spread {
        let limit = self.msb_limit(snapshot, &snapshot.reservations[ix.ix()]);
        excess(limit, held.by_msb(ix).iter().copied())
    }

    /// Expression 2 of one reservation, before its price. Racks are summed for guaranteed
    /// reservations only; no other has spread goals.
    pub(super) fn rack_spread(
        &self,
        snapshot: &RegionSnapshot,
        ix: ReservationIx,
        held: &Holdings,
    ) -> Spread {
        let limit = self.rack_limit(snapshot, &snapshot.reservations[ix.ix()]);
        excess(limit, held.by_rack(ix).iter().map(|&(_, _, amount)| amount))
    }
}

fn insert(types: &mut Vec<HardwareTypeIx>, hardware_type: HardwareTypeIx) {
    if let Err(position) = types.binary_search(&hardware_type) {
        types.insert(position, hardware_type);
    }
}

fn signatures(types_of_scopes: Vec<Vec<HardwareTypeIx>>) -> Signatures {
    let mut signatures = Signatures::new();
    for types in types_of_scopes {
        *signatures.entry(types).or_default() += 1;
    }
    signatures
}

/// Scopes that hold at least one eligible available server, and the largest value among the types
/// of those servers.
fn eligible(signatures: &Signatures, reservation: &Reservation) -> (usize, Rru) {
    let (mut scopes, mut largest) = (0, Rru::ZERO);
    for (types, count) in signatures {
        let best = types.iter().filter_map(|&ty| reservation.value(ty)).max();
        if let Some(value) = best {
            scopes += count;
            largest = largest.max(value);
        }
    }
    (scopes, largest)
}

/// alpha C to the nearest micro-RRU.
fn share(alpha: f64, capacity: Rru) -> Rru {
    #[expect(clippy::cast_possible_truncation, reason = "alpha is at most 1")]
    Rru((alpha * capacity.0 as f64).round() as i64)
}

/// C times a fraction, to the nearest micro-RRU, halves up.
fn ratio(capacity: Rru, numerator: i64, denominator: usize) -> Rru {
    let denominator = denominator as i64;
    Rru((2 * numerator * capacity.0 + denominator) / (2 * denominator))
}

fn excess(limit: Rru, amounts: impl Iterator<Item = Rru>) -> Spread {
    let mut spread = Spread { limit, largest: Rru::ZERO, excess: Rru::ZERO };
    for amount in amounts {
        spread.largest = spread.largest.max(amount);
        spread.excess += (amount - limit).or_zero();
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_rounds_half_up() {
        assert_eq!(ratio(Rru(10), 3, 4), Rru(8)); // 7.5
        assert_eq!(ratio(Rru(9), 3, 4), Rru(7)); // 6.75
        assert_eq!(ratio(Rru(1), 2, 7), Rru(0)); // 0.29
    }

    #[test]
    fn share_rounds_to_the_nearest_micro() {
        assert_eq!(share(0.3, Rru(5)), Rru(2));
        assert_eq!(share(1.0, Rru(7)), Rru(7));
    }

    #[test]
    fn excess_counts_only_what_is_beyond() {
        let spread = excess(Rru(5), [Rru(3), Rru(7), Rru(9)].into_iter());
        assert_eq!(spread, Spread { limit: Rru(5), largest: Rru(9), excess: Rru(6) });
    }
}

//! Spread limits and what exceeds them (RAS, SOSP'21, eq. 2 and 3).

use super::holdings::Holdings;
use super::report::Spread;
use crate::id::{DatacenterIx, HardwareTypeIx, ReservationIx};
use crate::parts::Weights;
use crate::reservation::Reservation;
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;
use std::collections::BTreeMap;

/// A set of hardware types, one bit each.
type TypeSet = Vec<u64>;

/// How many scopes of one level hold available servers of exactly this set of types. Scopes that
/// hold the same are one entry: all that the default rule asks of them is which types they hold.
type Signatures = BTreeMap<TypeSet, usize>;

/// MSBs and racks with at least one eligible available server, for one set of eligible types and
/// one of allowed datacenters.
#[derive(Clone, Copy)]
struct Scopes {
    msbs: usize,
    racks: usize,
}

/// The scopes of the datacenters that a reservation is held to, and the types they hold.
struct Floor {
    msbs: Signatures,
    racks: Signatures,
    anywhere: TypeSet,
}

/// The limits alpha C_r of every reservation.
pub(super) struct Limits {
    msbs: Vec<Rru>,
    racks: Vec<Rru>,
}

impl Limits {
    pub(super) fn new(snapshot: &RegionSnapshot) -> Limits {
        let words = snapshot.hardware_types.len().div_ceil(64);
        let mut on_rack = vec![vec![0; words]; snapshot.racks.len()];
        for server in snapshot.servers.iter().filter(|server| server.available) {
            insert(&mut on_rack[server.rack.ix()], server.hardware_type);
        }
        let floor = |of: &Reservation| Floor::new(snapshot, &on_rack, of);
        // Reservations are many, their sets of allowed datacenters and of eligible types few.
        let mut floors: BTreeMap<&[DatacenterIx], Floor> = BTreeMap::new();
        let mut known: BTreeMap<(&[DatacenterIx], TypeSet), Scopes> = BTreeMap::new();
        let mut limits = Limits { msbs: Vec::new(), racks: Vec::new() };
        for reservation in &snapshot.reservations {
            let allowed = &*reservation.allowed_datacenters;
            let floor = floors.entry(allowed).or_insert_with(|| floor(reservation));
            let mut eligible: TypeSet = vec![0; words];
            for &(hardware_type, _) in &reservation.rru {
                insert(&mut eligible, hardware_type);
            }
            let scopes =
                *known.entry((allowed, eligible)).or_insert_with_key(|(_, eligible)| Scopes {
                    msbs: meeting(&floor.msbs, eligible),
                    racks: meeting(&floor.racks, eligible),
                });
            let there = reservation.rru.iter().filter(|(ty, _)| contains(&floor.anywhere, *ty));
            let largest_value = there.map(|&(_, value)| value).max().unwrap_or(Rru::ZERO);
            limits.msbs.push(msb_limit(&snapshot.weights, reservation, scopes, largest_value));
            limits.racks.push(rack_limit(&snapshot.weights, reservation, scopes, largest_value));
        }
        limits
    }

    /// Expression 3 of one reservation, before its price.
    pub(super) fn msb_spread(&self, ix: ReservationIx, held: &Holdings) -> Spread {
        excess(self.msbs[ix.ix()], held.by_msb(ix).iter().copied())
    }

    /// Expression 2 of one reservation, before its price. Racks are summed for guaranteed
    /// reservations only; no other has spread goals.
    pub(super) fn rack_spread(&self, ix: ReservationIx, held: &Holdings) -> Spread {
        excess(self.racks[ix.ix()], held.by_rack(ix).iter().map(|&(_, _, amount)| amount))
    }
}

impl Floor {
    fn new(snapshot: &RegionSnapshot, on_rack: &[TypeSet], of: &Reservation) -> Floor {
        let words = snapshot.hardware_types.len().div_ceil(64);
        let mut in_msb = vec![vec![0; words]; snapshot.msbs.len()];
        let mut anywhere: TypeSet = vec![0; words];
        let mut racks = Vec::new();
        for (rack, types) in snapshot.racks.iter().zip(on_rack) {
            if of.allows(snapshot.msbs[rack.msb.ix()].datacenter) {
                unite(&mut in_msb[rack.msb.ix()], types);
                unite(&mut anywhere, types);
                racks.push(types.clone());
            }
        }
        Floor { msbs: signatures(in_msb), racks: signatures(racks), anywhere }
    }
}

/// alpha^F C_r: the reservation's own alpha, else the region's, else the default rule in the
/// documentation of [`Reservation`].
fn msb_limit(
    weights: &Weights,
    reservation: &Reservation,
    scopes: Scopes,
    largest_value: Rru,
) -> Rru {
    let capacity = reservation.capacity;
    if let Some(alpha) = reservation.msb_alpha.or(weights.msb_alpha) {
        return share(alpha, capacity);
    }
    let even = if scopes.msbs <= 1 { capacity } else { ratio(capacity, 3, 2 * (scopes.msbs - 1)) };
    even.max(largest_value)
}

/// alpha^K C_r: the limit of one rack, as given or by the default rule.
fn rack_limit(
    weights: &Weights,
    reservation: &Reservation,
    scopes: Scopes,
    largest_value: Rru,
) -> Rru {
    let capacity = reservation.capacity;
    if let Some(alpha) = reservation.rack_alpha.or(weights.rack_alpha) {
        return share(alpha, capacity);
    }
    let even = if scopes.racks == 0 { capacity } else { ratio(capacity, 2, scopes.racks) };
    even.max(largest_value)
}

fn insert(types: &mut TypeSet, hardware_type: HardwareTypeIx) {
    types[hardware_type.ix() / 64] |= 1 << (hardware_type.ix() % 64);
}

fn contains(types: &TypeSet, hardware_type: HardwareTypeIx) -> bool {
    types[hardware_type.ix() / 64] >> (hardware_type.ix() % 64) & 1 == 1
}

fn unite(types: &mut TypeSet, others: &TypeSet) {
    for (word, other) in types.iter_mut().zip(others) {
        *word |= other;
    }
}

fn signatures(types_of_scopes: Vec<TypeSet>) -> Signatures {
    let mut signatures = Signatures::new();
    for types in types_of_scopes {
        *signatures.entry(types).or_default() += 1;
    }
    signatures
}

/// Scopes that hold at least one of these types.
fn meeting(signatures: &Signatures, types: &TypeSet) -> usize {
    let meets = |held: &TypeSet| held.iter().zip(types).any(|(a, b)| a & b != 0);
    signatures.iter().filter(|(held, _)| meets(held)).map(|(_, count)| count).sum()
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

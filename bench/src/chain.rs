//! Regions that a chain of solves begins with: emptied, given away at once, bound to datacenters. Pure.

use async_solver::random::Random;
use fleet::{AffinityRow, RegionSnapshot, ReservationKind, SnapshotParts, Targets};
use ras::hour::capacities;

/// Share of the servers that run containers where a region is given away at once: "about 80 % of
/// servers run containers" (RAS section 4.6).
const LOADED: f64 = 0.8;

/// Shares of the data of [`bind`]'s reservations in their datacenters, and the tolerance.
const BOUND_SHARES: [[f64; 2]; 2] = [[0.6, 0.4], [0.5, 0.5]];
const BOUND_THETA: f64 = 0.1;

/// The region without holders and without moves under way: its initial state.
pub fn emptied(snapshot: &RegionSnapshot) -> SnapshotParts {
    let mut parts = snapshot.to_parts();
    for server in &mut parts.servers {
        server.current_reservation = None;
        server.target_reservation = None;
        server.target_pending = false;
        server.in_use = false;
        server.loaned_to = None;
    }
    parts
}

/// Binds two reservations to two datacenters each, six to four and five to five: the largest with
/// hardware enough in both. For regions without affinity.
pub fn bind(parts: &mut SnapshotParts, snapshot: &RegionSnapshot) {
    let mut order: Vec<usize> = (0..snapshot.reservations.len())
        .filter(|&ix| snapshot.reservations[ix].kind == ReservationKind::Guaranteed)
        .collect();
    order.sort_by_key(|&ix| (std::cmp::Reverse(snapshot.reservations[ix].capacity), ix));
    let fitting = order.into_iter().filter_map(|ix| {
        let of = &snapshot.reservations[ix];
        let mut there = vec![fleet::Rru::ZERO; snapshot.datacenters.len()];
        for server in snapshot.servers.iter().filter(|server| server.available) {
            let value = snapshot.value(server, fleet::ReservationIx::new(ix));
            there[snapshot.datacenter_of(server).ix()] += value;
        }
        let mut places: Vec<usize> = (0..there.len()).collect();
        places.sort_by_key(|&place| (std::cmp::Reverse(there[place]), place));
        places.truncate(2);
        let enough = places.len() == 2 && places.iter().all(|&place| there[place] > of.capacity);
        enough.then(|| (of.id.clone(), places))
    });
    let chosen: Vec<_> = fitting.take(BOUND_SHARES.len()).collect();
    for ((id, places), shares) in chosen.into_iter().zip(BOUND_SHARES) {
        for row in parts.reservations.iter_mut().filter(|row| row.reservation_id == id) {
            row.affinity_theta = Some(BOUND_THETA);
        }
        parts.affinity.extend(places.iter().zip(shares).map(|(&place, share)| AffinityRow {
            reservation_id: id.clone(),
            datacenter: snapshot.datacenters[place].id.clone(),
            share,
        }));
    }
}

/// The region with targets carried out and containers on most of what guaranteed reservations hold.
pub fn loaded(snapshot: &RegionSnapshot, targets: &Targets, seed: u64) -> SnapshotParts {
    let mut parts = targets.apply(snapshot);
    let (guaranteed, mut random) = (capacities(snapshot), Random::new(seed));
    for server in &mut parts.servers {
        let holder = server.current_reservation.as_ref();
        if holder.is_some_and(|holder| guaranteed.contains_key(holder)) {
            server.in_use = random.unit() < LOADED && server.loaned_to.is_none();
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::generate::{GenerateOptions, State, generate};

    fn region() -> RegionSnapshot {
        let options = GenerateOptions { state: State::Steady, ..GenerateOptions::new(1_000) };
        RegionSnapshot::new(generate(&options).expect("in range")).expect("a valid region")
    }

    #[test]
    fn emptied_and_loaded() {
        let mut parts = emptied(&region());
        parts.affinity.clear();
        bind(&mut parts, &region());
        assert_eq!(parts.affinity.len(), 4);
        let empty = RegionSnapshot::new(parts).expect("a valid region");
        assert!(empty.servers.iter().all(|server| server.holder().is_none() && !server.in_use));
        let targets = async_solver::baselines::greedy::assign(&empty);
        let parts = loaded(&empty, &targets, 1);
        let held = parts.servers.iter().filter(|s| s.current_reservation.is_some()).count();
        let in_use = parts.servers.iter().filter(|s| s.in_use).count();
        assert!(in_use * 2 > held && in_use < held, "{in_use} of {held}");
    }
}

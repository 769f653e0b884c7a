//! Which servers of a chain run containers. Pure: the same seed gives the same servers.
//!
//! A reservation runs containers on a share of its request, as it did when the chain began; the
//! rest and its embedded buffer are idle. So containers end when a request shrinks, start when what
//! was asked for has come, and of a failed server start again on idle ones at once.

use async_solver::random::Random;
use fleet::{RegionSnapshot, ReservationKind, ReservationName, ServerName, SnapshotParts};
use std::collections::{BTreeMap, BTreeSet};

/// Share of the request of a reservation that holds nothing yet: "about 80 % of servers run
/// containers" (RAS section 4.6).
const LOADED: f64 = 0.8;

/// Sums of floats are as exact as this, in RRU.
const EXACT: f64 = 1e-6;

/// RRU that containers of each guaranteed reservation run on, for each RRU of its request.
pub struct Loads(BTreeMap<ReservationName, f64>);

impl Loads {
    /// Those of a region.
    pub fn of(snapshot: &RegionSnapshot) -> Loads {
        let mut running = vec![0.0; snapshot.reservations.len()];
        for server in snapshot.servers.iter().filter(|server| server.in_use) {
            if let Some(holder) = server.current {
                running[holder.ix()] += snapshot.value(server, holder).to_f64();
            }
        }
        let loads = (snapshot.reservations.iter().zip(running))
            .filter(|(of, _)| of.kind == ReservationKind::Guaranteed)
            .map(|(of, running)| {
                let capacity = of.capacity.to_f64();
                let known = running > 0.0 && capacity > 0.0;
                (of.id.clone(), if known { running / capacity } else { LOADED })
            });
        Loads(loads.collect())
    }

    /// Ends and starts containers on servers taken by chance, until each reservation runs what its
    /// request says. `rows`: the servers of the snapshot, in its order, as they are now; `out`: those
    /// that are out of use; `requests`: RRU that each may count on.
    pub fn follow(
        &self,
        parts: &mut SnapshotParts,
        snapshot: &RegionSnapshot,
        out: &BTreeSet<ServerName>,
        requests: &BTreeMap<ReservationName, f64>,
        random: &mut Random,
    ) {
        // Positions of the servers of each reservation: in use, and idle ones that could be.
        let mut servers: BTreeMap<&ReservationName, [Vec<usize>; 2]> = BTreeMap::new();
        let holders: Vec<Option<ReservationName>> =
            parts.servers.iter().map(|row| row.current_reservation.clone()).collect();
        for (at, row) in parts.servers.iter().enumerate() {
            let Some(holder) = holders[at].as_ref().filter(|of| self.0.contains_key(*of)) else {
                continue;
            };
            let of_one = servers.entry(holder).or_default();
            if row.in_use {
                of_one[0].push(at);
            } else if row.loaned_to.is_none() && !out.contains(&row.server_id) {
                of_one[1].push(at);
            }
        }
        for (holder, [in_use, idle]) in &mut servers {
            let (Some(load), Some(request)) = (self.0.get(*holder), requests.get(*holder)) else {
                continue;
            };
            let Some(ix) = snapshot.reservation(holder) else { continue };
            let value = |at: usize| snapshot.value(&snapshot.servers[at], ix).to_f64();
            let wanted = load * request;
            let mut running: f64 = in_use.iter().map(|&at| value(at)).sum();
            while running > wanted + EXACT && !in_use.is_empty() {
                let at = in_use.swap_remove(random.below(in_use.len()));
                // The last server needed stays: containers are not cut in two.
                if running - value(at) >= wanted - EXACT {
                    running -= value(at);
                    parts.servers[at].in_use = false;
                }
            }
            while running < wanted - EXACT && !idle.is_empty() {
                let at = idle.swap_remove(random.below(idle.len()));
                running += value(at);
                parts.servers[at].in_use = value(at) > 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::generate::{GenerateOptions, State, generate};
    use fleet::Targets;

    #[test]
    fn containers_follow_the_request() {
        let options = GenerateOptions { state: State::Steady, ..GenerateOptions::new(1_000) };
        let region = RegionSnapshot::new(generate(&options).expect("in range")).expect("valid");
        let loads = Loads::of(&region);
        let unchanged = Targets::unchanged(&region);
        let running = |parts: &SnapshotParts| {
            let rows = parts.servers.iter().filter(|row| row.in_use);
            rows.filter(|row| row.current_reservation.is_some()).count()
        };
        let scaled = |factor: f64| {
            let mut parts = unchanged.apply(&region);
            let requests = (region.reservations.iter())
                .map(|of| (of.id.clone(), factor * of.capacity.to_f64()))
                .collect();
            loads.follow(&mut parts, &region, &BTreeSet::new(), &requests, &mut Random::new(1));
            running(&parts)
        };
        let before = running(&unchanged.apply(&region));
        assert_eq!(scaled(1.0), before, "what runs as it should goes on");
        assert!(scaled(0.8) < before * 9 / 10 && scaled(0.8) > before * 7 / 10);
        assert!(scaled(1.1) > before, "idle servers are taken");
        assert_eq!(scaled(0.0), 0);
    }
}

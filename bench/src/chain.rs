//! What happens to a region in an hour: the targets are carried out, requests are resized, servers
//! fail and come back, containers follow. Pure: the same seed and hour give the same region.

use super::containers::Loads;
use async_solver::random::Random;
use chrono::TimeDelta;
use fleet::{
    AffinityRow, Name, RegionSnapshot, ReservationKind, ReservationName, ServerName, SnapshotParts,
    Targets, UnavailabilityRow,
};
use std::collections::{BTreeMap, BTreeSet};

/// How much happens.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Share of the guaranteed requests that are resized each hour.
    pub resized: f64,
    /// Share of the servers that fail each hour.
    pub failed: f64,
    /// Seed of who and by how much.
    pub seed: u64,
}

/// How long a failed server is out: at 0.3 % an hour 0.9 % of the servers are out of use, as in the
/// failures of a real fleet (`docs/results.md`).
const OUT: TimeDelta = TimeDelta::hours(3);

/// How far a request is from its first size, up or down, after it was resized.
const RESIZED_BY: (f64, f64) = (0.05, 0.20);

/// Smaller requests are not resized: a tenth of them is nothing.
const RESIZED_FROM_RRU: f64 = 12.0;

/// Share of the servers that run containers where a region is given away at once: "about 80 % of
/// servers run containers" (RAS section 4.6).
const LOADED: f64 = 0.8;

/// Shares of the data of [`bind`]'s reservations in their datacenters, and the tolerance.
const BOUND_SHARES: [[f64; 2]; 2] = [[0.6, 0.4], [0.5, 0.5]];
const BOUND_THETA: f64 = 0.1;

/// What a chain begins with.
pub struct Beginning {
    /// Capacities of the guaranteed reservations, in RRU: requests are resized around them.
    capacities: BTreeMap<ReservationName, f64>,
    /// What runs on them.
    loads: Loads,
}

impl Beginning {
    /// That of a region.
    pub fn of(snapshot: &RegionSnapshot) -> Beginning {
        Beginning { capacities: capacities(snapshot), loads: Loads::of(snapshot) }
    }
}

fn capacities(snapshot: &RegionSnapshot) -> BTreeMap<ReservationName, f64> {
    let guaranteed = snapshot.reservations.iter().filter(|r| r.kind == ReservationKind::Guaranteed);
    guaranteed.map(|r| (r.id.clone(), r.capacity.to_f64())).collect()
}

/// The region an hour after its targets were published.
pub fn next_hour(
    snapshot: &RegionSnapshot,
    targets: &Targets,
    first: &Beginning,
    hour: u32,
    pace: &Pace,
) -> SnapshotParts {
    let mut random = Random::new(pace.seed ^ (u64::from(hour) << 32));
    let mut parts = targets.apply(snapshot);
    let before = parts.taken_at;
    parts.taken_at = before + TimeDelta::hours(1);
    let now = parts.taken_at;
    let back: BTreeSet<Name> = (parts.unavailability.iter())
        .filter(|event| event.ended_at.is_some_and(|end| end > before && end <= now))
        .map(|event| event.scope_id.clone())
        .collect();
    parts.unavailability.retain(|event| event.ended_at.is_none_or(|end| end > now));
    resize(&mut parts, &first.capacities, pace.resized, &mut random);
    let mut out = fail(&mut parts, snapshot, pace.failed, hour, &mut random);
    let still_out = snapshot.servers.iter().filter(|of| !of.available && !back.contains(&*of.id));
    out.extend(still_out.map(|server| server.id.clone()));
    // What a request grew by has not come yet; of what it shrank by containers have ended.
    let counted_on = (parts.reservations.iter())
        .filter_map(|row| {
            let was = snapshot.reservation(&row.reservation_id)?;
            let was = snapshot.reservations[was.ix()].capacity.to_f64();
            Some((row.reservation_id.clone(), was.min(row.capacity_rru)))
        })
        .collect();
    first.loads.follow(&mut parts, snapshot, &out, &counted_on, &mut random);
    parts
}

/// Resizes a share of the requests, half of them up and half down. Those bound to datacenters keep
/// their size: their shares were stated for it.
fn resize(
    parts: &mut SnapshotParts,
    first: &BTreeMap<ReservationName, f64>,
    share: f64,
    random: &mut Random,
) {
    let bound: BTreeSet<&ReservationName> =
        parts.affinity.iter().map(|row| &row.reservation_id).collect();
    let mut free: Vec<usize> = (0..parts.reservations.len())
        .filter(|&ix| {
            let id = &parts.reservations[ix].reservation_id;
            let large = first.get(id).is_some_and(|size| *size >= RESIZED_FROM_RRU);
            large && !bound.contains(id)
        })
        .collect();
    // At least one an hour, as in a generated region, if any.
    let least = if share > 0.0 { 1 } else { 0 };
    let count = whole(share * first.len() as f64).max(least).min(free.len());
    for turn in 0..count {
        let ix = free.swap_remove(random.below(free.len()));
        let by = RESIZED_BY.0 + random.unit() * (RESIZED_BY.1 - RESIZED_BY.0);
        let up = (turn + usize::from(random.unit() < 0.5)).is_multiple_of(2);
        let row = &mut parts.reservations[ix];
        let size = first.get(&row.reservation_id).copied().unwrap_or(row.capacity_rru);
        row.capacity_rru = (size * if up { 1.0 + by } else { 1.0 - by }).round();
    }
}

/// Fails servers that were in order, and says which. Their containers end.
fn fail(
    parts: &mut SnapshotParts,
    snapshot: &RegionSnapshot,
    share: f64,
    hour: u32,
    random: &mut Random,
) -> BTreeSet<ServerName> {
    let mut well: Vec<usize> =
        (0..snapshot.servers.len()).filter(|&ix| snapshot.servers[ix].available).collect();
    let count = whole(share * snapshot.servers.len() as f64).min(well.len());
    let mut failed = BTreeSet::new();
    for number in 0..count {
        let server = &snapshot.servers[well.swap_remove(random.below(well.len()))].id;
        failed.insert(server.clone());
        parts.unavailability.push(UnavailabilityRow {
            event_id: format!("bench-{hour}-{number}").into(),
            scope: "server".into(),
            scope_id: server.clone().into(),
            kind: "random_failure".into(),
            started_at: parts.taken_at,
            ended_at: Some(parts.taken_at + OUT),
            recall_minutes: None,
        });
    }
    for row in parts.servers.iter_mut().filter(|row| failed.contains(&row.server_id)) {
        row.in_use = false;
        row.loaned_to = None;
    }
    failed
}

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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares of counts, not negative"
)]
fn whole(amount: f64) -> usize {
    amount.max(0.0).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::generate::{GenerateOptions, State, generate};

    fn region() -> RegionSnapshot {
        let options = GenerateOptions { state: State::Steady, ..GenerateOptions::new(1_000) };
        RegionSnapshot::new(generate(&options).expect("in range")).expect("a valid region")
    }

    const PACE: Pace = Pace { resized: 0.4, failed: 0.01, seed: 3 };

    #[test]
    fn an_hour_changes_what_it_should_and_comes_again() {
        let region = region();
        let (first, targets) = (Beginning::of(&region), Targets::unchanged(&region));
        let next = next_hour(&region, &targets, &first, 1, &PACE);
        assert_eq!(next, next_hour(&region, &targets, &first, 1, &PACE));
        assert_ne!(next, next_hour(&region, &targets, &first, 2, &PACE));
        let was = region.to_parts();
        let resized = (was.reservations.iter().zip(&next.reservations))
            .filter(|(a, b)| a.capacity_rru != b.capacity_rru)
            .count();
        assert!((1..=2).contains(&resized), "{resized} of five");
        let next = RegionSnapshot::new(next).expect("a valid region");
        let out = |region: &RegionSnapshot| region.servers.iter().filter(|s| !s.available).count();
        assert!(out(&next) >= out(&region) + 5);
    }

    #[test]
    fn failed_servers_come_back() {
        let first = Beginning::of(&region());
        let mut region = region();
        let quiet = Pace { failed: 0.0, resized: 0.0, seed: 3 };
        let before = region.servers.iter().filter(|s| !s.available).count();
        for hour in 1..=5 {
            let pace = if hour == 1 { &PACE } else { &quiet };
            let parts = next_hour(&region, &Targets::unchanged(&region), &first, hour, pace);
            region = RegionSnapshot::new(parts).expect("a valid region");
        }
        assert!(region.servers.iter().filter(|s| !s.available).count() <= before);
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

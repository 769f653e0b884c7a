//! What happens to a region in an hour: the targets are carried out, requests are resized, servers
//! fail and come back, containers follow. Pure: the same seed and hour give the same region.

mod containers;

use async_solver::random::Random;
use chrono::TimeDelta;
use containers::Loads;
use fleet::{
    Name, RegionSnapshot, ReservationKind, ReservationName, ServerName, SnapshotParts, Targets,
    UnavailabilityRow,
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

impl Pace {
    /// An ordinary hour: 5 % of the requests, 0.3 % of the servers.
    pub fn ordinary(seed: u64) -> Pace {
        Pace { resized: 0.05, failed: 0.003, seed }
    }
}

/// How long a failed server is out: at 0.3 % an hour 0.9 % of the servers are out of use, as in the
/// failures of a real fleet (`docs/results.md`).
const OUT: TimeDelta = TimeDelta::hours(3);

/// How far a request is from its first size, up or down, after it was resized.
const RESIZED_BY: (f64, f64) = (0.05, 0.20);

/// Smaller requests are not resized: a tenth of them is nothing.
const RESIZED_FROM_RRU: f64 = 12.0;

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

/// Capacities of the guaranteed reservations, in RRU.
pub fn capacities(snapshot: &RegionSnapshot) -> BTreeMap<ReservationName, f64> {
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
            event_id: format!("hour-{hour}-{number}").into(),
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
}

//! Failures of a log replayed in virtual time, with the decisions of the mover that acts.
//!
//! A drill says what a shared buffer of some size is worth before anybody pays for it. Servers fail and
//! come back as the log says; the storm guard and the choice of spares are the very functions that the
//! mover calls, on a region held in memory. A move takes as long as one is said to take. Nothing here
//! waits, reads a clock or draws lots: the same log gives the same report.
//!
//! Between the solves of a drill, if there are any, nothing but the mover moves servers; a solve moves
//! them at once.

use crate::outage::{self, StormGuard};
use crate::replace;
use broker::{Failed, MsbHealth, Spare, Worth};
use chrono::{DateTime, TimeDelta, Utc};
use fleet::{
    MsbIx, Name, RegionSnapshot, ReservationIx, ReservationKind, Rru, ServerIx, SnapshotParts,
    Targets, UnavailabilityRow,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

/// A server out of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downtime {
    /// The server.
    pub server: ServerIx,
    /// From when.
    pub from: DateTime<Utc>,
    /// Until when; `None`: the log does not say that it came back.
    pub until: Option<DateTime<Utc>>,
}

/// How a drill is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrillSettings {
    /// The end.
    pub until: DateTime<Utc>,
    /// How long a failure is left alone before it is dealt with.
    pub settle: Duration,
    /// How long a move takes.
    pub move_takes: Duration,
    /// When single failures count as the loss of an MSB.
    pub storm_guard: StormGuard,
    /// How often the region is solved; `None`: never.
    pub solve_every: Option<Duration>,
}

/// What a reservation went through.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservationDrill {
    /// Its name.
    pub reservation: Name,
    /// C.
    pub capacity: Rru,
    /// Servers that failed while it held them.
    pub failures: u64,
    /// RRU-hours of servers that failed and whose place nobody had taken.
    pub missing: f64,
    /// RRU-hours below C.
    pub short: f64,
    /// RRU-hours by which what the loss of its largest MSB leaves was below C.
    pub unguaranteed: f64,
}

/// What came of a drill.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrillReport {
    /// How long it was, in hours.
    pub hours: f64,
    /// Servers that failed while a guaranteed reservation held them.
    pub failures: u64,
    /// Of them: replaced by a spare.
    pub replaced: u64,
    /// Back before a spare was found.
    pub recovered: u64,
    /// Provided for by a solve.
    pub paid: u64,
    /// Owed at the end.
    pub owed: u64,
    /// The most that were owed at once.
    pub owed_most: u64,
    /// Seconds from failure to binding of those replaced, in order.
    pub waits: Vec<f64>,
    /// Servers that returned to a shared buffer.
    pub returned: u64,
    /// How often an MSB counted as lost.
    pub storms: u64,
    /// Solves.
    pub solves: u64,
    /// Servers that solves moved.
    pub moved_by_solves: u64,
    /// Servers in shared buffers that work: at the beginning, and the fewest.
    pub spares: (u64, u64),
    /// Guaranteed reservations, by name.
    pub reservations: Vec<ReservationDrill>,
}

/// Something that happens, in the order in which things of one instant do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Up(usize),
    Down(usize),
    Bound(usize),
    Solve,
    Decide,
}

struct Owed {
    reservation: ReservationIx,
    since: DateTime<Utc>,
}

struct Drill<'a, S> {
    snapshot: &'a RegionSnapshot,
    settings: &'a DrillSettings,
    solve: S,
    now: DateTime<Utc>,
    heap: BinaryHeap<Reverse<(DateTime<Utc>, Happening)>>,
    /// Of each server: its owner, where it is going, and how many events cover it.
    owner: Vec<Option<ReservationIx>>,
    target: Vec<Option<Option<ReservationIx>>>,
    down: Vec<u32>,
    /// By the server that failed.
    owed: BTreeMap<usize, Owed>,
    /// Spares on their way: for whom, and since when that one is missing.
    on_the_way: BTreeMap<usize, (usize, Owed)>,
    lost: BTreeSet<MsbIx>,
    sizes: Vec<u64>,
    decide_at: Option<DateTime<Utc>>,
    /// RRU that work, of each reservation in each MSB; and those missing.
    held: Vec<Vec<Rru>>,
    missing: Vec<Rru>,
    counted: Vec<DateTime<Utc>>,
    spares: u64,
    report: DrillReport,
}

/// Replays failures. `solve` decides anew on a region; it is called if the settings say how often.
/// Only what begins within the drill happens, and servers that are out of use before it are not yet.
pub fn drill(
    snapshot: &RegionSnapshot,
    downtimes: &[Downtime],
    settings: &DrillSettings,
    solve: impl FnMut(&RegionSnapshot) -> Targets,
) -> DrillReport {
    let mut drill = Drill::new(snapshot, settings, solve);
    for downtime in downtimes {
        if downtime.from < snapshot.taken_at || downtime.from >= settings.until {
            continue;
        }
        let server = downtime.server.ix();
        drill.heap.push(Reverse((downtime.from, Happening::Down(server))));
        if let Some(until) = downtime.until {
            drill.heap.push(Reverse((until, Happening::Up(server))));
        }
    }
    if let Some(every) = settings.solve_every {
        drill.heap.push(Reverse((snapshot.taken_at + delta(every), Happening::Solve)));
    }
    drill.run()
}

fn delta(of: Duration) -> TimeDelta {
    TimeDelta::from_std(of).unwrap_or(TimeDelta::MAX)
}

fn hours(of: TimeDelta) -> f64 {
    of.as_seconds_f64() / 3600.0
}

impl<'a, S: FnMut(&RegionSnapshot) -> Targets> Drill<'a, S> {
    fn new(snapshot: &'a RegionSnapshot, settings: &'a DrillSettings, solve: S) -> Self {
        let reservations = snapshot.reservations.len();
        let mut sizes = vec![0; snapshot.msbs.len()];
        for server in &snapshot.servers {
            sizes[snapshot.msb_of(server).ix()] += 1;
        }
        let guaranteed =
            snapshot.reservations.iter().filter(|of| of.kind == ReservationKind::Guaranteed);
        let row = |of: &fleet::Reservation| ReservationDrill {
            reservation: of.id.clone(),
            capacity: of.capacity,
            failures: 0,
            missing: 0.0,
            short: 0.0,
            unguaranteed: 0.0,
        };
        let report = DrillReport {
            hours: hours(settings.until - snapshot.taken_at),
            reservations: guaranteed.map(row).collect(),
            ..DrillReport::default()
        };
        let mut drill = Drill {
            snapshot,
            settings,
            solve,
            now: snapshot.taken_at,
            heap: BinaryHeap::new(),
            owner: vec![None; snapshot.servers.len()],
            target: vec![None; snapshot.servers.len()],
            down: vec![0; snapshot.servers.len()],
            owed: BTreeMap::new(),
            on_the_way: BTreeMap::new(),
            lost: BTreeSet::new(),
            sizes,
            decide_at: None,
            held: vec![vec![Rru::ZERO; snapshot.msbs.len()]; reservations],
            missing: vec![Rru::ZERO; reservations],
            counted: vec![snapshot.taken_at; reservations],
            spares: 0,
            report,
        };
        for (s, server) in snapshot.servers.iter().enumerate() {
            drill.change(s, |drill| drill.owner[s] = server.holder());
        }
        drill.report.spares = (drill.spares, drill.spares);
        drill
    }

    fn run(mut self) -> DrillReport {
        while let Some(Reverse((at, happening))) = self.heap.pop() {
            if at >= self.settings.until {
                break;
            }
            self.now = at;
            match happening {
                Happening::Down(server) => self.goes_down(server),
                Happening::Up(server) => self.comes_up(server),
                Happening::Bound(server) => self.is_bound(server),
                Happening::Solve => self.solves(),
                Happening::Decide => self.decides(),
            }
            self.report.spares.1 = self.report.spares.1.min(self.spares);
        }
        self.now = self.settings.until;
        for r in 0..self.snapshot.reservations.len() {
            self.count(ReservationIx::new(r));
        }
        self.report.owed = self.owed.len() as u64;
        self.report.waits.sort_by(f64::total_cmp);
        self.report
    }

    fn holder(&self, s: usize) -> Option<ReservationIx> {
        self.target[s].unwrap_or(self.owner[s])
    }

    fn kind(&self, r: ReservationIx) -> ReservationKind {
        self.snapshot.reservations[r.ix()].kind
    }

    fn guaranteed(&self, r: Option<ReservationIx>) -> Option<ReservationIx> {
        r.filter(|r| self.kind(*r) == ReservationKind::Guaranteed)
    }

    /// Who can count on a server: its owner, as long as it works and does not leave.
    fn counts_for(&self, s: usize) -> Option<ReservationIx> {
        (self.down[s] == 0 && self.target[s].is_none()).then_some(self.owner[s]).flatten()
    }

    /// Changes something about a server, and the sums with it.
    fn change(&mut self, s: usize, change: impl FnOnce(&mut Self)) {
        let server = &self.snapshot.servers[s];
        let msb = self.snapshot.msb_of(server).ix();
        let before = self.counts_for(s);
        change(self);
        let after = self.counts_for(s);
        if before == after {
            return;
        }
        for (r, joins) in [(before, false), (after, true)] {
            let Some(r) = r else { continue };
            self.count(r);
            let value = self.snapshot.value(server, r);
            let held = &mut self.held[r.ix()][msb];
            *held = if joins { *held + value } else { *held - value };
            if self.kind(r) == ReservationKind::SharedBuffer {
                self.spares = if joins { self.spares + 1 } else { self.spares - 1 };
            }
        }
    }

    /// Adds what a reservation lacked since it was last looked at.
    fn count(&mut self, r: ReservationIx) {
        let since = hours(self.now - self.counted[r.ix()]);
        self.counted[r.ix()] = self.now;
        let of = &self.snapshot.reservations[r.ix()];
        let row = self.report.reservations.binary_search_by(|row| row.reservation.cmp(&of.id));
        let (Ok(row), true) = (row, since > 0.0) else { return };
        let row = &mut self.report.reservations[row];
        let available: Rru = self.held[r.ix()].iter().copied().sum();
        let largest = self.held[r.ix()].iter().copied().max().unwrap_or_default();
        row.missing += self.missing[r.ix()].to_f64() * since;
        row.short += (of.capacity - available).or_zero().to_f64() * since;
        if of.msb_buffer {
            row.unguaranteed += (of.capacity - (available - largest)).or_zero().to_f64() * since;
        }
    }

    fn lacks(&mut self, s: usize, r: ReservationIx, lacks: bool) {
        self.count(r);
        let value = self.snapshot.value(&self.snapshot.servers[s], r);
        let missing = &mut self.missing[r.ix()];
        *missing = if lacks { *missing + value } else { *missing - value };
    }

    fn decide_soon(&mut self) {
        if self.decide_at.is_none() {
            let at = self.now + delta(self.settings.settle);
            self.decide_at = Some(at);
            self.heap.push(Reverse((at, Happening::Decide)));
        }
    }

    fn goes_down(&mut self, s: usize) {
        self.change(s, |drill| drill.down[s] += 1);
        if self.down[s] > 1 {
            return;
        }
        // A spare on its way that fails leaves its reservation waiting for as long as before.
        let since = match self.on_the_way.remove(&s) {
            Some((failed, of)) => {
                self.lacks(failed, of.reservation, false);
                of.since
            }
            None => self.now,
        };
        if let Some(r) = self.guaranteed(self.holder(s)) {
            if since == self.now {
                self.report.failures += 1;
                let id = &self.snapshot.reservations[r.ix()].id;
                let row = self.report.reservations.binary_search_by(|row| row.reservation.cmp(id));
                if let Ok(row) = row {
                    self.report.reservations[row].failures += 1;
                }
            }
            self.lacks(s, r, true);
            self.owed.insert(s, Owed { reservation: r, since });
        }
        self.decide_soon();
    }

    fn comes_up(&mut self, s: usize) {
        self.change(s, |drill| drill.down[s] = drill.down[s].saturating_sub(1));
        if self.down[s] > 0 {
            return;
        }
        if let Some(of) = self.owed.remove(&s) {
            self.lacks(s, of.reservation, false);
            self.report.recovered += 1;
        }
        if self.target[s].is_some() {
            self.heap
                .push(Reverse((self.now + delta(self.settings.move_takes), Happening::Bound(s))));
        }
        self.decide_soon();
    }

    fn is_bound(&mut self, s: usize) {
        // It failed on its way: the move goes on once it works.
        let Some(target) = self.target[s].filter(|_| self.down[s] == 0) else { return };
        self.change(s, |drill| {
            drill.owner[s] = target;
            drill.target[s] = None;
        });
        match self.on_the_way.remove(&s) {
            Some((failed, of)) => {
                self.lacks(failed, of.reservation, false);
                self.report.replaced += 1;
                self.report.waits.push((self.now - of.since).as_seconds_f64());
            }
            None => {
                self.report.returned += 1;
                self.decide_soon();
            }
        }
    }

    fn judge(&mut self) {
        let mut out: BTreeMap<MsbIx, (u64, BTreeSet<usize>)> = BTreeMap::new();
        for (s, server) in
            self.snapshot.servers.iter().enumerate().filter(|(s, _)| self.down[*s] > 0)
        {
            let of = out.entry(self.snapshot.msb_of(server)).or_default();
            of.0 += 1;
            of.1.insert(server.rack.ix());
            debug_assert!(self.down[s] > 0);
        }
        let health: Vec<MsbHealth> = out
            .iter()
            .map(|(msb, (count, racks))| MsbHealth {
                msb: self.snapshot.msbs[msb.ix()].id.clone(),
                servers: self.sizes[msb.ix()],
                out: *count,
                racks: racks.len() as u64,
                reported: false,
                was_lost: self.lost.contains(msb),
            })
            .collect();
        let lost = outage::lost(&health, &self.settings.storm_guard);
        let lost: BTreeSet<MsbIx> = out
            .into_keys()
            .filter(|msb| lost.contains_key(&self.snapshot.msbs[msb.ix()].id))
            .collect();
        self.report.storms += lost.difference(&self.lost).count() as u64;
        self.lost = lost;
    }

    fn decides(&mut self) {
        self.decide_at = None;
        self.judge();
        let snapshot = self.snapshot;
        let name = |r: ReservationIx| snapshot.reservations[r.ix()].id.clone();
        let failed: Vec<Failed> = (self.owed.iter())
            .filter(|(s, _)| !self.lost.contains(&snapshot.msb_of(&snapshot.servers[**s])))
            .map(|(s, of)| Failed {
                server: snapshot.servers[*s].id.clone(),
                reservation: name(of.reservation),
                priority: snapshot.reservations[of.reservation.ix()].priority,
                hardware_type: snapshot.hardware_types[snapshot.servers[*s].hardware_type.ix()]
                    .clone(),
                since: of.since,
            })
            .collect();
        self.report.owed_most = self.report.owed_most.max(self.owed.len() as u64);
        if failed.is_empty() {
            return;
        }
        let swaps = replace::choose(&failed, &self.spares(), &self.worth());
        for swap in swaps {
            let (Some(failed), Some(spare)) =
                (snapshot.server(&swap.failed), snapshot.server(&swap.spare))
            else {
                continue;
            };
            let (failed, spare) = (failed.ix(), spare.ix());
            let Some(of) = self.owed.remove(&failed) else { continue };
            let buffer = self.buffer_of(failed);
            self.change(spare, |drill| drill.target[spare] = Some(Some(of.reservation)));
            self.change(failed, |drill| {
                drill.target[failed] = (drill.owner[failed] != buffer).then_some(buffer);
            });
            self.on_the_way.insert(spare, (failed, of));
            let at = self.now + delta(self.settings.move_takes);
            self.heap.push(Reverse((at, Happening::Bound(spare))));
        }
    }

    /// The shared buffer of a server's type.
    fn buffer_of(&self, s: usize) -> Option<ReservationIx> {
        let hardware_type = self.snapshot.servers[s].hardware_type;
        let is_it = |of: &fleet::Reservation| {
            of.kind == ReservationKind::SharedBuffer && of.value(hardware_type).is_some()
        };
        self.snapshot.reservations.iter().position(is_it).map(ReservationIx::new)
    }

    fn spares(&self) -> Vec<Spare> {
        let snapshot = self.snapshot;
        let spare = |(s, server): (usize, &fleet::Server)| {
            let owner = self.counts_for(s)?;
            let msb = snapshot.msb_of(server);
            let takable =
                self.kind(owner) == ReservationKind::SharedBuffer && !self.lost.contains(&msb);
            takable.then(|| Spare {
                server: server.id.clone(),
                msb: snapshot.msbs[msb.ix()].id.clone(),
                hardware_type: snapshot.hardware_types[server.hardware_type.ix()].clone(),
                lent: false,
            })
        };
        snapshot.servers.iter().enumerate().filter_map(spare).collect()
    }

    fn worth(&self) -> Worth {
        let snapshot = self.snapshot;
        let mut worth = Worth::default();
        let short: BTreeSet<ReservationIx> = self.owed.values().map(|of| of.reservation).collect();
        for r in short {
            let of = &snapshot.reservations[r.ix()];
            for (ty, value) in &of.rru {
                worth
                    .values
                    .insert((of.id.clone(), snapshot.hardware_types[ty.ix()].clone()), *value);
            }
            for (msb, held) in snapshot.msbs.iter().zip(&self.held[r.ix()]) {
                worth.held.insert((of.id.clone(), msb.id.clone()), *held);
            }
        }
        for spare in self.on_the_way.keys() {
            let server = &snapshot.servers[*spare];
            let Some(r) = self.target[*spare].flatten() else { continue };
            let msb = snapshot.msbs[snapshot.msb_of(server).ix()].id.clone();
            let key = (snapshot.reservations[r.ix()].id.clone(), msb);
            *worth.held.entry(key).or_default() += snapshot.value(server, r);
        }
        worth
    }

    /// The region as it is now.
    fn parts(&self) -> SnapshotParts {
        let mut parts = self.snapshot.to_parts();
        let name = |r: ReservationIx| self.snapshot.reservations[r.ix()].id.clone();
        parts.taken_at = self.now;
        parts.unavailability.clear();
        for (s, row) in parts.servers.iter_mut().enumerate() {
            row.current_reservation = self.owner[s].map(name);
            row.target_pending = self.target[s].is_some();
            row.target_reservation = self.target[s].flatten().map(name);
            if self.down[s] > 0 {
                parts.unavailability.push(UnavailabilityRow {
                    event_id: row.server_id.clone(),
                    scope: fleet::Scope::Server.as_str().into(),
                    scope_id: row.server_id.clone(),
                    kind: fleet::UnavailabilityKind::RandomFailure.as_str().into(),
                    started_at: self.now,
                    ended_at: None,
                });
            }
        }
        parts
    }

    fn solves(&mut self) {
        if let Some(every) = self.settings.solve_every {
            self.heap.push(Reverse((self.now + delta(every), Happening::Solve)));
        }
        let Ok(region) = RegionSnapshot::new(self.parts()) else {
            debug_assert!(false, "what was a region is one");
            return;
        };
        let targets = (self.solve)(&region);
        self.report.solves += 1;
        for of in targets.diff(&region) {
            let s = of.server.ix();
            let target =
                of.target.and_then(|r| self.snapshot.reservation(&region.reservations[r.ix()].id));
            if self.on_the_way.contains_key(&s) || self.down[s] > 0 {
                continue;
            }
            self.report.moved_by_solves += 1;
            self.change(s, |drill| {
                drill.owner[s] = target;
                drill.target[s] = None;
            });
        }
        // What failed before it, it has seen and provided for.
        for (s, of) in std::mem::take(&mut self.owed) {
            self.lacks(s, of.reservation, false);
            self.report.paid += 1;
        }
        self.decide_soon();
    }
}

#[cfg(test)]
mod tests {
    use super::{Downtime, DrillReport, DrillSettings, drill};
    use crate::outage::StormGuard;
    use chrono::{DateTime, TimeDelta, Utc};
    use fleet::{
        RegionSnapshot, ReservationRow, RruRow, ServerRow, SnapshotParts, Targets, Weights,
    };
    use std::time::Duration;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    /// Web has 9 servers in three MSBs and wants 6 of them; the shared buffer has so many more.
    fn region(spares: usize) -> RegionSnapshot {
        let server = |n: usize| ServerRow {
            server_id: format!("s{n:02}").into(),
            datacenter: "dc".into(),
            msb: format!("m{}", n % 3).into(),
            rack: format!("r{n}").into(),
            hardware_type: "t".into(),
            current_reservation: Some(if n < 9 { "web" } else { "shared-buffer/t" }.into()),
            target_reservation: None,
            target_pending: false,
            in_use: false,
            loaned_to: None,
            power_watts: None,
        };
        let web = ReservationRow {
            reservation_id: "web".into(),
            owner: "web".into(),
            kind: "guaranteed".into(),
            capacity_rru: 6.0,
            msb_buffer: true,
            priority: 0,
            msb_alpha: None,
            rack_alpha: None,
            affinity_theta: None,
            host_profile: None,
        };
        let parts = SnapshotParts {
            region: "r".into(),
            taken_at: at(0),
            weights: Weights::default(),
            shared_buffer_fraction: Some(0.1),
            servers: (0..9 + spares).map(server).collect(),
            reservations: vec![web],
            rru: vec![RruRow { reservation_id: "web".into(), hardware_type: "t".into(), rru: 1.0 }],
            affinity: Vec::new(),
            unavailability: Vec::new(),
        };
        RegionSnapshot::new(parts).expect("a region")
    }

    /// Servers that fail at a minute, and for how many.
    fn run(spares: usize, rows: &[(&str, i64, i64)], solve_every: Option<Duration>) -> DrillReport {
        let region = region(spares);
        let downtime = |(server, from, minutes): &(&str, i64, i64)| Downtime {
            server: region.server(server).expect("there"),
            from: at(*from),
            until: Some(at(from + minutes)),
        };
        let downtimes: Vec<Downtime> = rows.iter().map(downtime).collect();
        let settings = DrillSettings {
            until: at(600),
            settle: Duration::from_secs(60),
            move_takes: Duration::from_secs(120),
            storm_guard: StormGuard::default(),
            solve_every,
        };
        drill(&region, &downtimes, &settings, Targets::unchanged)
    }

    #[test]
    fn a_spare_takes_the_place_and_the_repaired_server_becomes_one() {
        let report = run(1, &[("s00", 10, 60), ("s03", 100, 60)], None);
        assert_eq!((report.failures, report.replaced, report.returned), (2, 2, 2));
        // Settled for a minute, on the way for two.
        assert_eq!(report.waits, [180.0, 180.0]);
        assert_eq!(report.spares, (1, 0));
        let web = &report.reservations[0];
        assert!((web.missing - 0.1).abs() < 1e-9, "{web:?}");
        // Nine servers, three in each MSB: without any one of them the guarantee is five of six.
        assert!((web.unguaranteed - 0.1).abs() < 1e-9 && web.short == 0.0, "{web:?}");
    }

    #[test]
    fn an_empty_buffer_owes_until_somebody_comes_back() {
        let report = run(0, &[("s00", 10, 60), ("s01", 20, 60)], None);
        assert_eq!((report.replaced, report.recovered, report.owed_most), (0, 2, 2));
        assert!((report.reservations[0].missing - 2.0).abs() < 1e-9);
        let report = run(1, &[("s00", 10, 60), ("s01", 20, 300)], None);
        // The second waits for the first to be repaired and moved: until 72, settled at 73, bound at 75.
        assert_eq!((report.replaced, report.waits[1]), (2, 55.0 * 60.0));
    }

    #[test]
    fn a_spare_that_fails_on_its_way_is_replaced_in_turn() {
        let report = run(2, &[("s00", 10, 60), ("s09", 12, 60)], None);
        assert_eq!((report.failures, report.replaced), (1, 1));
        // Failed at 10, its spare at 12; settled at 13, bound at 15.
        assert_eq!(report.waits, [300.0]);
        assert!((report.reservations[0].missing - 5.0 / 60.0).abs() < 1e-9, "{report:?}");
    }

    #[test]
    fn what_a_solve_has_seen_is_owed_no_more() {
        let hourly = Some(Duration::from_secs(3600));
        let report = run(0, &[("s00", 10, 600)], hourly);
        assert_eq!((report.paid, report.owed, report.solves), (1, 0, 9));
        assert!((report.reservations[0].missing - 50.0 / 60.0).abs() < 1e-9);
        assert_eq!(run(0, &[("s00", 10, 600)], None).owed, 1);
    }
}

//! The state of a replay: the region, the ledger of replacements, and the sums of the report.

use super::report::{Downtime, ReplayReport, ReplaySettings, ReservationReplay};
use crate::region::{Region, ServerState};
use chrono::{DateTime, TimeDelta, Utc};
use fleet::audit::Maintained;
use fleet::{
    MsbIx, RegionSnapshot, Reservation, ReservationIx, ReservationKind, Rru, UnavailabilityKind,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

/// An event of the replay. Events of one instant are handled in the order of the variants. Downtimes and
/// servers are given by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    DowntimeEnds(usize),
    DowntimeBegins(usize),
    ServerBound(usize),
    Solve,
    Decide,
}

/// A failed server whose reservation waits for a spare.
pub(super) struct Owed {
    pub(super) reservation: ReservationIx,
    pub(super) since: DateTime<Utc>,
}

/// The state of a replay. Servers are given by position.
pub(super) struct Replay<'a, S> {
    pub(super) region: Region<'a>,
    pub(super) downtimes: &'a [Downtime],
    pub(super) settings: &'a ReplaySettings,
    pub(super) solve: S,
    pub(super) now: DateTime<Utc>,
    pub(super) heap: BinaryHeap<Reverse<(DateTime<Utc>, Event)>>,
    /// The downtimes that cover each server now.
    pub(super) active: BTreeMap<usize, Vec<usize>>,
    /// Failures that wait for a spare, by failed server.
    pub(super) owed: BTreeMap<usize, Owed>,
    /// Spares that move to a reservation: the failed server that each replaces.
    pub(super) on_the_way: BTreeMap<usize, (usize, Owed)>,
    /// Servers that were replaced, by the failed server: the reservation, and the spare it has instead.
    pub(super) replaced: BTreeMap<usize, (ReservationIx, usize)>,
    /// Repaired servers that return to their reservation, with the spare that goes back to its buffer then.
    pub(super) returning: BTreeMap<usize, usize>,
    /// Start of the loss of each MSB that counts as lost.
    pub(super) lost_since: BTreeMap<MsbIx, DateTime<Utc>>,
    pub(super) decide_at: Option<DateTime<Utc>>,
    /// Working RRU of each reservation in each MSB.
    held: Vec<Vec<Rru>>,
    /// Working RRU of each reservation in each domain of the partitions that it survives, in their order.
    in_domains: Vec<Vec<Vec<Rru>>>,
    /// RRU of each reservation that wait for a spare.
    missing: Vec<Rru>,
    /// The instant up to which the sums of each reservation are complete.
    counted: Vec<DateTime<Utc>>,
    pub(super) spares: u64,
    pub(super) report: ReplayReport,
}

/// Nothing in each domain of the partitions that a reservation survives.
fn no_shares(snapshot: &RegionSnapshot, of: &Reservation) -> Vec<Vec<Rru>> {
    let domains = of.survives.iter().map(|at| snapshot.partitions[at.ix()].domains.len());
    domains.map(|count| vec![Rru::ZERO; count]).collect()
}

pub(super) fn delta(of: Duration) -> TimeDelta {
    TimeDelta::from_std(of).unwrap_or(TimeDelta::MAX)
}

pub(super) fn hours(of: TimeDelta) -> f64 {
    of.as_seconds_f64() / 3600.0
}

impl<'a, S> Replay<'a, S> {
    /// The state before the first event: every open move has ended, and every server works.
    pub(super) fn new(
        snapshot: &'a RegionSnapshot,
        downtimes: &'a [Downtime],
        settings: &'a ReplaySettings,
        solve: S,
    ) -> Self {
        let reservations = snapshot.reservations.len();
        let guaranteed =
            snapshot.reservations.iter().filter(|of| of.kind == ReservationKind::Guaranteed);
        let row = |of: &Reservation| ReservationReplay {
            reservation: of.id.clone(),
            capacity: of.capacity,
            largest_value: of.largest_value(),
            failures: 0,
            missing: 0.0,
            short: 0.0,
            unguaranteed: 0.0,
        };
        let report = ReplayReport {
            hours: hours(settings.until - snapshot.taken_at),
            reservations: guaranteed.map(row).collect(),
            ..ReplayReport::default()
        };
        let free = ServerState {
            owner: None,
            target: None,
            in_use: false,
            borrower: None,
            down: None,
            maintained: Maintained::InService,
            cordoned: false,
            staying_move: None,
        };
        let servers = vec![free; snapshot.servers.len()];
        let mut replay = Replay {
            region: Region { snapshot, servers, lost: BTreeSet::new() },
            downtimes,
            settings,
            solve,
            now: snapshot.taken_at,
            heap: BinaryHeap::new(),
            active: BTreeMap::new(),
            owed: BTreeMap::new(),
            on_the_way: BTreeMap::new(),
            replaced: BTreeMap::new(),
            returning: BTreeMap::new(),
            lost_since: BTreeMap::new(),
            decide_at: None,
            held: vec![vec![Rru::ZERO; snapshot.msbs.len()]; reservations],
            in_domains: snapshot.reservations.iter().map(|of| no_shares(snapshot, of)).collect(),
            missing: vec![Rru::ZERO; reservations],
            counted: vec![snapshot.taken_at; reservations],
            spares: 0,
            report,
        };
        for (s, server) in snapshot.servers.iter().enumerate() {
            replay.change(s, |state| state.owner = server.holder());
        }
        replay.report.spares = (replay.spares, replay.spares);
        replay
    }

    pub(super) fn guaranteed(&self, r: Option<ReservationIx>) -> Option<ReservationIx> {
        r.filter(|_| self.region.is(r, ReservationKind::Guaranteed))
    }

    /// The reservation that can use a server now: its owner, if it works and does not move away.
    fn usable_by(&self, s: usize) -> Option<ReservationIx> {
        let state = &self.region.servers[s];
        state.owner.filter(|_| state.down.is_none() && state.target.is_none())
    }

    /// Changes the state of a server, and the sums with it.
    pub(super) fn change(&mut self, s: usize, change: impl FnOnce(&mut ServerState)) {
        let snapshot = self.region.snapshot;
        let server = &snapshot.servers[s];
        let msb = snapshot.msb_of(server).ix();
        let before = self.usable_by(s);
        change(&mut self.region.servers[s]);
        let after = self.usable_by(s);
        if before == after {
            return;
        }
        for (r, joins) in [(before, false), (after, true)] {
            let Some(r) = r else { continue };
            self.count(r);
            let value = snapshot.value(server, r);
            let held = &mut self.held[r.ix()][msb];
            *held = if joins { *held + value } else { *held - value };
            let survives = snapshot.reservations[r.ix()].survives.iter();
            for (shares, of) in self.in_domains[r.ix()].iter_mut().zip(survives) {
                let Some(domain) = snapshot.partitions[of.ix()].of_servers[s] else { continue };
                let share = &mut shares[domain as usize];
                *share = if joins { *share + value } else { *share - value };
            }
            if self.region.is(Some(r), ReservationKind::SharedBuffer) {
                self.spares = if joins { self.spares + 1 } else { self.spares - 1 };
            }
        }
    }

    /// The row of a guaranteed reservation in the report.
    pub(super) fn row(&mut self, r: ReservationIx) -> Option<&mut ReservationReplay> {
        let id = &self.region.snapshot.reservations[r.ix()].id;
        let row = self.report.reservations.binary_search_by(|row| row.reservation.cmp(id)).ok()?;
        self.report.reservations.get_mut(row)
    }

    /// Adds the shortage of a reservation since the last call for it.
    pub(super) fn count(&mut self, r: ReservationIx) {
        let since = hours(self.now - self.counted[r.ix()]);
        self.counted[r.ix()] = self.now;
        let of = &self.region.snapshot.reservations[r.ix()];
        let available: Rru = self.held[r.ix()].iter().copied().sum();
        let in_msbs = self.held[r.ix()].iter().filter(|_| of.msb_buffer);
        let in_domains = self.in_domains[r.ix()].iter().flatten();
        let largest = in_msbs.chain(in_domains).copied().max().unwrap_or_default();
        let missing = self.missing[r.ix()];
        let Some(row) = self.row(r).filter(|_| since > 0.0) else { return };
        row.missing += missing.to_f64() * since;
        row.short += (of.capacity - available).or_zero().to_f64() * since;
        if of.msb_buffer || !of.survives.is_empty() {
            row.unguaranteed += (of.capacity - (available - largest)).or_zero().to_f64() * since;
        }
    }

    /// Adds a failed server to what a reservation waits for, or removes it.
    pub(super) fn waits_for(&mut self, s: usize, r: ReservationIx, waits: bool) {
        self.count(r);
        let snapshot = self.region.snapshot;
        let value = snapshot.value(&snapshot.servers[s], r);
        let missing = &mut self.missing[r.ix()];
        *missing = if waits { *missing + value } else { *missing - value };
    }

    /// Schedules a decision after the settling time.
    pub(super) fn decide_soon(&mut self) {
        self.decide_within(delta(self.settings.settle));
    }

    /// Schedules a decision, unless an earlier one is scheduled.
    pub(super) fn decide_within(&mut self, wait: TimeDelta) {
        let at = self.now + wait;
        if self.decide_at.is_none_or(|already| at < already) {
            self.decide_at = Some(at);
            self.heap.push(Reverse((at, Event::Decide)));
        }
    }

    /// The kinds of the downtimes that cover a server.
    pub(super) fn downtimes_of(&self, s: usize) -> impl Iterator<Item = UnavailabilityKind> {
        let active = self.active.get(&s).into_iter().flatten();
        active.map(|number| self.downtimes[*number].kind)
    }
}

//! Failures of a log replayed in virtual time, with the decisions of the mover that acts.
//!
//! A drill says what a shared buffer of some size is worth before anybody pays for it. Servers fail and
//! come back as the log says; the storm guard and the choice of spares are the very functions that the
//! mover calls, on a region held in memory. A move takes as long as one is said to take. Nothing here
//! waits, reads a clock or draws lots: the same log gives the same report.
//!
//! Between the solves of a drill, if there are any, nothing but the mover moves servers; a solve moves
//! them at once.

mod decide;

use chrono::{DateTime, TimeDelta, Utc};
use decisions::outage::StormGuard;
use fleet::{
    MsbIx, Name, RegionSnapshot, ReservationIx, ReservationKind, Rru, ServerIx, Targets,
    UnavailabilityKind,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

/// A server out of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downtime {
    /// The server.
    pub server: ServerIx,
    /// Why. A server in planned maintenance is still capacity (RAS section 3.3.1).
    pub kind: UnavailabilityKind,
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
    /// For how many hours, over all MSBs.
    pub lost_hours: f64,
    /// Times of planned maintenance, which takes no capacity.
    pub maintenance: u64,
    /// Solves.
    pub solves: u64,
    /// Servers that solves moved.
    pub moved_by_solves: u64,
    /// Servers in shared buffers that work: at the beginning, and the fewest.
    pub spares: (u64, u64),
    /// Guaranteed reservations, by name.
    pub reservations: Vec<ReservationDrill>,
}

/// Something that happens, in the order in which things of one instant do. Downtimes are numbered, and
/// so are servers that are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Ends(usize),
    Begins(usize),
    Bound(usize),
    Solve,
    Decide,
}

struct Owed {
    reservation: ReservationIx,
    since: DateTime<Utc>,
}

/// A server that does not work.
#[derive(Clone, Copy)]
struct Down {
    since: DateTime<Utc>,
    /// Whether a solve has seen that, and so has provided for it.
    seen: bool,
}

struct Drill<'a, S> {
    snapshot: &'a RegionSnapshot,
    downtimes: &'a [Downtime],
    settings: &'a DrillSettings,
    solve: S,
    now: DateTime<Utc>,
    heap: BinaryHeap<Reverse<(DateTime<Utc>, Happening)>>,
    /// Of each server: its owner, where it is going, and whether it works.
    owner: Vec<Option<ReservationIx>>,
    target: Vec<Option<Option<ReservationIx>>>,
    down: Vec<Option<Down>>,
    /// The downtimes that cover a server now.
    active: BTreeMap<usize, Vec<usize>>,
    /// By the server that failed.
    owed: BTreeMap<usize, Owed>,
    /// Spares on their way: for whom, and since when that one is missing.
    on_the_way: BTreeMap<usize, (usize, Owed)>,
    /// MSBs that count as lost, and since when.
    lost: BTreeMap<MsbIx, DateTime<Utc>>,
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
    let mut drill = Drill::new(snapshot, downtimes, settings, solve);
    for (number, downtime) in downtimes.iter().enumerate() {
        if downtime.from < snapshot.taken_at || downtime.from >= settings.until {
            continue;
        }
        drill.heap.push(Reverse((downtime.from, Happening::Begins(number))));
        // One that ends as it begins would end before it began.
        if let Some(until) = downtime.until {
            let until = until.max(downtime.from + TimeDelta::microseconds(1));
            drill.heap.push(Reverse((until, Happening::Ends(number))));
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
    fn new(
        snapshot: &'a RegionSnapshot,
        downtimes: &'a [Downtime],
        settings: &'a DrillSettings,
        solve: S,
    ) -> Self {
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
            downtimes,
            settings,
            solve,
            now: snapshot.taken_at,
            heap: BinaryHeap::new(),
            owner: vec![None; snapshot.servers.len()],
            target: vec![None; snapshot.servers.len()],
            down: vec![None; snapshot.servers.len()],
            active: BTreeMap::new(),
            owed: BTreeMap::new(),
            on_the_way: BTreeMap::new(),
            lost: BTreeMap::new(),
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
                Happening::Begins(downtime) => self.begins(downtime),
                Happening::Ends(downtime) => self.ends(downtime),
                Happening::Bound(server) => self.is_bound(server),
                Happening::Solve => self.solves(),
                Happening::Decide => self.decides(),
            }
            self.report.spares.1 = self.report.spares.1.min(self.spares);
        }
        self.now = self.settings.until;
        let now = self.now;
        self.report.lost_hours += self.lost.values().map(|since| hours(now - *since)).sum::<f64>();
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
        (self.down[s].is_none() && self.target[s].is_none()).then_some(self.owner[s]).flatten()
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
        self.decide_within(delta(self.settings.settle));
    }

    fn decide_within(&mut self, wait: TimeDelta) {
        let at = self.now + wait;
        if self.decide_at.is_none_or(|already| at < already) {
            self.decide_at = Some(at);
            self.heap.push(Reverse((at, Happening::Decide)));
        }
    }

    /// Whether an event covers a server that takes it out of use.
    fn fails(&self, s: usize) -> bool {
        let mut active = self.active.get(&s).into_iter().flatten();
        active.any(|number| !self.downtimes[*number].kind.is_planned())
    }

    fn begins(&mut self, downtime: usize) {
        let s = self.downtimes[downtime].server.ix();
        self.active.entry(s).or_default().push(downtime);
        if self.downtimes[downtime].kind.is_planned() {
            self.report.maintenance += 1;
        } else if self.down[s].is_none() {
            self.goes_down(s);
        }
    }

    fn ends(&mut self, downtime: usize) {
        let s = self.downtimes[downtime].server.ix();
        if let Some(active) = self.active.get_mut(&s) {
            active.retain(|number| *number != downtime);
            if active.is_empty() {
                self.active.remove(&s);
            }
        }
        if self.down[s].is_some() && !self.fails(s) {
            self.comes_up(s);
        }
    }

    fn goes_down(&mut self, s: usize) {
        let since = self.now;
        self.change(s, |drill| drill.down[s] = Some(Down { since, seen: false }));
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
        self.change(s, |drill| drill.down[s] = None);
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
        let Some(target) = self.target[s].filter(|_| self.down[s].is_none()) else { return };
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
}

#[cfg(test)]
mod tests;

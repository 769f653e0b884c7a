//! Replays a log of failures in virtual time, with the functions that decide in a live region.
//!
//! A replay shows the value of a shared buffer of some size before it is paid for. Servers fail and return
//! as in the log; the storm guard and the choice of spares are those of a live region. Every move takes
//! the same time. Nothing waits, reads a clock or is random: the same log gives the same report.
//!
//! Between solves only replacements move servers; a solve moves servers at once.

mod decide;
mod report;
mod state;

use crate::region::Down;
use chrono::TimeDelta;
use fleet::{RegionSnapshot, ReservationIx, Targets};
pub use report::{Downtime, ReplayReport, ReplaySettings, ReservationReplay};
use state::{Event, Owed, Replay, delta, hours};
use std::cmp::Reverse;

/// Replays failures. Downtimes that begin before the snapshot or after the end are left out, and all
/// servers work at the start. `solve` gives targets for a region; it is called at the interval of the
/// settings.
pub fn replay(
    snapshot: &RegionSnapshot,
    downtimes: &[Downtime],
    settings: &ReplaySettings,
    solve: impl FnMut(&RegionSnapshot) -> Targets,
) -> ReplayReport {
    let mut replay = Replay::new(snapshot, downtimes, settings, solve);
    for (number, downtime) in downtimes.iter().enumerate() {
        if downtime.from < snapshot.taken_at || downtime.from >= settings.until {
            continue;
        }
        replay.heap.push(Reverse((downtime.from, Event::DowntimeBegins(number))));
        // An end at the instant of the start would be handled before it.
        if let Some(until) = downtime.until {
            let until = until.max(downtime.from + TimeDelta::microseconds(1));
            replay.heap.push(Reverse((until, Event::DowntimeEnds(number))));
        }
    }
    if let Some(every) = settings.solve_every {
        replay.heap.push(Reverse((snapshot.taken_at + delta(every), Event::Solve)));
    }
    replay.run()
}

impl<S: FnMut(&RegionSnapshot) -> Targets> Replay<'_, S> {
    fn run(mut self) -> ReplayReport {
        while let Some(Reverse((at, event))) = self.heap.pop() {
            if at >= self.settings.until {
                break;
            }
            self.now = at;
            match event {
                Event::DowntimeBegins(downtime) => self.downtime_begins(downtime),
                Event::DowntimeEnds(downtime) => self.downtime_ends(downtime),
                Event::ServerBound(server) => self.server_bound(server),
                Event::Solve => self.solve(),
                Event::Decide => self.decide(),
            }
            self.report.spares.1 = self.report.spares.1.min(self.spares);
        }
        self.now = self.settings.until;
        let now = self.now;
        let lost = self.lost_since.values().map(|since| hours(now - *since));
        self.report.lost_hours += lost.sum::<f64>();
        for r in 0..self.region.snapshot.reservations.len() {
            self.count(ReservationIx::new(r));
        }
        self.report.owed = self.owed.len() as u64;
        self.report.waits.sort_by(f64::total_cmp);
        self.report
    }

    fn downtime_begins(&mut self, downtime: usize) {
        let s = self.downtimes[downtime].server.ix();
        self.active.entry(s).or_default().push(downtime);
        if self.downtimes[downtime].kind.is_planned() {
            self.report.maintenance += 1;
        } else if self.region.servers[s].down.is_none() {
            self.server_fails(s);
        }
    }

    fn downtime_ends(&mut self, downtime: usize) {
        let s = self.downtimes[downtime].server.ix();
        if let Some(active) = self.active.get_mut(&s) {
            active.retain(|number| *number != downtime);
            if active.is_empty() {
                self.active.remove(&s);
            }
        }
        let failed = self.downtimes_of(s).any(|kind| !kind.is_planned());
        if self.region.servers[s].down.is_some() && !failed {
            self.server_recovers(s);
        }
    }

    fn server_fails(&mut self, s: usize) {
        let down = Down { failed_at: Some(self.now), ..Down::default() };
        self.change(s, |state| state.down = Some(down));
        // If a spare fails on its way, its reservation goes on waiting since the first failure.
        let since = match self.on_the_way.remove(&s) {
            Some((failed, of)) => {
                self.waits_for(failed, of.reservation, false);
                of.since
            }
            None => self.now,
        };
        if let Some(r) = self.guaranteed(self.region.servers[s].holder()) {
            if since == self.now {
                self.report.failures += 1;
                if let Some(row) = self.row(r) {
                    row.failures += 1;
                }
            }
            self.waits_for(s, r, true);
            self.owed.insert(s, Owed { reservation: r, since });
        }
        self.decide_soon();
    }

    fn server_recovers(&mut self, s: usize) {
        self.change(s, |state| state.down = None);
        if let Some(of) = self.owed.remove(&s) {
            self.waits_for(s, of.reservation, false);
            self.report.recovered += 1;
        }
        if self.region.servers[s].target.is_some() {
            let bound = self.now + delta(self.settings.move_takes);
            self.heap.push(Reverse((bound, Event::ServerBound(s))));
        }
        self.decide_soon();
    }

    fn server_bound(&mut self, s: usize) {
        let state = &self.region.servers[s];
        // A server that failed during its move is bound after its repair.
        let Some(target) = state.target.filter(|_| state.down.is_none()) else { return };
        self.change(s, |state| {
            state.owner = target;
            state.target = None;
        });
        match self.on_the_way.remove(&s) {
            Some((failed, of)) => {
                self.waits_for(failed, of.reservation, false);
                self.report.replaced += 1;
                self.report.waits.push((self.now - of.since).as_seconds_f64());
                self.replaced.insert(failed, (of.reservation, s));
                self.decide_soon();
            }
            None => match self.returning.remove(&s) {
                Some(spare) => {
                    self.report.home += 1;
                    self.free_spare(spare, target);
                }
                None => {
                    self.report.returned += 1;
                    self.decide_soon();
                }
            },
        }
    }
}

#[cfg(test)]
mod tests;

//! What is decided in a drill, with the very functions that the mover calls, and what solves do.

use super::{Drill, Happening, delta, hours};
use chrono::TimeDelta;
use decisions::outage::{self, MsbHealth, OutServer, OutageReason};
use decisions::place::PlaceLimits;
use decisions::replace::{self, Failed, Spare, Worth};
use fleet::{
    MsbIx, RegionSnapshot, ReservationIx, ReservationKind, SnapshotParts, Targets,
    UnavailabilityKind, UnavailabilityRow, is_stand_in,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// How soon a storm is judged again.
const LOOK_AGAIN: TimeDelta = TimeDelta::minutes(1);

impl<S: FnMut(&RegionSnapshot) -> Targets> Drill<'_, S> {
    fn judge(&mut self) {
        let snapshot = self.snapshot;
        let mut out: BTreeMap<MsbIx, MsbHealth> = BTreeMap::new();
        for (s, down) in self.down.iter().enumerate().filter_map(|(s, of)| Some((s, (*of)?))) {
            let server = &snapshot.servers[s];
            let msb = snapshot.msb_of(server);
            let health = out.entry(msb).or_insert_with(|| MsbHealth {
                msb: snapshot.msbs[msb.ix()].id.clone(),
                servers: self.sizes[msb.ix()],
                out: 0,
                failed: Vec::new(),
                reported: false,
                was_lost: self.lost.contains_key(&msb),
            });
            health.out += 1;
            health.reported |= self.active.get(&s).into_iter().flatten().any(|number| {
                self.downtimes[*number].kind == UnavailabilityKind::CorrelatedFailure
            });
            if !down.seen {
                let known = !is_stand_in(&snapshot.racks[server.rack.ix()].id, &health.msb);
                let rack = i32::try_from(server.rack.ix()).ok().filter(|_| known);
                health.failed.push(OutServer { since: down.since, rack });
            }
        }
        let health_of: Vec<MsbHealth> = out.values().cloned().collect();
        let lost = outage::lost(&health_of, &self.settings.storm_guard, self.now);
        let now = self.now;
        let lost_now: BTreeMap<MsbIx, OutageReason> = (out.iter())
            .filter_map(|(msb, health)| Some((*msb, *lost.get(&health.msb)?)))
            .collect();
        let begun = lost_now.keys().filter(|msb| !self.lost.contains_key(msb));
        self.report.storms += begun.count() as u64;
        for (_, since) in self.lost.iter().filter(|(msb, _)| !lost_now.contains_key(msb)) {
            self.report.lost_hours += hours(now - *since);
        }
        self.lost =
            lost_now.keys().map(|msb| (*msb, self.lost.get(msb).copied().unwrap_or(now))).collect();
        // A storm ends although nothing happens: the mover looks again, and so does this.
        if lost_now.values().any(|reason| *reason == OutageReason::Storm) {
            self.decide_within(LOOK_AGAIN);
        }
    }

    pub(super) fn decides(&mut self) {
        self.decide_at = None;
        self.judge();
        let snapshot = self.snapshot;
        let name = |r: ReservationIx| snapshot.reservations[r.ix()].id.clone();
        let failed: Vec<Failed> = (self.owed.iter())
            .filter(|(s, _)| !self.lost.contains_key(&snapshot.msb_of(&snapshot.servers[**s])))
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
                self.kind(owner) == ReservationKind::SharedBuffer && !self.lost.contains_key(&msb);
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
            worth.places.insert(of.id.clone(), PlaceLimits::of(snapshot, of));
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
            for number in self.active.get(&s).into_iter().flatten() {
                let downtime = &self.downtimes[*number];
                parts.unavailability.push(UnavailabilityRow {
                    event_id: format!("downtime {number}").into(),
                    scope: fleet::Scope::Server.as_str().into(),
                    scope_id: row.server_id.clone(),
                    kind: downtime.kind.as_str().into(),
                    started_at: downtime.from,
                    ended_at: None,
                    recall_minutes: None,
                });
            }
        }
        parts
    }

    pub(super) fn solves(&mut self) {
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
            if self.on_the_way.contains_key(&s) || self.down[s].is_some() {
                continue;
            }
            self.report.moved_by_solves += 1;
            self.change(s, |drill| {
                drill.owner[s] = target;
                drill.target[s] = None;
            });
        }
        // What failed before it, it has seen and provided for.
        self.down.iter_mut().flatten().for_each(|down| down.seen = true);
        for (s, of) in std::mem::take(&mut self.owed) {
            self.lacks(s, of.reservation, false);
            self.report.paid += 1;
        }
        self.decide_soon();
    }
}

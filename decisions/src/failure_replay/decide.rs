//! The decisions of a replay, and its solves.

use super::state::{Event, Replay, delta, hours};
use crate::domains::{Domain, survived};
use crate::limits::Room;
use crate::outage::{self, MsbHealth, OutageReason};
use crate::replace::{self, Failed, Repaired, Spare, SpareContext};
use chrono::TimeDelta;
use fleet::{
    MsbIx, RegionSnapshot, Reservation, ReservationIx, ReservationKind, Scope, ServerIx,
    SnapshotParts, Targets, UnavailabilityKind, UnavailabilityRow,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The interval at which a storm is judged again. It ends with time, without any event.
const LOOK_AGAIN: TimeDelta = TimeDelta::minutes(1);

impl<S: FnMut(&RegionSnapshot) -> Targets> Replay<'_, S> {
    /// Decides which MSBs are lost.
    fn judge(&mut self) {
        let failed: Vec<usize> = (0..self.region.servers.len())
            .filter(|s| self.region.servers[*s].down.is_some())
            .collect();
        for s in failed {
            let reported =
                self.downtimes_of(s).any(|kind| kind == UnavailabilityKind::CorrelatedFailure);
            if let Some(down) = &mut self.region.servers[s].down {
                down.reported = reported;
            }
        }
        let health = MsbHealth::all(&self.region);
        let lost = outage::lost(&health, &self.settings.storm_guard, self.now);
        let now = self.now;
        let msbs = self.region.snapshot.msbs.iter().enumerate();
        let lost_now: BTreeMap<MsbIx, OutageReason> =
            msbs.filter_map(|(m, msb)| Some((MsbIx::new(m), *lost.get(&msb.id)?))).collect();
        let begun = lost_now.keys().filter(|msb| !self.lost_since.contains_key(msb));
        self.report.storms += begun.count() as u64;
        for (_, since) in self.lost_since.iter().filter(|(msb, _)| !lost_now.contains_key(msb)) {
            self.report.lost_hours += hours(now - *since);
        }
        let since = |msb: &MsbIx| self.lost_since.get(msb).copied().unwrap_or(now);
        self.lost_since = lost_now.keys().map(|msb| (*msb, since(msb))).collect();
        self.region.lost = lost_now.keys().copied().collect();
        if lost_now.values().any(|reason| *reason == OutageReason::Storm) {
            self.decide_within(LOOK_AGAIN);
        }
    }

    /// Decides which MSBs are lost and which spares replace failed servers.
    pub(super) fn decide(&mut self) {
        self.decide_at = None;
        self.judge();
        let snapshot = self.region.snapshot;
        let lost = |s: usize| self.region.lost.contains(&snapshot.msb_of(&snapshot.servers[s]));
        let failed: Vec<Failed> = (self.owed.iter())
            .filter(|(s, _)| !lost(**s))
            .map(|(s, of)| Failed::of(snapshot, &snapshot.servers[*s], of.reservation, of.since))
            .collect();
        self.report.owed_most = self.report.owed_most.max(self.owed.len() as u64);
        if failed.is_empty() {
            self.return_repaired();
            return;
        }
        let short: BTreeSet<ReservationIx> = self.owed.values().map(|of| of.reservation).collect();
        let worth = SpareContext::of(&self.region, &short);
        let spares = Spare::all(&self.region, &worth.partitions(), failed.len());
        for swap in replace::choose(&failed, &spares, &worth, &mut Room::default()) {
            let (Some(failed), Some(spare)) =
                (snapshot.server(&swap.failed), snapshot.server(&swap.spare))
            else {
                continue;
            };
            let (failed, spare) = (failed.ix(), spare.ix());
            let Some(of) = self.owed.remove(&failed) else { continue };
            self.returning.remove(&failed);
            let buffer = self.buffer_of(failed);
            self.change(spare, |state| state.target = Some(Some(of.reservation)));
            self.change(failed, |state| {
                state.target = (state.owner != buffer).then_some(buffer);
            });
            self.on_the_way.insert(spare, (failed, of));
            let at = self.now + delta(self.settings.move_takes);
            self.heap.push(Reverse((at, Event::ServerBound(spare))));
        }
        self.return_repaired();
    }

    /// Returns repaired servers to the reservations that have spares instead.
    fn return_repaired(&mut self) {
        let snapshot = self.region.snapshot;
        let works_for = |s: usize, holder: Option<ReservationIx>| {
            let state = &self.region.servers[s];
            state.owner == holder && state.target.is_none() && state.is_in_service()
        };
        let name = |s: usize| {
            let server = &snapshot.servers[s];
            let msb = &snapshot.msbs[snapshot.msb_of(server).ix()].id;
            let ty = &snapshot.hardware_types[server.hardware_type.ix()];
            (server.id.clone(), msb.clone(), ty.clone())
        };
        let lost = |s: usize| self.region.lost.contains(&snapshot.msb_of(&snapshot.servers[s]));
        let mut repaired = Vec::new();
        let mut holders = BTreeSet::new();
        for (&failed, &(reservation, spare)) in &self.replaced {
            let idle = !self.region.servers[spare].in_use;
            let buffer = self.buffer_of(failed);
            let ready = buffer.is_some() && works_for(failed, buffer) && !lost(failed);
            if !idle || !ready || !works_for(spare, Some(reservation)) {
                continue;
            }
            let (server, msb, hardware_type) = name(failed);
            let (spare_name, spare_msb, spare_hardware_type) = name(spare);
            let of = &snapshot.reservations[reservation.ix()];
            let survives = survived(snapshot, of);
            let domains = |s: usize| Domain::of(snapshot, ServerIx::new(s), &survives);
            holders.insert(reservation);
            repaired.push(Repaired {
                server,
                msb,
                domains: domains(failed),
                hardware_type,
                reservation: of.id.clone(),
                capacity: of.capacity,
                msb_buffer: of.msb_buffer,
                spare: spare_name,
                spare_msb,
                spare_domains: domains(spare),
                spare_hardware_type,
            });
        }
        if repaired.is_empty() {
            return;
        }
        let context = SpareContext::of(&self.region, &holders);
        for of in replace::returning(&repaired, &context, &mut Room::default()) {
            let Some(home) = snapshot.server(&of.server).map(ServerIx::ix) else { continue };
            let Some((reservation, spare)) = self.replaced.remove(&home) else { continue };
            self.change(home, |state| state.target = Some(Some(reservation)));
            self.returning.insert(home, spare);
            let at = self.now + delta(self.settings.move_takes);
            self.heap.push(Reverse((at, Event::ServerBound(home))));
        }
    }

    /// Sends a spare back to its shared buffer when the server it replaced is back.
    pub(super) fn free_spare(&mut self, spare: usize, holder: Option<ReservationIx>) {
        let state = &self.region.servers[spare];
        let serves = state.owner == holder && state.target.is_none() && state.down.is_none();
        if !serves || state.in_use {
            return;
        }
        let buffer = self.buffer_of(spare);
        self.change(spare, |state| state.target = Some(buffer));
        let at = self.now + delta(self.settings.move_takes);
        self.heap.push(Reverse((at, Event::ServerBound(spare))));
    }

    /// The shared buffer of a server's hardware type.
    fn buffer_of(&self, s: usize) -> Option<ReservationIx> {
        let snapshot = self.region.snapshot;
        let hardware_type = snapshot.servers[s].hardware_type;
        let of_type = |of: &Reservation| {
            of.kind == ReservationKind::SharedBuffer && of.value(hardware_type).is_some()
        };
        snapshot.reservations.iter().position(of_type).map(ReservationIx::new)
    }

    /// The region as it is now.
    fn parts(&self) -> SnapshotParts {
        let mut parts = self.region.snapshot.to_parts();
        let name = |r: ReservationIx| self.region.snapshot.reservations[r.ix()].id.clone();
        parts.taken_at = self.now;
        parts.unavailability.clear();
        for (s, (row, state)) in parts.servers.iter_mut().zip(&self.region.servers).enumerate() {
            row.current_reservation = state.owner.map(name);
            row.target_pending = state.target.is_some();
            row.target_reservation = state.target.flatten().map(name);
            for number in self.active.get(&s).into_iter().flatten() {
                let downtime = &self.downtimes[*number];
                parts.unavailability.push(UnavailabilityRow {
                    event_id: format!("downtime {number}").into(),
                    scope: Scope::Server.as_str().into(),
                    scope_id: row.server_id.clone().into(),
                    kind: downtime.kind.as_str().into(),
                    started_at: downtime.from,
                    ended_at: None,
                    recall_minutes: None,
                });
            }
        }
        parts
    }

    /// Solves the region and moves servers to their targets at once.
    pub(super) fn solve(&mut self) {
        if let Some(every) = self.settings.solve_every {
            self.heap.push(Reverse((self.now + delta(every), Event::Solve)));
        }
        let Ok(region) = RegionSnapshot::new(self.parts()) else {
            debug_assert!(false, "the parts of a region are valid");
            return;
        };
        let targets = (self.solve)(&region);
        self.report.solves += 1;
        for of in targets.diff(&region) {
            let s = of.server.ix();
            let snapshot = self.region.snapshot;
            let target =
                of.target.and_then(|r| snapshot.reservation(&region.reservations[r.ix()].id));
            let moves = self.on_the_way.contains_key(&s) || self.returning.contains_key(&s);
            if moves || self.region.servers[s].down.is_some() {
                continue;
            }
            self.report.moved_by_solves += 1;
            self.change(s, |state| {
                state.owner = target;
                state.target = None;
            });
        }
        // The solve has provided for every failure before it.
        for down in self.region.servers.iter_mut().filter_map(|state| state.down.as_mut()) {
            down.seen = true;
        }
        for (s, of) in std::mem::take(&mut self.owed) {
            self.waits_for(s, of.reservation, false);
            self.report.paid += 1;
        }
        self.decide_soon();
    }
}

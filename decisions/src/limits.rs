//! What the policies in force leave room for, between two solves.
//!
//! Policies are compiled elsewhere, for a region of some seconds ago, to limits of groups: what a server counts in which
//! row, by the reservation that gets it. A decision adds and subtracts these numbers. It restores a guarantee first: a limit
//! only chooses among servers that serve it equally. What a decision exceeds all the same is named, and the next solve mends
//! it.

use chrono::{DateTime, Utc};
use fleet::{
    RegionSnapshot, ReservationIx, ReservationKind, ReservationName, ServerIx, ServerName,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The limits of the policies in force, compiled for a region.
pub trait RegionLimits: fmt::Debug + Send + Sync {
    /// The region.
    fn region(&self) -> &RegionSnapshot;

    /// The name of a row, and what it may add up to.
    fn limit(&self, row: u32) -> (&str, i64);

    /// Equal for servers that count alike.
    fn kind(&self, server: ServerIx) -> u32;

    /// The rows in which a server counts while a reservation holds it, and how much.
    fn counts(&self, server: ServerIx, holder: ReservationIx) -> &[(u32, i64)];
}

/// What rows of limits add up to while decisions are taken; without limits by default. A server or reservation that the
/// region did not have yet counts in no row.
#[derive(Clone, Debug, Default)]
pub struct Room {
    limits: Option<Arc<dyn RegionLimits>>,
    /// What each row adds up to.
    used: Vec<i64>,
    /// Holders that have changed since the region was read.
    changed: BTreeMap<ServerIx, Option<ReservationIx>>,
}

impl Room {
    /// The room of a region. `used`: what each row adds up to with its holders.
    pub fn new(limits: Arc<dyn RegionLimits>, used: Vec<i64>) -> Room {
        Room { limits: Some(limits), used, changed: BTreeMap::new() }
    }

    /// The instant of the region; `None`: there are no limits.
    pub fn taken_at(&self) -> Option<DateTime<Utc>> {
        self.limits.as_ref().map(|limits| limits.region().taken_at)
    }

    /// The name of each row, what it may add up to, and what it adds up to.
    pub fn rows(&self) -> impl Iterator<Item = (&str, i64, i64)> {
        let limits = self.limits.iter();
        limits.flat_map(|limits| {
            (0..).zip(&self.used).map(|(row, used)| {
                let (name, most) = limits.limit(row);
                (name, most, *used)
            })
        })
    }

    /// A number that servers share which count alike.
    pub fn kind(&self, server: &ServerName) -> u32 {
        let kind = |of: &Arc<dyn RegionLimits>| Some(of.kind(of.region().server(server)?));
        self.limits.as_ref().and_then(kind).unwrap_or(u32::MAX)
    }

    /// Notes the next holder of a server.
    pub fn goes(&mut self, server: &ServerName, to: Option<&ReservationName>) {
        let Some(limits) = &self.limits else { return };
        let Some(server) = limits.region().server(server) else { return };
        let to = to.and_then(|to| limits.region().reservation(to));
        self.set(server, to);
    }

    /// Notes that a server goes to the shared buffer of its type, or becomes free without one. Returns the server and who
    /// held it; `None`: it is not known.
    pub fn becomes_spare(
        &mut self,
        server: &ServerName,
    ) -> Option<(ServerIx, Option<ReservationIx>)> {
        let limits = self.limits.clone()?;
        let region = limits.region();
        let server = region.server(server)?;
        let ty = region.servers[server.ix()].hardware_type;
        let buffer = region
            .reservations
            .iter()
            .position(|of| of.kind == ReservationKind::SharedBuffer && of.value(ty).is_some());
        let before = self.holder(&*limits, server);
        self.set(server, buffer.map(ReservationIx::new));
        Some((server, before))
    }

    /// Notes the next holder of a server that is known.
    pub fn set(&mut self, server: ServerIx, to: Option<ReservationIx>) {
        let Some(limits) = self.limits.clone() else { return };
        let from = self.holder(&*limits, server);
        for (holder, sign) in [(from, -1), (to, 1)] {
            for &(row, amount) in holder.map_or(&[][..], |holder| limits.counts(server, holder)) {
                self.used[row as usize] += sign * amount;
            }
        }
        self.changed.insert(server, to);
    }

    fn holder(&self, limits: &dyn RegionLimits, server: ServerIx) -> Option<ReservationIx> {
        let known = self.changed.get(&server).copied();
        known.unwrap_or_else(|| limits.region().servers[server.ix()].holder())
    }

    /// Whether a reservation may get a server without a row above its bound that is not above it, or less so, without it.
    pub fn keeps(&self, server: &ServerName, to: &ReservationName) -> bool {
        let Some(limits) = self.limits.as_deref() else { return true };
        let (server, to) = (limits.region().server(server), limits.region().reservation(to));
        let (Some(server), Some(to)) = (server, to) else { return true };
        let from = self.holder(limits, server);
        let leaves = from.map_or(&[][..], |from| limits.counts(server, from));
        limits.counts(server, to).iter().all(|&(row, amount)| {
            let left = leaves.iter().find(|of| of.0 == row).map_or(0, |of| of.1);
            let then = self.used[row as usize] - left + amount;
            amount <= left || then <= limits.limit(row).1
        })
    }

    /// The rows that are above their bounds, further than `before`, and in which servers count that reservations got since.
    pub fn exceeded_since<'a>(
        &self,
        before: &Room,
        got: impl IntoIterator<Item = (&'a ServerName, &'a ReservationName)>,
    ) -> Vec<String> {
        let Some(limits) = self.limits.as_deref() else { return Vec::new() };
        let region = limits.region();
        let mut rows = BTreeSet::new();
        for (server, to) in got {
            let (Some(server), Some(to)) = (region.server(server), region.reservation(to)) else {
                continue;
            };
            rows.extend(limits.counts(server, to).iter().map(|of| of.0));
        }
        let used = |room: &Room, row: u32| room.used.get(row as usize).copied().unwrap_or(0);
        rows.retain(|&row| {
            used(self, row) > limits.limit(row).1 && used(self, row) > used(before, row)
        });
        rows.into_iter().map(|row| limits.limit(row).0.to_owned()).collect()
    }
}

#[cfg(test)]
mod tests;

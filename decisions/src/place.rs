//! Where guaranteed reservations may have servers between two solves, and how many in one MSB: what
//! replacements, emergencies and giving way must keep as a solve does.

use fleet::{Name, RegionSnapshot, ReplicaRule, Reservation, Rru};
use std::collections::BTreeSet;

/// The rules of places of one reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceLimits {
    /// The MSBs of the datacenters it is held to; `None`: all.
    pub msbs: Option<BTreeSet<Name>>,
    /// How much of it one MSB may hold, if that is limited.
    pub rule: Option<ReplicaRule>,
    /// C.
    pub capacity: Rru,
}

impl PlaceLimits {
    /// Those of a reservation of a snapshot.
    pub fn of(snapshot: &RegionSnapshot, of: &Reservation) -> PlaceLimits {
        let allowed = snapshot.msbs.iter().filter(|msb| of.allows(msb.datacenter));
        let held_to = !of.allowed_datacenters.is_empty();
        PlaceLimits {
            msbs: held_to.then(|| allowed.map(|msb| msb.id.clone()).collect()),
            rule: of.replica_rule,
            capacity: of.capacity,
        }
    }

    /// Whether there is any rule: else every MSB may hold any amount.
    pub fn has_rule(&self) -> bool {
        self.msbs.is_some() || self.rule.is_some()
    }

    /// Whether it may have servers in an MSB.
    pub fn allows(&self, msb: &Name) -> bool {
        self.msbs.as_ref().is_none_or(|msbs| msbs.contains(msb))
    }

    /// The most RRU that it may have in one MSB, were it promised `more`.
    pub fn msb_max(&self, more: Rru) -> Rru {
        self.rule.map_or(Rru(i64::MAX), |rule| rule.msb_max(self.capacity + more))
    }

    /// Whether it may have this much in an MSB.
    pub fn fits(&self, msb: &Name, amount: Rru) -> bool {
        self.allows(msb) && amount <= self.msb_max(Rru::ZERO)
    }
}

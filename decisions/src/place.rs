//! Placement rules of guaranteed reservations: allowed datacenters and replica rules. Replacements, emergency
//! grants and preemption keep them, as solves do.

use fleet::{MsbName, RegionSnapshot, ReplicaRule, Reservation, Rru};
use std::collections::BTreeSet;

/// The placement rules of one reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceLimits {
    /// The MSBs of its allowed datacenters; `None`: all MSBs.
    pub msbs: Option<BTreeSet<MsbName>>,
    /// The replica rule, if it has one.
    pub rule: Option<ReplicaRule>,
    /// C.
    pub capacity: Rru,
}

impl PlaceLimits {
    /// The rules of a reservation of a snapshot.
    pub fn of(snapshot: &RegionSnapshot, of: &Reservation) -> PlaceLimits {
        let allowed = snapshot.msbs.iter().filter(|msb| of.allows(msb.datacenter));
        let held_to = !of.allowed_datacenters.is_empty();
        PlaceLimits {
            msbs: held_to.then(|| allowed.map(|msb| msb.id.clone()).collect()),
            rule: of.replica_rule,
            capacity: of.capacity,
        }
    }

    /// Whether any rule exists. Without one every MSB may hold any amount.
    pub fn has_rule(&self) -> bool {
        self.msbs.is_some() || self.rule.is_some()
    }

    /// Whether the reservation may hold servers in an MSB.
    pub fn allows(&self, msb: &MsbName) -> bool {
        self.msbs.as_ref().is_none_or(|msbs| msbs.contains(msb))
    }

    /// The most RRU that the reservation may hold in one MSB if its capacity grows by `more`.
    pub fn msb_max(&self, more: Rru) -> Rru {
        self.rule.map_or(Rru(i64::MAX), |rule| rule.msb_max(self.capacity + more))
    }

    /// Whether the reservation may hold this much in an MSB.
    pub fn fits(&self, msb: &MsbName, amount: Rru) -> bool {
        self.allows(msb) && amount <= self.msb_max(Rru::ZERO)
    }
}

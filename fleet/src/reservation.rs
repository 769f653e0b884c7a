//! A reservation: a logical cluster with guaranteed capacity.

use crate::id::{DatacenterIx, HardwareTypeIx, Name, OwnerName, PartitionIx, ReservationName};
use crate::rru::Rru;
use serde::{Deserialize, Serialize};

/// What a reservation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReservationKind {
    /// Capacity promised to an owner.
    Guaranteed,
    /// Random-failure buffer of one hardware type, counted in servers.
    SharedBuffer,
    /// Revocable use of idle buffer servers; the solver assigns nothing to it.
    Elastic,
}

impl ReservationKind {
    /// The word of the snapshot format.
    pub const fn as_str(self) -> &'static str {
        match self {
            ReservationKind::Guaranteed => "guaranteed",
            ReservationKind::SharedBuffer => "shared_buffer",
            ReservationKind::Elastic => "elastic",
        }
    }

    /// Reads the word of the snapshot format.
    pub fn parse(word: &str) -> Option<ReservationKind> {
        [ReservationKind::Guaranteed, ReservationKind::SharedBuffer, ReservationKind::Elastic]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

/// A hard spread rule for replicated storage: of `replicas` copies of everything, at most
/// `per_msb` may be lost with any one MSB.
///
/// No MSB holds more than `per_msb / replicas` of C_r, the embedded buffer included, so that at
/// least `(replicas - per_msb) / replicas` of C_r is left after the loss of any one MSB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaRule {
    /// n: copies of everything, at least 1.
    pub replicas: u32,
    /// k: copies that one MSB may hold, 1 to n.
    pub per_msb: u32,
}

impl ReplicaRule {
    /// The most RRU of a reservation of this capacity in one MSB: k/n of it, rounded down to whole
    /// micro-RRU.
    pub fn msb_max(self, capacity: Rru) -> Rru {
        let most = i128::from(capacity.0) * i128::from(self.per_msb) / i128::from(self.replicas);
        Rru(i64::try_from(most).expect("k of n is at most the whole"))
    }
}

/// A reservation and its placement policy.
///
/// **Default spread limits.** Where neither the reservation nor the region's weights give an
/// alpha, the limit of a scope (alpha C_r of eq. 2 and 3) is `max(1.5 C_r / (n - 1), V_max)` for
/// MSBs and `max(2 C_r / n, V_max)` for racks. `n` counts the MSBs or racks that hold at least
/// one available server of an eligible type (the quotient counts as C_r when `n` is 1 or less for
/// MSBs, 0 for racks) and `V_max` is the largest value among the types of those servers. So an
/// even spread with half as much again is within the goal, and one server never exceeds it.
/// Limits are rounded to the nearest micro-RRU.
#[derive(Clone, Debug, PartialEq)]
pub struct Reservation {
    /// Its name.
    pub id: ReservationName,
    /// The business unit that asked for it.
    pub owner: OwnerName,
    /// What it is for.
    pub kind: ReservationKind,
    /// C_r: requested capacity. Zero for elastic reservations.
    pub capacity: Rru,
    /// Whether the capacity must survive the loss of any one MSB (eq. 6). False for shared
    /// buffers and elastic reservations, regardless of their row.
    pub msb_buffer: bool,
    /// 0 is the most important.
    pub priority: i32,
    /// Own alpha^F.
    pub msb_alpha: Option<f64>,
    /// Own alpha^K.
    pub rack_alpha: Option<f64>,
    /// Own theta.
    pub affinity_theta: Option<f64>,
    /// OS configuration wanted on its servers.
    pub host_profile: Option<Name>,
    /// V_r: value of each eligible hardware type, ordered by type. A type that is not here is not
    /// eligible.
    pub rru: Vec<(HardwareTypeIx, Rru)>,
    /// A_r: share wanted in each datacenter it names, ordered by datacenter. Empty: no affinity.
    pub affinity: Vec<(DatacenterIx, f64)>,
    /// The datacenters it is held to, its embedded buffer included, in order. Empty: all.
    pub allowed_datacenters: Vec<DatacenterIx>,
    /// How much of it one MSB may hold at most, if that is limited.
    pub replica_rule: Option<ReplicaRule>,
    /// The partitions of which it survives the loss of any one domain, besides MSBs, in order.
    pub survives: Vec<PartitionIx>,
    /// Whether this shared buffer was made from the snapshot's fraction rather than listed.
    pub made: bool,
}

impl Reservation {
    /// V_{s,r} of a server of this type; `None`: not eligible.
    pub fn value(&self, hardware_type: HardwareTypeIx) -> Option<Rru> {
        let found = self.rru.binary_search_by_key(&hardware_type, |&(ty, _)| ty).ok()?;
        Some(self.rru[found].1)
    }

    /// The value of the hardware type that it values most; zero without eligible types.
    pub fn largest_value(&self) -> Rru {
        self.rru.iter().map(|&(_, value)| value).max().unwrap_or_default()
    }

    /// Whether it may have servers in a datacenter.
    pub fn allows(&self, datacenter: DatacenterIx) -> bool {
        self.allowed_datacenters.is_empty()
            || self.allowed_datacenters.binary_search(&datacenter).is_ok()
    }

    /// The most RRU it may have in one MSB by its replica rule; `None`: no limit. A reservation of no
    /// capacity promises nothing, so nothing limits it.
    pub fn msb_max(&self) -> Option<Rru> {
        let rule = self.replica_rule.filter(|_| self.capacity > Rru::ZERO);
        rule.map(|rule| rule.msb_max(self.capacity))
    }

    /// A_{r,G}: the share wanted in a datacenter; `None`: the reservation has no affinity at all.
    pub fn share(&self, datacenter: DatacenterIx) -> Option<f64> {
        if self.affinity.is_empty() {
            return None;
        }
        let named = self.affinity.binary_search_by_key(&datacenter, |&(dc, _)| dc);
        Some(named.map_or(0.0, |found| self.affinity[found].1))
    }
}

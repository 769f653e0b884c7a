//! An irreducible set of named limits that blocks a reservation.
//!
//! Each limit can be lifted hypothetically: then more servers are available, or less is required of
//! them. A set of limits refuses if with all others lifted the reservation still cannot be granted.
//! Limits are removed from the full set one by one while it still refuses; what remains is irreducible
//! (as an irreducible infeasible subsystem of a linear program is). There may be other such sets; the
//! order in which limits are tried prefers to blame what an owner can change.

use super::grant::{Ask, Offer};
use super::ledger::{Held, Ledger};
use super::outside::Narrowest;
use super::reason::ShortfallReason;
use super::relax::{FurtherType, ask, further_types};
use super::text::{amount, amounts, counted};
use crate::audit::{as_rru, from_rru};
use crate::id::{HardwareTypeIx, MsbIx, ReservationIx};
use crate::reservation::ReservationKind;
use crate::rru::Rru;
use crate::server::Server;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What may block a reservation: a closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitName {
    /// Servers of its types that are unavailable now.
    UnavailableServers,
    /// Servers of its types kept in shared buffers for failures.
    SharedBuffers,
    /// Servers of its types that other reservations hold: what holds must hold.
    HeldByOthers,
    /// It accepts no other hardware types (of those whose value to it can be told).
    HardwareTypes,
    /// The datacenters it is held to.
    AllowedDatacenters,
    /// Its datacenter shares.
    Affinity,
    /// How much of it one MSB may hold.
    ReplicaRule,
    /// It must survive the loss of any one MSB.
    MsbBuffer,
    /// It must survive the loss of any one domain of other partitions than MSBs.
    FaultDomains,
    /// A group of a policy in SQL that has no room left.
    Policy,
    /// What there is in the region, all of the above aside.
    Region,
}

impl LimitName {
    /// Every limit.
    pub const ALL: [LimitName; 11] = [
        LimitName::UnavailableServers,
        LimitName::SharedBuffers,
        LimitName::HeldByOthers,
        LimitName::HardwareTypes,
        LimitName::AllowedDatacenters,
        LimitName::Affinity,
        LimitName::ReplicaRule,
        LimitName::MsbBuffer,
        LimitName::FaultDomains,
        LimitName::Policy,
        LimitName::Region,
    ];

    /// Those that can be lifted, in the order in which they are acquitted.
    const LIFTED: [LimitName; 9] = [
        LimitName::UnavailableServers,
        LimitName::SharedBuffers,
        LimitName::HeldByOthers,
        LimitName::HardwareTypes,
        LimitName::AllowedDatacenters,
        LimitName::Affinity,
        LimitName::ReplicaRule,
        LimitName::MsbBuffer,
        LimitName::FaultDomains,
    ];

    /// The limit that a reason names.
    const fn of(reason: ShortfallReason) -> Option<LimitName> {
        match reason {
            ShortfallReason::HardwareUnavailable => Some(LimitName::UnavailableServers),
            ShortfallReason::AllowedDatacenters => Some(LimitName::AllowedDatacenters),
            ShortfallReason::ReplicaRule => Some(LimitName::ReplicaRule),
            ShortfallReason::MsbBuffer => Some(LimitName::MsbBuffer),
            ShortfallReason::Affinity => Some(LimitName::Affinity),
            ShortfallReason::FaultDomain => Some(LimitName::FaultDomains),
            ShortfallReason::Priority
            | ShortfallReason::NoRegress
            | ShortfallReason::NotFoundInTime => Some(LimitName::HeldByOthers),
            ShortfallReason::NoEligibleHardware
            | ShortfallReason::InsufficientHardware
            | ShortfallReason::Policy => None,
        }
    }

    /// The stable token.
    pub const fn as_str(self) -> &'static str {
        match self {
            LimitName::UnavailableServers => "unavailable_servers",
            LimitName::SharedBuffers => "shared_buffers",
            LimitName::HeldByOthers => "held_by_others",
            LimitName::HardwareTypes => "hardware_types",
            LimitName::AllowedDatacenters => "allowed_datacenters",
            LimitName::Affinity => "affinity",
            LimitName::ReplicaRule => "replica_rule",
            LimitName::MsbBuffer => "msb_buffer",
            LimitName::FaultDomains => "fault_domains",
            LimitName::Policy => "policy",
            LimitName::Region => "region",
        }
    }
}

/// One of the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Which.
    pub limit: LimitName,
    /// What could be granted with only this limit lifted, up to the requested capacity; of a policy, with all groups of
    /// policies lifted.
    #[serde(rename = "without_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub without: Rru,
    /// It in its numbers, for people.
    pub sentence: String,
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let without = amount(self.without);
        write!(out, "{}: {}; {without} RRU without it", self.limit.as_str(), self.sentence)
    }
}

/// Which limits are lifted.
#[derive(Clone, Copy, Default)]
struct Lifted([bool; LimitName::LIFTED.len()]);

impl Lifted {
    fn has(self, limit: LimitName) -> bool {
        LimitName::LIFTED.iter().zip(self.0).any(|(&one, lifted)| one == limit && lifted)
    }

    fn all() -> Lifted {
        Lifted([true; LimitName::LIFTED.len()])
    }

    fn set(&mut self, limit: LimitName, lifted: bool) {
        for (&one, at) in LimitName::LIFTED.iter().zip(&mut self.0) {
            if one == limit {
                *at = lifted;
            }
        }
    }
}

/// A world in thought, in which some limits are lifted.
struct Thought<'a> {
    ledger: &'a Ledger<'a>,
    ix: ReservationIx,
    further: Vec<FurtherType>,
    /// Who holds each server, where a reservation survives the loss of domains.
    holders: Option<&'a [Option<ReservationIx>]>,
}

/// The limits of a reservation that is short, the last to be acquitted first. The one that the reason of the
/// shortfall names is acquitted last, so that both blame the same where they can.
pub(super) fn limits(
    ledger: &Ledger,
    ix: ReservationIx,
    reason: ShortfallReason,
    holders: Option<&[Option<ReservationIx>]>,
) -> Vec<Limit> {
    let mut order = LimitName::LIFTED;
    order.sort_by_key(|&limit| Some(limit) == LimitName::of(reason));
    let thought = Thought { ledger, ix, further: further_types(ledger, ix), holders };
    if !thought.grants(Lifted::all()) {
        let without = thought.at_best(Lifted::all());
        let sentence = thought.sentence(LimitName::Region);
        return vec![Limit { limit: LimitName::Region, without, sentence }];
    }
    // Nothing lifted: if that suffices, no limit blocks it, only the search did not find it.
    if thought.grants(Lifted::default()) {
        return Vec::new();
    }
    let mut lifted = Lifted::default();
    for limit in order {
        lifted.set(limit, true);
        if thought.grants(lifted) {
            lifted.set(limit, false);
        }
    }
    let standing = order.into_iter().rev().filter(|&limit| !lifted.has(limit));
    standing
        .map(|limit| {
            let mut alone = Lifted::default();
            alone.set(limit, true);
            let without = thought.at_best(alone);
            Limit { limit, without, sentence: thought.sentence(limit) }
        })
        .collect()
}

impl Thought<'_> {
    fn grants(&self, lifted: Lifted) -> bool {
        let capacity = self.ledger.snapshot.reservations[self.ix.ix()].capacity;
        self.offer(lifted).grants(&self.ask(lifted))
            && self.after_domains(lifted).is_none_or(|left| left >= capacity)
    }

    fn at_best(&self, lifted: Lifted) -> Rru {
        let best = self.offer(lifted).at_best(&self.ask(lifted));
        self.after_domains(lifted).map_or(best, |left| left.min(best))
    }

    /// What the servers to choose from are worth outside of the domain that has most of them; `None`: it survives the loss
    /// of MSBs only.
    fn after_domains(&self, lifted: Lifted) -> Option<Rru> {
        let snapshot = self.ledger.snapshot;
        let reservation = &snapshot.reservations[self.ix.ix()];
        let holders = self.holders.filter(|_| !lifted.has(LimitName::FaultDomains))?;
        let further = self.further.iter().filter(|_| lifted.has(LimitName::HardwareTypes));
        let mut values = vec![Rru::ZERO; snapshot.hardware_types.len()];
        let own = reservation.rru.iter().copied();
        for (hardware_type, value) in own.chain(further.map(|of| (of.hardware_type, of.value))) {
            values[hardware_type.ix()] = value;
        }
        let is_there = |server: &Server, holder: Option<ReservationIx>| {
            let is_free = holder.is_none_or(|of| of == self.ix || lifted.has(self.limit_of(of)));
            let is_allowed = lifted.has(LimitName::AllowedDatacenters)
                || reservation.allows(snapshot.datacenter_of(server));
            is_allowed
                && if server.available {
                    is_free
                } else {
                    lifted.has(LimitName::UnavailableServers)
                }
        };
        Narrowest::outside(snapshot, &reservation.survives, |at| {
            let server = &snapshot.servers[at];
            let value = values[server.hardware_type.ix()];
            if is_there(server, holders[at]) { value } else { Rru::ZERO }
        })
        .map(|of| of.rru)
    }

    fn ask(&self, lifted: Lifted) -> Ask {
        let ask = ask(self.ledger, self.ix);
        Ask {
            msb_buffer: ask.msb_buffer && !lifted.has(LimitName::MsbBuffer),
            affinity: ask.affinity.filter(|_| !lifted.has(LimitName::Affinity)),
            replicas: ask.replicas.filter(|_| !lifted.has(LimitName::ReplicaRule)),
            ..ask
        }
    }

    /// The servers to choose from.
    fn offer(&self, lifted: Lifted) -> Offer {
        let reservation = &self.ledger.snapshot.reservations[self.ix.ix()];
        let mut values = reservation.rru.clone();
        if lifted.has(LimitName::HardwareTypes) {
            values.extend(self.further.iter().map(|of| (of.hardware_type, of.value)));
        }
        let anywhere = lifted.has(LimitName::AllowedDatacenters);
        let allowed = if anywhere { &[][..] } else { &reservation.allowed_datacenters };
        self.ledger.offer(&values, allowed, |ty| {
            let available = self
                .ledger
                .held(ty)
                .iter()
                .map(move |entry| (entry.msb, self.count(entry, lifted)));
            let back = lifted.has(LimitName::UnavailableServers);
            let unavailable = self.ledger.unavailable(ty).iter().enumerate();
            let unavailable =
                unavailable.filter(move |_| back).map(|(msb, &servers)| (MsbIx::new(msb), servers));
            available.chain(unavailable)
        })
    }

    fn count(&self, entry: &Held, lifted: Lifted) -> usize {
        match entry.holder {
            None => entry.servers,
            Some(holder) if holder == self.ix => entry.servers,
            Some(holder) if lifted.has(self.limit_of(holder)) => entry.servers,
            Some(_) => 0,
        }
    }

    /// The limit that keeps the servers of a holder from others.
    fn limit_of(&self, holder: ReservationIx) -> LimitName {
        match self.ledger.snapshot.reservations[holder.ix()].kind {
            ReservationKind::SharedBuffer => LimitName::SharedBuffers,
            _ => LimitName::HeldByOthers,
        }
    }

    /// Servers of its types, and reservations, that a limit keeps from it.
    fn kept(&self, limit: LimitName) -> (usize, usize) {
        let reservation = &self.ledger.snapshot.reservations[self.ix.ix()];
        let mut holders = Vec::new();
        let mut servers = 0;
        for entry in reservation.rru.iter().flat_map(|&(ty, _)| self.ledger.held(ty)) {
            if let Some(holder) = entry.holder.filter(|&holder| holder != self.ix)
                && self.limit_of(holder) == limit
            {
                servers += entry.servers;
                holders.push(holder);
            }
        }
        holders.sort_unstable();
        holders.dedup();
        (servers, holders.len())
    }

    fn sentence(&self, limit: LimitName) -> String {
        let reservation = &self.ledger.snapshot.reservations[self.ix.ix()];
        match limit {
            LimitName::UnavailableServers => {
                let of = |&(ty, _): &(HardwareTypeIx, Rru)| self.ledger.unavailable(ty).iter();
                let servers = reservation.rru.iter().flat_map(of).sum();
                format!("{} of its types are unavailable", counted(servers, "server"))
            }
            LimitName::SharedBuffers => {
                let (servers, _) = self.kept(limit);
                let servers = counted(servers, "server");
                format!("{servers} of its types are in shared buffers, reserved for failures")
            }
            LimitName::HeldByOthers => {
                let (servers, holders) = self.kept(limit);
                let (servers, holders) =
                    (counted(servers, "server"), counted(holders, "other reservation"));
                format!(
                    "{servers} of its types are held by {holders}, for which no other servers were found"
                )
            }
            LimitName::HardwareTypes => {
                let names = &self.ledger.snapshot.hardware_types;
                let own: Vec<&str> =
                    reservation.rru.iter().map(|&(ty, _)| names[ty.ix()].as_ref()).collect();
                format!("it accepts only {}", own.join(", "))
            }
            LimitName::AllowedDatacenters => {
                let datacenters = &self.ledger.snapshot.datacenters;
                let names = reservation.allowed_datacenters.iter();
                let names: Vec<&str> = names.map(|dc| datacenters[dc.ix()].id.as_ref()).collect();
                format!("it is allowed only in {}", names.join(", "))
            }
            LimitName::ReplicaRule => {
                let rule = reservation.replica_rule.map_or((0, 0), |of| (of.per_msb, of.replicas));
                let [most] = amounts([reservation.msb_max().unwrap_or_default()]);
                format!(
                    "at most {} of its {} replicas ({most} RRU) may be in one MSB",
                    rule.0, rule.1
                )
            }
            LimitName::Affinity => {
                let datacenters = &self.ledger.snapshot.datacenters;
                let shares = reservation.affinity.iter().map(|&(datacenter, share)| {
                    format!("{:.0} % in {}", 100.0 * share, datacenters[datacenter.ix()].id)
                });
                format!("it wants {}", shares.collect::<Vec<_>>().join(", "))
            }
            LimitName::MsbBuffer => {
                let offer = self.offer(Lifted::default());
                let [all, left] = amounts([offer.guaranteed(false), offer.guaranteed(true)]);
                format!(
                    "it must survive the loss of any one MSB: of the {all} RRU within reach, {left} are \
                     left after the worst loss"
                )
            }
            LimitName::FaultDomains => {
                let narrowest = self.holders.and_then(|holders| {
                    Narrowest::of(self.ledger.snapshot, holders, self.ix)
                });
                narrowest.map(|of| of.sentence(reservation.capacity)).unwrap_or_default()
            }
            LimitName::Policy => "a policy leaves no room for more".to_owned(),
            LimitName::Region => {
                "the region has too few servers, even with all servers of other reservations and shared \
                 buffers, all unavailable servers, further types and datacenters, and without affinity, \
                 replica rule and embedded buffer"
                    .to_owned()
            }
        }
    }
}

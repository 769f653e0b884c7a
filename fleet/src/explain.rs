//! Says what a reservation holds, why it is short if it is, and what would change that.
//!
//! Everything is derived from a snapshot and targets, as in [`crate::audit`], so it explains the
//! assignment of any solver. [`explain`] answers for one reservation; an [`Explainer`] counts the
//! region once and answers for many.

mod composition;
mod display;
mod domains;
mod grant;
mod hardware;
mod held;
mod holders;
mod ledger;
mod limits;
mod outside;
mod reason;
mod relax;
mod searched;
mod text;

pub use composition::{TypeReason, TypeUse};
pub use hardware::HardwareSet;
pub use held::{HeldMsb, HeldType, WorstMsb};
pub use holders::{HIDDEN, HeldBy, Right};
pub use limits::{Limit, LimitName};
pub use reason::ShortfallReason;
pub use relax::{FurtherType, Relaxation};
pub use searched::Searched;

use crate::audit::{as_rru, from_rru};
use crate::id::{
    DatacenterIx, HardwareTypeIx, MsbIx, OwnerName, PartitionName, ReservationIx, ReservationName,
};
use crate::reservation::{ReplicaRule, ReservationKind};
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;
use crate::targets::Targets;
use domains::WorstDomain;
use grant::{Ask, Offer};
use hardware::Shortage;
use ledger::{Held, Ledger};
use relax::ask;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use text::{amount, amounts, counted};

/// What there is to say about one reservation. Amounts are RRU where serialised.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The reservation.
    pub reservation_id: ReservationName,
    /// The business unit that asked for it.
    pub owner: OwnerName,
    /// `guaranteed`, `shared_buffer` or `elastic`.
    pub kind: &'static str,
    /// 0 is the most important.
    pub priority: i32,
    /// Whether its capacity must survive the loss of any one MSB.
    pub msb_buffer: bool,
    /// Partitions of which it must survive the loss of any one domain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub survives: Vec<PartitionName>,
    /// C.
    #[serde(rename = "capacity_rru", serialize_with = "as_rru")]
    pub capacity: Rru,
    /// What it holds on available servers.
    #[serde(rename = "assigned_rru", serialize_with = "as_rru")]
    pub assigned: Rru,
    /// What of that is guaranteed (eq. 6).
    #[serde(rename = "guaranteed_rru", serialize_with = "as_rru")]
    pub guaranteed: Rru,
    /// Servers it holds that are unavailable and do not count.
    pub unavailable_servers: usize,
    /// Servers it borrows, if it is elastic.
    pub borrowed_servers: usize,
    /// What it holds by hardware type.
    pub by_type: Vec<HeldType>,
    /// What it holds by MSB.
    pub by_msb: Vec<HeldMsb>,
    /// The MSB whose loss would cost it most.
    pub worst_msb: Option<WorstMsb>,
    /// Why it is short, if it is.
    pub shortfall: Option<Shortfall>,
    /// What would grant it, each alone. Empty if it is not short.
    pub relaxations: Vec<Relaxation>,
}

/// Why a reservation is short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shortfall {
    /// What is missing to C.
    #[serde(rename = "missing_rru", serialize_with = "as_rru")]
    pub missing: Rru,
    /// The reason, one of a closed list.
    pub reason: ShortfallReason,
    /// The reason with its numbers, for people.
    pub sentence: String,
    /// Supply and demand of the smallest set of hardware types that shows a shortage; of the
    /// reservation's own types where none does.
    pub hardware: HardwareSet,
    /// Further numbers.
    pub evidence: Evidence,
    /// Who holds the servers it could use, and by what right; the most important first.
    pub held_by: Vec<HeldBy>,
}

/// Numbers about the servers of a reservation's eligible types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// All of them, unavailable ones included.
    pub eligible_servers: usize,
    /// Those available.
    pub available_servers: usize,
    /// Those free in the targets.
    pub free_servers: usize,
    /// Servers of its types, free in the targets, in datacenters that it is not allowed in.
    pub not_allowed_servers: usize,
    /// MSBs with at least one that is available.
    pub eligible_msbs: usize,
    /// What could be guaranteed with what it holds and what is free, affinity aside.
    #[serde(rename = "within_reach_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub within_reach: Rru,
    /// What could be guaranteed with what it holds and what is free, affinity included.
    #[serde(
        rename = "within_affinity_rru",
        serialize_with = "as_rru",
        deserialize_with = "from_rru"
    )]
    pub within_affinity: Rru,
    /// Servers that more important reservations hold.
    pub more_important_servers: usize,
    /// Servers that other, not more important reservations hold today and keep.
    pub kept_by_others_servers: usize,
}

/// Explains one reservation.
///
/// # Panics
/// If the reservation is not one of the snapshot's.
pub fn explain(
    snapshot: &RegionSnapshot,
    targets: &Targets,
    reservation: ReservationIx,
) -> Explanation {
    Explainer::new(snapshot, targets).explain(reservation)
}

/// Explains reservations of one assignment.
pub struct Explainer<'a> {
    ledger: Ledger<'a>,
    /// By reservation: servers held that are unavailable, and servers borrowed.
    unavailable: Vec<usize>,
    borrowed: Vec<usize>,
    /// The worst loss of a domain, of reservations that survive more than MSBs.
    domains: BTreeMap<ReservationIx, WorstDomain>,
    /// Who holds each server, where a reservation survives the loss of domains.
    holders: Option<Vec<Option<ReservationIx>>>,
}

impl<'a> Explainer<'a> {
    /// Counts the region.
    pub fn new(snapshot: &'a RegionSnapshot, targets: &Targets) -> Explainer<'a> {
        let mut unavailable = vec![0; snapshot.reservations.len()];
        let mut borrowed = vec![0; snapshot.reservations.len()];
        for (server, holder) in snapshot.servers.iter().zip(targets.holders()) {
            if let (Some(holder), false) = (holder, server.available) {
                unavailable[holder.ix()] += 1;
            }
            if let Some(borrower) = server.loaned_to {
                borrowed[borrower.ix()] += 1;
            }
        }
        let domains = WorstDomain::of_all(snapshot, targets);
        let holders = snapshot.crossing_reservation().map(|_| targets.holders().to_vec());
        let ledger = Ledger::new(snapshot, targets);
        Explainer { ledger, unavailable, borrowed, domains, holders }
    }

    /// Everything about one reservation.
    pub fn explain(&self, ix: ReservationIx) -> Explanation {
        let snapshot = self.ledger.snapshot;
        let reservation = &snapshot.reservations[ix.ix()];
        let mut by_type = Vec::new();
        let mut msbs = vec![(0_usize, Rru::ZERO); snapshot.msbs.len()];
        for (position, hardware_type) in snapshot.hardware_types.iter().enumerate() {
            let ty = HardwareTypeIx::new(position);
            let value = reservation.value(ty).unwrap_or(Rru::ZERO);
            let (mut servers, mut amount) = (0, Rru::ZERO);
            for entry in self.ledger.held_by(ix, ty) {
                let counts = self.ledger.allows(ix, entry.msb);
                let worth = if counts { value.times(entry.servers) } else { Rru::ZERO };
                servers += entry.servers;
                amount += worth;
                let (count, in_msb) = &mut msbs[entry.msb.ix()];
                *count += entry.servers;
                *in_msb += worth;
            }
            if servers > 0 {
                by_type.push(HeldType { hardware_type: hardware_type.clone(), servers, amount });
            }
        }
        let by_msb: Vec<HeldMsb> = (snapshot.msbs.iter().zip(msbs))
            .filter(|&(_, (servers, _))| servers > 0)
            .map(|(msb, (servers, amount))| HeldMsb {
                msb: msb.id.clone(),
                datacenter: snapshot.datacenters[msb.datacenter.ix()].id.clone(),
                servers,
                amount,
            })
            .collect();
        let assigned: Rru = by_msb.iter().map(|row| row.amount).sum();
        let mut worst: Option<&HeldMsb> = None;
        for row in &by_msb {
            if row.amount > worst.map_or(Rru::ZERO, |worst| worst.amount) {
                worst = Some(row);
            }
        }
        let worst_msb = worst.map(|row| WorstMsb {
            msb: row.msb.clone(),
            lost: row.amount,
            left: assigned - row.amount,
        });
        let after_msb = match &worst_msb {
            Some(worst) if reservation.msb_buffer => worst.left,
            _ => assigned,
        };
        let guaranteed = self.after_domains(ix, after_msb);
        let short = reservation.capacity > guaranteed;
        Explanation {
            reservation_id: reservation.id.clone(),
            owner: reservation.owner.clone(),
            kind: reservation.kind.as_str(),
            priority: reservation.priority,
            msb_buffer: reservation.msb_buffer,
            survives: (reservation.survives.iter())
                .map(|of| self.ledger.snapshot.partitions[of.ix()].name.clone())
                .collect(),
            capacity: reservation.capacity,
            assigned,
            guaranteed,
            unavailable_servers: self.unavailable[ix.ix()],
            borrowed_servers: self.borrowed[ix.ix()],
            by_type,
            by_msb,
            worst_msb,
            shortfall: short.then(|| self.shortfall(ix, after_msb)),
            relaxations: if short { self.relaxations(ix, guaranteed) } else { Vec::new() },
        }
    }

    /// Why a reservation is short; `None` if it is not.
    pub fn shortfall_of(&self, ix: ReservationIx) -> Option<Shortfall> {
        let reservation = &self.ledger.snapshot.reservations[ix.ix()];
        let held = self.ledger.offer(&reservation.rru, &reservation.allowed_datacenters, |ty| {
            self.ledger.held_by(ix, ty).iter().map(|entry| (entry.msb, entry.servers))
        });
        let after_msb = held.guaranteed(reservation.msb_buffer);
        let short = reservation.capacity > self.after_domains(ix, after_msb);
        short.then(|| self.shortfall(ix, after_msb))
    }

    /// `after_msb`: what the loss of any one MSB leaves.
    fn shortfall(&self, ix: ReservationIx, after_msb: Rru) -> Shortfall {
        let evidence = self.evidence(ix);
        let capacity = self.ledger.snapshot.reservations[ix.ix()].capacity;
        let missing = capacity - self.after_domains(ix, after_msb);
        let (hardware, shortage) = if evidence.within_reach >= capacity {
            (hardware::own(&self.ledger, ix), None)
        } else {
            hardware::tightest(&self.ledger, ix)
        };
        let mut reason = self.reason(ix, &evidence, shortage);
        let mut sentence = self.sentence(ix, missing, reason, &hardware, &evidence);
        // Evidence speaks of MSBs.
        if let Some(why) = self.domain_in_the_way(ix, reason, after_msb) {
            (reason, sentence) = (ShortfallReason::FaultDomain, why);
        }
        let held_by = holders::holders(&self.ledger, ix);
        Shortfall { missing, reason, sentence, hardware, evidence, held_by }
    }

    fn evidence(&self, ix: ReservationIx) -> Evidence {
        let reservations = &self.ledger.snapshot.reservations;
        let reservation = &reservations[ix.ix()];
        let (ask, offer) = (ask(&self.ledger, ix), self.ledger.within_reach(ix, &reservation.rru));
        let mut evidence = Evidence {
            eligible_servers: 0,
            available_servers: 0,
            free_servers: 0,
            not_allowed_servers: 0,
            eligible_msbs: 0,
            within_reach: offer.guaranteed(reservation.msb_buffer).min(reservation.capacity),
            within_affinity: offer.at_best(&ask),
            more_important_servers: 0,
            kept_by_others_servers: 0,
        };
        let mut msbs = vec![false; self.ledger.snapshot.msbs.len()];
        for &(ty, _) in &reservation.rru {
            let unavailable = self.ledger.unavailable(ty).iter().enumerate();
            let allowed = unavailable.filter(|(msb, _)| self.ledger.allows(ix, MsbIx::new(*msb)));
            evidence.eligible_servers += allowed.map(|(_, servers)| servers).sum::<usize>();
            for entry in self.ledger.held(ty) {
                if !self.ledger.allows(ix, entry.msb) {
                    if entry.holder.is_none() {
                        evidence.not_allowed_servers += entry.servers;
                    }
                    continue;
                }
                evidence.available_servers += entry.servers;
                msbs[entry.msb.ix()] = true;
                match entry.holder {
                    None => evidence.free_servers += entry.servers,
                    Some(holder) if holder == ix => {}
                    Some(holder) if reservations[holder.ix()].priority < reservation.priority => {
                        evidence.more_important_servers += entry.servers;
                    }
                    Some(_) => evidence.kept_by_others_servers += entry.kept,
                }
            }
        }
        evidence.eligible_servers += evidence.available_servers;
        evidence.eligible_msbs = msbs.into_iter().filter(|&any| any).count();
        evidence
    }

    /// The first reason that holds, in the order of [`ShortfallReason`].
    fn reason(
        &self,
        ix: ReservationIx,
        evidence: &Evidence,
        shortage: Option<Shortage>,
    ) -> ShortfallReason {
        let reservations = &self.ledger.snapshot.reservations;
        let reservation = &reservations[ix.ix()];
        let capacity = reservation.capacity;
        let ask = ask(&self.ledger, ix);
        let no_rule = Ask { replicas: None, ..ask.clone() };
        if self.is_held_to_datacenters(ix, &ask) {
            return ShortfallReason::AllowedDatacenters;
        }
        if evidence.eligible_servers == 0 {
            return ShortfallReason::NoEligibleHardware;
        }
        if evidence.within_affinity >= capacity {
            return ShortfallReason::NotFoundInTime;
        }
        if evidence.within_reach >= capacity {
            let reach = self.ledger.within_reach(ix, &reservation.rru);
            let rule = ask.replicas.is_some() && reach.grants(&no_rule);
            return if rule { ShortfallReason::ReplicaRule } else { ShortfallReason::Affinity };
        }
        // Holdings of less important reservations exist, regardless of other demand for the types.
        let is_less_important =
            |holder: ReservationIx| reservations[holder.ix()].priority > reservation.priority;
        let from_below = |entry: &Held, below: usize| match entry.holder {
            None => entry.servers,
            Some(holder) if holder == ix => entry.servers,
            Some(holder) if is_less_important(holder) => below,
            Some(_) => 0,
        };
        if self.offer(ix, |entry| from_below(entry, entry.servers - entry.kept)).grants(&ask) {
            return ShortfallReason::NotFoundInTime;
        }
        if self.offer(ix, |entry| from_below(entry, entry.servers)).grants(&ask) {
            return ShortfallReason::NoRegress;
        }
        match shortage {
            Some(Shortage::Unavailable) => return ShortfallReason::HardwareUnavailable,
            Some(Shortage::Total) => return ShortfallReason::InsufficientHardware,
            Some(Shortage::AfterLoss) => return ShortfallReason::MsbBuffer,
            None => {}
        }
        let everything = self.offer(ix, |entry| entry.servers);
        if ask.replicas.is_some() && !everything.grants(&ask) && everything.grants(&no_rule) {
            return ShortfallReason::ReplicaRule;
        }
        if !everything.grants(&ask) && everything.grants(&Ask { affinity: None, ..ask.clone() }) {
            return ShortfallReason::Affinity;
        }
        // Servers that are free or its own, and those of more important reservations.
        let with_important = |entry: &Held| match entry.holder {
            None => entry.servers,
            Some(holder) if holder == ix => entry.servers,
            Some(holder) if reservations[holder.ix()].priority < reservation.priority => {
                entry.servers
            }
            Some(_) => 0,
        };
        if self.offer(ix, with_important).grants(&ask) {
            return ShortfallReason::Priority;
        }
        if self.offer(ix, |entry| with_important(entry).max(entry.kept)).grants(&ask) {
            return ShortfallReason::NoRegress;
        }
        ShortfallReason::NotFoundInTime
    }

    /// Whether the datacenters a reservation is held to are why it is short: it could have what it asks
    /// for with what is free elsewhere; or all there is where it is allowed cannot do, and all there is
    /// in the region can.
    fn is_held_to_datacenters(&self, ix: ReservationIx, ask: &Ask) -> bool {
        let reservation = &self.ledger.snapshot.reservations[ix.ix()];
        let (values, allowed) = (&reservation.rru, &*reservation.allowed_datacenters);
        if allowed.is_empty() || self.ledger.within_reach(ix, values).grants(ask) {
            return false;
        }
        let all = |allowed: &[DatacenterIx]| {
            let servers = |ty| self.ledger.held(ty).iter().map(|entry| (entry.msb, entry.servers));
            self.ledger.offer(values, allowed, servers).grants(ask)
        };
        self.ledger.within_reach_in(ix, values, &[]).grants(ask) || (!all(allowed) && all(&[]))
    }

    /// The available servers of a reservation's types, as many of each entry as are chosen.
    fn offer(&self, ix: ReservationIx, choose: impl Fn(&Held) -> usize + Copy) -> Offer {
        let reservation = &self.ledger.snapshot.reservations[ix.ix()];
        self.ledger.offer(&reservation.rru, &reservation.allowed_datacenters, |ty| {
            self.ledger.held(ty).iter().map(move |entry| (entry.msb, choose(entry)))
        })
    }

    fn sentence(
        &self,
        ix: ReservationIx,
        missing: Rru,
        reason: ShortfallReason,
        hardware: &HardwareSet,
        evidence: &Evidence,
    ) -> String {
        let snapshot = self.ledger.snapshot;
        let reservation = &snapshot.reservations[ix.ix()];
        let [reach, capacity] = amounts([evidence.within_reach, reservation.capacity]);
        match reason {
            ShortfallReason::NoEligibleHardware if reservation.rru.is_empty() => {
                "it accepts no hardware type".to_owned()
            }
            ShortfallReason::NoEligibleHardware => {
                format!("the region has no server of its types ({})", hardware.name)
            }
            ShortfallReason::HardwareUnavailable => format!(
                "there would be enough if {} were available: {}",
                counted(hardware.unavailable_servers, "server"),
                hardware.sentence()
            ),
            ShortfallReason::AllowedDatacenters => {
                let names = reservation.allowed_datacenters.iter();
                let names: Vec<&str> =
                    names.map(|dc| snapshot.datacenters[dc.ix()].id.as_ref()).collect();
                format!(
                    "it is allowed only in {}, where {reach} of {capacity} RRU are within reach; {} \
                     of its types are free in other datacenters",
                    names.join(", "),
                    counted(evidence.not_allowed_servers, "server")
                )
            }
            ShortfallReason::ReplicaRule => {
                let rule = reservation.replica_rule.map_or((0, 0), |of| (of.per_msb, of.replicas));
                let [within, most] =
                    amounts([evidence.within_affinity, reservation.msb_max().unwrap_or_default()]);
                format!(
                    "at most {} of its {} replicas, {most} RRU, may be in one MSB: {within} of \
                     {capacity} RRU are within reach under this rule",
                    rule.0, rule.1
                )
            }
            ShortfallReason::InsufficientHardware => {
                format!("demand exceeds supply: {}", hardware.sentence())
            }
            ShortfallReason::MsbBuffer if reservation.msb_buffer && evidence.eligible_msbs == 1 => {
                format!(
                    "all its hardware is in one MSB, so no capacity survives the loss of that MSB: \
                     {}",
                    hardware.sentence()
                )
            }
            ShortfallReason::MsbBuffer => format!(
                "the hardware suffices, but not after the loss of any one MSB: {}",
                hardware.sentence()
            ),
            ShortfallReason::FaultDomain => "no assignment was found that survives it".to_owned(),
            ShortfallReason::Affinity => {
                let [within] = amounts([evidence.within_affinity]);
                format!(
                    "the datacenters of its affinity have too few servers: {within} of {capacity} \
                     RRU are within reach under its affinity, {reach} without"
                )
            }
            ShortfallReason::Priority => format!(
                "more important reservations hold {} of its types; {reach} of {capacity} RRU are \
                 within reach",
                counted(evidence.more_important_servers, "server")
            ),
            ShortfallReason::NoRegress => format!(
                "other reservations that are not more important hold {} of its types and keep \
                 them; {reach} of {capacity} RRU are within reach",
                counted(evidence.kept_by_others_servers, "server")
            ),
            ShortfallReason::Policy => "policies leave no room for more".to_owned(),
            ShortfallReason::NotFoundInTime if evidence.within_affinity >= reservation.capacity => {
                format!(
                    "{} of its types are free and would suffice; the solve ended before it assigned \
                     them",
                    counted(evidence.free_servers, "server")
                )
            }
            ShortfallReason::NotFoundInTime => format!(
                "no shortage explains the {} missing RRU; the solve ended before it found a \
                 better exchange with other reservations ({})",
                amount(missing),
                hardware.sentence()
            ),
        }
    }

    /// What a reservation has of each hardware type that it accepts and why it takes no more, those it has
    /// most RRU of first, then those worth most. `msb_limit` is its spread limit of eq. 3, as the audit says
    /// it; `None`: it has none.
    pub fn composition(&self, ix: ReservationIx, msb_limit: Option<Rru>) -> Vec<TypeUse> {
        composition::composition(&self.ledger, ix, msb_limit)
    }

    /// An irreducible set of limits that blocks a reservation: with any one of them lifted, besides
    /// the limits that are not in the set, its request could be granted. Empty if it is not short.
    pub fn limits(&self, ix: ReservationIx) -> Vec<Limit> {
        let Some(short) = self.shortfall_of(ix) else { return Vec::new() };
        let limits = limits::limits(&self.ledger, ix, short.reason, self.holders.as_deref());
        if limits.is_empty() { domains::limit(short).into_iter().collect() } else { limits }
    }

    /// The least tolerance of its datacenter shares, in steps of 0.01, with which its own and free
    /// servers satisfy a reservation; `None` if no tolerance does.
    pub fn looser_affinity(&self, ix: ReservationIx) -> Option<f64> {
        relax::theta_needed(&self.ledger, ix)
    }

    /// Datacenters each of which would let a reservation have what it asks for if it were allowed there
    /// as well; none if it is held to no datacenter.
    pub fn more_datacenters(&self, ix: ReservationIx) -> Vec<DatacenterIx> {
        relax::more_datacenters(&self.ledger, ix)
    }

    /// The replica rule with the fewest more replicas in one MSB with which a reservation could have
    /// what it asks for; `None` if it has no rule, or none would do.
    pub fn looser_replica_rule(&self, ix: ReservationIx) -> Option<ReplicaRule> {
        relax::rule_needed(&self.ledger, ix)
    }

    /// Hardware types that a reservation does not accept and whose value to it can be told by what
    /// others give; those with the most free servers first.
    pub fn further_types(&self, ix: ReservationIx) -> Vec<FurtherType> {
        relax::further_types(&self.ledger, ix)
    }

    /// Every reservation that is short, with why, in the snapshot's order.
    pub fn shortfalls(&self) -> Vec<(ReservationIx, Shortfall)> {
        (0..self.ledger.snapshot.reservations.len())
            .map(ReservationIx::new)
            .filter(|ix| {
                let kind = self.ledger.snapshot.reservations[ix.ix()].kind;
                kind != ReservationKind::Elastic
            })
            .filter_map(|ix| Some((ix, self.shortfall_of(ix)?)))
            .collect()
    }
}

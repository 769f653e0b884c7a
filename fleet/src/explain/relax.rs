//! Which single relaxation would grant a reservation that is short.
//!
//! Each is verified against the servers that the reservation holds in the targets and those that
//! are free in them: all others keep theirs.

use super::grant::{Ask, Offer};
use super::ledger::Ledger;
use super::text::{amount, counted};
use crate::audit::{as_rru, tolerance};
use crate::id::{DatacenterIx, DatacenterName, HardwareTypeIx, HardwareTypeName, ReservationIx};
use crate::reservation::{ReplicaRule, Reservation, ReservationKind};
use crate::rru::Rru;
use serde::Serialize;
use std::fmt;

/// Further types proposed, at most; those that need the fewest servers.
const TYPES_MAX: usize = 3;

/// Further datacenters proposed, at most.
const DATACENTERS_MAX: usize = 3;

/// Steps in which a tolerance is loosened: one part in a hundred, as owners write them.
const THETA_STEPS: u32 = 100;

/// A change that alone would grant the reservation, with the servers now free.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "relaxation", rename_all = "snake_case")]
pub enum Relaxation {
    /// Ask for less.
    FewerRru {
        /// The most that can be granted.
        #[serde(rename = "grantable_rru", serialize_with = "as_rru")]
        grantable: Rru,
    },
    /// Accept one more hardware type.
    OneMoreType {
        /// The type.
        hardware_type: HardwareTypeName,
        /// Its servers that are free.
        free_servers: usize,
        /// How many of them it takes; `None` where affinity or a replica rule decides which.
        needed_servers: Option<usize>,
        /// The value of one, assumed from reservations that value it beside a type of this one.
        /// Types without any such link are not proposed: their value is unknown.
        #[serde(rename = "assumed_value_rru", serialize_with = "as_rru")]
        assumed_value: Rru,
    },
    /// Do without the embedded buffer.
    NoBuffer {
        /// What the reservation could have then, without surviving the loss of an MSB.
        #[serde(rename = "available_rru", serialize_with = "as_rru")]
        available: Rru,
    },
    /// Be allowed in one more datacenter.
    OneMoreDatacenter {
        /// The datacenter.
        datacenter: DatacenterName,
    },
    /// Let one MSB hold more of its replicas.
    MoreReplicasPerMsb {
        /// n.
        replicas: u32,
        /// k now.
        per_msb: u32,
        /// The k that would do.
        needed_per_msb: u32,
    },
    /// Loosen the affinity.
    LooserAffinity {
        /// The tolerance theta now.
        theta: f64,
        /// The tolerance that would do.
        needed_theta: f64,
    },
}

impl fmt::Display for Relaxation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Relaxation::FewerRru { grantable } => {
                write!(out, "requesting at most {} RRU", super::text::exact(*grantable))
            }
            Relaxation::OneMoreType {
                hardware_type,
                free_servers,
                needed_servers,
                assumed_value,
            } => {
                write!(out, "accepting type {hardware_type} as well: ")?;
                if let Some(needed) = needed_servers {
                    write!(out, "{} of ", super::text::count(*needed))?;
                }
                let free = counted(*free_servers, "free server");
                write!(out, "its {free} would suffice, at {} RRU each", amount(*assumed_value))
            }
            Relaxation::NoBuffer { available } => write!(
                out,
                "giving up the embedded buffer: {} RRU would be available until an MSB is lost",
                amount(*available)
            ),
            Relaxation::OneMoreDatacenter { datacenter } => {
                write!(out, "allowing datacenter {datacenter} as well")
            }
            Relaxation::MoreReplicasPerMsb { replicas, per_msb, needed_per_msb } => write!(
                out,
                "{needed_per_msb} of its {replicas} replicas in one MSB, not {per_msb} at most"
            ),
            Relaxation::LooserAffinity { theta, needed_theta } => {
                write!(out, "a tolerance of {needed_theta} for its datacenter shares, not {theta}")
            }
        }
    }
}

/// What the reservation asks for, as it stands.
pub(super) fn ask(ledger: &Ledger, ix: ReservationIx) -> Ask {
    let snapshot = ledger.snapshot;
    let reservation = &snapshot.reservations[ix.ix()];
    let shares = (0..snapshot.datacenters.len())
        .map(|datacenter| reservation.share(DatacenterIx::new(datacenter)))
        .collect::<Option<Vec<f64>>>()
        .filter(|shares| !shares.is_empty() && reservation.kind == ReservationKind::Guaranteed);
    Ask {
        capacity: reservation.capacity,
        msb_buffer: reservation.msb_buffer,
        affinity: shares.map(|shares| (shares, tolerance(&snapshot.weights, reservation))),
        replicas: reservation.replica_rule.filter(|_| reservation.capacity > Rru::ZERO),
    }
}

/// Every single relaxation that would grant a reservation that is short; `guaranteed` is what it
/// has now.
pub(super) fn relaxations(ledger: &Ledger, ix: ReservationIx, guaranteed: Rru) -> Vec<Relaxation> {
    let offer = ledger.within_reach(ix, &ledger.snapshot.reservations[ix.ix()].rru);
    let ask = ask(ledger, ix);
    // What can be granted as it stands needs no relaxation.
    if offer.grants(&ask) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let grantable = offer.at_best(&ask).max(guaranteed);
    if grantable > Rru::ZERO && grantable < ask.capacity {
        found.push(Relaxation::FewerRru { grantable });
    }
    found.extend(more_types(ledger, ix, &ask));
    if ask.msb_buffer && offer.grants(&Ask { msb_buffer: false, ..ask.clone() }) {
        found.push(Relaxation::NoBuffer { available: offer.guaranteed(false) });
    }
    let more = more_datacenters(ledger, ix).into_iter();
    found.extend(more.map(|datacenter| Relaxation::OneMoreDatacenter {
        datacenter: ledger.snapshot.datacenters[datacenter.ix()].id.clone(),
    }));
    if let (Some(needed), Some(rule)) = (replicas_needed(&offer, &ask), ask.replicas) {
        let ReplicaRule { replicas, per_msb } = rule;
        let needed_per_msb = needed.per_msb;
        found.push(Relaxation::MoreReplicasPerMsb { replicas, per_msb, needed_per_msb });
    }
    found.extend(looser_affinity(&offer, &ask));
    found
}

/// Datacenters each of which would grant a reservation what it asks for if it were allowed there as
/// well, with what it holds and what is free.
pub(super) fn more_datacenters(ledger: &Ledger, ix: ReservationIx) -> Vec<DatacenterIx> {
    let reservation = &ledger.snapshot.reservations[ix.ix()];
    let allowed = &reservation.allowed_datacenters;
    if allowed.is_empty() {
        return Vec::new();
    }
    let ask = ask(ledger, ix);
    let would_do = |more: &DatacenterIx| {
        let wider: Vec<DatacenterIx> = allowed.iter().copied().chain([*more]).collect();
        ledger.within_reach_in(ix, &reservation.rru, &wider).grants(&ask)
    };
    let all = (0..ledger.snapshot.datacenters.len()).map(DatacenterIx::new);
    let more = all.filter(|datacenter| !reservation.allows(*datacenter));
    more.filter(would_do).take(DATACENTERS_MAX).collect()
}

/// The replica rule with the fewest more replicas in one MSB that would do.
fn replicas_needed(offer: &Offer, ask: &Ask) -> Option<ReplicaRule> {
    let rule = ask.replicas?;
    let mut looser =
        (rule.per_msb + 1..=rule.replicas).map(|per_msb| ReplicaRule { per_msb, ..rule });
    looser.find(|&rule| offer.grants(&Ask { replicas: Some(rule), ..ask.clone() }))
}

/// The replica rule with the fewest more replicas in one MSB that its own and free servers need.
pub(super) fn rule_needed(ledger: &Ledger, ix: ReservationIx) -> Option<ReplicaRule> {
    let offer = ledger.within_reach(ix, &ledger.snapshot.reservations[ix.ix()].rru);
    replicas_needed(&offer, &ask(ledger, ix))
}

fn more_types(ledger: &Ledger, ix: ReservationIx, ask: &Ask) -> Vec<Relaxation> {
    let reservation = &ledger.snapshot.reservations[ix.ix()];
    // A shared buffer is of one type, by its nature.
    if reservation.kind != ReservationKind::Guaranteed {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (position, name) in ledger.snapshot.hardware_types.iter().enumerate() {
        let ty = HardwareTypeIx::new(position);
        let free_servers: usize = ledger.free(ty).iter().map(|entry| entry.servers).sum();
        if free_servers == 0 || reservation.value(ty).is_some() {
            continue;
        }
        let Some(assumed_value) = assumed_value(ledger, reservation, ty) else { continue };
        let mut values = reservation.rru.clone();
        values.push((ty, assumed_value));
        let offer = ledger.within_reach(ix, &values);
        if !offer.grants(ask) {
            continue;
        }
        let needed_servers = (ask.affinity.is_none() && ask.replicas.is_none())
            .then(|| needed_servers(ledger, ix, ty, assumed_value, ask));
        found.push((
            needed_servers,
            Relaxation::OneMoreType {
                hardware_type: name.clone(),
                free_servers,
                needed_servers,
                assumed_value,
            },
        ));
    }
    found.sort_by_key(|(needed, _)| *needed);
    found.into_iter().map(|(_, relaxation)| relaxation).take(TYPES_MAX).collect()
}

/// A hardware type that a reservation does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FurtherType {
    /// The type.
    pub hardware_type: HardwareTypeIx,
    /// What one server would be worth.
    pub value: Rru,
    /// Servers of it that are free.
    pub free: usize,
}

/// Types that a guaranteed reservation does not accept and whose value to it is known, those with
/// the most free servers first.
pub(super) fn further_types(ledger: &Ledger, ix: ReservationIx) -> Vec<FurtherType> {
    let reservation = &ledger.snapshot.reservations[ix.ix()];
    if reservation.kind != ReservationKind::Guaranteed {
        return Vec::new();
    }
    let types = (0..ledger.snapshot.hardware_types.len()).map(HardwareTypeIx::new);
    let mut found: Vec<FurtherType> = types
        .filter(|&ty| reservation.value(ty).is_none() && !ledger.held(ty).is_empty())
        .filter_map(|hardware_type| {
            let value = assumed_value(ledger, reservation, hardware_type)?;
            let free = ledger.free(hardware_type).iter().map(|entry| entry.servers).sum();
            Some(FurtherType { hardware_type, value, free })
        })
        .collect();
    found.sort_by_key(|of| (std::cmp::Reverse(of.free), of.hardware_type));
    found
}

/// The value of a type that the reservation gives none: carried over from reservations that value
/// it beside one of the reservation's types, the lowest of them.
fn assumed_value(ledger: &Ledger, reservation: &Reservation, ty: HardwareTypeIx) -> Option<Rru> {
    let mut least: Option<i128> = None;
    for other in &ledger.snapshot.reservations {
        if other.kind != ReservationKind::Guaranteed {
            continue;
        }
        let Some(theirs) = other.value(ty) else { continue };
        for &(common, own) in &reservation.rru {
            if let Some(common) = other.value(common) {
                let carried = i128::from(theirs.0) * i128::from(own.0) / i128::from(common.0);
                least = Some(least.map_or(carried, |least| least.min(carried)));
            }
        }
    }
    // A ratio of extreme values may carry over to nothing, or to more than amounts can hold.
    let most = crate::snapshot::SUM_MAX.0 / (ledger.snapshot.servers.len() as i64).max(1);
    let carried = least.and_then(|value| i64::try_from(value).ok());
    carried.filter(|&value| value > 0 && value <= most).map(Rru)
}

/// How many servers of a further type it takes: one after another into the emptiest MSB that has
/// one free, until the ask is met.
fn needed_servers(
    ledger: &Ledger,
    ix: ReservationIx,
    ty: HardwareTypeIx,
    value: Rru,
    ask: &Ask,
) -> usize {
    let own = &ledger.snapshot.reservations[ix.ix()].rru;
    let mut worth = ledger.within_reach(ix, own).worth();
    let mut free = vec![0_usize; worth.len()];
    for entry in ledger.free(ty).iter().filter(|entry| ledger.allows(ix, entry.msb)) {
        free[entry.msb.ix()] += entry.servers;
    }
    let guaranteed = |worth: &[Rru]| {
        let total: Rru = worth.iter().copied().sum();
        let lost = if ask.msb_buffer { worth.iter().copied().max() } else { None };
        total - lost.unwrap_or_default()
    };
    let mut taken = 0;
    while guaranteed(&worth) < ask.capacity {
        let emptiest =
            (0..worth.len()).filter(|&msb| free[msb] > 0).min_by_key(|&msb| (worth[msb], msb));
        let Some(msb) = emptiest else { break };
        free[msb] -= 1;
        worth[msb] += value;
        taken += 1;
    }
    taken
}

/// The smallest tolerance, in steps, that would do with what a reservation holds and what is free.
pub(super) fn theta_needed(ledger: &Ledger, ix: ReservationIx) -> Option<f64> {
    let offer = ledger.within_reach(ix, &ledger.snapshot.reservations[ix.ix()].rru);
    match looser_affinity(&offer, &ask(ledger, ix))? {
        Relaxation::LooserAffinity { needed_theta, .. } => Some(needed_theta),
        _ => None,
    }
}

/// The smallest tolerance, in steps, that would do.
fn looser_affinity(offer: &Offer, ask: &Ask) -> Option<Relaxation> {
    let (shares, theta) = ask.affinity.as_ref()?;
    let needed = (1..=2 * THETA_STEPS)
        .map(|step| f64::from(step) / f64::from(THETA_STEPS))
        .filter(|needed| needed > theta)
        .find(|&needed| {
            offer.grants(&Ask { affinity: Some((shares.clone(), needed)), ..ask.clone() })
        })?;
    Some(Relaxation::LooserAffinity { theta: *theta, needed_theta: needed })
}

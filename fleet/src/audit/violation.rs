//! Rules that targets may break.

use super::certificate::certificate_of;
use super::holdings::Holdings;
use super::maintained::Maintained;
use super::number::as_rru;
use super::report::ReservationAudit;
use crate::ahead::BudgetScope;
use crate::id::{Name, ReservationIx};
use crate::reservation::{Reservation, ReservationKind};
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;
use crate::targets::{Targets, holder_name};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What rounding of limits to whole micro-RRU may cost eq. 7, in RRU: half a micro-RRU for A C,
/// as much for theta C, and the same again for the last bits of the products.
const AFFINITY_ROUNDING: f64 = 2e-6;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Violation {
    /// An unavailable server does not keep its holder.
    UnavailableServerMoved {
        /// The server.
        server_id: Name,
        /// Its holder; `free` if it has none.
        holder: Name,
        /// Who should hold it by the targets.
        target: Name,
    },
    /// A server is newly given to a reservation its type is not eligible for.
    NotEligible {
        /// The server.
        server_id: Name,
        /// Its hardware type.
        hardware_type: Name,
        /// Who is given it.
        reservation_id: Name,
    },
    /// A server is newly given to a reservation that is held to other datacenters.
    DatacenterNotAllowed {
        /// The server.
        server_id: Name,
        /// Where it stands.
        datacenter: Name,
        /// Who is given it.
        reservation_id: Name,
    },
    /// A server is newly given to an elastic reservation, which owns no servers.
    GivenToElastic {
        /// The server.
        server_id: Name,
        /// Who is given it.
        reservation_id: Name,
    },
    /// A reservation is shorter than it is under today's holders.
    ShortfallWorse {
        /// The reservation.
        reservation_id: Name,
        /// Its shortfall under today's holders.
        #[serde(rename = "initial_rru", serialize_with = "as_rru")]
        initial: Rru,
        /// Its shortfall by the targets.
        #[serde(rename = "shortfall_rru", serialize_with = "as_rru")]
        shortfall: Rru,
    },
    /// An MSB holds more replicas than the reservation's rule allows, and more than today.
    ReplicasWorse {
        /// The reservation.
        reservation_id: Name,
        /// The MSB.
        msb: Name,
        /// The most RRU that may be there.
        #[serde(rename = "msb_max_rru", serialize_with = "as_rru")]
        msb_max: Rru,
        /// RRU there under today's holders.
        #[serde(rename = "initial_rru", serialize_with = "as_rru")]
        initial: Rru,
        /// RRU there by the targets.
        #[serde(rename = "assigned_rru", serialize_with = "as_rru")]
        assigned: Rru,
    },
    /// A server that stays until the next solve does not: it is cordoned, or planned maintenance goes on
    /// or begins until then.
    PinnedServerMoved {
        /// The server.
        server_id: Name,
        /// Its holder; `free` if it has none.
        holder: Name,
        /// Who should hold it by the targets.
        target: Name,
    },
    /// More servers are to move than the mover may begin to move before the next solve.
    TooManyMoves {
        /// What the budget counts: `region`, `msb`, `rack`, `reservation` or `server`.
        scope: Name,
        /// Which of them.
        scope_id: Name,
        /// Servers that are to move.
        moves: u64,
        /// Servers that may.
        budget: u64,
        /// Why no more may: `limit`, `contract`, `quiet_time` or `cordon`.
        because: Name,
    },
    /// With the maintenance until the next solve, what was promised for the loss of an MSB holds today and
    /// would not hold by the targets.
    GuaranteeWorse {
        /// The reservation.
        reservation_id: Name,
        /// What of its capacity is kept in the worst case under today's holders.
        #[serde(rename = "initial_rru", serialize_with = "as_rru")]
        initial: Rru,
        /// What of its capacity is kept in the worst case by the targets.
        #[serde(rename = "kept_rru", serialize_with = "as_rru")]
        kept: Rru,
    },
    /// A datacenter share is further from what eq. 7 allows than it is today.
    AffinityWorse {
        /// The reservation.
        reservation_id: Name,
        /// The datacenter.
        datacenter: Name,
        /// RRU beyond the tolerance under today's holders.
        #[serde(rename = "initial_rru")]
        initial: f64,
        /// RRU beyond the tolerance by the targets.
        #[serde(rename = "violation_rru")]
        violation: f64,
    },
}

/// Rounded to micro-RRU, for people: sums of shares have digits that mean nothing.
fn to_micro(amount: f64) -> f64 {
    (amount * 1e6).round() / 1e6
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::UnavailableServerMoved { server_id, holder, target } => write!(
                out,
                "server {server_id:?} is unavailable and must stay with {holder:?}, not go to \
                 {target:?}"
            ),
            Violation::PinnedServerMoved { server_id, holder, target } => write!(
                out,
                "server {server_id:?} stays with {holder:?} until the next solve (it is cordoned or \
                 under planned maintenance) and must not go to {target:?}"
            ),
            Violation::TooManyMoves { scope, scope_id, moves, budget, because } => write!(
                out,
                "{moves} servers of {scope} {scope_id:?} are to move before the next solve; {budget} \
                 may ({because})"
            ),
            Violation::GuaranteeWorse { reservation_id, initial, kept } => write!(
                out,
                "with planned maintenance until the next solve, {kept} RRU of reservation \
                 {reservation_id:?} are kept when an MSB is lost; {initial} are today"
            ),
            Violation::NotEligible { server_id, hardware_type, reservation_id } => write!(
                out,
                "server {server_id:?} of hardware type {hardware_type:?} is given to reservation \
                 {reservation_id:?}, for which that type is not eligible"
            ),
            Violation::DatacenterNotAllowed { server_id, datacenter, reservation_id } => write!(
                out,
                "server {server_id:?} in datacenter {datacenter:?} is given to reservation \
                 {reservation_id:?}, which is not allowed there"
            ),
            Violation::GivenToElastic { server_id, reservation_id } => write!(
                out,
                "server {server_id:?} is given to {reservation_id:?}, an elastic reservation, \
                 which only borrows"
            ),
            Violation::ShortfallWorse { reservation_id, initial, shortfall } => write!(
                out,
                "reservation {reservation_id:?} would be {shortfall} RRU short; today it is \
                 {initial}"
            ),
            Violation::ReplicasWorse { reservation_id, msb, msb_max, initial, assigned } => write!(
                out,
                "reservation {reservation_id:?} would have {assigned} RRU in MSB {msb:?}, where its \
                 replica rule allows {msb_max}; today it has {initial}"
            ),
            Violation::AffinityWorse { reservation_id, datacenter, initial, violation } => write!(
                out,
                "reservation {reservation_id:?} would be {} RRU beyond its tolerance in \
                 datacenter {datacenter:?}; today it is {}",
                to_micro(*violation),
                to_micro(*initial)
            ),
        }
    }
}

/// Rules about single servers, in order of server.
pub(super) fn bindings(snapshot: &RegionSnapshot, targets: &Targets) -> Vec<Violation> {
    let mut found = Vec::new();
    for step in targets.diff(snapshot) {
        let server = &snapshot.servers[step.server.ix()];
        if !server.available {
            found.push(Violation::UnavailableServerMoved {
                server_id: server.id.clone(),
                holder: holder_name(snapshot, step.source),
                target: holder_name(snapshot, step.target),
            });
        } else if server.pinned {
            found.push(Violation::PinnedServerMoved {
                server_id: server.id.clone(),
                holder: holder_name(snapshot, step.source),
                target: holder_name(snapshot, step.target),
            });
        }
        let Some(reservation) = step.target.map(|ix| &snapshot.reservations[ix.ix()]) else {
            continue;
        };
        if reservation.kind == ReservationKind::Elastic {
            found.push(Violation::GivenToElastic {
                server_id: server.id.clone(),
                reservation_id: reservation.id.clone(),
            });
        } else if reservation.value(server.hardware_type).is_none() {
            found.push(Violation::NotEligible {
                server_id: server.id.clone(),
                hardware_type: snapshot.hardware_types[server.hardware_type.ix()].clone(),
                reservation_id: reservation.id.clone(),
            });
        }
        let msb = snapshot.racks[server.rack.ix()].msb;
        let datacenter = snapshot.msbs[msb.ix()].datacenter;
        let allowed = &reservation.allowed_datacenters;
        if !allowed.is_empty() && !allowed.contains(&datacenter) {
            found.push(Violation::DatacenterNotAllowed {
                server_id: server.id.clone(),
                datacenter: snapshot.datacenters[datacenter.ix()].id.clone(),
                reservation_id: reservation.id.clone(),
            });
        }
    }
    found
}

/// Budgets that more servers are to move than they allow.
pub(super) fn budgets(snapshot: &RegionSnapshot, targets: &Targets) -> Vec<Violation> {
    let mut counts: BTreeMap<(BudgetScope, bool), u64> = BTreeMap::new();
    if !snapshot.move_budgets.is_empty() {
        for step in targets.diff(snapshot) {
            let server = &snapshot.servers[step.server.ix()];
            let places = [
                Some(BudgetScope::Region),
                Some(BudgetScope::Msb(snapshot.racks[server.rack.ix()].msb)),
                Some(BudgetScope::Rack(server.rack)),
                Some(BudgetScope::Server(step.server)),
                step.source.map(BudgetScope::Reservation),
            ];
            for scope in places.into_iter().flatten() {
                *counts.entry((scope, step.in_use)).or_default() += 1;
            }
        }
    }
    let count = |scope, in_use| counts.get(&(scope, in_use)).copied().unwrap_or(0);
    let over = snapshot.move_budgets.iter().filter_map(|budget| {
        let moves = match budget.in_use {
            Some(in_use) => count(budget.scope, in_use),
            None => count(budget.scope, true) + count(budget.scope, false),
        };
        (moves > budget.moves).then(|| Violation::TooManyMoves {
            scope: budget.scope.as_str().into(),
            scope_id: budget.scope_id(snapshot),
            moves,
            budget: budget.moves,
            because: budget.because.as_str().into(),
        })
    });
    over.collect()
}

/// Guaranteed reservations of which less would be kept by the targets than today, and less than was
/// promised, when an MSB is lost with the maintenance until the next solve: what is kept today, and would be.
fn kept_ahead(snapshot: &RegionSnapshot, targets: &Targets) -> Vec<(ReservationIx, Rru, Rru)> {
    let out = snapshot.maintained_ahead();
    if out.iter().all(|state| *state == Maintained::InService) {
        return Vec::new();
    }
    let today = certificate_of(snapshot, Targets::unchanged(snapshot).holders(), &out);
    let after = certificate_of(snapshot, targets.holders(), &out);
    let both = today.rows.iter().zip(&after.rows);
    let worse = both.filter(|(was, is)| is.missing() > was.missing());
    worse.map(|(was, is)| (is.reservation, was.kept(), is.kept())).collect()
}

/// Reservations of which the targets would leave less than was promised, and less than today, when an MSB
/// is lost during the maintenance until the next solve.
pub fn worse_ahead(snapshot: &RegionSnapshot, targets: &Targets) -> Vec<ReservationIx> {
    kept_ahead(snapshot, targets).into_iter().map(|(reservation, _, _)| reservation).collect()
}

/// Reservations that [`worse_ahead`] finds, as violations.
pub(super) fn guarantees(snapshot: &RegionSnapshot, targets: &Targets) -> Vec<Violation> {
    let worse = kept_ahead(snapshot, targets).into_iter();
    worse
        .map(|(reservation, initial, kept)| Violation::GuaranteeWorse {
            reservation_id: snapshot.reservations[reservation.ix()].id.clone(),
            initial,
            kept,
        })
        .collect()
}

/// RRU above the replica rule's limit in each MSB.
pub(super) fn over(reservation: &Reservation, by_msb: &[Rru]) -> Vec<Rru> {
    let Some(most) = reservation.msb_max() else { return Vec::new() };
    by_msb.iter().map(|&amount| (amount - most).or_zero()).collect()
}

/// MSBs that exceed the replica rule by more than they do today.
pub(super) fn replicas(
    snapshot: &RegionSnapshot,
    reservation: &Reservation,
    ix: ReservationIx,
    before: &Holdings,
    after: &Holdings,
) -> Vec<Violation> {
    let (was, is) = (before.by_msb(ix), after.by_msb(ix));
    let (were, are) = (over(reservation, was), over(reservation, is));
    let worse = (0..are.len()).filter(|&msb| are[msb] > were[msb]);
    worse
        .map(|msb| Violation::ReplicasWorse {
            reservation_id: reservation.id.clone(),
            msb: snapshot.msbs[msb].id.clone(),
            msb_max: is[msb] - are[msb],
            initial: was[msb],
            assigned: is[msb],
        })
        .collect()
}

/// What holds must hold and what is broken may not get worse (RAS section 3.5.1).
pub(super) fn worse(row: &ReservationAudit) -> Vec<Violation> {
    let mut found = Vec::new();
    let (initial, shortfall) = (row.initial.shortfall, row.holding.shortfall);
    if shortfall > initial {
        let reservation_id = row.reservation_id.clone();
        found.push(Violation::ShortfallWorse { reservation_id, initial, shortfall });
    }
    if row.kind == ReservationKind::Guaranteed {
        for share in &row.datacenters {
            if share.violation > share.initial_violation + AFFINITY_ROUNDING {
                found.push(Violation::AffinityWorse {
                    reservation_id: row.reservation_id.clone(),
                    datacenter: share.datacenter.clone(),
                    initial: share.initial_violation,
                    violation: share.violation,
                });
            }
        }
    }
    found
}

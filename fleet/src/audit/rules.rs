//! The checks that find violations.

use super::certificate::certified_rows;
use super::holdings::Holdings;
use super::maintained::Maintained;
use super::report::ReservationAudit;
use super::violation::Violation;
use crate::id::ReservationIx;
use crate::move_budget::BudgetScope;
use crate::reservation::{Reservation, ReservationKind};
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;
use crate::targets::{Targets, holder_name};
use std::collections::BTreeMap;

/// What rounding of limits to whole micro-RRU may cost eq. 7, in RRU: half a micro-RRU for A C,
/// as much for theta C, and the same again for the last bits of the products.
const AFFINITY_ROUNDING: f64 = 2e-6;

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
    let today = certified_rows(snapshot, Targets::unchanged(snapshot).holders(), &out);
    let after = certified_rows(snapshot, targets.holders(), &out);
    let both = today.iter().zip(&after);
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

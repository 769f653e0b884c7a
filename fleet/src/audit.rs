//! Independent recomputation of every guarantee and every term of the objective.
//!
//! The audit reads a snapshot and targets and nothing else. It knows no mathematical programme,
//! shares no code with the solver and trusts none of its numbers: amounts are summed server by
//! server in whole micro-RRU, and floating point enters only where a price is multiplied.
//!
//! [`audit`] returns an [`AuditReport`]: the objective (RAS, SOSP'21, expressions 1 to 4), one row
//! per reservation, the loss of each MSB, and every broken rule as a [`Violation`].
//! [`AuditReport::compare`] holds what a solve claims against what was found.
//!
//! Time is O(servers log servers + reservations x (MSBs + types)); memory one amount per
//! reservation and MSB.

mod affinity;
mod buffer;
mod certificate;
mod claims;
mod domain_loss;
mod holdings;
mod maintained;
mod number;
mod partitions;
mod report;
mod rules;
mod spread;
mod violation;

pub use certificate::{
    Certificate, Certified, DomainLosses, Figures, PromiseTotals, Standing, certificate,
    needed_at_once,
};
pub use claims::{ClaimedMoves, ClaimedPhase1, ClaimedReservation, Claims, Difference};
pub use domain_loss::{OwnedInDomain, owned_in_domain};
pub use holdings::Holding;
pub use maintained::{Maintained, maintained, maintained_between};
pub(crate) use partitions::ByDomain;
pub use partitions::PartitionLoss;
pub use report::{
    AfterLoss, AuditReport, BufferBounds, BufferShare, DatacenterShare, MoveCounts, MsbLoss,
    Objective, ReservationAudit, ServerCounts, Spread,
};
pub use rules::worse_ahead;
pub use violation::Violation;

pub(crate) use affinity::tolerance;
pub(crate) use buffer::{smallest_buffer, unit, usable_beside};
pub(crate) use number::{as_rru, from_rru, required};

use crate::id::{MsbIx, ReservationIx};
use crate::parts::Weights;
use crate::reservation::ReservationKind;
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;
use crate::targets::Targets;
use buffer::Hardware;
use holdings::Holdings;
use spread::Limits;

/// Recomputes everything that a solve promises about `targets`.
///
/// # Panics
/// If the targets were made for a snapshot with another number of servers.
pub fn audit(snapshot: &RegionSnapshot, targets: &Targets) -> AuditReport {
    assert_eq!(targets.holders().len(), snapshot.servers.len(), "one target per server");
    let unchanged = Targets::unchanged(snapshot);
    let before = Holdings::sum(snapshot, unchanged.holders());
    let after = Holdings::sum(snapshot, targets.holders());
    let limits = Limits::new(snapshot);
    let hardware = Hardware::count(snapshot);
    let moves = count_moves(snapshot, targets);

    let mut violations = rules::bindings(snapshot, targets);
    violations.extend(rules::budgets(snapshot, targets));
    violations.extend(rules::guarantees(snapshot, targets));
    let mut reservations = Vec::with_capacity(snapshot.reservations.len());
    for (position, reservation) in snapshot.reservations.iter().enumerate() {
        let ix = ReservationIx::new(position);
        let (holding, initial) = (after.holding(snapshot, ix), before.holding(snapshot, ix));
        let today = (before.by_domain(), initial.assigned);
        let row = ReservationAudit {
            reservation_id: reservation.id.clone(),
            owner: reservation.owner.clone(),
            kind: reservation.kind,
            priority: reservation.priority,
            msb_buffer: reservation.msb_buffer,
            made: reservation.made,
            capacity: reservation.capacity,
            partitions: after.by_domain().losses(snapshot, ix, holding.assigned, today),
            holding,
            initial,
            msb_spread: limits.msb_spread(ix, &after),
            rack_spread: limits.rack_spread(ix, &after),
            smallest_buffer: Rru::ZERO,
            datacenters: affinity::shares(snapshot, ix, &before, &after),
            msb_amounts: after.by_msb(ix).to_vec(),
            msb_over: rules::over(reservation, after.by_msb(ix)).iter().copied().sum(),
        };
        let smallest_buffer = hardware.smallest_buffer_of(reservation, promised(&row));
        violations.extend(rules::worse(&row));
        violations.extend(rules::replicas(snapshot, reservation, ix, &before, &after));
        reservations.push(ReservationAudit { smallest_buffer, ..row });
    }

    AuditReport {
        objective: objective(&snapshot.weights, &reservations, &moves),
        initial_objective: initial_objective(snapshot, &limits, &before),
        shortfall: reservations.iter().map(|row| row.holding.shortfall).sum(),
        initial_shortfall: reservations.iter().map(|row| row.initial.shortfall).sum(),
        shortfall_servers: reservations.iter().map(|row| row.holding.shortfall_servers).sum(),
        initial_shortfall_servers: reservations
            .iter()
            .map(|row| row.initial.shortfall_servers)
            .sum(),
        moves,
        buffer: hardware.share(snapshot, &reservations),
        servers: count_servers(snapshot, targets),
        msb_losses: msb_losses(snapshot, &reservations),
        reservations,
        violations,
    }
}

/// The part of C that the reservation really has, MSB loss counted in.
fn promised(row: &ReservationAudit) -> Rru {
    row.capacity - row.holding.shortfall
}

fn count_moves(snapshot: &RegionSnapshot, targets: &Targets) -> MoveCounts {
    let mut moves = MoveCounts::default();
    for step in targets.diff(snapshot) {
        if !snapshot.servers[step.server.ix()].available {
            continue;
        }
        match (step.source, step.in_use) {
            (Some(_), true) => moves.in_use += 1,
            (Some(_), false) => moves.idle += 1,
            (None, _) => moves.acquired += 1,
        }
        if step.target.is_none() {
            moves.handed_back += 1;
        }
    }
    moves
}

fn count_servers(snapshot: &RegionSnapshot, targets: &Targets) -> ServerCounts {
    let mut counts = ServerCounts { total: snapshot.servers.len(), ..ServerCounts::default() };
    for (server, holder) in snapshot.servers.iter().zip(targets.holders()) {
        if server.available {
            counts.available += 1;
            if holder.is_some() { counts.assigned += 1 } else { counts.free += 1 }
        }
    }
    counts
}

fn objective(weights: &Weights, rows: &[ReservationAudit], moves: &MoveCounts) -> Objective {
    let guaranteed = || rows.iter().filter(|row| row.kind == ReservationKind::Guaranteed);
    let rack_excess: Rru = guaranteed().map(|row| row.rack_spread.excess).sum();
    let msb_excess: Rru = guaranteed().map(|row| row.msb_spread.excess).sum();
    let buffer: Rru =
        guaranteed().filter(|row| row.msb_buffer).map(|row| row.holding.largest_msb).sum();
    Objective::of(
        weights.move_in_use * moves.in_use as f64 + weights.move_idle * moves.idle as f64,
        weights.spread_beta * rack_excess.to_f64(),
        weights.spread_beta * msb_excess.to_f64(),
        weights.buffer_tau * buffer.to_f64(),
    )
}

/// Expressions 2 to 4 of what is held today; nothing has moved, so expression 1 is zero.
fn initial_objective(snapshot: &RegionSnapshot, limits: &Limits, before: &Holdings) -> Objective {
    let (mut rack_excess, mut msb_excess, mut buffer) = (Rru::ZERO, Rru::ZERO, Rru::ZERO);
    for (position, reservation) in snapshot.reservations.iter().enumerate() {
        if reservation.kind != ReservationKind::Guaranteed {
            continue;
        }
        let ix = ReservationIx::new(position);
        rack_excess += limits.rack_spread(ix, before).excess;
        msb_excess += limits.msb_spread(ix, before).excess;
        if reservation.msb_buffer {
            buffer += before.holding(snapshot, ix).largest_msb;
        }
    }
    let weights = &snapshot.weights;
    Objective::of(
        0.0,
        weights.spread_beta * rack_excess.to_f64(),
        weights.spread_beta * msb_excess.to_f64(),
        weights.buffer_tau * buffer.to_f64(),
    )
}

fn msb_losses(snapshot: &RegionSnapshot, rows: &[ReservationAudit]) -> Vec<MsbLoss> {
    let lose = |(position, msb): (usize, &crate::topology::Msb)| {
        let lost = MsbIx::new(position);
        let mut loss = MsbLoss { msb: msb.id.clone(), below: Vec::new(), unbuffered_below: 0 };
        for row in rows.iter().filter(|row| row.kind == ReservationKind::Guaranteed) {
            let left = row.after_loss(lost);
            if left >= row.capacity {
                continue;
            }
            if row.msb_buffer {
                loss.below.push(AfterLoss {
                    reservation_id: row.reservation_id.clone(),
                    capacity: row.capacity,
                    left,
                    missing: row.capacity - left,
                });
            } else {
                loss.unbuffered_below += 1;
            }
        }
        loss
    };
    snapshot.msbs.iter().enumerate().map(lose).collect()
}

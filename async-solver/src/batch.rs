//! Several requests at once: what each would take after those before it, and what all of them lead to.
//!
//! What ends or shrinks goes first, so that what grows may have it; then the more important before the
//! less important, as in a solve, and those as important as each other as they were given. Each is planned on the region as the ones before leave it: with their requests in
//! it, and with what they take on its way. Of what the next solve will do anyway ([`crate::plan`]) only
//! that is kept without which a reservation would be worse off than today, so that a plan that is
//! carried out touches little. In the end all of it is audited against the region as it was.

use crate::quote::{QuoteContext, Quoted, minimal_targets, quote};
use fleet::audit::{AuditReport, audit};
use fleet::{
    CapacityRequest, PRIORITY_DEFAULT, PendingMove, RegionSnapshot, RequestsError, ReservationIx,
    Rru, ServerIx, Targets,
};
use std::collections::{BTreeMap, BTreeSet};

/// What there is to say about several requests.
#[derive(Clone, Debug)]
pub struct QuotedBatch {
    /// One for each request, in the order in which they were given. Each is of the region as the ones
    /// served before it leave it.
    pub answers: Vec<Quoted>,
    /// The region as it is, bindings and all, with every request in it.
    pub region: RegionSnapshot,
    /// Who should hold each server of it, so that what is granted is granted.
    pub after: Targets,
    /// What the audit says of that, against the region as it is.
    pub audit: AuditReport,
}

/// Quotes several requests at once.
///
/// # Errors
/// [`RequestsError`].
pub fn quote_all(
    context: &QuoteContext,
    requests: &[CapacityRequest],
) -> Result<QuotedBatch, RequestsError> {
    let mut seen = BTreeSet::new();
    for (number, request) in requests.iter().enumerate() {
        if !seen.insert(&request.reservation_id) {
            let reservation = request.reservation_id.clone();
            return Err(RequestsError::Twice { number, reservation });
        }
    }
    let mut region = context.snapshot.clone();
    if requests.len() > 1 {
        hold(&mut region, requests);
    }
    let mut answers: BTreeMap<usize, Quoted> = BTreeMap::new();
    for (done, number) in order(context.snapshot, requests).into_iter().enumerate() {
        // Each has its share of the time that is left.
        let means = context.means.with_share(1.0 / (requests.len() - done) as f64);
        let step = QuoteContext { snapshot: &region, means, ..*context };
        let mut found = quote(&step, &requests[number])
            .map_err(|source| RequestsError::Request { number, source })?;
        let after = minimal_targets((&found.region, &found.limits), &found.plan);
        // What happens anyway and is kept is done with this plan: it says so.
        let said: BTreeSet<ServerIx> = found.plan.moves.iter().map(|of| of.server).collect();
        let kept = after.diff(&found.region).filter(|of| !said.contains(&of.server));
        found.plan.moves.extend(kept);
        found.plan.moves.sort_by_key(|of| of.server);
        region = found.region.clone();
        mark_pending(&mut region, &after);
        answers.insert(number, found);
    }
    let after = Targets::unchanged(&region);
    restore_bindings(&mut region, context.snapshot);
    let audit = audit(&region, &after);
    Ok(QuotedBatch { answers: answers.into_values().collect(), region, after, audit })
}

/// Servers that a reservation holds beyond its present request, but requests in its turn, are not surplus
/// for the requests before it.
fn hold(region: &mut RegionSnapshot, requests: &[CapacityRequest]) {
    let today = audit(region, &Targets::unchanged(region));
    for request in requests {
        let asked = request.capacity_rru.and_then(Rru::from_f64);
        let (Some(asked), Some(ix)) = (asked, region.reservation(&request.reservation_id)) else {
            continue;
        };
        let held = today.reservations[ix.ix()].initial.guaranteed;
        let capacity = &mut region.reservations[ix.ix()].capacity;
        *capacity = (*capacity).max(held.min(asked));
    }
}

/// The order in which requests are planned: ends, then what shrinks, then the rest by priority.
fn order(snapshot: &RegionSnapshot, requests: &[CapacityRequest]) -> Vec<usize> {
    let rank = |request: &CapacityRequest| {
        let today = snapshot.reservation(&request.reservation_id);
        let today = today.map(|ix| &snapshot.reservations[ix.ix()]);
        let priority = request.priority.or(today.map(|of| of.priority)).unwrap_or(PRIORITY_DEFAULT);
        match (today.map(|of| of.capacity.to_f64()), request.capacity_rru) {
            _ if request.remove => (0, 0),
            (Some(today), Some(asked)) if asked < today => (1, 0),
            _ => (2, priority),
        }
    };
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|&number| rank(&requests[number]));
    order
}

/// Marks the moves to these targets as under way.
fn mark_pending(region: &mut RegionSnapshot, after: &Targets) {
    for (server, &target) in region.servers.iter_mut().zip(after.holders()) {
        if server.holder() != target {
            server.pending = Some(PendingMove { target });
        }
    }
}

/// Restores the moves under way of the original region.
fn restore_bindings(region: &mut RegionSnapshot, was: &RegionSnapshot) {
    let ix = |of: ReservationIx| {
        let found = region.reservation(&was.reservations[of.ix()].id);
        found.expect("requests take no reservation out of a region")
    };
    let pending = |target: Option<ReservationIx>| PendingMove { target: target.map(ix) };
    let moves: Vec<Option<PendingMove>> =
        was.servers.iter().map(|server| server.pending.map(|of| pending(of.target))).collect();
    for (server, was) in region.servers.iter_mut().zip(moves) {
        server.pending = was;
    }
}

impl QuotedBatch {
    /// Whether what is carried out for every request leaves no limit of a group exceeded, or further than before.
    pub fn keeps_limits(&self) -> bool {
        self.answers.iter().all(|of| {
            of.limits.are_kept(&of.region, &minimal_targets((&of.region, &of.limits), &of.plan))
        })
    }

    /// Whether every request is granted in full, and no reservation is worse off.
    pub fn in_full(&self) -> bool {
        self.audit.is_clean() && self.answers.iter().all(|of| of.refusal.is_none())
    }
}

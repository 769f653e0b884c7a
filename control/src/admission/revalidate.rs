//! Checks that an earlier plan still holds on the current region.

use crate::plan_queue::PlanQueue;
use broker::NewPlan;
use fleet::audit::{Violation, audit};
use fleet::{
    RegionSnapshot, RequestError, ReservationIx, ReservationName, Rru, ServerName, Targets,
};
use std::collections::HashMap;

/// The region with the changes of a plan applied, and each server's target.
pub(crate) struct Revalidated {
    pub(crate) region: RegionSnapshot,
    pub(crate) targets: Targets,
}

/// A plan no longer holds on the current region.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanInvalid {
    /// A change cannot be applied.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A server of the plan was removed.
    #[error("server {0:?} is gone")]
    ServerGone(ServerName),
    /// A reservation of the plan was removed.
    #[error("reservation {0:?} is gone")]
    ReservationGone(ReservationName),
    /// More servers in use would have to move than planned.
    #[error("{now} servers in use would have to move, and not {planned}")]
    MoreInUse {
        /// Now.
        now: usize,
        /// As planned.
        planned: usize,
    },
    /// The audit finds a reservation worse off.
    #[error("{0}")]
    Audit(Box<Violation>),
    /// A limit of a policy would be exceeded.
    #[error("policy {0}")]
    Policy(String),
    /// A reservation would be promised another capacity.
    #[error("reservation {reservation:?} would be promised {now} RRU, and not {planned}")]
    OtherPromise {
        /// The reservation.
        reservation: ReservationName,
        /// Now.
        now: Rru,
        /// As planned.
        planned: Rru,
    },
    /// A reservation would gain or lose its embedded buffer.
    #[error("reservation {0:?} would have another rule for the loss of an MSB")]
    OtherBufferRule(ReservationName),
    /// A reservation would have less than planned.
    #[error("reservation {reservation:?} would have {now} RRU, and not {planned}")]
    LessCapacity {
        /// The reservation.
        reservation: ReservationName,
        /// Now.
        now: Rru,
        /// As planned.
        planned: Rru,
    },
    /// The region changed after each of several attempts.
    #[error("the region changes too fast to apply the plan")]
    ChangesTooFast,
}

/// Applies the changes and targets of a plan to a region. The plan holds if each change is still granted as
/// planned, no more servers in use are taken from any reservation, the audit finds no reservation worse off, and policies
/// are kept.
pub(crate) fn revalidate(
    plan: &NewPlan,
    now: &RegionSnapshot,
    queue: &PlanQueue,
) -> Result<Revalidated, PlanInvalid> {
    let mut region = now.ahead_for_plans();
    for asking in plan.changes.iter().filter(|asking| !asking.keeps_the_promise()) {
        let (next, _) = asking.change.apply(&region)?;
        region = next;
    }
    let servers: HashMap<&str, usize> =
        region.servers.iter().enumerate().map(|(at, server)| (&*server.id, at)).collect();
    let mut holders: Vec<Option<ReservationIx>> = Targets::unchanged(&region).holders().to_vec();
    for (server, to) in &plan.targets {
        let at = servers.get(&**server).ok_or_else(|| PlanInvalid::ServerGone(server.clone()))?;
        holders[*at] = match to {
            None => None,
            Some(to) => {
                let gone = || PlanInvalid::ReservationGone(to.clone());
                Some(region.reservation(to).ok_or_else(gone)?)
            }
        };
    }
    let targets = Targets::new(&region, holders);
    let disturbed = targets.diff(&region).filter(|change| change.in_use).count();
    let planned: usize =
        plan.quotes.iter().flat_map(|quote| &quote.moves).filter(|of| of.in_use).count();
    if disturbed > planned {
        return Err(PlanInvalid::MoreInUse { now: disturbed, planned });
    }
    let report = audit(&region, &targets);
    if let Some(violation) = report.violations.first() {
        return Err(PlanInvalid::Audit(Box::new(violation.clone())));
    }
    queue.keeps_policies(&region, &targets).map_err(PlanInvalid::Policy)?;
    for quote in &plan.quotes {
        let reservation = quote.reservation_id.clone();
        let Some(row) = report.reservation(&reservation) else {
            return Err(PlanInvalid::ReservationGone(reservation));
        };
        if row.capacity != quote.capacity {
            let (now, planned) = (row.capacity, quote.capacity);
            return Err(PlanInvalid::OtherPromise { reservation, now, planned });
        }
        if row.msb_buffer != quote.msb_buffer {
            return Err(PlanInvalid::OtherBufferRule(reservation));
        }
        // Whole servers are often worth more than requested; the surplus is not counted.
        let planned = quote.granted_rru.min(quote.capacity);
        let now = row.holding.guaranteed;
        if now < planned {
            return Err(PlanInvalid::LessCapacity { reservation, now, planned });
        }
    }
    Ok(Revalidated { region, targets })
}

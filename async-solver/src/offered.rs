//! Plans that were offered: what is offered, asked for, is granted.
//!
//! A search that is cut by its deadline may not find again what it has found. So an offer is a plan, not a guess: it was
//! found and audited, and is kept by the names of what it moves. When its request comes, it is put on the region as it
//! is by then. If every server is still where it was, the audit finds nothing, and it costs no more than was said, it is
//! the answer. Otherwise the request is planned as any other.

use crate::plan::Plan;
use fleet::{
    CapacityRequest, RegionSnapshot, ReservationIx, ReservationName, ServerIx, ServerName, Targets,
};
use serde::{Deserialize, Serialize};

/// Prices are sums of floats: less is no difference.
const SAME_PRICE: f64 = 1e-6;

/// A plan that was offered, by names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferedPlan {
    /// All that is asked for.
    request: CapacityRequest,
    /// What the region costs more, as was said.
    price: f64,
    /// Changes that happen anyway.
    before: Vec<Step>,
    /// All changes.
    after: Vec<Step>,
}

/// A server that changes its holder; `None`: it is free.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    server: ServerName,
    from: Option<ReservationName>,
    to: Option<ReservationName>,
}

impl OfferedPlan {
    /// The plan of a request that is in a region.
    pub(crate) fn new(
        region: &RegionSnapshot,
        reservation: ReservationIx,
        plan: &Plan,
    ) -> OfferedPlan {
        OfferedPlan {
            request: CapacityRequest::of(region, reservation),
            price: plan.price,
            before: steps(region, &plan.before),
            after: steps(region, &plan.after),
        }
    }

    /// Whether it is the answer to a request that is in a region.
    pub(crate) fn answers(&self, region: &RegionSnapshot, reservation: ReservationIx) -> bool {
        region.reservations[reservation.ix()].id == self.request.reservation_id
            && CapacityRequest::of(region, reservation) == self.request
    }

    /// The targets before and after it; `None`: a server is no longer where it was.
    pub(crate) fn targets(&self, region: &RegionSnapshot) -> Option<(Targets, Targets)> {
        Some((targets(region, &self.before)?, targets(region, &self.after)?))
    }

    /// Whether a price is not above what was said.
    pub(crate) fn costs_no_more(&self, price: f64) -> bool {
        price <= self.price + SAME_PRICE * self.price.abs().max(1.0)
    }
}

fn steps(region: &RegionSnapshot, targets: &Targets) -> Vec<Step> {
    let name = |of: Option<ReservationIx>| of.map(|ix| region.reservations[ix.ix()].id.clone());
    let step = |of: fleet::Move| Step {
        server: region.servers[of.server.ix()].id.clone(),
        from: name(of.source),
        to: name(of.target),
    };
    targets.diff(region).map(step).collect()
}

fn targets(region: &RegionSnapshot, steps: &[Step]) -> Option<Targets> {
    let mut holders = Targets::unchanged(region).holders().to_vec();
    for step in steps {
        let holder = |name: &Option<ReservationName>| match name {
            Some(name) => region.reservation(name).map(Some),
            None => Some(None),
        };
        let (from, to) = (holder(&step.from)?, holder(&step.to)?);
        let server: ServerIx = region.server(&step.server)?;
        if holders[server.ix()] != from {
            return None;
        }
        holders[server.ix()] = to;
    }
    Some(Targets::new(region, holders))
}

//! A lower bound on the missing part of a request, for any solver: the proof that goes with a refusal.
//!
//! The problem of phase 1 again, with one price only: an RRU that is missing of the request, or outside
//! its datacenter shares, costs 1. Other reservations' moves, spread, buffer price and datacenter shares
//! cost nothing, and what they must keep is all they ask for, at a price that no price of a server
//! reaches. Every assignment that leaves them that much costs exactly what is missing of the request,
//! so the Lagrangian bound ([`crate::bound`]) of this problem is missing in each of them.

use crate::bound::{AscentLimits, ascend, evaluate, in_parallel};
use crate::model::{Model, rru};
use crate::params::PARAMS;
use crate::subproblem::Geometry;

const LIMITS: AscentLimits =
    AscentLimits { steps: PARAMS.plan.proof_steps, target: PARAMS.plan.proof_target };

/// RRU that are missing at least. `model`: counted from the region before the request.
pub fn shortfall_bound(
    model: &Model,
    geometries: &[Geometry],
    asking: usize,
    threads: usize,
    must_stop: &dyn Fn() -> bool,
) -> f64 {
    let only = only_missing(model, asking);
    let geometries = in_parallel(only.terms.len(), threads, |t| {
        let same = only.terms[t].capacity == model.terms[t].capacity;
        if same { geometries[t].clone() } else { Geometry::new(&only, &only.terms[t]) }
    });
    // At what a server is worth to the request, it takes none: the bound is what is asked less what
    // of the supply, so counted, others can leave at most. From there prices move to where it is scarce.
    let mut prices = vec![0.0; only.pools.len()];
    for item in &only.terms[asking].items {
        prices[item.pool as usize] = rru(item.value);
    }
    let start = evaluate(&only, &geometries, prices, threads);
    let found = ascend(&only, &geometries, start, LIMITS, threads, must_stop).value;
    if found > PARAMS.plan.proof_min { found } else { 0.0 }
}

/// The problem with that one price.
fn only_missing(model: &Model, asking: usize) -> Model {
    let mut only = model.clone();
    (only.weights.move_in_use, only.weights.move_idle) = (0.0, 0.0);
    for (number, term) in only.terms.iter_mut().enumerate() {
        (term.tau, term.beta) = (0.0, 0.0);
        // What a replica rule is exceeded by today may stay, at no price.
        for slice in &mut term.slices {
            (slice.most, slice.over_max) = (slice.hard_max(), 0);
        }
        if number == asking {
            term.short_price = 1.0;
            for range in &mut term.affinity {
                range.price = 1.0;
            }
        } else {
            term.capacity = (term.capacity - term.short_max).max(0);
            (term.short_max, term.short_price) = (0, PARAMS.plan.proof_kept_price);
            term.affinity.clear();
        }
    }
    only
}

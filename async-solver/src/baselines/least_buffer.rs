//! The least that the embedded buffers of a region can take together: a proved bound, to measure
//! assignments against.
//!
//! The Lagrangian bound of phase 1 ([`crate::bound`]) where nothing has a price but eq. 4. Each
//! reservation alone, as the audit bounds it, would take the hardware that suits it best; prices on
//! servers count what reservations that want the same hardware take from each other.

use crate::bound::{AscentLimits, ascend, evaluate, evaluate_strong, in_parallel};
use crate::model::Model;
use crate::subproblem::Geometry;
use fleet::{RegionSnapshot, ReservationKind};

/// The region's buffers are looked for once, and well.
const LIMITS: AscentLimits = AscentLimits { steps: 600, target: 1e-2 };

/// A lower bound, in RRU, on the sum of the largest MSB shares of guaranteed reservations with an embedded
/// buffer, over assignments in which no reservation is short of eq. 6 and 7. `stop`: asked between steps;
/// what has been proved by then holds.
pub fn least_buffer(snapshot: &RegionSnapshot, threads: usize, stop: &dyn Fn() -> bool) -> f64 {
    let mut model = Model::new(snapshot);
    (model.weights.move_in_use, model.weights.move_idle) = (0.0, 0.0);
    for term in &mut model.terms {
        let kind = snapshot.reservations[term.reservation.ix()].kind;
        let counts = term.buffered && kind == ReservationKind::Guaranteed;
        (term.beta, term.tau) = (0.0, if counts { 1.0 } else { 0.0 });
    }
    let geometries =
        in_parallel(model.terms.len(), threads, |term| Geometry::new(&model, &model.terms[term]));
    let nothing = vec![0.0; model.pools.len()];
    let start = evaluate(&model, &geometries, nothing.clone(), threads);
    let best = ascend(&model, &geometries, start, LIMITS, threads, stop);
    let strong = |prices| evaluate_strong(&model, &geometries, prices, threads).value;
    // Where hardware is not scarce no price is better than none.
    let values = [best.value, strong(best.prices), strong(nothing), 0.0];
    values.into_iter().fold(0.0, f64::max)
}

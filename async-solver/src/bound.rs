//! The proved dual bound: Lagrangian relaxation of eq. 5.
//!
//! With a price `p >= 0` on every server of a pool, the reservations separate, and
//! `L(p) = sum over r of bound_r(p) - sum over pools of p size` is at most the cost of any integer
//! assignment: a feasible one uses at most `size` servers of a pool, so its cost is at least its
//! cost with every server charged and the whole supply refunded, and `bound_r` is at most what any
//! whole-server assignment of `r` costs at these prices ([`crate::subproblem`]). This holds for
//! every `p`, however it was found: by ascent ([`VolumeAlgorithm`]), in HiGHS' duals or in a file an hour old.

use crate::model::Model;
use crate::params::PARAMS;
use crate::subproblem::{Geometry, Priced, ReservationBound};
use std::thread;

/// A value of the dual function.
#[derive(Clone, Debug)]
pub struct DualPoint {
    /// Price per server of each pool, then per unit of each row of [`Model::limits`], then per RRU that must be left after the
    /// loss of each domain ([`crate::domain_prices`]).
    pub prices: Vec<f64>,
    /// L(p): no integer assignment costs less.
    pub value: f64,
    /// The bound of each reservation, at these prices.
    pub terms: Vec<ReservationBound>,
    /// Servers of each pool the relaxed reservations take, then units of each row, less those above its bound, then RRU that
    /// are missing after the loss of each domain.
    pub usage: Vec<f64>,
}

impl DualPoint {
    /// Every server at price zero, and no bound.
    pub fn free(model: &Model) -> DualPoint {
        DualPoint {
            prices: vec![0.0; model.prices()],
            value: f64::NEG_INFINITY,
            terms: vec![ReservationBound::default(); model.terms.len()],
            usage: vec![0.0; model.prices()],
        }
    }
}

impl DualPoint {
    /// How far an assignment of a reservation, which costs this much, is above its bound at these prices.
    pub fn above_bound(&self, model: &Model, term: usize, cost: f64, counts: &[u32]) -> f64 {
        let mut above = cost - self.terms[term].value;
        for (item, &count) in model.terms[term].items.iter().zip(counts) {
            above += model.price_of(item, &self.prices) * f64::from(count);
            above -= model.leave_price(item);
        }
        above
    }
}

/// Evaluates the dual function.
pub fn evaluate(
    model: &Model,
    geometries: &[Geometry],
    prices: Vec<f64>,
    threads: usize,
) -> DualPoint {
    evaluate_with(model, geometries, prices, threads, |priced| priced.bound())
}

/// Evaluates the dual function with the stronger, slower bound of each reservation.
pub fn evaluate_strong(
    model: &Model,
    geometries: &[Geometry],
    prices: Vec<f64>,
    threads: usize,
) -> DualPoint {
    evaluate_with(model, geometries, prices, threads, |priced| priced.strong_bound())
}

fn evaluate_with(
    model: &Model,
    geometries: &[Geometry],
    prices: Vec<f64>,
    threads: usize,
    bound: impl Fn(&Priced) -> ReservationBound + Sync,
) -> DualPoint {
    let found = in_parallel(model.terms.len(), threads, |number| {
        let term = &model.terms[number];
        let domains = term.domain_prices(&prices);
        let mut found =
            bound(&Priced::relaxed(model, term, &geometries[number], &prices, &domains));
        found.value += domains.constant(term);
        (found, 2.0 * domains.magnitude(term), domains.is_given_up())
    });
    let mut usage = vec![0.0; model.prices()];
    let mut value = 0.0;
    let mut magnitude: f64 = found.iter().map(|of| of.1).sum();
    let given_up: Vec<bool> = found.iter().map(|of| of.2).collect();
    let terms: Vec<ReservationBound> = found.into_iter().map(|of| of.0).collect();
    for ((term, bound), given_up) in model.terms.iter().zip(&terms).zip(given_up) {
        value += bound.value;
        magnitude += bound.value.abs();
        for (item, used) in term.items.iter().zip(&bound.usage) {
            usage[item.pool as usize] += used;
            for (row, amount) in model.limit_entries(item) {
                usage[row as usize] += amount * used;
            }
            value += model.leave_price(item);
        }
        for (row, missing) in term.missing_after_domains(&bound.usage, bound.top, given_up) {
            usage[row] = missing;
        }
        for item in &term.ineligible_held {
            let price = model.price_of(item, &prices);
            value += model.leave_price(item);
            let (dear, cheap) = model.leave_order(item);
            for (count, leave) in [dear, cheap] {
                if leave > price {
                    value -= f64::from(count) * (leave - price);
                    usage[item.pool as usize] += f64::from(count);
                    for (row, amount) in model.limit_entries(item) {
                        usage[row as usize] += amount * f64::from(count);
                    }
                }
            }
        }
    }
    for (supply, price) in model.supplies().zip(&prices) {
        value -= price * supply;
        magnitude += price * supply.abs();
    }
    for &row in &model.limits.broken {
        let (of, at) = (&model.limits.rows[row as usize], model.pools.len() + row as usize);
        let (gain, excess) = (prices[at] - of.price, of.excess_max());
        // What is above the bound is cheaper than what it makes room for.
        if gain > 0.0 {
            value -= gain * excess;
            magnitude += gain * excess;
            usage[at] -= excess;
        }
    }
    value -= PARAMS.bound.rounding * magnitude;
    DualPoint { prices, value, terms, usage }
}

/// Computes a value per index on a few threads; the results come in order of index, regardless of the
/// number of threads.
pub fn in_parallel<T: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    if threads <= 1 || count <= PARAMS.bound.batch {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        loop {
            let from = next.fetch_add(PARAMS.bound.batch, Ordering::Relaxed);
            if from >= count {
                return done;
            }
            done.extend(
                (from..count.min(from + PARAMS.bound.batch)).map(|index| (index, work(index))),
            );
        }
    };
    let mut results: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut results = run();
        for worker in workers {
            results.extend(worker.join().expect("workers do not panic"));
        }
        results
    });
    results.sort_unstable_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, value)| value).collect()
}

/// Parameters of the volume algorithm that differ between cold and warm starts.
#[derive(Clone, Copy, Debug)]
pub struct VolumeParams {
    /// Weight of a new point in the smoothed usage.
    smoothing: f64,
    /// Steps without a higher value after which the target step shrinks.
    max_failures: u32,
}

impl VolumeParams {
    /// To the highest bound, and to a fractional solution that is a good start for a search.
    pub const STEADY: VolumeParams = VolumeParams {
        smoothing: PARAMS.ascent.smoothing,
        max_failures: PARAMS.ascent.max_failures,
    };
    /// To a bound as high in half of the steps, where the distance is short. The fractional solution is a
    /// worse start, and over a long distance the ascent ends too early (decision 0013).
    pub const QUICK: VolumeParams = VolumeParams {
        smoothing: PARAMS.ascent.quick_smoothing,
        max_failures: PARAMS.ascent.quick_max_failures,
    };
}

/// Ascends the dual function by the volume algorithm (Barahona and Anbil, 2000): steps from the
/// best point along the smoothed usage of the relaxed reservations, to a level a little above.
///
/// A pool's excess counts as a share of its size: prices are per server, and a hundred servers too
/// many say more of a pool of fifty than of one of five thousand. On a cold region of 300,000
/// servers that makes 0.25 % more of the same number of steps.
pub struct VolumeAlgorithm {
    /// The best point so far.
    pub best: DualPoint,
    /// Smoothed servers of each pool that the relaxed reservations take.
    usage: Vec<f64>,
    /// Smoothed servers of each item of each term: near an optimum of the relaxation.
    fractional: Vec<Vec<f64>>,
    /// Intended gain of the next step.
    target_step: f64,
    stalled: u32,
    params: VolumeParams,
}

impl VolumeAlgorithm {
    /// Starts at a point. `target`: how much higher the optimum may be, as a share of the value.
    pub fn new(start: DualPoint, target: f64, params: VolumeParams) -> VolumeAlgorithm {
        VolumeAlgorithm {
            usage: start.usage.clone(),
            fractional: start.terms.iter().map(|term| term.usage.clone()).collect(),
            target_step: target * start.value.abs().max(1.0),
            best: start,
            stalled: 0,
            params,
        }
    }

    /// One step.
    pub fn step(&mut self, model: &Model, geometries: &[Geometry], threads: usize) {
        let from = &self.best;
        let mut norm = 0.0;
        let direction: Vec<f64> = (self.usage.iter().zip(model.supplies_and_sizes()))
            .zip(&from.prices)
            .map(|((usage, (supply, size)), price)| {
                let over = usage - supply;
                let over = if over < 0.0 && *price <= 0.0 { 0.0 } else { over };
                norm += over * over / size;
                over / size
            })
            .collect();
        if norm < 1e-12 {
            self.target_step = 0.0;
            return;
        }
        let length = self.target_step / norm;
        let prices = (from.prices.iter().zip(&direction))
            .map(|(price, direction)| (price + length * direction).max(0.0))
            .collect();
        let point = evaluate(model, geometries, prices, threads);
        let share = self.params.smoothing;
        smooth(&mut self.usage, &point.usage, share);
        for (smoothed, term) in self.fractional.iter_mut().zip(&point.terms) {
            smooth(smoothed, &term.usage, share);
        }
        if point.value > self.best.value {
            if point.value - self.best.value > PARAMS.ascent.good_step * self.target_step {
                self.target_step *= PARAMS.ascent.grow;
            }
            self.best = point;
            self.stalled = 0;
        } else {
            self.stalled += 1;
            if self.stalled.is_multiple_of(self.params.max_failures) {
                self.target_step *= PARAMS.ascent.shrink;
            }
        }
    }

    /// Steps until it has converged, at most a number of them. `must_stop` is called between steps.
    pub fn run(
        &mut self,
        model: &Model,
        geometries: &[Geometry],
        steps: usize,
        threads: usize,
        must_stop: &dyn Fn() -> bool,
    ) {
        for _ in 0..steps {
            if self.is_done() || must_stop() {
                break;
            }
            self.step(model, geometries, threads);
        }
    }

    /// Whether further steps are unlikely to help.
    pub fn is_done(&self) -> bool {
        self.target_step < PARAMS.ascent.min_target * self.best.value.abs().max(1.0)
    }

    /// Servers of each item of each term, near an optimum of the relaxation.
    pub fn fractional_solution(&self) -> &[Vec<f64>] {
        &self.fractional
    }
}

/// Limits of an ascent.
#[derive(Clone, Copy, Debug)]
pub struct AscentLimits {
    /// Steps at most.
    pub steps: usize,
    /// First target step, as a share of the value at the start.
    pub target: f64,
}

/// Ascends from a point and returns the best one. `must_stop` is called between steps.
pub fn ascend(
    model: &Model,
    geometries: &[Geometry],
    start: DualPoint,
    limits: AscentLimits,
    threads: usize,
    must_stop: &dyn Fn() -> bool,
) -> DualPoint {
    let mut ascent = VolumeAlgorithm::new(start, limits.target, VolumeParams::STEADY);
    ascent.run(model, geometries, limits.steps, threads, must_stop);
    ascent.best
}

fn smooth(smoothed: &mut [f64], new: &[f64], share: f64) {
    for (smooth, new) in smoothed.iter_mut().zip(new) {
        *smooth += share * (new - *smooth);
    }
}

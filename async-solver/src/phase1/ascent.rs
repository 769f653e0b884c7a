//! Ascent to better prices, alone or beside a search.

use super::Run;
use crate::bound::{DualPoint, VolumeAlgorithm, VolumeParams, evaluate, evaluate_strong};
use crate::env::SolveEnv;
use crate::model::Model;
use crate::params::PARAMS;
use crate::subproblem::Geometry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A burst of the ascent, with a copy of the run's state at its start: concurrent work does not change its
/// result.
struct AscentBurst<'a> {
    model: &'a Model,
    geometries: &'a [Geometry],
    env: &'a SolveEnv<'a>,
    reserve: Duration,
    /// The instant at which it must end, to leave time for a search.
    end: Option<Duration>,
    steps: usize,
    /// Gain of `burst_steps` steps, as a share of the value, below which it ends.
    min_gain: f64,
    /// The bound that reaches the target gap.
    goal: f64,
    /// The best bound so far.
    bound: f64,
}

/// The result of a burst.
struct AscentResult {
    /// The best point.
    prices: DualPoint,
    /// The best bound.
    bound: f64,
    /// Whether the clock ended it.
    hurried: bool,
}

impl AscentBurst<'_> {
    /// Ascends, and ends with the stronger bound. `thread_budget`: threads it may use; zero cancels it.
    fn run(mut self, ascent: &mut VolumeAlgorithm, thread_budget: &AtomicUsize) -> AscentResult {
        let threads = || thread_budget.load(Ordering::Relaxed);
        let must_stop = || threads() == 0 || self.env.must_stop(self.reserve);
        let mut hurried = false;
        self.bound = self.bound.max(ascent.best.value);
        let mut last = ascent.best.value;
        for step in 1..=self.steps {
            if ascent.is_done() || self.bound >= self.goal || must_stop() {
                break;
            }
            if self.end.is_some_and(|end| (self.env.elapsed)() >= end) {
                hurried = true;
                break;
            }
            ascent.step(self.model, self.geometries, threads());
            let value = ascent.best.value;
            self.bound = self.bound.max(value);
            if self.min_gain > 0.0 && step.is_multiple_of(PARAMS.ascent.burst_steps) {
                if value - last < self.min_gain * value.abs() {
                    break;
                }
                last = value;
            }
        }
        let mut prices = ascent.best.clone();
        if self.bound < self.goal && !must_stop() {
            prices = evaluate_strong(self.model, self.geometries, prices.prices, threads());
        }
        AscentResult { bound: self.bound.max(prices.value), prices, hurried }
    }
}

impl<'a> Run<'a> {
    /// Pool prices by ascent, limited to this many steps, and the bound with them.
    pub(super) fn ascend(&mut self, ascent: &mut VolumeAlgorithm, steps: usize) -> DualPoint {
        let burst = self.begin(steps, 0.0);
        let ascended = burst.run(ascent, &AtomicUsize::new(self.config.threads));
        self.take(ascended)
    }

    /// Pool prices by ascent, without a limit of steps.
    pub(super) fn ascend_fully(&mut self, ascent: &mut VolumeAlgorithm) -> DualPoint {
        self.ascend(ascent, PARAMS.ascent.max_steps)
    }

    /// Pool prices by ascent beside a search, until `burst_steps` steps gain little.
    pub(super) fn ascend_until_slow(
        &mut self,
        ascent: &mut VolumeAlgorithm,
        search: impl FnOnce(&mut Self),
    ) -> Option<DualPoint> {
        self.ascend_beside(
            ascent,
            self.begin(PARAMS.ascent.max_steps, PARAMS.ascent.min_gain_per_burst),
            search,
        )
    }

    /// Ascends by `burst_steps` steps beside a search.
    pub(super) fn ascend_burst(
        &mut self,
        ascent: &mut VolumeAlgorithm,
        search: impl FnOnce(&mut Self),
    ) -> Option<DualPoint> {
        self.ascend_beside(ascent, self.begin(PARAMS.ascent.burst_steps, 0.0), search)
    }

    /// Ascends on the threads that a search leaves, and on all when the search has ended; with one thread, after
    /// it. Neither sees the other's work, so the number of threads does not change the result. `None`: the
    /// search reached the target gap, or time is up.
    fn ascend_beside(
        &mut self,
        ascent: &mut VolumeAlgorithm,
        burst: AscentBurst<'_>,
        search: impl FnOnce(&mut Self),
    ) -> Option<DualPoint> {
        let threads = self.config.threads;
        let thread_budget = AtomicUsize::new(threads.saturating_sub(1));
        let searched = || {
            search(self);
            let goes_on = !self.is_within_gap() && !self.must_stop();
            thread_budget.store(if goes_on { threads.max(1) } else { 0 }, Ordering::Relaxed);
            goes_on
        };
        let ascended = if threads < 2 {
            searched().then(|| burst.run(ascent, &thread_budget))
        } else {
            thread::scope(|scope| {
                let ascending = scope.spawn(|| burst.run(ascent, &thread_budget));
                let goes_on = searched();
                let ascended = ascending.join().expect("the ascent does not panic");
                goes_on.then_some(ascended)
            })
        };
        ascended.map(|ascended| self.take(ascended))
    }

    /// `min_gain`: gain of `burst_steps` steps, as a share of the value, below which the burst ends.
    fn begin(&self, steps: usize, min_gain: f64) -> AscentBurst<'a> {
        let now = (self.env.elapsed)();
        let end = self.env.deadline.map(|end| {
            let left = end.saturating_sub(self.reserve).saturating_sub(now);
            now + left.mul_f64(PARAMS.time.ascent_share)
        });
        AscentBurst {
            model: self.model,
            geometries: self.geometries,
            env: self.env,
            reserve: self.reserve,
            end,
            steps,
            min_gain,
            goal: self.primal() - self.gap_limit() - 1e-9,
            bound: self.dual_bound,
        }
    }

    fn take(&mut self, ascended: AscentResult) -> DualPoint {
        self.dual_bound = self.dual_bound.max(ascended.bound);
        self.hurried |= ascended.hurried;
        self.note("mip");
        if self.dual.as_ref().is_none_or(|dual| dual.value < ascended.prices.value) {
            self.dual = Some(ascended.prices.clone());
        }
        ascended.prices
    }

    /// An ascent from zero prices.
    pub(super) fn ascent_from_zero(&self) -> VolumeAlgorithm {
        let zero = self.at(vec![0.0; self.model.prices()]);
        VolumeAlgorithm::new(zero, PARAMS.ascent.target_cold, VolumeParams::STEADY)
    }

    /// An ascent over a short distance, from the last solve's prices, or from zero where the bound is higher
    /// there, as it may be after requests shrank.
    pub(super) fn ascent_from_last(&self, last: Vec<f64>) -> VolumeAlgorithm {
        let (zero, last) = (self.at(vec![0.0; self.model.prices()]), self.at(last));
        let (start, target) = if last.value > zero.value {
            (last, PARAMS.ascent.target_warm)
        } else {
            (zero, PARAMS.ascent.target_warm_from_zero)
        };
        VolumeAlgorithm::new(start, target, VolumeParams::QUICK)
    }

    pub(super) fn at(&self, prices: Vec<f64>) -> DualPoint {
        evaluate(self.model, self.geometries, prices, self.config.threads)
    }
}

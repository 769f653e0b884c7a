//! Climbing to better prices, alone or beside a search.

use super::Run;
use crate::bound::{Ascent, DualPoint, evaluate_strong};
use crate::control::Control;
use crate::model::Model;
use crate::subproblem::Geometry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Steps of an ascent at most.
const STEPS: usize = 600;
/// Share of the time left that an ascent may take: good prices are of no use without a search.
const SHARE: f64 = 0.4;
/// Steps of a leg of a warm solve's ascent; its first ascent ends with a leg that brings less than this share
/// of the value.
const LEG: usize = 20;
const LITTLE: f64 = 3e-5;

/// A leg of the ascent, with a copy of the run's state at its start: concurrent work does not change its
/// result.
struct Climb<'a> {
    model: &'a Model,
    geometries: &'a [Geometry],
    control: &'a Control<'a>,
    reserve: Duration,
    /// When it must end, to leave time for a search.
    end: Option<Duration>,
    steps: usize,
    /// A leg that brings less than this share of the value ends it.
    little: f64,
    /// A bound that is high enough, and the one there is.
    goal: f64,
    bound: f64,
}

/// What came of it.
struct Climbed {
    /// The best point.
    prices: DualPoint,
    /// The best bound.
    bound: f64,
    /// Whether the clock ended it.
    hurried: bool,
}

impl Climb<'_> {
    /// Ascends, and returns the stronger bound. `hands`: threads it may use; empty: the solve is over.
    fn run(mut self, ascent: &mut Ascent, hands: &AtomicUsize) -> Climbed {
        let threads = || hands.load(Ordering::Relaxed);
        let must_stop = || threads() == 0 || self.control.must_stop(self.reserve);
        let mut hurried = false;
        self.bound = self.bound.max(ascent.best.value);
        let mut last = ascent.best.value;
        for step in 1..=self.steps {
            if ascent.is_done() || self.bound >= self.goal || must_stop() {
                break;
            }
            if self.end.is_some_and(|end| (self.control.elapsed)() >= end) {
                hurried = true;
                break;
            }
            ascent.step(self.model, self.geometries, threads());
            let value = ascent.best.value;
            self.bound = self.bound.max(value);
            if self.little > 0.0 && step.is_multiple_of(LEG) {
                if value - last < self.little * value.abs() {
                    break;
                }
                last = value;
            }
        }
        let mut prices = ascent.best.clone();
        if self.bound < self.goal && !must_stop() {
            prices = evaluate_strong(self.model, self.geometries, prices.prices, threads());
        }
        Climbed { bound: self.bound.max(prices.value), prices, hurried }
    }
}

impl<'a> Run<'a> {
    /// Pool prices by ascent, limited to this many steps, and the bound with them.
    pub(super) fn climb(&mut self, ascent: &mut Ascent, steps: usize) -> DualPoint {
        let climb = self.begin(steps, 0.0);
        let climbed = climb.run(ascent, &AtomicUsize::new(self.config.threads));
        self.take(climbed)
    }

    /// Pool prices by ascent, without a limit of steps.
    pub(super) fn climb_to_the_end(&mut self, ascent: &mut Ascent) -> DualPoint {
        self.climb(ascent, STEPS)
    }

    /// Pool prices by ascent beside a search, until a leg brings little.
    pub(super) fn climb_a_while(
        &mut self,
        ascent: &mut Ascent,
        search: impl FnOnce(&mut Self),
    ) -> Option<DualPoint> {
        self.climb_beside(ascent, self.begin(STEPS, LITTLE), search)
    }

    /// Ascends one leg.
    pub(super) fn climb_a_leg(
        &mut self,
        ascent: &mut Ascent,
        search: impl FnOnce(&mut Self),
    ) -> Option<DualPoint> {
        self.climb_beside(ascent, self.begin(LEG, 0.0), search)
    }

    /// Climbs on the threads that a search leaves, and on all when it has ended; with one thread, after it.
    /// Neither sees what the other does, so the answer is the same. `None`: after the search nothing is left to
    /// do, or no time.
    fn climb_beside(
        &mut self,
        ascent: &mut Ascent,
        climb: Climb<'_>,
        search: impl FnOnce(&mut Self),
    ) -> Option<DualPoint> {
        let threads = self.config.threads;
        let hands = AtomicUsize::new(threads.saturating_sub(1));
        let searched = || {
            search(self);
            let goes_on = !self.is_within_gap() && !self.must_stop();
            hands.store(if goes_on { threads.max(1) } else { 0 }, Ordering::Relaxed);
            goes_on
        };
        let climbed = if threads < 2 {
            searched().then(|| climb.run(ascent, &hands))
        } else {
            thread::scope(|scope| {
                let climbing = scope.spawn(|| climb.run(ascent, &hands));
                let goes_on = searched();
                let climbed = climbing.join().expect("climbing does not panic");
                goes_on.then_some(climbed)
            })
        };
        climbed.map(|climbed| self.take(climbed))
    }

    /// `little`: a leg that brings less than this share of the value ends it.
    fn begin(&self, steps: usize, little: f64) -> Climb<'a> {
        let now = (self.control.elapsed)();
        // Where a gap is near enough only since the last hour was hard, prices would be no good for the search.
        let near_enough = if little > 0.0 { self.config.gap_limit } else { self.enough };
        let end = self.control.deadline.map(|end| {
            let left = end.saturating_sub(self.reserve).saturating_sub(now);
            now + left.mul_f64(SHARE)
        });
        Climb {
            model: self.model,
            geometries: self.geometries,
            control: self.control,
            reserve: self.reserve,
            end,
            steps,
            little,
            goal: self.primal() - near_enough * self.worth() - 1e-9,
            bound: self.dual_bound,
        }
    }

    fn take(&mut self, climbed: Climbed) -> DualPoint {
        self.dual_bound = self.dual_bound.max(climbed.bound);
        self.hurried |= climbed.hurried;
        self.note("mip");
        if self.dual.as_ref().is_none_or(|dual| dual.value < climbed.prices.value) {
            self.dual = Some(climbed.prices.clone());
        }
        climbed.prices
    }
}

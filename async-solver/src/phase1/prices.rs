//! The pools' prices: by ascent, from nothing, from what the last solve left or from HiGHS' duals, and at
//! last by a master problem.

use super::Run;
use crate::backend::{LpRequest, LpSolution};
use crate::bound::{Ascent, DualPoint, Pace, evaluate, evaluate_strong, in_parallel};
use crate::master::Master;
use crate::subproblem::Priced;

/// Steps of the dual ascent at most, from HiGHS' duals and from others.
const ASCENT_STEPS: (usize, usize) = (30, 600);
/// Share of the time left that an ascent may take: good prices are of no use without a search.
const ASCENT_SHARE: f64 = 0.4;
/// How far above where it starts an ascent aims at first, relative: from HiGHS' duals, from what the
/// last solve left, and from nothing.
const AIM_FROM_LP: f64 = 1e-4;
const AIM_WARM: f64 = 3e-4;
const AIM_COLD: f64 = 1e-2;
/// Up to which share of the value the way of a warm solve to an assignment's cost is a short one, and what an
/// ascent aims for there at most: the optimum is nearer to the bound than to the assignment.
const SHORT: f64 = 0.05;
const SHORT_AIM: f64 = 0.1;
/// Steps of a leg of a warm solve's ascent; its first ascent ends with a leg that brings less than this share
/// of the value.
const LEG: usize = 20;
const LITTLE: f64 = 3e-5;
/// Masters solved at most.
const MASTER_STEPS: usize = 60;
/// How far prices may go from the best ones at first, as a share of the mean price.
const RADIUS: f64 = 0.03;
/// Steps without a better bound after which the radius is halved, and after which it is over.
const NULL_STEPS: (u32, u32) = (10, 40);
/// A step that brings this share of what the master promised lets the next ones be longer.
const GOOD_STEP: f64 = 0.3;
/// Largest MSB shares tried for a point.
const POINT_TRIES: usize = 12;

impl Run<'_> {
    /// The pools' prices, and with them the bound: HiGHS' duals, then a few steps further.
    pub(super) fn prices(&mut self, solution: &LpSolution) -> DualPoint {
        let duals = solution.row_duals.iter().chain(std::iter::repeat(&0.0));
        let prices = duals.take(self.model.pools.len()).map(|dual| (-dual).max(0.0));
        let prices = prices.map(|price| if price < 1e-9 { 0.0 } else { price }).collect();
        let start = evaluate(self.model, &self.geometries, prices, self.config.threads);
        let mut ascent = Ascent::new(start, AIM_FROM_LP, Pace::STEADY);
        self.climb(&mut ascent, ASCENT_STEPS.0, 0.0)
    }

    /// Where an ascent without an LP begins: at the prices that the last solve left, or from nothing.
    pub(super) fn ascent_from(&self, warm: Option<Vec<f64>>) -> Ascent {
        let nothing = vec![0.0; self.model.pools.len()];
        let at = |prices| evaluate(self.model, &self.geometries, prices, self.config.threads);
        let (cold, warm) = (at(nothing), warm.map(at));
        let Some(warm) = warm else { return Ascent::new(cold, AIM_COLD, Pace::STEADY) };
        // Where less is asked for than an hour before, the last prices may be worse than none.
        let (start, aim) =
            if warm.value > cold.value { (warm, AIM_WARM) } else { (cold, AIM_COLD) };
        let magnitude = start.value.abs().max(1.0);
        let way = (self.worth() - start.value).max(0.0) / magnitude;
        if way < SHORT {
            Ascent::new(start, aim.min(SHORT_AIM * way), Pace::QUICK)
        } else {
            Ascent::new(start, aim, Pace::STEADY)
        }
    }

    /// The pools' prices by ascent, as far as it goes.
    pub(super) fn climb_to_the_end(&mut self, ascent: &mut Ascent) -> DualPoint {
        self.climb(ascent, ASCENT_STEPS.1, 0.0)
    }

    /// Likewise, until a leg brings little.
    pub(super) fn climb_a_while(&mut self, ascent: &mut Ascent) -> DualPoint {
        self.climb(ascent, ASCENT_STEPS.1, LITTLE)
    }

    /// Likewise, one leg.
    pub(super) fn climb_a_leg(&mut self, ascent: &mut Ascent) -> DualPoint {
        self.climb(ascent, LEG, 0.0)
    }

    /// Some steps of ascent, and the stronger bound where they end. `little`: a leg that brings less than
    /// this share of the value ends it.
    fn climb(&mut self, ascent: &mut Ascent, steps: usize, little: f64) -> DualPoint {
        let threads = self.config.threads;
        let clock = self.control.elapsed;
        let begun = clock();
        // Where a gap is near enough only since the last hour was hard, prices would be no good for the search.
        let near_enough = if little > 0.0 { self.config.gap_limit } else { self.enough };
        let end = self.control.deadline.map(|end| {
            let left = end.saturating_sub(self.reserve).saturating_sub(begun);
            begun + left.mul_f64(ASCENT_SHARE)
        });
        self.dual_bound = self.dual_bound.max(ascent.best.value);
        let mut last = ascent.best.value;
        for step in 1..=steps {
            if ascent.is_done() || self.is_within(near_enough) || self.must_stop() {
                break;
            }
            if end.is_some_and(|end| clock() >= end) {
                self.hurried = true;
                break;
            }
            ascent.step(self.model, &self.geometries, threads);
            let value = ascent.best.value;
            self.dual_bound = self.dual_bound.max(value);
            if little > 0.0 && step.is_multiple_of(LEG) {
                if value - last < little * value.abs() {
                    break;
                }
                last = value;
            }
        }
        let mut best = ascent.best.clone();
        if !self.is_within(near_enough) && !self.must_stop() {
            best = evaluate_strong(self.model, &self.geometries, best.prices, threads);
            self.dual_bound = self.dual_bound.max(best.value);
        }
        self.note("mip");
        if self.dual.as_ref().is_none_or(|dual| dual.value < best.value) {
            self.dual = Some(best.clone());
        }
        best
    }

    /// Better prices from a master problem, and the mixture of whole-server assignments it ends
    /// with: servers of each item of each reservation.
    pub(super) fn refine(&mut self, request: &LpRequest) -> Option<Vec<Vec<f64>>> {
        let (mut best, state) = (self.dual.clone()?, self.best.clone()?.0);
        let request = LpRequest { solver: "simplex".into(), ..request.clone() };
        let mut master = Master::new(self.model);
        for (term, counts) in state.counts.into_iter().enumerate() {
            master.add(term, counts);
        }
        self.add_points(&mut master, &best);
        let positive: Vec<f64> = best.prices.iter().copied().filter(|price| *price > 0.0).collect();
        let mut radius = RADIUS * positive.iter().sum::<f64>() / positive.len().max(1) as f64;
        let (mut null, mut mixture) = (0, None);
        for _ in 0..MASTER_STEPS {
            if null >= NULL_STEPS.1 || self.is_within_gap() || self.must_stop() {
                break;
            }
            let problem = master.problem(&best.prices, radius);
            let columns = problem.cost.len();
            let mut job = self.control.backend.start(problem, request.clone());
            let Some(solution) = self.wait(job.as_mut(), columns) else { break };
            let Some(prices) = master.prices(&solution.row_duals) else { break };
            mixture = Some(master.mixture(&solution.columns));
            let point = evaluate_strong(self.model, &self.geometries, prices, self.config.threads);
            self.add_points(&mut master, &point);
            let promised = master.value(solution.objective) - best.value;
            if point.value > best.value {
                if point.value - best.value > GOOD_STEP * promised {
                    radius *= 1.5;
                }
                best = point;
                null = 0;
                self.dual_bound = self.dual_bound.max(best.value);
            } else {
                null += 1;
                if null.is_multiple_of(NULL_STEPS.0) {
                    radius *= 0.5;
                }
            }
        }
        self.dual = Some(best);
        self.note("mip");
        mixture
    }

    /// Adds to the master what each reservation would take at some prices.
    fn add_points(&self, master: &mut Master, dual: &DualPoint) {
        let model = self.model;
        let points = in_parallel(model.terms.len(), self.config.threads, |term| {
            let (of, geometry) = (&model.terms[term], &self.geometries[term]);
            let priced = Priced::unlimited(model, of, geometry, &dual.prices);
            priced.best_whole(&[dual.terms[term].top], POINT_TRIES)
        });
        for (term, point) in points.into_iter().enumerate() {
            if let Some((counts, _)) = point {
                master.add(term, counts);
            }
        }
    }
}

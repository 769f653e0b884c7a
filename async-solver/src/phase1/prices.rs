//! The pools' prices: by ascent, from nothing, from what the last solve left or from HiGHS' duals, and at
//! last by a master problem.

use super::Run;
use crate::backend::{LpRequest, LpSolution};
use crate::bound::{Ascent, DualPoint, Pace, evaluate, evaluate_strong, in_parallel};
use crate::master::Master;
use crate::subproblem::Priced;

/// Steps of the dual ascent from HiGHS' duals at most.
const LP_STEPS: usize = 30;
/// How far above where it starts an ascent aims at first, relative: from HiGHS' duals, from what the
/// last solve left, from nothing an hour after it, and from nothing.
const AIM_FROM_LP: f64 = 1e-4;
const AIM_WARM: f64 = 3e-4;
const AIM_SHORT: f64 = 1e-3;
const AIM_COLD: f64 = 1e-2;
/// Factor for a way longer than estimated, as a share of the remaining way.
const AIM_OF_WAY: f64 = 0.1;
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
    /// The pools' prices, and with them the bound, from HiGHS' duals if there are any; with what is near an optimum
    /// of the relaxation: servers of each item of each reservation.
    pub(super) fn prices_and_start(
        &mut self,
        solution: Option<&LpSolution>,
    ) -> (DualPoint, Vec<Vec<f64>>) {
        if let Some(solution) = solution {
            let counts = |term| self.lp.counts(self.model, term, &solution.columns);
            let near = (0..self.model.terms.len()).map(counts).collect();
            return (self.prices(solution), near);
        }
        let nothing = self.at(vec![0.0; self.model.pools.len()]);
        let mut ascent = Ascent::new(nothing, AIM_COLD, Pace::STEADY);
        (self.climb_to_the_end(&mut ascent), ascent.mixture().to_vec())
    }

    /// The pools' prices: HiGHS' duals, then a few steps further.
    pub(super) fn prices(&mut self, solution: &LpSolution) -> DualPoint {
        let duals = solution.row_duals.iter().chain(std::iter::repeat(&0.0));
        let prices = duals.take(self.model.pools.len()).map(|dual| (-dual).max(0.0));
        let prices = prices.map(|price| if price < 1e-9 { 0.0 } else { price }).collect();
        let mut ascent = Ascent::new(self.at(prices), AIM_FROM_LP, Pace::STEADY);
        self.climb(&mut ascent, LP_STEPS)
    }

    /// An ascent on what should be a short way, from the prices that the last solve left; from nothing where that
    /// is better, as it may be where less is asked for than an hour before.
    pub(super) fn ascent_from_last(&self, last: Vec<f64>) -> Ascent {
        let (nothing, last) = (self.at(vec![0.0; self.model.pools.len()]), self.at(last));
        let (start, aim) =
            if last.value > nothing.value { (last, AIM_WARM) } else { (nothing, AIM_SHORT) };
        Ascent::new(start, aim, Pace::QUICK)
    }

    /// Continues an ascent for more steps, from its best point.
    pub(super) fn take_time(&self, ascent: &mut Ascent) {
        let best = ascent.best.clone();
        let way = (self.worth() - best.value) / best.value.abs().max(1.0);
        *ascent = Ascent::new(best, (AIM_OF_WAY * way).clamp(AIM_WARM, AIM_COLD), Pace::STEADY);
    }

    pub(super) fn at(&self, prices: Vec<f64>) -> DualPoint {
        evaluate(self.model, self.geometries, prices, self.config.threads)
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
            let point = evaluate_strong(self.model, self.geometries, prices, self.config.threads);
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

//! The pools' prices: HiGHS' duals, some steps of ascent, and at last a master problem.

use super::Run;
use crate::backend::{LpRequest, LpSolution};
use crate::bound::{Ascent, DualPoint, evaluate, evaluate_strong, in_parallel};
use crate::master::Master;
use crate::subproblem::Priced;

/// Steps of the dual ascent at most, from HiGHS' duals and from nothing.
const ASCENT_STEPS: (usize, usize) = (30, 400);
/// How far above the best bound an ascent aims, relative.
const ASCENT_AIM: f64 = 0.003;
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
    /// The pools' prices, and with them the bound: HiGHS' duals, then a few steps further; without
    /// them, more steps from nothing.
    pub(super) fn prices(&mut self, solution: Option<&LpSolution>) -> DualPoint {
        let solution = solution.filter(|found| found.row_duals.len() >= self.model.pools.len());
        let prices = match solution {
            Some(solution) => {
                let duals = &solution.row_duals[..self.model.pools.len()];
                duals
                    .iter()
                    .map(|dual| (-dual).max(0.0))
                    .map(|p| if p < 1e-9 { 0.0 } else { p })
                    .collect()
            }
            None => vec![0.0; self.model.pools.len()],
        };
        let steps = if solution.is_some() { ASCENT_STEPS.0 } else { ASCENT_STEPS.1 };
        let threads = self.config.threads;
        let start = evaluate(self.model, &self.geometries, prices, threads);
        let mut ascent = Ascent::new(start);
        self.dual_bound = self.dual_bound.max(ascent.best.value);
        for _ in 0..steps {
            if ascent.is_done() || self.must_stop() {
                break;
            }
            let aim = ascent.best.value + ASCENT_AIM * ascent.best.value.abs().max(1.0);
            ascent.step(self.model, &self.geometries, aim.min(self.primal()), threads);
            self.dual_bound = self.dual_bound.max(ascent.best.value);
        }
        if !self.must_stop() {
            let prices = ascent.best.prices.clone();
            ascent.best = evaluate_strong(self.model, &self.geometries, prices, threads);
            self.dual_bound = self.dual_bound.max(ascent.best.value);
        }
        self.note("mip");
        if self.dual.as_ref().is_none_or(|dual| dual.value < ascent.best.value) {
            self.dual = Some(ascent.best.clone());
        }
        ascent.best
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
            let Some(solution) = self.wait(job.as_mut(), None, columns) else { break };
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

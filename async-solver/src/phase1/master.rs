//! The restricted master problem: better prices, a higher bound, and a fractional solution of
//! whole-server columns.

use super::Run;
use crate::bound::{DualPoint, evaluate_strong, in_parallel};
use crate::lp::{LpRequest, wait_for};
use crate::params::PARAMS;
use crate::restricted_master::RestrictedMaster;
use crate::subproblem::Priced;
use std::time::Duration;

impl Run<'_> {
    /// Raises the bound with a restricted master problem, and returns its last fractional solution: servers of
    /// each item of each reservation.
    pub(super) fn solve_master(&mut self) -> Option<Vec<Vec<f64>>> {
        let (mut best, state) = (self.dual.clone()?, self.best.clone()?.0);
        let end = self.master_end();
        let is_over =
            |run: &Self| run.must_stop() || end.is_some_and(|end| (run.env.elapsed)() >= end);
        let request = LpRequest { solver: "simplex".into(), ..self.request.clone() };
        let mut master = RestrictedMaster::new(self.model);
        for (term, counts) in state.counts.into_iter().enumerate() {
            master.add(term, counts);
        }
        self.add_columns(&mut master, &best);
        self.keep_point(&best);
        // The box is around the prices that the columns of the problem share.
        let shared = &best.prices[..self.model.shared_prices()];
        let positive: Vec<f64> = shared.iter().copied().filter(|price| *price > 0.0).collect();
        let mut radius = PARAMS.master.first_radius * positive.iter().sum::<f64>()
            / positive.len().max(1) as f64;
        let (mut failures, mut fractional) = (0, None);
        let steps = if end.is_some() {
            PARAMS.master.max_steps
        } else {
            PARAMS.master.max_steps.min(PARAMS.master.columns / self.lp_size.0.max(1))
        };
        for _ in 0..steps {
            if failures >= PARAMS.master.failures_to_stop || self.is_within_gap() || is_over(self) {
                break;
            }
            let problem = master.problem(&best.prices, radius);
            let columns = problem.cost.len();
            let mut job = self.env.backend.start(problem, request.clone());
            let solution = wait_for(job.as_mut(), columns, &|| is_over(self));
            let Some(solution) = solution else { break };
            let Some(prices) = master.prices(&solution.row_duals, &best.prices) else { break };
            fractional = Some(master.fractional_solution(&solution.columns));
            let point = evaluate_strong(self.model, self.geometries, prices, self.config.threads);
            let is_new = self.add_columns(&mut master, &point);
            self.keep_point(&point);
            let promised = master.value(solution.objective) - best.value;
            if point.value > best.value {
                if point.value - best.value > PARAMS.master.good_step * promised {
                    radius *= PARAMS.master.grow;
                }
                best = point;
                failures = 0;
                self.dual_bound = self.dual_bound.max(best.value);
            } else {
                // The master has converged within its box.
                if !is_new {
                    break;
                }
                failures += 1;
                if failures.is_multiple_of(PARAMS.master.failures_to_halve) {
                    radius *= 0.5;
                }
            }
        }
        self.hurried |= end.is_some_and(|end| (self.env.elapsed)() >= end);
        self.dual = Some(best);
        self.note("mip");
        fractional
    }

    /// When masters end for a deadline, if there is one whose time is used.
    fn master_end(&self) -> Option<Duration> {
        let left = self.time_left().filter(|_| self.uses_deadline())?;
        Some((self.env.elapsed)() + left.mul_f64(PARAMS.master.time_share))
    }

    /// Adds the best assignment of each reservation at some prices to the master; tells whether any is new.
    fn add_columns(&self, master: &mut RestrictedMaster, dual: &DualPoint) -> bool {
        let model = self.model;
        let points = in_parallel(model.terms.len(), self.config.threads, |term| {
            let (of, geometry) = (&model.terms[term], &self.geometries[term]);
            let priced = Priced::unlimited(model, of, geometry, &dual.prices);
            priced.best_whole(&[dual.terms[term].top], PARAMS.master.column_tries)
        });
        let mut is_new = false;
        for (term, point) in points.into_iter().enumerate() {
            if let Some((counts, _)) = point {
                is_new |= master.add(term, counts);
            }
        }
        is_new
    }
}

//! Restarts from the relaxation nearest to the incumbent.

use super::{Run, rounded_down};
use crate::bound::{DualPoint, VolumeAlgorithm, VolumeParams, evaluate};
use crate::formulation::Lp;
use crate::lp::{LpRequest, LpSolution};
use crate::model::Model;
use crate::params::PARAMS;
use crate::report::Termination;
use crate::state::State;

impl Run<'_> {
    /// Whether the cost fell from `before` by more than a small share of the gap.
    pub(super) fn has_gained(&self, before: f64) -> bool {
        before - self.primal() > PARAMS.intensify.min_gain * (before - self.dual_bound)
    }

    /// Restarts near the incumbent, while that gains.
    pub(super) fn restart_while_it_pays(
        &mut self,
        prices: &DualPoint,
        restarts: usize,
    ) -> Termination {
        for _ in 0..restarts {
            let before = self.primal();
            let mut termination = self.restart_near_incumbent(prices);
            if termination == Termination::Stalled
                && !self.has_gained(before)
                && self.relative_gap() > PARAMS.intensify.poor_gap
                && self.lp_size.0 <= PARAMS.lp.max_columns
            {
                termination = self.restart_from_proximity_lp();
            }
            if termination != Termination::Stalled {
                return termination;
            }
            if !self.has_gained(before) {
                break;
            }
        }
        Termination::Stalled
    }

    /// Restarts from the fractional solution nearest to the incumbent: the relaxation in which leaving
    /// the incumbent costs a little has other prices and another optimum to round.
    fn restart_near_incumbent(&mut self, prices: &DualPoint) -> Termination {
        let Some((incumbent, _)) = self.best.clone() else { return Termination::Deadline };
        let near = self.model_near(&incumbent);
        let threads = self.config.threads;
        let start = evaluate(&near, self.geometries, prices.prices.clone(), threads);
        let mut ascent =
            VolumeAlgorithm::new(start, PARAMS.restart.ascent_target, VolumeParams::STEADY);
        ascent.run(&near, self.geometries, PARAMS.restart.ascent_steps, threads, &|| {
            self.must_stop()
        });
        let fractional = ascent.fractional_solution();
        let prices = self.at(ascent.best.prices.clone());
        self.dual_bound = self.dual_bound.max(prices.value);
        self.sweep(rounded_down(self.model, fractional), &prices, 0.0);
        self.sweep(incumbent, &prices, 0.0);
        self.improve(&prices, self.config.stall_rounds)
    }

    /// As [`Run::restart_near_incumbent`], with HiGHS on that relaxation: it finds other prices where the
    /// ascent does not.
    fn restart_from_proximity_lp(&mut self) -> Termination {
        let Some((incumbent, _)) = self.best.clone() else { return Termination::Deadline };
        let lp = Lp::new(&self.model_near(&incumbent));
        let columns = lp.problem.cost.len();
        let mut job = self.control.backend.start(lp.problem.clone(), self.request_now());
        let Some(solution) = self.wait(job.as_mut(), columns) else {
            return if self.must_stop() { self.stop_reason() } else { Termination::Stalled };
        };
        let prices = self.prices_of_lp(&solution);
        let counts = |term| lp.counts(self.model, term, &solution.columns);
        let fractional: Vec<_> = (0..self.model.terms.len()).map(counts).collect();
        self.sweep(rounded_down(self.model, &fractional), &prices, 0.0);
        self.sweep(incumbent, &prices, 0.0);
        self.improve(&prices, self.config.stall_rounds)
    }

    /// The model in which leaving a state costs a little, and today's holders do not count.
    fn model_near(&self, state: &State) -> Model {
        let mut near = self.model.clone();
        for (term, counts) in near.terms.iter_mut().zip(&state.counts) {
            for (item, &count) in term.items.iter_mut().zip(counts) {
                (item.held_in_use, item.held_idle) = (0, count);
            }
            term.worthless.clear();
            term.short_max = term.shortfall(counts);
        }
        near
    }

    /// The options of HiGHS with the time that is left.
    pub(super) fn request_now(&self) -> LpRequest {
        let left = self.control.deadline.map(|end| end.saturating_sub((self.control.elapsed)()));
        LpRequest { time_limit: left, ..self.request.clone() }
    }

    /// The pools' prices from HiGHS' duals, a few steps further.
    pub(super) fn prices_of_lp(&mut self, solution: &LpSolution) -> DualPoint {
        let duals = solution.row_duals.iter().chain(std::iter::repeat(&0.0));
        let prices = duals.take(self.model.pools.len()).map(|dual| (-dual).max(0.0));
        let prices = prices.map(|price| if price < 1e-9 { 0.0 } else { price }).collect();
        let mut ascent =
            VolumeAlgorithm::new(self.at(prices), PARAMS.lp.ascent_target, VolumeParams::STEADY);
        self.ascend(&mut ascent, PARAMS.lp.ascent_steps)
    }
}

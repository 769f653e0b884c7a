//! Restarts from the LP solution nearest to the incumbent.

use super::{Run, rounded_down};
use crate::bound::{DualPoint, VolumeAlgorithm, VolumeParams};
use crate::formulation::Lp;
use crate::lp::LpSolution;
use crate::params::PARAMS;
use crate::report::Termination;

impl Run<'_> {
    /// Whether the cost fell from `before` by more than a small share of the gap.
    pub(super) fn has_gained(&self, before: f64) -> bool {
        before - self.primal() > PARAMS.restart.min_gain * (before - self.dual_bound)
    }

    /// Restarts near the incumbent, while that helps.
    pub(super) fn restart_while_it_pays(&mut self) -> Termination {
        for _ in 0..PARAMS.restart.max_restarts {
            let before = self.primal();
            let termination = self.restart_from_proximity_lp();
            if termination != Termination::Stalled {
                return termination;
            }
            if !self.has_gained(before) {
                break;
            }
        }
        Termination::Stalled
    }

    /// Restarts from the LP solution nearest to the incumbent: the relaxation in which leaving
    /// the incumbent costs a little has other prices and another optimum to round.
    fn restart_from_proximity_lp(&mut self) -> Termination {
        let Some((incumbent, _)) = self.best.clone() else { return Termination::Deadline };
        let mut near = self.model.clone();
        for (term, counts) in near.terms.iter_mut().zip(&incumbent.counts) {
            for (item, &count) in term.items.iter_mut().zip(counts) {
                (item.held_in_use, item.held_idle) = (0, count);
            }
            term.worthless.clear();
            term.short_max = term.shortfall(counts);
        }
        let lp = Lp::new(&near);
        let columns = lp.problem.cost.len();
        let mut job = self.control.backend.start(lp.problem.clone(), self.request.clone());
        let solution = self.wait(job.as_mut(), columns);
        let Some(solution) = solution else {
            return if self.must_stop() { self.stop_reason() } else { Termination::Stalled };
        };
        let prices = self.prices(&solution);
        let counts = |term| lp.counts(self.model, term, &solution.columns);
        let near: Vec<_> = (0..self.model.terms.len()).map(counts).collect();
        self.sweep(rounded_down(self.model, &near), &prices, 0.0);
        self.sweep(incumbent, &prices, 0.0);
        self.improve(&prices, self.config.stall_rounds)
    }

    /// The pools' prices: HiGHS' duals, then a few steps further.
    pub(super) fn prices(&mut self, solution: &LpSolution) -> DualPoint {
        let duals = solution.row_duals.iter().chain(std::iter::repeat(&0.0));
        let prices = duals.take(self.model.pools.len()).map(|dual| (-dual).max(0.0));
        let prices = prices.map(|price| if price < 1e-9 { 0.0 } else { price }).collect();
        let mut ascent = VolumeAlgorithm::new(
            self.at(prices),
            PARAMS.ascent.target_from_lp,
            VolumeParams::STEADY,
        );
        self.ascend(&mut ascent, PARAMS.ascent.lp_steps)
    }
}

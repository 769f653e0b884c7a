//! The steps after the search has stalled: better prices where they look poor, restarts near the incumbent,
//! the restricted master problem and RINS.
//!
//! All cost about as much as they gain on a region of some ten thousand columns, and more on a larger one.
//! So the effort is limited in columns, not by size: [`Run::restarts_worth`].

use super::{Run, rounded_down};
use crate::bound::{DualPoint, VolumeAlgorithm, VolumeParams};
use crate::params::PARAMS;
use crate::report::Termination;

impl Run<'_> {
    /// Improves incumbent and bound after a stall, while that gains.
    pub(super) fn intensify(&mut self, prices: &DualPoint) -> Termination {
        let mut prices = prices.clone();
        let termination = self.improve_prices(&mut prices);
        if termination != Termination::Stalled {
            return termination;
        }
        let restarts = self.restarts_worth();
        if restarts == 0 {
            return Termination::Stalled;
        }
        let mut is_first = true;
        loop {
            let before = self.primal();
            let mut termination = self.restart_while_it_pays(&prices, restarts);
            if termination != Termination::Stalled {
                return termination;
            }
            if is_first && let Some(fractional) = self.solve_master() {
                self.fractional = fractional;
            }
            is_first = false;
            termination = self.rins();
            if termination != Termination::Stalled || !self.has_gained(before) {
                return termination;
            }
        }
    }

    /// How many restarts in a row the size of the region allows.
    fn restarts_worth(&self) -> usize {
        let columns = self.lp_size.0.max(1);
        (PARAMS.intensify.columns / columns).min(PARAMS.intensify.max_restarts)
    }

    /// Looks for prices of a higher bound: by an ascent with a finer average where the gap is large, then
    /// from the LP where the gap is still large or the LP is tiny.
    fn improve_prices(&mut self, prices: &mut DualPoint) -> Termination {
        let columns = self.lp_size.0;
        if self.relative_gap() > PARAMS.intensify.poor_gap {
            let termination = self.fine_ascent(prices);
            if termination != Termination::Stalled {
                return termination;
            }
        }
        let is_poor = self.relative_gap() > PARAMS.intensify.poor_gap;
        if columns < PARAMS.lp.simplex_columns || is_poor && columns <= PARAMS.lp.max_columns {
            return self.search_from_lp(prices);
        }
        Termination::Stalled
    }

    /// Continues the ascent with a smaller weight of new points, and searches with its prices where its
    /// bound is higher by more than a small share of the gap.
    fn fine_ascent(&mut self, prices: &mut DualPoint) -> Termination {
        let Some(best) = self.dual.clone() else { return Termination::Stalled };
        let (before, gap) = (self.dual_bound, self.absolute_gap());
        let target = self.target_of_distance(&best, PARAMS.intensify.max_target);
        let mut ascent = VolumeAlgorithm::new(best, target, VolumeParams::FINE);
        let found = self.ascend_fully(&mut ascent);
        if self.dual_bound - before <= PARAMS.intensify.min_gain * gap {
            return Termination::Stalled;
        }
        self.fractional = ascent.fractional_solution().to_vec();
        *prices = found;
        self.search_again(prices)
    }

    /// Searches with the prices of the LP.
    fn search_from_lp(&mut self, prices: &mut DualPoint) -> Termination {
        let problem = self.lp.problem.clone();
        let columns = problem.cost.len();
        let mut job = self.control.backend.start(problem, self.request_now());
        let Some(solution) = self.wait(job.as_mut(), columns) else {
            return if self.must_stop() { self.stop_reason() } else { Termination::Stalled };
        };
        self.lp_solved = Some((solution.objective + self.lp.constant, solution.seconds));
        let counts = |term| self.lp.counts(self.model, term, &solution.columns);
        self.fractional = (0..self.model.terms.len()).map(counts).collect();
        let found = self.prices_of_lp(&solution);
        if found.value > prices.value {
            prices.clone_from(&found);
        }
        self.search_again(&found)
    }

    /// Sweeps the rounded fractional solution and the incumbent, and searches from the better one.
    pub(super) fn search_again(&mut self, prices: &DualPoint) -> Termination {
        let Some((incumbent, _)) = self.best.clone() else { return Termination::Stalled };
        self.sweep(rounded_down(self.model, &self.fractional), prices, 0.0);
        self.sweep(incumbent, prices, 0.0);
        self.improve(prices, self.config.stall_rounds)
    }
}

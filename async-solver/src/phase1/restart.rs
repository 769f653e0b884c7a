//! Restarts from the relaxation nearest to the incumbent.

use super::{Run, rounded_down};
use crate::bound::{DualPoint, VolumeAlgorithm, VolumeParams, evaluate};
use crate::formulation::Lp;
use crate::model::Model;
use crate::params::PARAMS;
use crate::report::Termination;
use crate::state::State;

impl Run<'_> {
    /// Whether the cost fell from `before` by more than a share of the gap.
    pub(super) fn has_gained(&self, before: f64, share: f64) -> bool {
        before - self.primal() > share * (before - self.dual_bound)
    }

    /// Restarts near the incumbent, while it is short.
    pub(super) fn restart_while_short(&mut self, prices: &DualPoint) -> Termination {
        self.restart_while(prices, (PARAMS.intensify.max_restarts, 1), Self::is_short)
    }

    /// Restarts near the incumbent, at most `most` times, until some in a row gained little.
    pub(super) fn restart_while_it_pays(&mut self, prices: &DualPoint, most: usize) -> Termination {
        let patience =
            if self.uses_deadline() { PARAMS.restart.patience_until_deadline } else { 1 };
        self.restart_while(prices, (most, patience), |_| true)
    }

    fn restart_while(
        &mut self,
        prices: &DualPoint,
        (most, patience): (usize, usize),
        is_needed: impl Fn(&Self) -> bool,
    ) -> Termination {
        let mut in_vain = 0;
        let mut near = None;
        for _ in 0..most {
            if !is_needed(self) {
                break;
            }
            let before = self.primal();
            self.restarts += 1;
            let termination = self.restart_near_incumbent(prices, &mut near);
            if termination != Termination::Stalled {
                return termination;
            }
            if self.primal() < before {
                near = None;
            }
            let gained = self.has_gained(before, PARAMS.intensify.min_gain);
            in_vain = if gained { 0 } else { in_vain + 1 };
            if in_vain >= patience {
                break;
            }
        }
        Termination::Stalled
    }

    /// Restarts from the fractional solution nearest to the incumbent: the relaxation in which leaving
    /// the incumbent costs a little has other prices and another optimum to round. `known`: those prices, if this
    /// incumbent was restarted from before; then only the search is repeated, from another seed.
    fn restart_near_incumbent(
        &mut self,
        prices: &DualPoint,
        known: &mut Option<DualPoint>,
    ) -> Termination {
        let stall_rounds = self.config.stall_rounds.min(PARAMS.restart.stall_rounds);
        if let Some(known) = known {
            return self.improve(known, stall_rounds);
        }
        let Some((incumbent, _)) = self.best.clone() else { return Termination::Deadline };
        let near = self.model_near(&incumbent);
        let (prices, fractional) = if self.is_tiny() {
            let Some((prices, fractional, _)) = self.solve_lp(&Lp::new(&near, false)) else {
                return if self.must_stop() { self.stop_reason() } else { Termination::Stalled };
            };
            (prices, fractional)
        } else {
            let threads = self.config.threads;
            let start = evaluate(&near, self.geometries, prices.prices.clone(), threads);
            let mut ascent =
                VolumeAlgorithm::new(start, PARAMS.restart.ascent_target, VolumeParams::STEADY);
            ascent.run(&near, self.geometries, PARAMS.restart.ascent_steps, threads, &|| {
                self.must_stop()
            });
            (self.at(ascent.best.prices.clone()), ascent.fractional_solution().to_vec())
        };
        self.dual_bound = self.dual_bound.max(prices.value);
        self.sweep(rounded_down(self.model, &fractional), &prices, 0.0);
        self.sweep(incumbent, &prices, 0.0);
        let termination = self.improve(&prices, stall_rounds);
        *known = Some(prices);
        termination
    }

    /// The model in which leaving a state costs a little, and today's holders and racks do not count.
    fn model_near(&self, state: &State) -> Model {
        let mut near = self.model.clone();
        for (term, counts) in near.terms.iter_mut().zip(&state.counts) {
            for (item, &count) in term.items.iter_mut().zip(counts) {
                (item.held_in_use, item.held_idle, item.steps) = (0, count, (0, 0));
            }
            term.ineligible_held.clear();
            term.short_max = term.shortfall(counts);
        }
        near
    }
}

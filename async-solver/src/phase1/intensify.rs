//! The steps after the search has stalled: restarts near the incumbent, the restricted master problem, RINS, and
//! exchanges where the gap is large.
//!
//! Restarts and master cost about as much as they gain on a region of some ten thousand columns, and more on a
//! larger one. So their effort is limited in columns, unless there is time until a deadline ([`Run::restarts_worth`]) or the
//! region is short ([`Run::search_on`]).

use super::Run;
use super::exchange::Effort;
use crate::bound::DualPoint;
use crate::params::PARAMS;
use crate::report::Termination;
use std::ops::ControlFlow;

/// Goes on after a step that stalled.
fn unless_ended(termination: Termination) -> ControlFlow<Termination> {
    match termination {
        Termination::Stalled => ControlFlow::Continue(()),
        ended => ControlFlow::Break(ended),
    }
}

impl Run<'_> {
    /// Improves incumbent and bound after a stall, while that gains. A solve that began as a warm start does each
    /// step once: the next solve goes on from it.
    pub(super) fn intensify(&mut self, prices: &DualPoint) -> Termination {
        let exchanges = self.exchanges_worth();
        if self.restarts_worth() == 0 && exchanges.is_none() {
            return Termination::Stalled;
        }
        let mut is_first = true;
        loop {
            match self.intensify_once(prices, exchanges, is_first) {
                ControlFlow::Break(termination) => return termination,
                ControlFlow::Continue(true) if !self.is_warm => is_first = false,
                ControlFlow::Continue(_) => return Termination::Stalled,
            }
        }
    }

    /// Each step once; the master only the first time. Tells whether it gained enough to go on.
    fn intensify_once(
        &mut self,
        prices: &DualPoint,
        exchanges: Option<Effort>,
        is_first: bool,
    ) -> ControlFlow<Termination, bool> {
        let restarts = self.restarts_worth();
        let mut before = self.primal();
        // A warm start is near a good assignment: restarts gain less there.
        let exchanges_first = exchanges.filter(|_| self.is_warm && !self.is_tiny());
        if let Some(effort) = exchanges_first {
            unless_ended(self.exchange(effort))?;
        }
        if restarts == 0 {
            unless_ended(self.improve(prices, 1))?;
        } else {
            unless_ended(self.restart_while_it_pays(prices, restarts))?;
            if !self.uses_deadline() && exchanges_first.is_none() {
                before = self.primal();
            }
            if is_first && let Some(fractional) = self.solve_master() {
                self.fractional = fractional;
            }
            unless_ended(self.rins())?;
        }
        // The other steps may have made it an easy one.
        if exchanges.is_some()
            && exchanges_first.is_none()
            && let Some(effort) = self.exchanges_worth()
        {
            unless_ended(self.exchange(effort))?;
        }
        let share = if self.uses_deadline() {
            PARAMS.intensify.min_gain_until_deadline
        } else {
            PARAMS.intensify.min_gain
        };
        ControlFlow::Continue(self.has_gained(before, share))
    }

    /// Whether exchanges will gain more than the first search.
    pub(super) fn is_hard(&self) -> bool {
        self.relative_gap() > PARAMS.intensify.hard_gap
    }

    /// Rounds without gain that end the first search. Not many where exchanges gain more.
    pub(super) fn stall_rounds(&self) -> u32 {
        let rounds = self.config.stall_rounds;
        if self.is_hard() && !self.is_tiny() {
            rounds.min(PARAMS.intensify.hard_stall_rounds)
        } else {
            rounds
        }
    }

    /// How many restarts in a row the size of the region allows, or a deadline.
    fn restarts_worth(&self) -> usize {
        if self.uses_deadline() && self.relative_gap() > PARAMS.exchange.min_gap_until_deadline {
            return usize::MAX;
        }
        let columns = self.lp_size.0.max(1);
        (PARAMS.intensify.columns / columns).min(PARAMS.intensify.max_restarts)
    }
}

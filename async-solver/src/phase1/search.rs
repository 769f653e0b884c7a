//! Sweeps over all reservations, and rounds of ruin and recreate.

use super::Run;
use crate::bound::DualPoint;
use crate::neighbourhood::Neighbourhood;
use crate::params::PARAMS;
use crate::report::Termination;
use crate::state::State;

impl Run<'_> {
    /// Reservations, the largest first: they lose most if others choose before them.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.model.terms.len()).collect();
        let servers = |&term: &usize| {
            let term = &self.model.terms[term];
            term.capacity / term.items.iter().map(|item| item.value).max().unwrap_or(1)
        };
        order.sort_by_key(|term| std::cmp::Reverse(servers(term)));
        order
    }

    /// Improves today's assignment without prices, for an early incumbent.
    pub(super) fn improve_today(&mut self, today: &State) {
        let free = DualPoint::free(self.model);
        let mut early = today.clone();
        for term in self.order() {
            if self.must_stop() {
                break;
            }
            self.search().reinsert(&mut early, term, &free, 0.0);
        }
        self.offer(&early, "initial state");
        self.repair(&mut early, &free);
        self.offer(&early, "initial state");
    }

    /// Reassigns every reservation in several passes. Once a pass was better than the incumbent, a pass that
    /// gains less than `min_gain` of the gap ends the sweep.
    pub(super) fn sweep(&mut self, mut state: State, prices: &DualPoint, min_gain: f64) {
        let first = self.primal();
        for weight in PARAMS.sweep.price_weights {
            let (before, open) = (self.primal(), self.primal() - self.dual_bound);
            for &term in &self.order() {
                if self.must_stop() {
                    break;
                }
                self.search().reinsert(&mut state, term, prices, weight);
            }
            self.repair(&mut state, prices);
            self.offer(&state, "mip");
            if self.is_within_gap() || self.must_stop() {
                return;
            }
            if self.primal() < first && before - self.primal() < min_gain * open {
                return;
            }
        }
    }

    /// Reduces shortfalls with servers that other reservations can spare, a few reservations at a time.
    pub(super) fn repair(&self, state: &mut State, prices: &DualPoint) {
        let mut hood = Neighbourhood::new(self.model, state, prices, self.seed());
        let mut failed = 0;
        while hood.is_short() && failed < PARAMS.sweep.repair_tries && !self.must_stop() {
            let (terms, weight) = hood.pick(self.model, state);
            if self.search().ruin_and_recreate(state, &terms, prices, weight, 0.0).is_some() {
                hood.update(self.model, state, &terms);
                failed = 0;
            } else {
                failed += 1;
            }
        }
    }

    /// Rounds of ruin and recreate until the gap is reached or `stall_rounds` rounds in a row stalled.
    pub(super) fn improve(&mut self, prices: &DualPoint, stall_rounds: u32) -> Termination {
        let Some((mut state, _)) = self.best.clone() else { return Termination::Deadline };
        let mut hood = Neighbourhood::new(self.model, &state, prices, self.seed());
        let mut stalled = 0;
        loop {
            if self.is_within_gap() {
                return self.settled();
            }
            if stalled >= stall_rounds {
                return Termination::Stalled;
            }
            let open = self.absolute_gap();
            let gained = self.round(&mut state, &mut hood, self.round_tries());
            if self.must_stop() {
                return self.stop_reason();
            }
            stalled = if gained > PARAMS.search.stall_gain * open { 0 } else { stalled + 1 };
        }
    }

    /// Attempts of a round.
    pub(super) fn round_tries(&self) -> usize {
        PARAMS.search.round_tries.max(self.model.terms.len())
    }

    /// Ruins and recreates a few reservations, many times. Now and then it accepts a slightly worse state, to
    /// get out of dead ends; the state it ends with is the incumbent. Returns the gain of the incumbent.
    pub(super) fn round(
        &mut self,
        state: &mut State,
        hood: &mut Neighbourhood,
        tries: usize,
    ) -> f64 {
        let (before, mut open) = (self.primal(), self.absolute_gap());
        let limit = self.gap_limit();
        // Cost of the state below the incumbent's: now, and at the lowest.
        let (mut below, mut lowest) = (0.0, 0.0);
        let mut best: Option<State> = None;
        let mut served = false;
        for _ in 0..tries {
            if self.must_stop() {
                break;
            }
            let (terms, weight) = hood.pick(self.model, state);
            let tolerance = PARAMS.search.detour * open * hood.chance();
            let gain =
                self.search().ruin_and_recreate(state, &terms, hood.prices(), weight, tolerance);
            let Some(gain) = gain else { continue };
            hood.update(self.model, state, &terms);
            if gain.less_missing {
                // A smaller shortfall outweighs any cost, and costs are counted from there.
                served |= self.accept(state);
                (below, lowest, best) = (0.0, 0.0, None);
                open = self.absolute_gap();
                continue;
            }
            below += gain.cost;
            if below > lowest + 1e-6 {
                lowest = below;
                best = Some(state.clone());
                if open - lowest <= limit {
                    break;
                }
            }
        }
        served |= best.is_some_and(|best| self.accept(&best));
        if let (true, Some((incumbent, _))) = (served, &self.best) {
            (self.follow_up.on_incumbent)(incumbent);
            self.note("mip");
        }
        // Start again from the best: detours are short.
        if let Some((incumbent, _)) = &self.best {
            state.clone_from(incumbent);
            let all: Vec<usize> = (0..self.model.terms.len()).collect();
            hood.update(self.model, state, &all);
        }
        before - self.primal()
    }
}

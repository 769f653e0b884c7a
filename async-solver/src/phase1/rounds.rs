//! Sweeps over all reservations, and rounds of the search that takes a few of them out and puts them back.

use super::Run;
use crate::bound::DualPoint;
use crate::neighbourhood::Neighbourhood;
use crate::report::Termination;
use crate::state::State;

/// Prices' weights of one round of sweeps: first keep off what others need, then take what is left.
const SWEEP_WEIGHTS: [f64; 5] = [1.0, 0.7, 0.3, 0.0, 1.0];
/// Neighbourhoods tried in a row after a sweep without reducing any shortfall.
const REPAIR_TRIES: usize = 20;
/// Neighbourhoods tried in a round at least.
const ROUND_TRIES: usize = 600;
/// Largest step to the worse, as a share of the open gap.
const DETOUR: f64 = 0.02;
/// Share of the open gap a round must gain not to count as stalled.
const STALL_GAIN: f64 = 0.005;

/// When a round ends that is within the gap that is near enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    /// At once.
    Ends,
    /// When it closes little of what is open any more.
    GoesOn,
}

/// Parts of a round that are looked at one by one, and share of what is open that one must close for a round
/// that goes on to do so.
const PARTS: usize = 6;
const PART_PAYS: f64 = 0.1;

impl Run<'_> {
    /// Reassigns every reservation in several passes. The sweep ends with a pass that closes less than `pays` of
    /// the open gap after a better one.
    pub(super) fn sweep(
        &mut self,
        mut state: State,
        prices: &DualPoint,
        pays: f64,
        keep: &dyn Fn(&State),
    ) {
        let first = self.primal();
        for weight in SWEEP_WEIGHTS {
            let (before, open) = (self.primal(), self.primal() - self.dual_bound);
            for &term in &self.order() {
                if self.must_stop() {
                    break;
                }
                self.search().replace(&mut state, term, prices, weight);
            }
            self.repair(&mut state, prices);
            self.offer(&state, "mip", keep);
            if self.is_within_gap() || self.must_stop() {
                return;
            }
            if self.primal() < first && before - self.primal() < pays * open {
                return;
            }
        }
    }

    /// Helps those who are short to servers that others can do without, a few reservations at a time.
    pub(super) fn repair(&self, state: &mut State, prices: &DualPoint) {
        let mut hood = Neighbourhood::new(self.model, state, prices, self.config.seed);
        let mut failed = 0;
        while hood.is_short() && failed < REPAIR_TRIES && !self.must_stop() {
            let (terms, weight) = hood.pick(self.model, state);
            if self.search().ruin(state, &terms, prices, weight, 0.0).is_some() {
                hood.update(self.model, state, &terms);
                failed = 0;
            } else {
                failed += 1;
            }
        }
    }

    /// Rounds of the search, while they help.
    pub(super) fn improve(
        &mut self,
        prices: &DualPoint,
        stall_rounds: u32,
        keep: &dyn Fn(&State),
    ) -> Termination {
        let Some((mut state, _)) = self.best.clone() else { return Termination::Deadline };
        let mut hood = Neighbourhood::new(self.model, &state, prices, self.config.seed);
        let mut stalled = 0;
        loop {
            if self.is_within_gap() {
                return self.settled();
            }
            if stalled >= stall_rounds {
                return Termination::Stalled;
            }
            let open = self.open();
            let gained = self.round(&mut state, &mut hood, Within::Ends, keep);
            if self.must_stop() {
                return self.stop_reason();
            }
            // A round that gains next to nothing of what is open counts as none.
            stalled = if gained > STALL_GAIN * open { 0 } else { stalled + 1 };
        }
    }

    /// Takes a few reservations out and puts them back, many times. Now and then a little worse is taken
    /// too, to get out of dead ends; the state it ends with is the incumbent. Tells by how much that became better.
    pub(super) fn round(
        &mut self,
        state: &mut State,
        hood: &mut Neighbourhood,
        within: Within,
        keep: &dyn Fn(&State),
    ) -> f64 {
        let (before, mut open) = (self.primal(), self.open());
        let near_enough = self.enough * self.worth();
        let tries = ROUND_TRIES.max(self.model.terms.len());
        // By how much the state is below the incumbent: now, at the lowest, and when the last part began.
        let (mut below, mut lowest, mut begun) = (0.0, 0.0, 0.0);
        let mut best: Option<State> = None;
        let mut served = false;
        for tried in 1..=tries {
            if self.must_stop() {
                break;
            }
            if within == Within::GoesOn && tried.is_multiple_of(tries / PARTS) {
                let left = open - lowest;
                if left <= near_enough && lowest - begun < PART_PAYS * left {
                    break;
                }
                begun = lowest;
            }
            let (terms, weight) = hood.pick(self.model, state);
            let tolerance = DETOUR * open * hood.chance();
            let gain = self.search().ruin(state, &terms, hood.prices(), weight, tolerance);
            let Some(gain) = gain else { continue };
            hood.update(self.model, state, &terms);
            if gain.less_missing {
                // That outweighs any cost, and costs are counted from there.
                served |= self.accept(state);
                (below, lowest, begun, best) = (0.0, 0.0, 0.0, None);
                open = self.open();
                continue;
            }
            below += gain.cost;
            if below > lowest + 1e-6 {
                lowest = below;
                best = Some(state.clone());
                if within == Within::Ends && open - lowest <= near_enough {
                    break;
                }
            }
        }
        served |= best.is_some_and(|best| self.accept(&best));
        if let (true, Some((incumbent, _))) = (served, &self.best) {
            keep(incumbent);
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

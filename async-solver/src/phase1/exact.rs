//! The end of phase 1: branch and bound over what is likely wrong, or the whole of a small problem.
//!
//! HiGHS' branch and bound is hopeless on a region (docs/decisions/0001), and quick where little is
//! free. Nodes are limited, not seconds: the same answer on every machine.

use super::{Proof, Run};
use crate::backend::{LpRequest, LpSolution};
use crate::control::LpJob;
use crate::exchange::{Exchange, Free};
use crate::report::Termination;
use crate::state::State;

/// Items of a problem that is solved whole, and nodes that may take.
pub(super) const WHOLE_ITEMS: usize = 300;
pub(super) const WHOLE_NODES: u32 = 2_000;
/// Share of a bound of branch and bound given up for HiGHS' tolerances.
const WHOLE_SAFETY: f64 = 1e-7;
/// Share of the open gap an exchange may miss.
const EXCHANGE_GAP: f64 = 0.01;
/// Exchanges thought over at the same time. Not the number of threads, which must change nothing.
const BATCH: usize = 2;
/// Items reassigned at once, at most: those that differ most from a mixture of good assignments. Few
/// are decided quickly, more may find what few do not.
const INDUCED_ITEMS: [usize; 2] = [100, 250];
/// What differs by less is taken to be right.
const INDUCED_LEAST: f64 = 0.1;
/// Share of the open gap that must be gained by that to do it again.
const INDUCED_GAIN: f64 = 0.02;

/// The items that differ most from a mixture, up to a number of them.
fn differing(state: &State, mixture: &[Vec<f64>], items_max: usize) -> Free {
    let mut found = Vec::new();
    for (term, (counts, mix)) in state.counts.iter().zip(mixture).enumerate() {
        for (item, (&count, mean)) in counts.iter().zip(mix).enumerate() {
            let distance = (f64::from(count) - mean).abs();
            if distance > INDUCED_LEAST {
                found.push((distance, term, item));
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut free: Free = state.counts.iter().map(|counts| vec![false; counts.len()]).collect();
    for (_, term, item) in found.into_iter().take(items_max) {
        free[term][item] = true;
    }
    free
}

impl Run<'_> {
    /// Solves a small problem to the end, if it can, and takes over the bound. Tells whether there
    /// is nothing left to look for.
    pub(super) fn solve_whole(&mut self, request: &LpRequest, keep: &dyn Fn(&State)) -> bool {
        if !self.is_small() || self.must_stop() || self.is_within_gap() {
            return false;
        }
        let Some((mut state, primal)) = self.best.clone() else { return false };
        let worth = (primal - state.shortfall_cost(self.model)).max(0.0);
        let request = LpRequest {
            solver: "choose".into(),
            mip_gap: 0.5 * self.config.gap_limit * worth,
            mip_nodes: WHOLE_NODES,
            ..request.clone()
        };
        let everything: Free =
            (state.counts.iter()).map(|counts| vec![true; counts.len()]).collect();
        let exchange = Exchange::new(self.model, self.lp, &state, &everything);
        let job = self.think(&exchange, &request);
        let solution = job.and_then(|mut job| self.wait(job.as_mut(), exchange.size()));
        let Some(solution) = solution else { return false };
        if exchange.apply(&self.worthless, &mut state, &solution).is_some() {
            self.offer(&state, "mip", keep);
        }
        let bound = exchange.bound(&solution);
        let bound = bound - WHOLE_SAFETY * bound.abs().max(1.0);
        if bound > self.dual_bound {
            self.dual_bound = bound.min(self.primal());
            self.proof = Proof::BranchAndBound;
            self.note("mip");
        }
        solution.optimal
    }

    /// Repeatedly reassigns the items in which the incumbent differs from a mixture of good
    /// assignments: relaxation induced neighbourhoods (Danna, Rothberg and Le Pape, 2005).
    pub(super) fn induce(
        &mut self,
        mixture: &[Vec<f64>],
        request: &LpRequest,
        keep: &dyn Fn(&State),
    ) -> Termination {
        let Some((mut state, _)) = self.best.clone() else { return Termination::Stalled };
        loop {
            if self.is_within_gap() {
                return self.settled();
            }
            if self.must_stop() {
                return self.stop_reason();
            }
            let open = (self.primal() - self.dual_bound).max(0.0);
            let request = LpRequest {
                solver: "choose".into(),
                mip_gap: EXCHANGE_GAP * open,
                mip_nodes: 1,
                ..request.clone()
            };
            let free: Vec<Free> =
                INDUCED_ITEMS.iter().map(|&most| differing(&state, mixture, most)).collect();
            let mut gained = 0.0;
            for (exchange, solution) in self.think_over(&state, &free, &request) {
                let gain = exchange.apply(&self.worthless, &mut state, &solution);
                gained += gain.map_or(0.0, |gain| {
                    // What is missing outweighs any cost: that is worth going on.
                    if gain.less_missing { open } else { gain.cost }
                });
            }
            self.offer(&state, "mip", keep);
            if gained < INDUCED_GAIN * open {
                return Termination::Stalled;
            }
        }
    }

    /// The answers of HiGHS for what is free, the rest as in the state.
    fn think_over(
        &self,
        state: &State,
        free: &[Free],
        request: &LpRequest,
    ) -> Vec<(Exchange<'_>, LpSolution)> {
        let mut answers = Vec::new();
        for batch in free.chunks(self.config.threads.clamp(1, BATCH)) {
            let started: Vec<_> = batch
                .iter()
                .map(|free| Exchange::new(self.model, self.lp, state, free))
                .map(|exchange| (self.think(&exchange, request), exchange))
                .collect();
            for (job, exchange) in started {
                let solution = job.and_then(|mut job| self.wait(job.as_mut(), exchange.size()));
                answers.extend(solution.map(|solution| (exchange, solution)));
            }
        }
        answers
    }

    pub(super) fn think(&self, exchange: &Exchange, request: &LpRequest) -> Option<Box<dyn LpJob>> {
        let left = self.control.deadline.map(|end| end.saturating_sub((self.control.elapsed)()));
        let (problem, request) =
            exchange.problem(&LpRequest { time_limit: left, ..request.clone() });
        (exchange.size() > 0 && !self.must_stop())
            .then(|| self.control.backend.start(problem, request))
    }
}

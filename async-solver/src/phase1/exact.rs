//! The end of phase 1: a few reservations at once by branch and bound, the whole of a small problem.
//!
//! HiGHS' branch and bound is hopeless on a region (docs/decisions/0001), and quick on a few
//! reservations with everybody else in place. Nodes are limited, not seconds: the same answer on
//! every machine.

use super::{Proof, Run};
use crate::backend::{LpRequest, LpSolution};
use crate::control::LpJob;
use crate::exchange::Exchange;
use crate::neighbourhood::Neighbourhood;
use crate::report::Termination;
use crate::state::State;

/// Items of a problem that is solved whole, and nodes that may take.
const WHOLE_ITEMS: usize = 300;
const WHOLE_NODES: u32 = 2_000;
/// Share of a bound of branch and bound given up for HiGHS' tolerances.
const WHOLE_SAFETY: f64 = 1e-7;
/// Items of the reservations put anew at once, round by round; none: one reservation each.
const GROUP_ITEMS: [usize; 5] = [0, 250, 500, 1_000, 1_000];
/// Rounds of exchanges at most: first each reservation by itself, then with others.
pub(super) const ROUNDS: usize = GROUP_ITEMS.len();
/// Batches in a row that may bring nothing before a round is given up.
const IDLE_BATCHES: u32 = 3;
/// Share of the open gap an exchange may miss.
const GROUP_GAP: f64 = 0.01;
/// Exchanges thought over at the same time. Not the number of threads, which must change nothing.
const BATCH: usize = 2;
/// Share of the open gap a round of exchanges must gain to be followed by another.
const ROUND_GAIN: f64 = 0.1;

impl Run<'_> {
    /// Solves a small problem to the end, if it can, and takes over the bound. Tells whether there
    /// is nothing left to look for.
    pub(super) fn solve_whole(&mut self, request: &LpRequest, keep: &dyn Fn(&State)) -> bool {
        let items: usize = self.model.terms.iter().map(|term| term.items.len()).sum();
        if items == 0 || items > WHOLE_ITEMS || self.must_stop() || self.is_within_gap() {
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
        let all: Vec<usize> = (0..self.model.terms.len()).collect();
        let exchange = Exchange::new(self.model, &state, &self.worthless, &all);
        let job = self.think(&exchange, &request);
        let solution = job.and_then(|mut job| self.wait(job.as_mut(), None, exchange.columns()));
        let Some(solution) = solution else { return false };
        if exchange.apply(self.model, &self.worthless, &mut state, &solution).is_some() {
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

    /// Puts a few reservations anew at once, those furthest from their bounds first, while that
    /// helps: first each by itself, then with others.
    pub(super) fn exchange(
        &mut self,
        request: &LpRequest,
        rounds: usize,
        keep: &dyn Fn(&State),
    ) -> Termination {
        let (Some((mut state, _)), Some(prices)) = (self.best.clone(), self.dual.clone()) else {
            return Termination::Stalled;
        };
        let mut hood = Neighbourhood::new(self.model, &state, &prices, self.config.seed);
        for (round, &items_max) in GROUP_ITEMS.iter().enumerate().take(rounds) {
            let open = (self.primal() - self.dual_bound).max(0.0);
            let request = LpRequest {
                solver: "choose".into(),
                mip_gap: GROUP_GAP * open,
                mip_nodes: 1,
                ..request.clone()
            };
            let groups = hood.groups(self.model, &state, items_max);
            let mut gained = 0.0;
            let mut idle = 0;
            for batch in groups.chunks(BATCH) {
                if self.must_stop() {
                    self.offer(&state, "mip", keep);
                    return self.stop_reason();
                }
                if idle >= IDLE_BATCHES {
                    break;
                }
                idle += 1;
                for (exchange, solution) in self.think_over(&state, batch, &request) {
                    let gain = exchange.apply(self.model, &self.worthless, &mut state, &solution);
                    if let Some(gain) = gain {
                        gained += gain;
                        idle = 0;
                        hood.update(self.model, &state, exchange.terms());
                    }
                }
            }
            self.offer(&state, "mip", keep);
            if self.is_within_gap() {
                return Termination::Optimal;
            }
            if round > 0 && gained < ROUND_GAIN * open {
                break;
            }
        }
        Termination::Stalled
    }

    /// The answers of HiGHS for some groups, everybody else as in the state.
    fn think_over(
        &self,
        state: &State,
        groups: &[Vec<usize>],
        request: &LpRequest,
    ) -> Vec<(Exchange, LpSolution)> {
        let mut answers = Vec::new();
        for batch in groups.chunks(self.config.threads.clamp(1, BATCH)) {
            let started: Vec<_> = batch
                .iter()
                .map(|group| Exchange::new(self.model, state, &self.worthless, group))
                .map(|exchange| (self.think(&exchange, request), exchange))
                .collect();
            for (job, exchange) in started {
                let solution =
                    job.and_then(|mut job| self.wait(job.as_mut(), None, exchange.columns()));
                answers.extend(solution.map(|solution| (exchange, solution)));
            }
        }
        answers
    }

    fn think(&self, exchange: &Exchange, request: &LpRequest) -> Option<Box<dyn LpJob>> {
        let left = self.control.deadline.map(|end| end.saturating_sub((self.control.elapsed)()));
        let (problem, request) =
            exchange.problem(&LpRequest { time_limit: left, ..request.clone() });
        (exchange.columns() > 0 && !self.must_stop())
            .then(|| self.control.backend.start(problem, request))
    }
}

//! Branch and bound: on the whole of a small problem, and on the parts of a large one that RINS frees.
//!
//! HiGHS' branch and bound makes no progress on a region (docs/decisions/0001), and is quick where little is
//! free. Nodes are limited, not seconds, so the result is the same on every machine.

use super::{Proof, Run};
use crate::lp::LpJob;
use crate::lp::{LpRequest, LpSolution};
use crate::params::PARAMS;
use crate::report::Termination;
use crate::state::State;
use crate::sub_mip::{FreeItems, SubMip};

/// Frees the items furthest from a fractional solution, up to a number of them.
fn furthest_items(state: &State, fractional: &[Vec<f64>], items_max: usize) -> FreeItems {
    let mut found = Vec::new();
    for (term, (counts, means)) in state.counts.iter().zip(fractional).enumerate() {
        for (item, (&count, mean)) in counts.iter().zip(means).enumerate() {
            let distance = (f64::from(count) - mean).abs();
            if distance > PARAMS.sub_mip.rins_min_distance {
                found.push((distance, term, item));
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut free: FreeItems = state.counts.iter().map(|counts| vec![false; counts.len()]).collect();
    for (_, term, item) in found.into_iter().take(items_max) {
        free[term][item] = true;
    }
    free
}

impl Run<'_> {
    /// Solves a small problem by branch and bound, and uses its bound. Returns whether the solution is optimal.
    pub(super) fn solve_whole(&mut self) -> bool {
        let is_whole = self.is_small() && self.lp.has_racks();
        if !is_whole || self.must_stop() || self.is_within_gap() {
            return false;
        }
        let Some((mut state, _)) = self.best.clone() else { return false };
        let worth = self.cost_excluding_shortfall();
        let request = LpRequest {
            solver: "choose".into(),
            mip_gap: 0.5 * self.config.gap_limit * worth,
            mip_nodes: PARAMS.sub_mip.whole_nodes,
            ..self.request.clone()
        };
        let everything: FreeItems =
            (state.counts.iter()).map(|counts| vec![true; counts.len()]).collect();
        let sub_mip = SubMip::new(self.model, self.lp, &state, &everything);
        let job = self.start_sub_mip(&sub_mip, &request);
        let solution = job.and_then(|mut job| self.wait(job.as_mut(), sub_mip.size()));
        let Some(solution) = solution else { return false };
        if sub_mip.apply(&self.ineligible_held, &mut state, &solution).is_some() {
            self.offer(&state, "mip");
        }
        let bound = sub_mip.bound(&solution);
        let bound = bound - PARAMS.sub_mip.whole_safety * bound.abs().max(1.0);
        if bound > self.dual_bound && !self.model.is_restricted() {
            self.dual_bound = bound.min(self.primal());
            self.proof = Proof::BranchAndBound;
            self.note("mip");
        }
        solution.optimal
    }

    /// Repeatedly reassigns the items in which the incumbent differs from a fractional solution:
    /// relaxation induced neighbourhoods (Danna, Rothberg and Le Pape, 2005).
    pub(super) fn rins(&mut self) -> Termination {
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
                mip_gap: PARAMS.sub_mip.gap * open,
                mip_nodes: 1,
                ..self.request.clone()
            };
            let free: Vec<FreeItems> = PARAMS
                .sub_mip
                .rins_items
                .iter()
                .map(|&most| furthest_items(&state, &self.fractional, most))
                .collect();
            let mut gained = 0.0;
            for (sub_mip, solution) in self.solve_sub_mips(&state, &free, &request) {
                let gain = sub_mip.apply(&self.ineligible_held, &mut state, &solution);
                gained += gain.map_or(0.0, |gain| {
                    // A smaller shortfall outweighs any cost.
                    if gain.less_missing { open } else { gain.cost }
                });
            }
            self.offer(&state, "mip");
            if gained < PARAMS.sub_mip.rins_min_gain * open {
                return Termination::Stalled;
            }
        }
    }

    /// Solves sub-MIPs of a state; leaves out those that HiGHS did not solve.
    pub(super) fn solve_sub_mips(
        &self,
        state: &State,
        free: &[FreeItems],
        request: &LpRequest,
    ) -> Vec<(SubMip<'_>, LpSolution)> {
        let mut answers = Vec::new();
        for batch in free.chunks(self.config.threads.clamp(1, PARAMS.sub_mip.batch)) {
            let started: Vec<_> = batch
                .iter()
                .map(|free| {
                    SubMip::new(self.model, self.lp, state, free)
                        .with_proved_rows(state, &self.points)
                })
                .map(|sub_mip| (self.start_sub_mip(&sub_mip, request), sub_mip))
                .collect();
            for (job, sub_mip) in started {
                let solution = job.and_then(|mut job| self.wait(job.as_mut(), sub_mip.size()));
                answers.extend(solution.map(|solution| (sub_mip, solution)));
            }
        }
        answers
    }

    /// Starts HiGHS on a sub-MIP; `None` where it is empty or time is up.
    pub(super) fn start_sub_mip(
        &self,
        sub_mip: &SubMip,
        request: &LpRequest,
    ) -> Option<Box<dyn LpJob>> {
        let request = LpRequest { time_limit: self.time_left(), ..request.clone() };
        let (problem, request) = sub_mip.problem(&request);
        (sub_mip.size() > 0 && !self.must_stop()).then(|| self.env.backend.start(problem, request))
    }
}

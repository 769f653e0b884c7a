//! Serves shortfalls in order of priority once prices have led the search, and continues from there on the
//! problem in that order ([`crate::order`]).

use super::{Outcome, Run};
use crate::bound::{DualPoint, VolumeAlgorithm, VolumeParams};
use crate::formulation::{InOrder, Lp, servers_missing};
use crate::lp::LpRequest;
use crate::order::{Serving, in_order};
use crate::params::PARAMS;
use crate::report::Termination;
use crate::state::State;
use crate::sub_mip::{FreeItems, SubMip};
use std::ops::ControlFlow;

impl<'a> Run<'a> {
    /// Whether the incumbent has a shortfall.
    pub(super) fn is_short(&self) -> bool {
        self.best.as_ref().is_some_and(|(state, _)| state.is_short())
    }

    /// Serves the incumbent's shortfalls in order; returns whether the search must continue from there.
    pub(super) fn serve_in_order(&mut self) -> bool {
        let Some((state, _)) = &self.best else { return false };
        let serving = Serving {
            model: self.model,
            geometries: self.geometries,
            ineligible_held: &self.ineligible_held,
            seed: self.config.seed,
            pinned: None,
        };
        let before = state.levels(self.model);
        let mut served = serving.serve(state, 0, &|| self.must_stop());
        if self.is_small() {
            self.serve_exactly(&mut served);
        }
        self.offer(&served, "mip");
        let after = self.best.as_ref().map(|(state, _)| state.levels(self.model));
        !self.must_stop() && (self.is_small() || Some(before) != after || !self.is_within_gap())
    }

    /// Whether branch and bound solves the whole problem.
    pub(super) fn is_small(&self) -> bool {
        (1..=PARAMS.sub_mip.whole_items)
            .contains(&self.model.terms.iter().map(|term| term.items.len()).sum())
    }

    /// Minimises the shortfall of each level in turn by branch and bound.
    fn serve_exactly(&self, state: &mut State) {
        let everything: FreeItems =
            (state.counts.iter()).map(|counts| vec![true; counts.len()]).collect();
        let request = LpRequest {
            solver: "choose".into(),
            mip_gap: 0.0,
            mip_nodes: PARAMS.sub_mip.whole_nodes,
            ..self.request.clone()
        };
        for level in 0..self.model.levels {
            if self.must_stop() {
                return;
            }
            let missing = state.levels(self.model);
            if missing[level] == 0 {
                continue;
            }
            let mut limits = limits(&missing);
            limits[level + 1..].fill(f64::INFINITY);
            let lp = Lp::in_order(self.model, &InOrder { limits, least: Some(level) }, false);
            let sub_mip = SubMip::new(self.model, &lp, state, &everything);
            let job = self.start_sub_mip(&sub_mip, &request);
            let solution = job.and_then(|mut job| self.wait(job.as_mut(), sub_mip.size()));
            if let Some(solution) = solution {
                sub_mip.apply(&self.ineligible_held, state, &solution);
            }
        }
    }

    /// Continues with the problem in order, from the incumbent. `found`: prices to search with, or the
    /// termination of the search.
    pub(super) fn continue_in_order(
        mut self,
        found: ControlFlow<Termination, DualPoint>,
    ) -> Outcome {
        let (state, _) = self.best.take().expect("an incumbent is short");
        let ordered = in_order(self.model, &state);
        let limits = limits(&state.levels(&ordered));
        let lp = Lp::in_order(&ordered, &InOrder { limits, least: None }, self.lp.has_racks());
        let today = State::new(&ordered, ordered.today()).total(&ordered, &self.ineligible_held);
        let state = State::new(&ordered, state.counts);
        let total = state.total(&ordered, &self.ineligible_held);
        // Costs and bounds so far are at other prices.
        for point in &mut self.history {
            (point.primal, point.dual_bound) = (None, None);
        }
        let from = self.dual.take().map(|dual| dual.prices);
        let mut run = Run {
            model: &ordered,
            lp: &lp,
            initial_primal: today,
            best: Some((state, total)),
            dual_bound: f64::NEG_INFINITY,
            points: Vec::new(),
            ..self
        };
        run.note("mip");
        let prices = match &found {
            ControlFlow::Continue(prices) => Some(prices.prices.clone()),
            ControlFlow::Break(_) => from,
        };
        let start = run.at(prices.unwrap_or_else(|| vec![0.0; ordered.prices()]));
        let target = PARAMS.priority.ascent_target;
        let mut ascent = VolumeAlgorithm::new(start, target, VolumeParams::STEADY);
        let prices = run.ascend(&mut ascent, PARAMS.priority.ascent_steps);
        let termination = run.search_in_order(&prices, found);
        run.finish(termination)
    }

    fn search_in_order(
        &mut self,
        prices: &DualPoint,
        found: ControlFlow<Termination, DualPoint>,
    ) -> Termination {
        if let (false, Some((state, _))) = (self.is_within_gap(), self.best.clone()) {
            self.sweep(state, prices, 0.0);
        }
        if self.is_within_gap() || self.solve_whole() {
            return self.settled();
        }
        match found {
            ControlFlow::Continue(_) => self.search_on(prices),
            ControlFlow::Break(_) if self.must_stop() => self.stop_reason(),
            ControlFlow::Break(_) => self.improve(prices, 1),
        }
    }
}

fn limits(missing: &[i128]) -> Vec<f64> {
    let limit = |&missing: &i128| {
        if missing == 0 { 0.0 } else { servers_missing(missing) + PARAMS.priority.limit_slack }
    };
    missing.iter().map(limit).collect()
}

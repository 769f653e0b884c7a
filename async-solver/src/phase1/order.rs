//! What is missing once prices have led the search is served by order of priority, and the search goes on
//! from there, on the problem in that order ([`crate::order`]).

use super::exact::{WHOLE_ITEMS, WHOLE_NODES};
use super::{Outcome, Run};
use crate::backend::LpRequest;
use crate::bound::{Ascent, DualPoint, Pace};
use crate::exchange::{Exchange, Free};
use crate::formulation::{InOrder, Lp, servers_missing};
use crate::order::{Serving, in_order};
use crate::report::Termination;
use crate::state::State;
use std::ops::ControlFlow;

/// Steps of the ascent to the prices of the problem in order.
const STEPS: usize = 40;
/// How far above where it starts it aims at first, relative.
const AIM: f64 = 1e-3;
/// What HiGHS lets pass of a limit on what is missing, in servers.
const SLACK: f64 = 1e-10;

impl<'a> Run<'a> {
    /// Whether the incumbent leaves anything missing.
    pub(super) fn is_short(&self) -> bool {
        self.best.as_ref().is_some_and(|(state, _)| state.is_short())
    }

    /// Serves the incumbent's shortfalls in order and tells whether the search must go on from there.
    pub(super) fn serve_in_order(&mut self, request: &LpRequest, keep: &dyn Fn(&State)) -> bool {
        let Some((state, _)) = &self.best else { return false };
        let serving = Serving {
            model: self.model,
            geometries: self.geometries,
            worthless: &self.worthless,
            seed: self.config.seed,
            pinned: None,
        };
        let before = state.levels(self.model);
        let mut served = serving.serve(state, 0, &|| self.must_stop());
        if self.is_small() {
            self.serve_exactly(&mut served, request);
        }
        self.offer(&served, "mip", keep);
        let after = self.best.as_ref().map(|(state, _)| state.levels(self.model));
        !self.must_stop() && (self.is_small() || Some(before) != after || !self.is_within_gap())
    }

    /// Whether branch and bound solves the whole problem.
    pub(super) fn is_small(&self) -> bool {
        (1..=WHOLE_ITEMS).contains(&self.model.terms.iter().map(|term| term.items.len()).sum())
    }

    /// The least that can be missing at each level, one after the other, by branch and bound.
    fn serve_exactly(&self, state: &mut State, request: &LpRequest) {
        let everything: Free =
            (state.counts.iter()).map(|counts| vec![true; counts.len()]).collect();
        let request = LpRequest {
            solver: "choose".into(),
            mip_gap: 0.0,
            mip_nodes: WHOLE_NODES,
            ..request.clone()
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
            let lp = Lp::in_order(self.model, &InOrder { limits, least: Some(level) });
            let exchange = Exchange::new(self.model, &lp, state, &everything);
            let job = self.think(&exchange, &request);
            let solution = job.and_then(|mut job| self.wait(job.as_mut(), exchange.size()));
            if let Some(solution) = solution {
                exchange.apply(&self.worthless, state, &solution);
            }
        }
    }

    /// Goes on with the problem in order, from the incumbent. `found`: prices to search on with, or how the
    /// search ended.
    pub(super) fn go_on_in_order(
        mut self,
        found: ControlFlow<Termination, DualPoint>,
        request: &LpRequest,
        end: &dyn Fn(Run, Termination, f64) -> Outcome,
        keep: &dyn Fn(&State),
    ) -> Outcome {
        let (state, _) = self.best.take().expect("an incumbent is short");
        let ordered = in_order(self.model, &state);
        let limits = limits(&state.levels(&ordered));
        let lp = Lp::in_order(&ordered, &InOrder { limits, least: None });
        let today = State::new(&ordered, ordered.today()).total(&ordered, &self.worthless);
        let state = State::new(&ordered, state.counts);
        let total = state.total(&ordered, &self.worthless);
        // What was noted until now is of other prices.
        for point in &mut self.history {
            (point.primal, point.dual_bound) = (None, None);
        }
        let from = self.dual.take().map(|dual| dual.prices);
        let mut run = Run {
            model: &ordered,
            lp: &lp,
            best: Some((state, total)),
            dual_bound: f64::NEG_INFINITY,
            ..self
        };
        run.note("mip");
        let prices = match &found {
            ControlFlow::Continue(prices) => Some(prices.prices.clone()),
            ControlFlow::Break(_) => from,
        };
        let start = run.at(prices.unwrap_or_else(|| vec![0.0; ordered.pools.len()]));
        let prices = run.climb(&mut Ascent::new(start, AIM, Pace::STEADY), STEPS);
        let termination = run.search_in_order(&prices, found, request, keep);
        end(run, termination, today)
    }

    fn search_in_order(
        &mut self,
        prices: &DualPoint,
        found: ControlFlow<Termination, DualPoint>,
        request: &LpRequest,
        keep: &dyn Fn(&State),
    ) -> Termination {
        if let (false, Some((state, _))) = (self.is_within_gap(), self.best.clone()) {
            self.sweep(state, prices, 0.0, keep);
        }
        if self.is_within_gap() || self.solve_whole(request, keep) {
            return self.settled();
        }
        match found {
            ControlFlow::Continue(_) => self.search_on(prices, request, keep),
            ControlFlow::Break(_) if self.must_stop() => self.stop_reason(),
            ControlFlow::Break(_) => self.improve(prices, 1, keep),
        }
    }
}

fn limits(missing: &[i128]) -> Vec<f64> {
    let limit = |&missing: &i128| if missing == 0 { 0.0 } else { servers_missing(missing) + SLACK };
    missing.iter().map(limit).collect()
}

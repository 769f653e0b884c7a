//! Whole servers near the relaxation of a request.
//!
//! Its solution is rounded down, and ruin and recreate at its prices gives every other reservation what it must keep,
//! then the request what is left. Where that leaves the request short, a sub-MIP over the items that the relaxation
//! splits and those of the request follows, everything else as the relaxation has it: relaxation enforced
//! neighbourhood search (Berthold, 2014). It takes seconds and comes closer.

use super::relaxed::Relaxed;
use crate::bound::evaluate;
use crate::formulation::Lp;
use crate::lp::LpRequest;
use crate::means::Means;
use crate::model::{Model, rru};
use crate::neighbourhood::Neighbourhood;
use crate::order::lean;
use crate::params::PARAMS;
use crate::search::Search;
use crate::state::State;
use crate::sub_mip::{FreeItems, SubMip};
use std::cmp::Reverse;

/// Rounds the relaxation of a request.
pub struct Rounding<'a> {
    /// The problem counted from the region before the request, its shortfall costly.
    pub costly: Search<'a>,
    /// The reservation of the request.
    pub asking: usize,
    /// The relaxation.
    pub relaxed: &'a Relaxed,
    /// Clock.
    pub means: &'a Means<'a>,
    /// Threads.
    pub threads: usize,
    /// Of random choices.
    pub seed: u64,
}

impl Rounding<'_> {
    /// Gives the request more by a sub-MIP over what the relaxation splits, if it was solved and leads to more. HiGHS
    /// solves it `beside` another search, which may give the request more as well.
    pub fn enforce(&self, state: &mut State, beside: impl FnOnce(&mut State)) {
        let (costly, asking, means) = (self.costly.model, self.asking, self.means);
        let Some(base) = self.relaxed.rounded_down(costly) else { return beside(state) };
        let is_free =
            |term: usize, item: usize| term == asking || self.relaxed.is_split(term, item);
        let free: FreeItems = (base.iter().enumerate())
            .map(|(term, counts)| (0..counts.len()).map(|item| is_free(term, item)).collect())
            .collect();
        let mut found = State::new(costly, base);
        let lp = Lp::new(costly, false);
        let sub_mip = SubMip::new(costly, &lp, &found, &free);
        let request = LpRequest {
            solver: "choose".into(),
            time_limit: means.with_share(PARAMS.plan.exchange_share).time_left(),
            threads: 1,
            seed: 1,
            start: None,
            mip_gap: half_a_server(costly, asking),
            mip_nodes: PARAMS.plan.exchange_nodes,
        };
        let (problem, _) = sub_mip.problem(&request);
        let job = means.start(problem, request);
        beside(state);
        if self.relaxed.is_most(&costly.terms[asking], &state.counts[asking]) {
            return;
        }
        let Some(solution) = job.and_then(|job| means.wait(job, sub_mip.size())) else { return };
        sub_mip.apply(self.costly.ineligible_held, &mut found, &solution);
        if !found.regresses(costly) && found.missing[asking] < state.missing[asking] {
            *state = found;
        }
    }

    /// Gives the request more if the relaxation was solved and leads to more.
    pub fn run(&self, state: &mut State) {
        let (costly, asking, means) = (self.costly.model, self.asking, self.means);
        let Some(prices) = self.relaxed.prices() else { return };
        let strict = strict(costly, asking);
        let Some(start) = self.relaxed.rounded_down(&strict) else { return };
        let search = Search { model: &strict, ..self.costly };
        let dual = evaluate(&strict, search.geometries, prices.to_vec(), self.threads);
        let mut order: Vec<usize> = (0..strict.terms.len()).collect();
        order.sort_by_key(|&term| (term == asking, Reverse(strict.terms[term].items.len())));
        let mut found = State::new(&strict, start);
        for weight in PARAMS.plan.price_weights {
            for &term in &order {
                if means.must_stop() {
                    return;
                }
                search.reinsert(&mut found, term, &dual, weight);
            }
        }
        let mut hood = Neighbourhood::new(&strict, &found, &dual, self.seed);
        let mut idle = 0;
        while idle < PARAMS.search.round_tries && found.is_short() && !means.must_stop() {
            let (terms, weight) = hood.pick(&strict, &found);
            idle += 1;
            if let Some(gain) = search.ruin_and_recreate(&mut found, &terms, &dual, weight, 0.0) {
                hood.update(&strict, &found, &terms);
                if gain.less_missing {
                    idle = 0;
                }
            }
        }
        let found = State::new(costly, found.counts);
        if !found.regresses(costly) && found.missing[asking] < state.missing[asking] {
            *state = found;
        }
    }
}

/// Gap of a sub-MIP below which it says nothing more of the servers of a request.
pub fn half_a_server(costly: &Model, asking: usize) -> f64 {
    let term = &costly.terms[asking];
    0.5 * term.short_price * rru(term.items.iter().map(|item| item.value).min().unwrap_or(0))
}

/// The problem in which no RRU that another reservation must keep is given up for the request.
fn strict(costly: &Model, asking: usize) -> Model {
    let mut strict = costly.clone();
    let request = &costly.terms[asking];
    let price = PARAMS.plan.kept_price * request.short_price * rru(request.top_value());
    strict.levels += 1;
    for (number, term) in strict.terms.iter_mut().enumerate() {
        if number == asking {
            term.level = costly.levels;
        } else {
            lean(term);
            term.price_server(price);
        }
    }
    strict
}

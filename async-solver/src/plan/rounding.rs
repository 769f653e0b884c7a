//! Whole servers near the relaxation of a request: its solution is rounded down, and ruin and recreate at its
//! prices gives every other reservation what it must keep, then the request what is left.

use super::relaxed::Relaxed;
use crate::bound::evaluate;
use crate::means::Means;
use crate::model::{Model, rru};
use crate::neighbourhood::Neighbourhood;
use crate::order::lean;
use crate::params::PARAMS;
use crate::search::Search;
use crate::state::State;
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

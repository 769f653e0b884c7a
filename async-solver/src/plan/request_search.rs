//! A search that stays around one reservation.

use crate::bound::DualPoint;
use crate::neighbourhood::PoolUsers;
use crate::params::PARAMS;
use crate::random::Random;
use crate::search::Search;
use crate::state::State;

/// A search that stays around one reservation.
pub struct RequestSearch<'a> {
    pub search: Search<'a>,
    pub dual: &'a DualPoint,
    /// The reservation of the request.
    pub asking: usize,
    pub users: PoolUsers,
    pub random: Random,
}

impl RequestSearch<'_> {
    /// Serves the reservation as well as it can; tells whether it ended by itself.
    pub fn run(&mut self, state: &mut State, must_stop: &dyn Fn() -> bool) -> bool {
        let model = self.search.model;
        if model.terms[self.asking].items.is_empty() {
            return true;
        }
        self.reinsert_alone(state);
        let weights = PARAMS.plan.price_weights;
        let (mut idle, mut all) = (0, 0);
        while idle < self.tries(state) && all < PARAMS.plan.max_tries_factor * self.tries(state) {
            if must_stop() {
                return false;
            }
            all += 1;
            let terms = self.users.around(model, state, self.asking, &mut self.random, |_| true);
            let weight = weights[self.random.below(weights.len())];
            let gain = self.search.ruin_and_recreate(state, &terms, self.dual, weight, 0.0);
            idle = if gain.is_some() { 0 } else { idle + 1 };
        }
        true
    }

    /// Places the reservation again by itself, at the weight that turns out best.
    fn reinsert_alone(&self, state: &mut State) {
        let (model, term) = (self.search.model, self.asking);
        // Less missing in order of priority first, then what it costs.
        let worth =
            |state: &State| (state.levels(model), state.total(model, self.search.ineligible_held));
        let start = state.clone();
        let mut best = worth(&start);
        let mut offer = |tried: State| {
            let found = worth(&tried);
            if found.0 < best.0 || found.0 == best.0 && found.1 < best.1 - 1e-9 {
                best = found;
                *state = tried;
            }
        };
        let mut tried = start.clone();
        if self.search.reinsert_exhaustively(&mut tried, term) {
            offer(tried);
        }
        for weight in PARAMS.plan.price_weights {
            let mut tried = start.clone();
            self.search.reinsert(&mut tried, term, self.dual, weight);
            offer(tried);
            let mut tried = start.clone();
            if self.search.reinsert_full_range(&mut tried, term, self.dual, weight) {
                offer(tried);
            }
        }
    }

    fn tries(&self, state: &State) -> usize {
        let (term, counts) = (&self.search.model.terms[self.asking], &state.counts[self.asking]);
        let is_short = term.shortfall(counts) > 0;
        let tries = if is_short { PARAMS.plan.tries_short } else { PARAMS.plan.tries_granted };
        let servers: u32 = counts.iter().sum();
        let affordable = PARAMS.plan.max_servers_tried / (servers.max(1) as usize);
        tries.min(affordable.max(PARAMS.plan.min_tries))
    }
}

//! A search that stays around one reservation.

use crate::bound::DualPoint;
use crate::model::Model;
use crate::random::Random;
use crate::search::Search;
use crate::state::State;

/// Weights of the prices with which a reservation is placed again.
pub const WEIGHTS: [f64; 4] = [1.0, 0.5, 0.2, 0.0];
/// Exchanges tried without gain before the search is over: with the request served, and without.
const TRIES: (usize, usize) = (100, 400);
/// Placing a reservation again takes time by its servers, so a large one is tried less often: this many
/// servers placed again without gain are enough, but at least `TRIES_LEAST` exchanges are tried.
const SERVERS_TRIED: usize = 400_000;
const TRIES_LEAST: usize = 30;
/// All exchanges are at most this multiple of those without gain: the last RRU cost most time, and moves.
const LAST: usize = 4;

/// Who may use each pool: (term, item).
pub fn users(model: &Model) -> Vec<Vec<(u32, u32)>> {
    let mut users = vec![Vec::new(); model.pools.len()];
    for (term, number) in model.terms.iter().zip(0_u32..) {
        for (item, at) in term.items.iter().zip(0_u32..) {
            users[item.pool as usize].push((number, at));
        }
    }
    users
}

/// A search that stays around one reservation.
pub struct Around<'a> {
    pub search: Search<'a>,
    pub dual: &'a DualPoint,
    pub asking: usize,
    pub users: Vec<Vec<(u32, u32)>>,
    pub random: Random,
}

impl Around<'_> {
    /// Serves the reservation as well as it can; tells whether it ended by itself.
    pub fn serve(&mut self, state: &mut State, must_stop: &dyn Fn() -> bool) -> bool {
        let model = self.search.model;
        if model.terms[self.asking].items.is_empty() {
            return true;
        }
        self.alone(state);
        let (mut idle, mut all) = (0, 0);
        while idle < self.tries(state) && all < LAST * self.tries(state) {
            if must_stop() {
                return false;
            }
            all += 1;
            let terms = self.pick(state);
            let weight = WEIGHTS[self.random.below(WEIGHTS.len())];
            let gain = self.search.ruin(state, &terms, self.dual, weight, 0.0);
            idle = if gain.is_some() { 0 } else { idle + 1 };
        }
        true
    }

    /// Places the reservation again by itself, at the weight that turns out best.
    fn alone(&self, state: &mut State) {
        let (model, term) = (self.search.model, self.asking);
        // Less missing in order of priority first, then what it costs.
        let worth =
            |state: &State| (state.levels(model), state.total(model, self.search.worthless));
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
        if self.search.replace_exhaustively(&mut tried, term) {
            offer(tried);
        }
        for weight in WEIGHTS {
            let mut tried = start.clone();
            self.search.replace(&mut tried, term, self.dual, weight);
            offer(tried);
            let mut tried = start.clone();
            if self.search.replace_widely(&mut tried, term, self.dual, weight) {
                offer(tried);
            }
        }
    }

    fn tries(&self, state: &State) -> usize {
        let (term, counts) = (&self.search.model.terms[self.asking], &state.counts[self.asking]);
        let tries = if term.shortfall(counts) > 0 { TRIES.1 } else { TRIES.0 };
        let servers: u32 = counts.iter().sum();
        let affordable = SERVERS_TRIED / (servers.max(1) as usize);
        tries.min(affordable.max(TRIES_LEAST))
    }

    /// The reservation, and one to three that hold what it could use, or what these could use.
    fn pick(&mut self, state: &State) -> Vec<usize> {
        let mut picked = vec![self.asking];
        let wanted = 1 + self.random.below(3);
        for _ in 0..4 * wanted {
            if picked.len() > wanted {
                break;
            }
            let near = picked[self.random.below(picked.len())];
            let items = &self.search.model.terms[near].items;
            if items.is_empty() {
                continue;
            }
            let pool = items[self.random.below(items.len())].pool as usize;
            picked.extend(self.holder(state, pool, &picked));
        }
        // Who asks first takes first; last, it takes what the others can spare.
        if self.random.below(2) == 0 {
            picked.reverse();
        }
        picked
    }

    /// Another reservation that has servers of a pool, from a random one on.
    fn holder(&mut self, state: &State, pool: usize, but: &[usize]) -> Option<usize> {
        let users = &self.users[pool];
        let from = self.random.below(users.len());
        (0..users.len())
            .map(|k| users[(from + k) % users.len()])
            .map(|(term, item)| (term as usize, item as usize))
            .find(|&(term, item)| state.counts[term][item] > 0 && !but.contains(&term))
            .map(|(term, _)| term)
    }
}

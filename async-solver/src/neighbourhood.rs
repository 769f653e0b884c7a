//! Which reservations to ruin together.
//!
//! [`Neighbourhood`] starts from a reservation that pays more than its bound, for the search over the
//! region; [`PoolUsers::around`] starts from a given one. Both add reservations that hold servers
//! that these could use.

use crate::bound::DualPoint;
use crate::model::{Item, Model};
use crate::params::PARAMS;
use crate::random::Random;
use crate::state::State;

/// The reservations that may use each pool.
pub struct PoolUsers {
    /// Term and item, by pool.
    by_pool: Vec<Vec<(u32, u32)>>,
}

impl PoolUsers {
    /// Lists them.
    pub fn new(model: &Model) -> PoolUsers {
        let mut by_pool = vec![Vec::new(); model.pools.len()];
        for (term, number) in model.terms.iter().zip(0_u32..) {
            for (item, at) in term.items.iter().zip(0_u32..) {
                by_pool[item.pool as usize].push((number, at));
            }
        }
        PoolUsers { by_pool }
    }

    fn count(&self, pool: usize) -> usize {
        self.by_pool[pool].len()
    }

    /// The first accepted user of a pool, from a position on and around.
    fn find(
        &self,
        pool: usize,
        from: usize,
        accept: impl Fn(usize, usize) -> bool,
    ) -> Option<usize> {
        let users = &self.by_pool[pool];
        (0..users.len())
            .map(|k| users[(from + k) % users.len()])
            .map(|(term, item)| (term as usize, item as usize))
            .find(|&(term, item)| accept(term, item))
            .map(|(term, _)| term)
    }

    /// A reservation and one to three others that hold servers which it, or one of them, could use; it
    /// is reinserted first or last. `may_move`: which reservations may be picked besides it.
    pub fn around(
        &self,
        model: &Model,
        state: &State,
        anchor: usize,
        random: &mut Random,
        may_move: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let mut picked = vec![anchor];
        let wanted = 1 + random.below(3);
        for _ in 0..4 * wanted {
            if picked.len() > wanted {
                break;
            }
            let items = &model.terms[picked[random.below(picked.len())]].items;
            if items.is_empty() {
                continue;
            }
            let pool = items[random.below(items.len())].pool as usize;
            let from = random.below(self.count(pool));
            picked.extend(self.find(pool, from, |term, item| {
                state.counts[term][item] > 0 && may_move(term) && !picked.contains(&term)
            }));
        }
        // The first takes what it can use; the last takes what the others can spare.
        if random.below(2) == 0 {
            picked.reverse();
        }
        picked
    }
}

/// Picks reservations by how far each is from its own bound.
pub struct Neighbourhood<'a> {
    prices: &'a DualPoint,
    /// Cost above the bound, per term.
    slack: Vec<f64>,
    total: f64,
    /// Who is short.
    short: Vec<bool>,
    users: PoolUsers,
    random: Random,
    /// Halved for each exchange of a reservation that changed nothing.
    luck: Vec<f64>,
}

impl<'a> Neighbourhood<'a> {
    /// Starts at a state.
    pub fn new(model: &Model, state: &State, prices: &'a DualPoint, seed: u64) -> Self {
        let users = PoolUsers::new(model);
        let slack = vec![0.0; model.terms.len()];
        let short = vec![false; model.terms.len()];
        let mut hood = Neighbourhood {
            prices,
            slack,
            total: 0.0,
            short,
            users,
            random: Random::new(seed),
            luck: vec![1.0; model.terms.len()],
        };
        let all: Vec<usize> = (0..model.terms.len()).collect();
        hood.update(model, state, &all);
        hood
    }

    /// The prices it goes by.
    pub fn prices(&self) -> &'a DualPoint {
        self.prices
    }

    /// Whether a reservation is short.
    pub fn is_short(&self) -> bool {
        self.short.contains(&true)
    }

    /// Notes that some terms have changed.
    pub fn update(&mut self, model: &Model, state: &State, terms: &[usize]) {
        for &number in terms {
            let term = &model.terms[number];
            let (cost, counts) = (state.costs[number], &state.counts[number]);
            let slack = self.prices.above_bound(model, number, cost, counts);
            self.short[number] = term.shortfall(counts) > 0;
            // A little for every reservation: one at its bound may still block another.
            self.slack[number] = if term.items.is_empty() { 0.0 } else { slack.max(1e-6) };
        }
        self.total = self.slack.iter().sum();
    }

    /// A reservation that has servers of a pool or would like to, from a random one on.
    fn user(&mut self, state: &State, pool: usize, but: &[usize]) -> Option<usize> {
        let from = self.random.below(self.users.count(pool));
        let wanting = self.random.below(4) == 0;
        self.users.find(pool, from, |term, item| {
            (state.counts[term][item] > 0 || wanting && self.short[term]) && !but.contains(&term)
        })
    }

    /// A number from 0 to 1, mostly small.
    pub fn chance(&mut self) -> f64 {
        let unit = self.random.unit();
        unit * unit * unit
    }

    /// Some terms to take out and put back in this order, and the weight of the prices.
    pub fn pick(&mut self, model: &Model, state: &State) -> (Vec<usize>, f64) {
        let mut at = self.random.unit() * self.total;
        let found = self.slack.iter().position(|slack| {
            at -= slack;
            at < 0.0
        });
        let first = found.unwrap_or(0);
        let mut picked = vec![first];
        let wanted = 1 + self.random.below(3);
        let items = &model.terms[first].items;
        for _ in 0..4 * wanted {
            if picked.len() > wanted || items.is_empty() {
                break;
            }
            let pool = items[self.random.below(items.len())].pool as usize;
            picked.extend(self.user(state, pool, &picked));
        }
        if self.random.below(2) == 0 {
            picked.reverse();
        }
        let weights = PARAMS.search.price_weights;
        (picked, weights[self.random.below(weights.len())])
    }

    /// Picks reservations to place again together: one that pays much above its bound, then those that pay much
    /// and hold, or could use, many servers of the same pools. `columns`: size of each; `max_columns`: of all
    /// together; `picked`: those that are taken, extended by the answer. Groups that changed nothing become less
    /// likely.
    pub fn pick_exchange(
        &mut self,
        model: &Model,
        state: &State,
        columns: &[usize],
        max_columns: usize,
        picked: &mut [bool],
    ) -> Vec<usize> {
        let mut held = vec![0; model.pools.len()];
        let mut is_usable = vec![false; model.pools.len()];
        let (mut group, mut left) = (Vec::new(), max_columns);
        while group.len() < PARAMS.exchange.reservations {
            let mut best: Option<(f64, usize)> = None;
            for (number, term) in model.terms.iter().enumerate() {
                let chance = self.random.unit();
                if picked[number] || term.items.is_empty() || columns[number] > left {
                    continue;
                }
                let shared = |(item, &count): (&Item, &u32)| {
                    let pool = item.pool as usize;
                    if is_usable[pool] { f64::from(count + held[pool]) } else { 0.0 }
                };
                let shared = match group.len() {
                    0 => 1.0,
                    _ => term.items.iter().zip(&state.counts[number]).map(shared).sum(),
                };
                let score = chance * shared * self.slack[number] * self.luck[number];
                if score > best.map_or(0.0, |best| best.0) {
                    best = Some((score, number));
                }
            }
            let Some((_, number)) = best else { break };
            for (item, &count) in model.terms[number].items.iter().zip(&state.counts[number]) {
                held[item.pool as usize] += count;
                is_usable[item.pool as usize] = true;
            }
            picked[number] = true;
            left -= columns[number];
            group.push(number);
        }
        group
    }

    /// Notes the result of an exchange.
    pub fn update_exchanged(
        &mut self,
        model: &Model,
        state: &State,
        terms: &[usize],
        has_gained: bool,
    ) {
        self.update(model, state, terms);
        for &term in terms {
            self.luck[term] = if has_gained { 1.0 } else { 0.5 * self.luck[term] };
        }
    }
}

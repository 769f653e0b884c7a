//! Exchanges around a request: sub-MIPs that give it more, or the same with fewer moves, while every other
//! reservation keeps what it asks for.
//!
//! What a request could have is often with reservations that could do with other servers, which others
//! hold in turn. No order of taking reservations out and putting them back one by one finds such a chain.
//! HiGHS does, over the request and a few others, the rest being fixed. Which others: those that hold
//! other servers in the relaxation of the whole region, where that was solved, else those that hold most of
//! what the request could use; for fewer moves, those that hold other servers than before the request. What
//! HiGHS says is checked in whole servers; its bounds are not used.

use super::relaxed::Relaxed;
use super::rounding::half_a_server;
use crate::formulation::Lp;
use crate::limit_rows::{LimitRow, LimitRows};
use crate::lp::LpRequest;
use crate::means::Means;
use crate::model::{Item, Model, MsbSlice, Pool, Term};
use crate::params::PARAMS;
use crate::random::Random;
use crate::search::Gain;
use crate::state::{IneligibleHeld, State};
use std::collections::BTreeMap;
use std::time::Duration;

/// Why exchanges ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// No more is possible.
    Proved,
    /// Nothing was gained for a while.
    Stalled,
    /// Time is up.
    OutOfTime,
}

/// Exchanges around one reservation.
#[derive(Clone, Copy)]
pub struct Exchange<'a> {
    /// The problem, counted from the region before the request.
    pub model: &'a Model,
    /// Servers without value for their holder.
    pub ineligible_held: &'a IneligibleHeld,
    /// The reservation of the request.
    pub asking: usize,
    /// The relaxation, or what stands for it.
    pub relaxed: &'a Relaxed,
    /// Clock and HiGHS.
    pub means: &'a Means<'a>,
    /// Of random choices.
    pub seed: u64,
}

/// Which reservations are placed again, and how freely.
struct Group {
    terms: Vec<usize>,
    /// Whether also items that neither the state nor the relaxation uses are free.
    is_whole: bool,
}

impl Exchange<'_> {
    /// Gives the request more until it has what it asks for, or what is proved to be possible.
    pub fn more(&self, state: &mut State) -> Ended {
        let mut random = Random::new(self.seed);
        let mut luck = vec![1.0; self.model.terms.len()];
        let (mut most, mut idle, mut number) = (PARAMS.plan.exchange_columns_first, 0, 0_u32);
        loop {
            if self.relaxed.is_most(&self.model.terms[self.asking], &state.counts[self.asking]) {
                return Ended::Proved;
            }
            if self.means.must_stop() {
                return Ended::OutOfTime;
            }
            if self.means.deadline.is_none() && idle >= PARAMS.plan.exchange_tries {
                return Ended::Stalled;
            }
            // The relaxation's own choice first, then random ones, every other of them with all items free.
            let is_whole = number % 2 == 1;
            let order = (number > 0).then_some(&mut random);
            let group = Group { terms: self.pick(state, &luck, order, is_whole, most), is_whole };
            number += 1;
            let gap = half_a_server(self.model, self.asking);
            if self.place(state, &group, gap).is_some_and(|gain| gain.less_missing) {
                idle = 0;
                continue;
            }
            let is_all = group.terms.len() == self.model.terms.len() && group.is_whole;
            if is_all && most >= PARAMS.plan.exchange_columns {
                return Ended::Stalled;
            }
            idle += 1;
            for &term in &group.terms {
                luck[term] *= PARAMS.plan.exchange_luck;
            }
            if group.is_whole {
                most = (most + most / 2).min(PARAMS.plan.exchange_columns);
            }
        }
    }

    /// Moves less for what the request has.
    pub fn cheaper(&self, state: &mut State) {
        let mut random = Random::new(self.seed);
        let luck = vec![1.0; self.model.terms.len()];
        for number in 0..PARAMS.plan.cheaper_tries {
            let order = (number > 0).then_some(&mut random);
            let most = PARAMS.plan.cheaper_columns;
            let group = Group { terms: self.pick(state, &luck, order, true, most), is_whole: true };
            if group.terms.len() == 1 || self.means.must_stop() {
                return;
            }
            let gap = PARAMS.plan.exchange_gap * self.model.weights.move_in_use;
            self.place(state, &group, gap);
            if group.terms.len() == self.model.terms.len() {
                return;
            }
        }
    }

    /// The request and others, until there are enough columns.
    fn pick(
        &self,
        state: &State,
        luck: &[f64],
        mut random: Option<&mut Random>,
        is_whole: bool,
        most: usize,
    ) -> Vec<usize> {
        let model = self.model;
        let columns = |number: usize| {
            let term = &model.terms[number];
            let free =
                (0..term.items.len()).filter(|&item| self.is_free(state, number, item, is_whole));
            free.count() + 2 * term.slices.len() + 2
        };
        let mut is_usable = vec![false; model.pools.len()];
        let mut group = vec![self.asking];
        let mut taken = vec![false; model.terms.len()];
        taken[self.asking] = true;
        let mut left = most.saturating_sub(columns(self.asking));
        loop {
            let newest = group[group.len() - 1];
            for item in &model.terms[newest].items {
                is_usable[item.pool as usize] = true;
            }
            let mut best: Option<(f64, usize)> = None;
            for (number, term) in model.terms.iter().enumerate() {
                let chance = random.as_mut().map_or(1.0, |random| random.unit());
                if taken[number] || term.items.is_empty() || columns(number) > left {
                    continue;
                }
                let shared = |(item, &count): (&Item, &u32)| {
                    if is_usable[item.pool as usize] { f64::from(count) } else { 0.0 }
                };
                let shared: f64 = term.items.iter().zip(&state.counts[number]).map(shared).sum();
                let moved = self.relaxed.distance(number, &state.counts[number]);
                let weight = if shared > 0.0 {
                    moved.unwrap_or(shared) + 1e-3
                } else {
                    moved.unwrap_or(0.0)
                };
                let score = chance * weight * luck[number];
                if score > best.map_or(0.0, |best| best.0) {
                    best = Some((score, number));
                }
            }
            let Some((_, number)) = best else { return group };
            taken[number] = true;
            left -= columns(number);
            group.push(number);
        }
    }

    /// Whether an item of a reservation of a group is free.
    fn is_free(&self, state: &State, term: usize, item: usize, is_whole: bool) -> bool {
        is_whole
            || term == self.asking
            || state.counts[term][item] > 0
            || self.model.terms[term].items[item].pinned
            || self.relaxed.uses(term, item)
    }

    /// Places a group again, if that gains something.
    fn place(&self, state: &mut State, group: &Group, mip_gap: f64) -> Option<Gain> {
        let part = Part::new(self, state, group);
        let lp = Lp::new(&part.model, false);
        let mut problem = lp.problem.clone();
        let columns = problem.cost.len();
        problem.integer = (0..columns).map(|column| lp.is_whole(column)).collect();
        let share = |left: Duration| left.mul_f64(PARAMS.plan.exchange_share);
        let request = LpRequest {
            solver: "choose".into(),
            time_limit: self.means.time_left().map(share),
            threads: 1,
            seed: 1,
            start: Some(lp.columns(&part.model, &part.counts)),
            mip_gap,
            mip_nodes: PARAMS.plan.exchange_nodes,
        };
        let solution = self.means.solve(problem, request)?;
        let found = (0..group.terms.len()).map(|at| {
            part.counts_of(at, &lp.counts(&part.model, at, &solution.columns), state, group)
        });
        self.accept(state, &group.terms, found.collect())
    }

    /// Takes counts over if they are allowed and give the request more, or the same at a lower price.
    fn accept(&self, state: &mut State, terms: &[usize], counts: Vec<Vec<u32>>) -> Option<Gain> {
        let model = self.model;
        let regresses =
            |(&term, counts): (&usize, &Vec<u32>)| model.cost(&model.terms[term], counts).regress;
        if terms.iter().zip(&counts).any(regresses) {
            return None;
        }
        let mut found = state.clone();
        for &term in terms {
            found.set(model, term, vec![0; model.terms[term].items.len()]);
        }
        for (&term, counts) in terms.iter().zip(counts) {
            found.set(model, term, counts);
        }
        let overfilled = found.used.iter().zip(&model.pools).any(|(&used, pool)| used > pool.size);
        if overfilled || !found.is_within_limits(model) {
            return None;
        }
        let total = |of: &State| of.total(model, self.ineligible_held);
        let cost = total(state) - total(&found);
        let missing = |of: &State| of.missing[self.asking];
        let less_missing = missing(&found) < missing(state);
        let levels = found.levels(model).cmp(&state.levels(model));
        let is_cheaper = levels.is_lt() || levels.is_eq() && cost > 1e-7;
        if less_missing || missing(&found) == missing(state) && is_cheaper {
            *state = found;
            return Some(Gain { cost, less_missing });
        }
        None
    }
}

/// The problem of a group: its reservations, and what the others leave of its pools.
struct Part {
    model: Model,
    counts: Vec<Vec<u32>>,
    /// By reservation of the group: the items that are free.
    items: Vec<Vec<usize>>,
}

impl Part {
    fn new(of: &Exchange, state: &State, group: &Group) -> Part {
        let model = of.model;
        let mut pool_at: BTreeMap<u32, u32> = BTreeMap::new();
        let mut pools: Vec<Pool> = Vec::new();
        let mut held_here: Vec<u32> = Vec::new();
        let (mut terms, mut counts, mut items) = (Vec::new(), Vec::new(), Vec::new());
        // What everything else counts in limits.
        let mut others = state.limited.clone();
        for &number in &group.terms {
            let term = &model.terms[number];
            let free: Vec<usize> = (0..term.items.len())
                .filter(|&item| of.is_free(state, number, item, group.is_whole))
                .collect();
            let mut part = Term {
                items: Vec::new(),
                slices: Vec::new(),
                ineligible_held: Vec::new(),
                ..term.clone()
            };
            let (mut held, mut kept) = (Vec::new(), Vec::new());
            for slice in &term.slices {
                let start = part.items.len();
                for &item in free.iter().filter(|item| slice.items.contains(item)) {
                    let was = term.items[item];
                    let next = u32::try_from(pools.len()).expect("fewer than 2^32 pools");
                    let pool = *pool_at.entry(was.pool).or_insert(next);
                    if pool == next {
                        pools.push(model.pools[was.pool as usize]);
                        held_here.push(0);
                    }
                    held_here[pool as usize] += state.counts[number][item];
                    model.take_from_limits(
                        &was,
                        &mut others,
                        i64::from(state.counts[number][item]),
                    );
                    part.items.push(Item { pool, ..was });
                    kept.push(item);
                    held.push(state.counts[number][item]);
                }
                if part.items.len() > start {
                    part.slices.push(MsbSlice { items: start..part.items.len(), ..slice.clone() });
                }
            }
            // Items that are not free have no server, so nothing in a domain either.
            part.crossing = term.crossing.iter().map(|of| of.of_items(&kept)).collect();
            terms.push(part);
            counts.push(held);
            items.push(free);
        }
        for (&was, &pool) in &pool_at {
            let others = state.used[was as usize] - held_here[pool as usize];
            pools[pool as usize].size -= others;
        }
        // Servers worth zero to their holders leave pools that get crowded, those of other reservations too.
        let ineligible = model.terms.iter().flat_map(|term| &term.ineligible_held);
        let ineligible = ineligible.filter_map(|item| {
            Some(Item { pool: *pool_at.get(&item.pool)?, limits: (0, 0), ..*item })
        });
        terms[0].ineligible_held = ineligible.collect();
        let rows = model.limits.rows.iter().zip(others);
        let rows = rows.map(|(row, others)| LimitRow { fixed: others, staying: 0, ..*row });
        let limits = LimitRows { rows: rows.collect(), ..model.limits.clone() };
        let model = Model {
            weights: model.weights,
            pools,
            terms,
            classes: 0,
            pool_of: Vec::new(),
            rack_steps: Vec::new(),
            levels: model.levels,
            pin_price: model.pin_price,
            limits,
        };
        Part { model, counts, items }
    }

    /// Counts of all items of a reservation of the group.
    fn counts_of(&self, at: usize, found: &[f64], state: &State, group: &Group) -> Vec<u32> {
        let mut counts = vec![0; state.counts[group.terms[at]].len()];
        for (&item, &count) in self.items[at].iter().zip(found) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "counts between 0 and the size of a pool"
            )]
            let whole = count.round().max(0.0) as u32;
            counts[item] = whole;
        }
        counts
    }
}

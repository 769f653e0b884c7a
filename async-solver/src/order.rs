//! Priority is an order: less missing at a more important level is never given up for anything less
//! important, be it shortfalls, moves, spread or buffers.
//!
//! Two assignments are compared level by level, the most important first, and only where as much is
//! missing at every level by their cost ([`State::levels`]). What is missing of a reservation is what
//! eq. 6 and 7 are short of; within a level it is weighed by the reservation's most valuable server, so
//! that reservations in cores and in GPUs weigh alike. Weights are whole numbers: nothing is rounded.
//!
//! Prices cannot say that: the ratio that would be needed grows with every level and with the ratio
//! of values. So they only lead the search, and `Serving::serve` goes through the levels.

use crate::bound::DualPoint;
use crate::model::{Model, MsbSlice, Term};
use crate::neighbourhood::PoolUsers;
use crate::params::PARAMS;
use crate::random::Random;
use crate::release_surplus::trim;
use crate::search::Search;
use crate::state::{IneligibleHeld, State};
use crate::subproblem::Geometry;

/// What is served in order, with what it needs to know of a model.
#[derive(Clone, Copy)]
pub struct Serving<'a> {
    /// The problem.
    pub model: &'a Model,
    /// Of each term.
    pub geometries: &'a [Geometry],
    /// Servers without value for the reservation.
    pub ineligible_held: &'a IneligibleHeld,
    /// Of random choices.
    pub seed: u64,
    /// One that is left as it is.
    pub pinned: Option<usize>,
}

impl Serving<'_> {
    /// Makes an assignment better in order: level after level, the less important ones give up what
    /// they need not keep, those who are short are served, and the levels below take what is left. An
    /// attempt that leaves as much missing at its level is dropped.
    ///
    /// `first`: levels above are left as they are.
    pub fn serve(&self, start: &State, first: usize, must_stop: &dyn Fn() -> bool) -> State {
        let model = self.model;
        let mut best = start.clone();
        for level in first..model.levels {
            let now = best.levels(model);
            if now[level] == 0 {
                continue;
            }
            if must_stop() {
                break;
            }
            let served = self.serve_level(&best, level, must_stop);
            if served.levels(model)[..=level] < now[..=level] && !served.regresses(model) {
                best = served;
            }
        }
        if best.levels(model) < start.levels(model) { best } else { start.clone() }
    }

    /// Serves one level: less important reservations are left with what may not be taken.
    fn serve_level(&self, best: &State, level: usize, must_stop: &dyn Fn() -> bool) -> State {
        let stage = stage(self.model, best, level);
        let search = Search {
            model: &stage,
            geometries: self.geometries,
            ineligible_held: self.ineligible_held,
        };
        let counts = (stage.terms.iter().zip(&best.counts).enumerate())
            .map(|(number, (term, counts))| {
                let mut counts = counts.clone();
                if term.level > level && self.pinned != Some(number) {
                    trim(term, &mut counts);
                }
                counts
            })
            .collect();
        let mut state = State::new(&stage, counts);
        let free = DualPoint::free(&stage);
        let mut short: Vec<usize> = (0..stage.terms.len())
            .filter(|&term| stage.terms[term].level == level && state.missing[term] > 0)
            .collect();
        short.sort_by_key(|&term| (std::cmp::Reverse(state.missing[term]), term));
        for (number, &term) in short.iter().enumerate() {
            if must_stop() {
                break;
            }
            search.reinsert(&mut state, term, &free, 0.0);
            if number < PARAMS.priority.full_range_reinsertions && state.missing[term] > 0 {
                search.reinsert_full_range(&mut state, term, &free, 0.0);
            }
            search.reinsert_exhaustively(&mut state, term);
        }
        self.exchange(&search, &mut state, &short, &free, must_stop);
        State::new(self.model, state.counts)
    }

    /// Takes out one that is short with some who hold what it could use, and puts them back.
    fn exchange(
        &self,
        search: &Search,
        state: &mut State,
        short: &[usize],
        free: &DualPoint,
        must_stop: &dyn Fn() -> bool,
    ) {
        let users = PoolUsers::new(search.model);
        let mut random = Random::new(self.seed);
        let (mut idle, mut all) = (0, 0);
        let mut left: Vec<usize> = short.to_vec();
        let max_tries = PARAMS.priority.max_tries + short.len();
        while idle < PARAMS.priority.tries && all < max_tries && !must_stop() {
            left.retain(|&term| state.missing[term] > 0);
            if left.is_empty() {
                return;
            }
            let first = left[random.below(left.len())];
            let may_move = |term| self.pinned != Some(term);
            let terms = users.around(search.model, state, first, &mut random, may_move);
            let gain = search.ruin_and_recreate(state, &terms, free, 0.0, 0.0);
            idle = if gain.is_some_and(|gain| gain.less_missing) { 0 } else { idle + 1 };
            all += 1;
        }
    }
}

/// The problem of one level's turn: who is more important may be missing no more than in a state, who
/// is less important asks only for what it has today, and what is missing at the level costs so
/// much that every server is worth its while.
fn stage(model: &Model, state: &State, level: usize) -> Model {
    let mut stage = model.clone();
    let price = model.server_price() * ratio(model, level);
    for (term, counts) in stage.terms.iter_mut().zip(&state.counts) {
        if term.level < level {
            keep(term, counts);
        } else if term.level > level {
            lean(term);
        } else {
            term.price_server(price * of_a_server(term, counts));
        }
    }
    stage
}

/// What eq. 6, eq. 7 and the replica rule are short of, in micro-RRU.
pub fn missing(term: &Term, counts: &[u32]) -> i64 {
    let over = |slice: &MsbSlice| (term.slice_value(slice, counts) - slice.most).max(0);
    let outside: i64 = term.outside(counts).iter().map(|(below, above)| below + above).sum();
    term.shortfall(counts) + outside + term.slices.iter().map(over).sum::<i64>()
}

/// A server's worth over what a reservation is missing, where that is less: the last fraction of a server
/// is worth a server as well.
pub fn of_a_server(term: &Term, counts: &[u32]) -> f64 {
    let (missing, server) = (missing(term, counts), term.top_value());
    if missing > 0 { (server as f64 / missing as f64).max(1.0) } else { 1.0 }
}

/// No more may be missing than with these counts.
pub fn keep(term: &mut Term, counts: &[u32]) {
    term.short_max = term.short_max.min(term.shortfall(counts));
    let outside = term.outside(counts);
    for (range, (below, above)) in term.affinity.iter_mut().zip(outside) {
        range.below_max = range.below_max.min(below);
        range.above_max = range.above_max.min(above);
    }
    let held: Vec<i64> = term.slices.iter().map(|slice| term.slice_value(slice, counts)).collect();
    for (slice, held) in term.slices.iter_mut().zip(held) {
        slice.over_max = slice.over_max.min((held - slice.most).max(0));
    }
}

/// Nothing is asked beyond what may not be taken.
pub fn lean(term: &mut Term) {
    term.capacity -= term.short_max;
    term.short_max = 0;
    for range in &mut term.affinity {
        range.low -= range.below_max;
        range.high += range.above_max;
        (range.below_max, range.above_max) = (0, 0);
    }
    for slice in &mut term.slices {
        (slice.most, slice.over_max) = (slice.hard_max(), 0);
    }
}

/// By how much the values of a reservation's servers differ at most, at a level, as a factor.
fn ratio(model: &Model, level: usize) -> f64 {
    let ratio = |term: &Term| {
        let least = term.items.iter().map(|item| item.value).min().unwrap_or(1);
        term.top_value() as f64 / least.max(1) as f64
    };
    let terms = model.terms.iter().filter(|term| term.level == level && !term.items.is_empty());
    terms.map(ratio).fold(1.0, f64::max)
}

/// The problem that goes on from a state: levels at which nothing is missing stay so, and what is
/// missing at the others has prices at which a server is worth more to a level than to those below.
pub fn in_order(model: &Model, state: &State) -> Model {
    let mut ordered = model.clone();
    let missing = state.levels(model);
    let lowest = model.server_price();
    let mut price = lowest;
    let mut prices = vec![0.0; model.levels];
    for level in (0..model.levels).rev() {
        if missing[level] > 0 {
            prices[level] =
                (price * ratio(model, level)).min(PARAMS.priority.max_price_ratio * lowest);
            price = prices[level] * PARAMS.priority.level_margin;
        }
    }
    let highest = prices.iter().copied().fold(lowest, f64::max);
    for term in &mut ordered.terms {
        if missing[term.level] > 0 {
            term.price_server(prices[term.level]);
        } else {
            term.price_server(highest);
            term.short_max = 0;
            for range in &mut term.affinity {
                (range.below_max, range.above_max) = (0, 0);
            }
            for slice in &mut term.slices {
                slice.over_max = 0;
            }
        }
    }
    ordered
}

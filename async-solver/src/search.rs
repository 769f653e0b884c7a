//! Makes an assignment better: each reservation in turn is taken out and put back as well as its
//! supply allows, at the pools' prices.

use crate::bound::DualPoint;
use crate::model::Model;
use crate::params::PARAMS;
use crate::state::{IneligibleHeld, State};
use crate::subproblem::{Geometry, Priced};
use std::cmp::{Ordering, Reverse};

/// What the search works with.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// The problem.
    pub model: &'a Model,
    /// What does not depend on prices.
    pub geometries: &'a [Geometry],
    /// Servers worth zero to their holder.
    pub ineligible_held: &'a IneligibleHeld,
}

impl Search<'_> {
    /// Places one reservation again. Prices, times `weight`, keep it off what others need more.
    /// Accepts what costs less, prices included; tells whether anything changed.
    pub fn reinsert(&self, state: &mut State, term: usize, dual: &DualPoint, weight: f64) -> bool {
        let model = self.model;
        let this = &model.terms[term];
        if this.items.is_empty() {
            return false;
        }
        let priced = self.priced(state, term, dual, weight);
        let now = &state.counts[term];
        let top_now =
            this.slices.iter().map(|slice| this.slice_value(slice, now)).max().unwrap_or(0);
        let relaxed = priced.bound().top;
        let old = priced.value(now);
        let Some((counts, value)) =
            priced.best_whole(&[relaxed, top_now], PARAMS.reinsert.share_tries)
        else {
            return false;
        };
        if value < old - 1e-6 && counts != state.counts[term] {
            state.set(model, term, counts);
            return true;
        }
        false
    }

    /// Places one reservation again, trying largest MSB shares over the whole range: where much is missing, the share
    /// that leaves least missing is far from the relaxation's.
    pub fn reinsert_full_range(
        &self,
        state: &mut State,
        term: usize,
        dual: &DualPoint,
        weight: f64,
    ) -> bool {
        let model = self.model;
        let priced = self.priced(state, term, dual, weight);
        let largest = self.geometries[term].largest();
        let mut found: Option<(Vec<u32>, f64)> = None;
        let (mut low, mut step) = (0, largest / PARAMS.reinsert.range_steps + 1);
        for _ in 0..PARAMS.reinsert.range_rounds {
            let mut best = low;
            for number in 0..=2 * PARAMS.reinsert.range_steps {
                let share = low + number * step;
                if share > largest + step {
                    break;
                }
                let better = priced
                    .best(&[share], 0)
                    .filter(|(_, value)| found.as_ref().is_none_or(|found| *value < found.1));
                if better.is_some() {
                    (found, best) = (better, share);
                }
            }
            low = (best - step).max(0);
            step = (step / PARAMS.reinsert.range_steps).max(1);
        }
        let old = priced.value(&state.counts[term]);
        let Some((counts, _)) = found.filter(|(_, value)| *value < old - 1e-6) else {
            return false;
        };
        state.set(model, term, counts);
        true
    }

    /// Places one reservation again, trying every count of every item where there are few: largest MSB share, whole servers and
    /// datacenter shares together have optima that no pass finds. What is missing counts first.
    pub fn reinsert_exhaustively(&self, state: &mut State, term: usize) -> bool {
        let excess = state.room_for(self.model, term).map_or(0.0, |room| {
            self.model.excess_price(&self.model.terms[term], &state.counts[term], &room.bound)
        });
        let now = (state.missing[term], state.costs[term] + excess);
        let found = self.exhaustive(state, term);
        let Some((_, counts)) = found
            .filter(|(worth, _)| worth.0 < now.0 || worth.0 == now.0 && worth.1 < now.1 - 1e-6)
        else {
            return false;
        };
        state.set(self.model, term, counts);
        true
    }

    /// The best counts of a term with what others leave: what is missing, and the cost. `None` where
    /// there are too many to try, or none is allowed.
    fn exhaustive(&self, state: &State, term: usize) -> Option<((i128, f64), Vec<u32>)> {
        let (model, this) = (self.model, &self.model.terms[term]);
        let mut all: u32 = 1;
        let mut most = Vec::with_capacity(this.items.len());
        for item in 0..this.items.len() {
            let supply = state.supply(model, self.ineligible_held, term, item).available;
            all = all
                .checked_mul(supply.checked_add(1)?)
                .filter(|&all| all <= PARAMS.reinsert.max_counts)?;
            most.push(supply);
        }
        let mut best: Option<((i128, f64), Vec<u32>)> = None;
        let mut counts = vec![0; most.len()];
        let room = state.room_for(model, term);
        for _ in 0..all {
            let cost = model.cost(this, &counts);
            let excess =
                room.as_ref().map_or(0.0, |room| model.excess_price(this, &counts, &room.bound));
            let worth = (cost.missing, cost.total() + excess);
            let better = best
                .as_ref()
                .is_none_or(|(best, _)| worth.0 < best.0 || worth.0 == best.0 && worth.1 < best.1);
            let fits =
                || room.as_ref().is_none_or(|room| model.is_within(this, &counts, &room.most));
            if better && !cost.regress && fits() {
                best = Some((worth, counts.clone()));
            }
            for (count, &most) in counts.iter_mut().zip(&most) {
                *count = if *count < most { *count + 1 } else { 0 };
                if *count > 0 {
                    break;
                }
            }
        }
        best
    }

    fn priced<'b>(
        &'b self,
        state: &State,
        term: usize,
        dual: &DualPoint,
        weight: f64,
    ) -> Priced<'b> {
        let model = self.model;
        let this = &model.terms[term];
        let supply: Vec<_> = (0..this.items.len())
            .map(|item| state.supply(model, self.ineligible_held, term, item))
            .collect();
        let room = state.room_for(model, term);
        let bound = room.as_ref().map_or(&[][..], |room| &room.bound);
        let priced = Priced::new(
            model,
            this,
            &self.geometries[term],
            |item| model.price_within(&this.items[item], &dual.prices, weight, bound),
            |item| supply[item],
            |item| {
                let pool = &model.pools[this.items[item].pool as usize];
                1e-3 * f64::from(supply[item].available) / f64::from(pool.size)
            },
        );
        match room {
            Some(room) => priced.within(room.without_spent()),
            None => priced,
        }
    }

    /// Takes some reservations out at once and puts them back one after the other. Keeps the result
    /// if less is missing in order of priority, or as much at each level and the objective does not
    /// rise by more than `tolerance`.
    pub fn ruin_and_recreate(
        &self,
        state: &mut State,
        terms: &[usize],
        dual: &DualPoint,
        weight: f64,
        tolerance: f64,
    ) -> Option<Gain> {
        let model = self.model;
        let before: f64 = terms.iter().map(|&term| state.costs[term]).sum();
        let before = before + state.excess_cost(model);
        let missing = levels_of(model, state, terms);
        let saved: Vec<Vec<u32>> = terms.iter().map(|&term| state.counts[term].clone()).collect();
        for &term in terms {
            state.set(model, term, vec![0; model.terms[term].items.len()]);
        }
        let mut after = 0.0;
        let mut fits = true;
        for &term in terms {
            let priced = self.priced(state, term, dual, weight);
            let relaxed = priced.bound().top;
            let best =
                priced.best(&[relaxed], PARAMS.reinsert.share_tries).map(|(counts, _)| counts);
            match best.or_else(|| Some(self.exhaustive(state, term)?.1)) {
                Some(counts) => state.set(model, term, counts),
                None => {
                    fits = false;
                    break;
                }
            }
            if state.missing[term] > 0 {
                self.reinsert_exhaustively(state, term);
            }
            after += state.costs[term];
            // Where something is missing, what is put back last decides how much.
            let so_far = after + state.excess_cost(model);
            if missing.is_empty() && so_far >= before + tolerance - 1e-6 {
                fits = false;
                break;
            }
        }
        let after = after + state.excess_cost(model);
        let order = levels_of(model, state, terms).cmp(&missing);
        let cheaper = after < before + tolerance - 1e-6;
        if !fits || order == Ordering::Greater || order == Ordering::Equal && !cheaper {
            for (&term, _) in terms.iter().zip(&saved) {
                state.set(model, term, vec![0; model.terms[term].items.len()]);
            }
            for (&term, counts) in terms.iter().zip(saved) {
                state.set(model, term, counts);
            }
            return None;
        }
        Some(Gain { cost: before - after, less_missing: order == Ordering::Less })
    }
}

/// What a change brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// By how much the objective falls.
    pub cost: f64,
    /// Whether less is missing, in order of priority.
    pub less_missing: bool,
}

/// What some terms are missing by level, the most important first; empty if nothing is. Ordered so
/// that what is missing at a level the other does not name comes after.
fn levels_of(model: &Model, state: &State, terms: &[usize]) -> Vec<(Reverse<usize>, i128)> {
    let mut levels: Vec<(Reverse<usize>, i128)> = Vec::new();
    let missing = terms.iter().map(|&term| (model.terms[term].level, state.missing[term]));
    for (level, missing) in missing.filter(|&(_, missing)| missing > 0) {
        match levels.iter_mut().find(|(Reverse(known), _)| *known == level) {
            Some((_, sum)) => *sum += missing,
            None => levels.push((Reverse(level), missing)),
        }
    }
    levels.sort_unstable_by_key(|&(Reverse(level), _)| level);
    levels
}

//! Makes an assignment better: each reservation in turn is taken out and put back as well as its
//! supply allows, at the pools' prices.

use crate::bound::DualPoint;
use crate::model::Model;
use crate::state::{State, Worthless};
use crate::subproblem::{Geometry, Priced};

/// Largest MSB shares tried over a range, and how often the range is narrowed around the best.
const WIDE_STEPS: i64 = 16;
const WIDE_ROUNDS: usize = 3;

/// What the search works with.
pub struct Search<'a> {
    /// The problem.
    pub model: &'a Model,
    /// What does not depend on prices.
    pub geometries: &'a [Geometry],
    /// Servers that count for nothing.
    pub worthless: &'a Worthless,
}

impl Search<'_> {
    /// Puts one reservation anew. Prices, times `weight`, keep it off what others need more.
    /// Accepts what costs less, prices included; tells whether anything changed.
    pub fn replace(&self, state: &mut State, term: usize, dual: &DualPoint, weight: f64) -> bool {
        let model = self.model;
        let this = &model.terms[term];
        if this.items.is_empty() {
            return false;
        }
        let priced = self.priced(state, term, dual, weight);
        let now = &state.counts[term];
        let top_now = this.spans.iter().map(|span| this.span_value(span, now)).max().unwrap_or(0);
        let relaxed = priced.bound().top;
        let old = priced.value(now);
        let Some((counts, value)) = priced.best_whole(&[relaxed, top_now], 12) else {
            return false;
        };
        if value < old - 1e-6 && counts != state.counts[term] {
            state.set(model, term, counts);
            return true;
        }
        false
    }

    /// Likewise, trying largest MSB shares over the whole range: where much is missing, the share
    /// that leaves least missing is far from the relaxation's.
    pub fn replace_widely(
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
        let (mut low, mut step) = (0, largest / WIDE_STEPS + 1);
        for _ in 0..WIDE_ROUNDS {
            let mut best = low;
            for number in 0..=2 * WIDE_STEPS {
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
            step = (step / WIDE_STEPS).max(1);
        }
        let old = priced.value(&state.counts[term]);
        let Some((counts, _)) = found.filter(|(_, value)| *value < old - 1e-6) else {
            return false;
        };
        state.set(model, term, counts);
        true
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
            .map(|item| state.supply(model, self.worthless, term, item))
            .collect();
        Priced::new(
            model,
            this,
            &self.geometries[term],
            |item| weight * dual.prices[this.items[item].pool as usize],
            |item| supply[item],
            |item| {
                let pool = &model.pools[this.items[item].pool as usize];
                1e-3 * f64::from(supply[item].available) / f64::from(pool.size)
            },
        )
    }

    /// Takes some reservations out at once and puts them back one after the other; keeps the
    /// result if the objective does not rise by more than `tolerance`. Tells by how much it falls.
    pub fn ruin(
        &self,
        state: &mut State,
        terms: &[usize],
        dual: &DualPoint,
        weight: f64,
        tolerance: f64,
    ) -> Option<f64> {
        let model = self.model;
        let before: f64 = terms.iter().map(|&term| state.costs[term]).sum();
        let saved: Vec<Vec<u32>> = terms.iter().map(|&term| state.counts[term].clone()).collect();
        for &term in terms {
            state.set(model, term, vec![0; model.terms[term].items.len()]);
        }
        let mut after = 0.0;
        let mut fits = true;
        for &term in terms {
            let priced = self.priced(state, term, dual, weight);
            let relaxed = priced.bound().top;
            match priced.best(&[relaxed], 12) {
                Some((counts, _)) => state.set(model, term, counts),
                None => {
                    fits = false;
                    break;
                }
            }
            after += state.costs[term];
            if after >= before + tolerance - 1e-6 {
                fits = false;
                break;
            }
        }
        if !fits {
            for (&term, _) in terms.iter().zip(&saved) {
                state.set(model, term, vec![0; model.terms[term].items.len()]);
            }
            for (&term, counts) in terms.iter().zip(saved) {
                state.set(model, term, counts);
            }
            return None;
        }
        Some(before - after)
    }
}

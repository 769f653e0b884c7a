//! What does not depend on prices: the sums that whole servers can show.

use crate::model::{Model, Term};
use crate::params::PARAMS;
use crate::unit::unit;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What does not depend on prices: the sums of whole servers each MSB can show.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Attainable RRU of each slice, ascending from zero, up to `reach`; empty: too many to list.
    sums: Vec<Arc<Vec<i64>>>,
    /// Union of all slices' sums: the candidates for `t` up to `reach`; empty: too many.
    pub(super) candidates: Vec<i64>,
    /// Greatest common divisor of the values.
    pub(super) divisor: i64,
    /// Whether its servers have several values.
    pub(super) mixed: bool,
    /// The largest RRU any slice can show.
    pub(super) largest: i64,
}

impl Geometry {
    /// The largest RRU any slice can show.
    pub fn largest(&self) -> i64 {
        self.largest
    }

    /// Lists the sums of a term.
    pub fn new(model: &Model, term: &Term) -> Geometry {
        let divisor = unit(term.items.iter().map(|item| item.value));
        let top_value = term.items.iter().map(|item| item.value).max().unwrap_or(0);
        let mixed = term.items.iter().any(|item| item.value != top_value);
        let others = i64::try_from(term.slices.len().saturating_sub(1).max(1)).unwrap_or(1);
        let reach = 3 * (term.capacity / others) + 3 * top_value;
        let mut known: BTreeMap<Vec<(i64, i64)>, Arc<Vec<i64>>> = BTreeMap::new();
        let mut sums = Vec::new();
        let mut candidates = vec![0];
        let mut listed = term.buffered;
        let mut largest = 0;
        for slice in &term.slices {
            let mut kinds: BTreeMap<i64, i64> = BTreeMap::new();
            let mut whole = 0;
            for item in &term.items[slice.items.clone()] {
                let size = i64::from(model.pools[item.pool as usize].size);
                *kinds.entry(item.value).or_default() += size;
                whole += item.value * size;
            }
            let most = slice.hard_max();
            largest = largest.max(whole.min(most));
            let key: Vec<(i64, i64)> =
                kinds.into_iter().map(|(value, count)| (value, count.min(reach / value))).collect();
            let list = known.entry(key).or_insert_with_key(|key| attainable(key, reach).into());
            listed &= !list.is_empty();
            if listed {
                candidates.extend(list.iter().filter(|&&sum| sum <= most));
                if candidates.len() > 8 * PARAMS.relaxation.max_sums {
                    candidates.sort_unstable();
                    candidates.dedup();
                }
            }
            sums.push(list.clone());
        }
        candidates.sort_unstable();
        candidates.dedup();
        if !listed || candidates.len() > PARAMS.relaxation.max_sums {
            candidates.clear();
        }
        Geometry { sums, candidates, divisor, mixed, largest }
    }

    /// The nearest attainable sums at or below and at or above `limit`.
    pub(super) fn around(&self, slice: usize, limit: i64) -> (i64, i64) {
        let sums = &self.sums[slice];
        let position = sums.partition_point(|&sum| sum < limit);
        match (sums.get(position), position.checked_sub(1)) {
            (Some(&above), _) if above == limit => (limit, limit),
            (Some(&above), Some(below)) => (sums[below], above),
            _ => {
                let below = limit / self.divisor * self.divisor;
                (below, if below == limit { limit } else { below + self.divisor })
            }
        }
    }

    /// The largest RRU a slice can show without exceeding `t`: exact where the sums are listed.
    pub(super) fn cap(&self, slice: usize, t: i64) -> i64 {
        let sums = &self.sums[slice];
        match sums.last() {
            Some(&last) if t <= last => sums[sums.partition_point(|&sum| sum <= t) - 1],
            _ => t / self.divisor * self.divisor,
        }
    }
}

/// All sums of at most the given counts of each value, up to `reach`; empty if too many.
fn attainable(kinds: &[(i64, i64)], reach: i64) -> Vec<i64> {
    let mut sums = vec![0_i64];
    for &(value, count) in kinds {
        let mut more = Vec::with_capacity(sums.len() * 2);
        for &sum in &sums {
            let most = ((reach - sum) / value).min(count);
            more.extend((0..=most).map(|k| sum + k * value));
            if more.len() > 4 * PARAMS.relaxation.max_sums {
                return Vec::new();
            }
        }
        more.sort_unstable();
        more.dedup();
        if more.len() > PARAMS.relaxation.max_sums {
            return Vec::new();
        }
        sums = more;
    }
    sums
}

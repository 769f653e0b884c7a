//! Packings and bounds by column generation: prices of the items from a linear program of patterns, patterns by prices,
//! and packings by fixing patterns that the program uses most.

use super::effort::Effort;
use super::items::Items;
use super::master::{Master, Pattern};
use super::price::Pricing;
use crate::random::Random;
use std::collections::BTreeSet;

/// Steps of a search for patterns with a certain item, and of one for the best of all.
const STEPS: u64 = 300;
const BEST_STEPS: u64 = 3_000_000;
/// Items that are looked at for patterns before the prices change, and patterns that suffice.
const SEEDS: usize = 80;
const ENOUGH: usize = 40;
/// About how many patterns are kept for the next packing.
const KEPT: usize = 30_000;
/// Prices are rounded to this part of one for the bound.
const PARTS: f64 = 1e7;

/// Known patterns, and random choices. Items are kinds, each with the number of its items.
pub(crate) struct Columns<'i> {
    items: &'i Items,
    pub(crate) pool: BTreeSet<Pattern>,
    /// Weight of the dimensions in the search for patterns.
    weight: Vec<f64>,
    random: Random,
}

impl<'i> Columns<'i> {
    pub(crate) fn new(items: &'i Items, random: Random) -> Columns<'i> {
        Columns {
            items,
            pool: BTreeSet::new(),
            weight: vec![1.0 / items.dims() as f64; items.dims()],
            random,
        }
    }

    pub(crate) fn kinds(&self) -> usize {
        self.items.len()
    }

    /// A lower bound from the prices of the linear program; 0 if too much work.
    pub(crate) fn bound(&mut self, effort: &mut Effort) -> usize {
        let (master, _) = self.solve(&self.items.count.clone(), effort);
        // Whole prices: the bound is exact (Farley, "A note on bounding a class of linear programming problems", 1990).
        let price: Vec<f64> =
            master.price.iter().map(|price| (price.max(0.0) * PARTS).floor()).collect();
        let counts = self.items.count.iter().map(|count| f64::from(*count));
        let total: f64 = price.iter().zip(counts).map(|(price, count)| price * count).sum();
        // No pattern needs to be best: none may be worth so much that the bound, rounded up, is less.
        let enough = total / ((total / PARTS - 1e-6).ceil() - 1.0 + 1e-6).max(1.0);
        let mut prices = Pricing::new(self.items, &price, &mut self.weight);
        for above in [enough, 0.0] {
            if let Some(worth) = prices.search(None, above, 10 * BEST_STEPS, effort) {
                return (total / worth.max(1.0)).ceil() as usize;
            }
        }
        0
    }

    /// The linear program of the rest of each kind, with the kinds of its rows, and whether no pattern improves it.
    fn solve(&mut self, left: &[u32], effort: &mut Effort) -> (Master, bool) {
        let of = kinds_left(left);
        let items = self.items.some(&of, left);
        let mut position = vec![None; self.items.len()];
        for (at, item) in of.iter().enumerate() {
            position[*item] = u16::try_from(at).ok();
        }
        let mut master = Master::new(&items.count);
        let mut known: BTreeSet<Pattern> = BTreeSet::new();
        for pattern in &self.pool {
            let rest: Pattern =
                pattern.iter().filter_map(|item| position[usize::from(*item)]).collect();
            if rest.len() > 1 && !known.contains(&rest) {
                master.patterns.push(rest.clone());
                known.insert(rest);
            }
        }
        let mut is_solved = false;
        let row_steps = (items.len() * items.len() / 16) as u64 + 1;
        loop {
            let steps = master.solve(200) as u64;
            effort.spend((steps + 1) * (row_steps + master.patterns.len() as u64));
            if effort.is_over() {
                break;
            }
            let mut prices = Pricing::new(&items, &master.price, &mut self.weight);
            let mut found = Vec::new();
            let count = prices.len();
            for _ in 0..SEEDS.min(count) {
                let first = self.random.below(count);
                prices.search(Some(first), 1.0 + 1e-6, STEPS, effort);
                found.extend(prices.found.drain(..).next_back());
                if found.len() >= ENOUGH {
                    break;
                }
            }
            found.retain(|pattern| !known.contains(pattern));
            if found.is_empty() && steps < 200 {
                let worth = prices.search(None, 1.0 + 1e-6, BEST_STEPS, effort);
                found.append(&mut prices.found);
                if found.is_empty() {
                    is_solved = worth.is_some();
                }
            }
            if found.is_empty() && steps < 200 {
                break;
            }
            for pattern in found {
                if known.insert(pattern.clone()) {
                    let item = |at: &u16| u16::try_from(of[usize::from(*at)]).expect("few items");
                    let mut whole: Pattern = pattern.iter().map(item).collect();
                    whole.sort_unstable();
                    self.pool.insert(whole);
                    master.patterns.push(pattern);
                }
            }
        }
        (master, is_solved)
    }

    /// A packing: patterns that the linear program uses most are fixed, and the rest is solved again. Ends when no
    /// better packing than `worse` can come of it.
    pub(crate) fn dive(&mut self, worse: usize, effort: &mut Effort) -> Option<Vec<Pattern>> {
        let mut left = self.items.count.clone();
        let mut bins: Vec<Pattern> = Vec::new();
        while left.iter().any(|left| *left > 0) {
            let (master, is_solved) = self.solve(&left, effort);
            if effort.is_over() {
                return None;
            }
            if is_solved && bins.len() as f64 + (master.total() - 1e-4).ceil() >= worse as f64 {
                return None;
            }
            if is_solved && bins.is_empty() {
                // A better packing has no pattern whose reduced cost exceeds the gap to its value.
                let gap = worse as f64 - 1.0 - master.total() + 1e-3;
                self.pool.retain(|pattern| 1.0 - master.value_of(pattern) <= gap);
            }
            let rows = kinds_left(&left);
            let mut used: Vec<(f64, f64, &Pattern)> = master
                .basic()
                .map(|(pattern, x)| (x + 0.15 * self.random.unit(), x, pattern))
                .collect();
            used.sort_by(|one, other| other.0.total_cmp(&one.0));
            let most = (master.total() / 12.0).ceil() as usize;
            let before = bins.len();
            for (key, x, pattern) in used {
                let whole = (x + 0.02).floor() as usize;
                let fixed = bins.len() - before;
                if whole == 0 && fixed > 0 && (fixed >= most || key < 0.55) {
                    break;
                }
                for _ in 0..whole.max(1) {
                    // The first one is always taken, so that this ends.
                    let in_part = bins.len() == before;
                    bins.extend(taken(pattern, &rows, &mut left, in_part));
                }
            }
        }
        let keep = KEPT as f64 / self.pool.len() as f64;
        self.pool.retain(|_| keep >= 1.0 || self.random.unit() < keep);
        Some(bins)
    }
}

fn kinds_left(left: &[u32]) -> Vec<usize> {
    (0..left.len()).filter(|kind| left[*kind] > 0).collect()
}

/// Takes a pattern of rows out of the rest, if all of it is there, or in part.
fn taken(pattern: &Pattern, rows: &[usize], left: &mut [u32], in_part: bool) -> Option<Pattern> {
    let mut kinds: Pattern = Vec::new();
    for row in pattern {
        let kind = rows[usize::from(*row)];
        if left[kind] > 0 {
            left[kind] -= 1;
            kinds.push(u16::try_from(kind).expect("few kinds"));
        }
    }
    if in_part || kinds.len() == pattern.len() {
        return Some(kinds);
    }
    kinds.iter().for_each(|kind| left[usize::from(*kind)] += 1);
    None
}

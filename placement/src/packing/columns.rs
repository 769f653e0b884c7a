//! Packings and bounds by column generation: prices of the items from a linear program of patterns, patterns by prices,
//! and packings by fixing patterns that the program uses most.

use super::effort::Effort;
use super::items::{Items, Packing};
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
/// Patterns that are kept for the next packing.
const KEPT: usize = 30_000;
/// Prices are rounded to this part of one for the bound.
const PARTS: f64 = 1e7;

/// Patterns that are known, and what is random.
pub(crate) struct Columns<'i> {
    items: &'i Items,
    pub(crate) pool: BTreeSet<Pattern>,
    random: Random,
}

impl<'i> Columns<'i> {
    pub(crate) fn new(items: &'i Items, random: Random) -> Columns<'i> {
        Columns { items, pool: BTreeSet::new(), random }
    }

    /// The bins of a packing are patterns.
    pub(crate) fn learn(&mut self, packing: &Packing) {
        let index = |item: &usize| u16::try_from(*item).expect("few items");
        for bin in packing {
            let mut pattern: Pattern = bin.iter().map(index).collect();
            pattern.sort_unstable();
            self.pool.insert(pattern);
        }
    }

    /// A lower bound from the prices of the linear program, and the prices' program.
    pub(crate) fn bound(&mut self, known: usize, effort: &mut Effort) -> usize {
        let all: Vec<usize> = (0..self.items.len()).collect();
        let (master, is_solved) = self.solve(&all, known as f64, effort);
        if !is_solved {
            return 0;
        }
        // Whole prices: the bound is exact (Farley, "A note on bounding a class of linear programming problems", 1990).
        let price: Vec<f64> = master.price.iter().map(|price| (price.max(0.0) * PARTS).floor()).collect();
        let (worth, steps) = Prices::new(self.items, &price).best(0.0, 10 * BEST_STEPS);
        effort.spend(steps);
        let total: f64 = price.iter().zip(&self.items.count).map(|(price, count)| price * f64::from(*count)).sum();
        worth.map_or(0, |worth| (total / worth.max(1.0)).ceil() as usize)
    }

    /// The linear program of some items, and whether no pattern improves it.
    fn solve(&mut self, of: &[usize], at_least: f64, effort: &mut Effort) -> (Master, bool) {
        let items = self.items.some(of);
        let mut position = vec![None; self.items.len()];
        for (at, item) in of.iter().enumerate() {
            position[*item] = u16::try_from(at).ok();
        }
        let mut master = Master::new(&items.count);
        let mut known: BTreeSet<Pattern> = BTreeSet::new();
        for pattern in &self.pool {
            let rest: Pattern = pattern.iter().filter_map(|item| position[usize::from(*item)]).collect();
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
            let mut prices = Prices::new(&items, &master.price);
            let (mut found, mut spent) = (Vec::new(), 0);
            let count = prices.0.len();
            for _ in 0..SEEDS.min(count) {
                let first = self.random.below(count);
                spent += prices.0.search(Some(first), 1.0 + 1e-6, STEPS).1;
                found.extend(prices.0.found.drain(..).next_back());
                if found.len() >= ENOUGH {
                    break;
                }
            }
            found.retain(|pattern| !known.contains(pattern));
            if found.is_empty() && steps < 200 {
                let (worth, steps) = prices.best(1.0 + 1e-6, BEST_STEPS);
                spent += steps;
                found.append(&mut prices.0.found);
                if found.is_empty() {
                    is_solved = worth.is_some();
                }
            }
            effort.spend(spent * 2);
            if std::env::var("W").is_ok() {
                eprintln!("rows {} patterns {} steps {steps} found {} spent {spent} total {:.4} solved {is_solved}", items.len(), master.patterns.len(), found.len(), master.total());
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
            // What is fixed and this together would be no better.
            if master.total() < at_least - 1.0 && is_solved {
                break;
            }
        }
        (master, is_solved)
    }

    /// A packing: patterns that the linear program uses most are fixed, and the rest is solved again. Ends when no
    /// better packing than `worse` can come of it.
    pub(crate) fn dive(&mut self, worse: usize, effort: &mut Effort) -> Option<Packing> {
        let mut rest: Vec<usize> = (0..self.items.len()).collect();
        let mut bins: Packing = Vec::new();
        while !rest.is_empty() {
            let (master, is_solved) = self.solve(&rest, 0.0, effort);
            if effort.is_over() {
                return None;
            }
            if is_solved && bins.len() as f64 + (master.total() - 1e-4).ceil() >= worse as f64 {
                return None;
            }
            let mut used: Vec<(f64, &Pattern)> =
                master.basic().map(|(pattern, x)| (x + 0.15 * self.random.unit(), pattern)).collect();
            used.sort_by(|one, other| other.0.total_cmp(&one.0));
            let most = (master.total() / 12.0).ceil() as usize;
            let mut covered = vec![false; rest.len()];
            let mut fixed = 0;
            for (x, pattern) in used {
                if fixed > 0 && x < 0.98 && (fixed >= most || x < 0.55) {
                    break;
                }
                if pattern.iter().all(|item| !covered[usize::from(*item)]) {
                    pattern.iter().for_each(|item| covered[usize::from(*item)] = true);
                    bins.push(pattern.iter().map(|item| rest[usize::from(*item)]).collect());
                    fixed += 1;
                }
            }
            let left = (0..rest.len()).filter(|at| !covered[*at]).map(|at| rest[at]);
            rest = left.collect();
        }
        while self.pool.len() > KEPT {
            let drop = self.random.below(self.pool.len());
            let pattern = self.pool.iter().nth(drop).cloned();
            pattern.map(|pattern| self.pool.remove(&pattern));
        }
        Some(bins)
    }
}

/// A search for patterns, with sizes weighted by how scarce the dimensions are.
struct Prices<'i>(Pricing<'i>);

impl<'i> Prices<'i> {
    fn new(items: &'i Items, price: &[f64]) -> Prices<'i> {
        let share = |dim: usize| items.total(dim) as f64 / items.capacity[dim] as f64;
        let shares: Vec<f64> = (0..items.dims()).map(share).collect();
        let sum: f64 = shares.iter().sum::<f64>().max(1e-12);
        let weight: Vec<f64> = shares.iter().map(|share| share / sum).collect();
        Prices(Pricing::new(items, &items.shares(), price, &weight))
    }

    fn best(&mut self, above: f64, steps: u64) -> (Option<f64>, u64) {
        self.0.search(None, above, steps)
    }
}

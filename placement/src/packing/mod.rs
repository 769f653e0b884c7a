//! Packing into the fewest equal bins: vector bin packing.
//!
//! Rules give a first packing, bounds a limit. Then linear programs of patterns and local search take turns: the one
//! packs by fixing patterns, the other empties one bin after the other.

mod columns;
mod effort;
mod exact;
mod first;
mod items;
mod local;
mod lower;
mod master;
mod price;

use crate::limits::{Limits, Progress};
use crate::random::Random;
use columns::Columns;
use effort::Effort;
use exact::Partition;
pub(crate) use items::{Items, Packing};
use master::Pattern;

/// Steps of a search for a partition, and of the first and the longest local search.
const PARTITION: u64 = 50_000_000;
const LOCAL: u64 = 20_000;
const MOST_LOCAL: u64 = 1_000_000;
/// Rounds of a bound.
const BOUND_ROUNDS: u64 = 300_000;
/// With more kinds of items there are no linear programs: a basis is a square of them.
const MOST_KINDS: usize = 1_500;
/// Patterns of more items are searched too deeply.
const MOST_ITEMS: usize = 20_000;

/// A packing, and a number of bins that none is below.
pub(crate) struct Packed {
    pub(crate) packing: Packing,
    pub(crate) bound: usize,
}

/// Packs items of which each fits into a bin.
pub(crate) fn pack(items: &Items, limits: &Limits) -> Packed {
    let mut effort = Effort::new(limits);
    let (kinds, kind_of) = items.kinds();
    let mut search = Search {
        items,
        kind_of,
        is_usual: (0..items.dims()).all(|dim| !items.has_negative(dim)),
        columns: Columns::new(&kinds, Random::new(limits.seed)),
        best: Packed { packing: first::first(items), bound: lower::lower(items) },
        limits,
    };
    search.tell();
    search.run(kinds.len() <= MOST_KINDS && items.len() <= MOST_ITEMS, &mut effort);
    search.best
}

struct Search<'i, 'l> {
    items: &'i Items,
    kind_of: Vec<usize>,
    /// Whether no size is less than zero: then a search of all patterns proves something.
    is_usual: bool,
    columns: Columns<'i>,
    best: Packed,
    limits: &'l Limits<'l>,
}

impl Search<'_, '_> {
    fn tell(&self) {
        let (value, bound) = (self.best.packing.len() as f64, self.best.bound as f64);
        (self.limits.progress)(&Progress { value, bound });
    }

    fn is_done(&self, effort: &Effort) -> bool {
        let (value, bound) = (self.best.packing.len() as f64, self.best.bound as f64);
        value - bound <= self.limits.gap * value || effort.is_over()
    }

    fn found(&mut self, packing: Packing) {
        // A pattern without an item that another one has too fits, unless the size of the item is below zero.
        let fits = self.is_usual || packing.iter().all(|bin| self.items.share_a_bin(bin));
        if fits && packing.len() < self.best.packing.len() {
            self.best.packing = packing;
            self.tell();
        }
    }

    fn run(&mut self, has_patterns: bool, effort: &mut Effort) {
        let mut random = Random::new(self.limits.seed);
        // Many equal items have no order to search in, but few patterns.
        let are_few = has_patterns && 4 * self.columns.kinds() <= self.items.len();
        if has_patterns && !are_few && !self.is_done(effort) {
            self.try_exactly(effort);
        }
        let mut steps = LOCAL;
        for round in 0_u32.. {
            let begins_locally = !are_few || round > 0;
            while begins_locally
                && !self.is_done(effort)
                && let Some(fewer) =
                    local::shrink(self.items, &self.best.packing, &mut random, steps, effort)
            {
                self.found(fewer);
            }
            if self.is_done(effort) {
                return;
            }
            steps = (2 * steps).min(MOST_LOCAL);
            if has_patterns {
                let bins =
                    self.best.packing.iter().map(|bin| self.pattern(bin)).collect::<Vec<_>>();
                self.columns.pool.extend(bins);
                if round == 0 && self.is_usual {
                    self.best.bound = self.best.bound.max(self.columns.bound(effort));
                    self.tell();
                }
                if let Some(patterns) = self.columns.dive(self.best.packing.len(), effort) {
                    self.found(self.packing(&patterns));
                }
            }
        }
    }

    /// Kinds of some items.
    fn pattern(&self, of: &[usize]) -> Pattern {
        let kind = |item: &usize| u16::try_from(self.kind_of[*item]).expect("few kinds");
        let mut pattern: Pattern = of.iter().map(kind).collect();
        pattern.sort_unstable();
        pattern
    }

    /// Items of each bin, from their kinds.
    fn packing(&self, patterns: &[Pattern]) -> Packing {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.kind_of.len()];
        for item in (0..self.kind_of.len()).rev() {
            members[self.kind_of[item]].push(item);
        }
        let bin = |pattern: &Pattern| {
            pattern.iter().filter_map(|kind| members[usize::from(*kind)].pop()).collect()
        };
        patterns.iter().map(bin).collect()
    }

    /// Where the bins of the bound leave little empty, all packings into that many bins.
    fn try_exactly(&mut self, effort: &mut Effort) {
        while !self.is_done(effort) {
            let bins = self.best.bound;
            let Some(patterns) = exact::patterns(self.items, bins, effort) else { return };
            match exact::partition(self.items, bins, &patterns, PARTITION, effort) {
                Partition::Found(packing) => self.found(packing),
                Partition::None if self.is_usual => {
                    self.best.bound += 1;
                    self.tell();
                }
                Partition::None | Partition::Unknown => {
                    for pattern in patterns {
                        let items: Vec<usize> =
                            pattern.iter().map(|item| usize::from(*item)).collect();
                        let pattern = self.pattern(&items);
                        self.columns.pool.insert(pattern);
                    }
                    return;
                }
            }
        }
    }
}

/// A number of bins that none is below, by linear programming; 0 if that is too much work.
pub(crate) fn bound(items: &Items) -> usize {
    if items.count.iter().sum::<u32>() as usize > MOST_ITEMS {
        return 0;
    }
    let limits = Limits::rounds(BOUND_ROUNDS);
    Columns::new(items, Random::new(0)).bound(&mut Effort::new(&limits))
}

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

/// Steps of a search for a partition, and of the first and the longest local search.
const PARTITION: u64 = 50_000_000;
const LOCAL: u64 = 20_000;
const MOST_LOCAL: u64 = 1_000_000;
/// Larger instances have patterns that are too many to be listed by number.
const MOST_ITEMS: usize = 2_000;

/// A packing, and a number of bins that none is below.
pub(crate) struct Packed {
    pub(crate) packing: Packing,
    pub(crate) bound: usize,
}

/// Packs items of which each fits into a bin.
pub(crate) fn pack(items: &Items, limits: &Limits) -> Packed {
    let mut random = Random::new(limits.seed);
    let mut effort = Effort::new(limits);
    let mut best = Packed { packing: first::first(items), bound: lower::lower(items) };
    let tell = |best: &Packed| {
        (limits.progress)(&Progress { value: best.packing.len() as f64, bound: best.bound as f64 });
    };
    tell(&best);
    let is_done = |best: &Packed, effort: &Effort| {
        let gap = (best.packing.len() - best.bound) as f64;
        gap <= limits.gap * best.packing.len() as f64 || effort.is_over()
    };
    let mut columns = Columns::new(items, random.clone());
    if !is_done(&best, &effort) && items.len() <= MOST_ITEMS {
        try_exactly(items, &mut best, &mut columns, &mut effort);
        tell(&best);
    }
    let mut steps = LOCAL;
    let is_usual = (0..items.dims()).all(|dim| !items.has_negative(dim));
    let mut has_bound = items.len() > MOST_ITEMS || !is_usual;
    while !is_done(&best, &effort) {
        let before = best.packing.len();
        while let Some(fewer) = local::shrink(items, &best.packing, &mut random, steps, &mut effort) {
            best.packing = fewer;
            tell(&best);
            if is_done(&best, &effort) {
                return best;
            }
        }
        steps = (2 * steps).min(MOST_LOCAL);
        if items.len() <= MOST_ITEMS && !is_done(&best, &effort) {
            columns.learn(&best.packing);
            if !has_bound {
                has_bound = true;
                best.bound = best.bound.max(columns.bound(best.bound, &mut effort));
                tell(&best);
            }
            if let Some(packing) = columns.dive(best.packing.len(), &mut effort) {
                if packing.len() < before {
                    best.packing = packing;
                    tell(&best);
                }
            }
        }
    }
    best
}

/// Where the bins of the bound leave little empty, all packings into that many bins.
fn try_exactly(items: &Items, best: &mut Packed, columns: &mut Columns, effort: &mut Effort) {
    let is_usual = (0..items.dims()).all(|dim| !items.has_negative(dim));
    while best.bound < best.packing.len() && !effort.is_over() {
        let Some(patterns) = exact::patterns(items, best.bound, effort) else { return };
        match exact::partition(items, best.bound, &patterns, PARTITION, effort) {
            Partition::Found(packing) => best.packing = packing,
            Partition::None if is_usual => best.bound += 1,
            Partition::None | Partition::Unknown => {
                columns.pool.extend(patterns);
                return;
            }
        }
    }
}

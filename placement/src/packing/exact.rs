//! All packings into a number of bins that leaves little room: what a bin may leave empty is limited by what all leave.

use super::effort::Effort;
use super::items::{Items, Packing, give, take};
use super::master::Pattern;
use crate::cluster::Amount;

/// Patterns that are listed at most, and the steps of their search.
const PATTERNS: usize = 50_000;
const ITEMS: usize = 2_000;
/// Steps after which the effort is told.
const OFTEN: u64 = 100_000;
const STEPS: u64 = 150_000_000;

/// Every set of items that a bin may hold in a packing into `bins` bins. `None`: too many.
pub(crate) fn patterns(items: &Items, bins: usize, effort: &mut Effort) -> Option<Vec<Pattern>> {
    if items.len() > ITEMS {
        return None;
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    let size = |item: &usize| items.size(*item).iter().sum::<Amount>();
    // What makes room for others comes first.
    let makes_room = |item: &usize| items.size(*item).iter().any(|size| *size < 0);
    order.sort_by_key(|item| (!makes_room(item), std::cmp::Reverse(size(item)), *item));
    // The least size from each position on, by dimension.
    let mut least = vec![Amount::MAX; (items.len() + 1) * items.dims()];
    for at in (0..items.len()).rev() {
        for (dim, size) in items.size(order[at]).iter().enumerate() {
            least[at * items.dims() + dim] = least[(at + 1) * items.dims() + dim].min(*size);
        }
    }
    let mut search = List {
        items,
        least,
        slack: slack(items, bins),
        order,
        free: items.capacity.clone(),
        chosen: Vec::new(),
        found: Vec::new(),
        steps: STEPS,
        unspent: 0,
    };
    let is_complete = search.extend(0, effort);
    is_complete.then_some(search.found)
}

/// What the bins may leave empty in all, by dimension.
fn slack(items: &Items, bins: usize) -> Vec<Amount> {
    let bins = Amount::try_from(bins).unwrap_or(Amount::MAX);
    let of = |dim: usize| items.capacity[dim].saturating_mul(bins) - items.total(dim);
    (0..items.dims()).map(of).collect()
}

struct List<'i> {
    items: &'i Items,
    slack: Vec<Amount>,
    order: Vec<usize>,
    least: Vec<Amount>,
    free: Vec<Amount>,
    chosen: Vec<usize>,
    found: Vec<Pattern>,
    steps: u64,
    /// Steps that `Effort` does not know of.
    unspent: u64,
}

impl List<'_> {
    fn extend(&mut self, from: usize, effort: &mut Effort) -> bool {
        if !self.chosen.is_empty()
            && self.free.iter().zip(&self.slack).all(|(free, slack)| free <= slack)
        {
            if self.found.len() == PATTERNS {
                return false;
            }
            let mut pattern: Pattern =
                self.chosen.iter().map(|item| u16::try_from(*item).expect("few items")).collect();
            pattern.sort_unstable();
            self.found.push(pattern);
        }
        let least = &self.least[from * self.items.dims()..];
        if self.free.iter().zip(least).any(|(free, least)| free < least) {
            return true;
        }
        let left = self.order.len().saturating_sub(from) as u64;
        if self.steps < left {
            return false;
        }
        self.steps -= left;
        self.unspent += left;
        if self.unspent > OFTEN {
            // A step is a comparison.
            effort.spend(std::mem::take(&mut self.unspent) / 8);
            if effort.is_over() {
                return false;
            }
        }
        for at in from..self.order.len() {
            let item = self.order[at];
            if self.items.fits(item, &self.free) {
                take(&mut self.free, self.items.size(item));
                self.chosen.push(item);
                let goes_on = self.extend(at + 1, effort);
                self.chosen.pop();
                give(&mut self.free, self.items.size(item));
                if !goes_on {
                    return false;
                }
            }
        }
        true
    }
}

/// A partition of the items into `bins` of the patterns that `patterns` lists.
pub(crate) enum Partition {
    Found(Packing),
    /// No partition exists.
    None,
    /// The steps did not suffice.
    Unknown,
}

/// Looks for a partition: the item with the fewest patterns left first.
pub(crate) fn partition(
    items: &Items,
    bins: usize,
    patterns: &[Pattern],
    steps: u64,
    effort: &mut Effort,
) -> Partition {
    let mut with = vec![Vec::new(); items.len()];
    for (at, pattern) in patterns.iter().enumerate() {
        pattern.iter().for_each(|item| with[*item as usize].push(at));
    }
    let mut cover = Cover {
        items,
        patterns,
        count: with.iter().map(Vec::len).collect(),
        with,
        blocked: vec![0; patterns.len()],
        covered: vec![false; items.len()],
        slack: slack(items, bins),
        chosen: Vec::new(),
        steps,
    };
    let found = cover.extend(effort);
    let chosen = cover.chosen.iter().map(|at| &patterns[*at]);
    match found {
        Some(true) => Partition::Found(
            chosen.map(|of| of.iter().map(|item| usize::from(*item)).collect()).collect(),
        ),
        Some(false) => Partition::None,
        None => Partition::Unknown,
    }
}

struct Cover<'i> {
    items: &'i Items,
    patterns: &'i [Pattern],
    /// Patterns with each item, and how many of them are not blocked.
    with: Vec<Vec<usize>>,
    count: Vec<usize>,
    /// Covered items of each pattern.
    blocked: Vec<u32>,
    covered: Vec<bool>,
    slack: Vec<Amount>,
    chosen: Vec<usize>,
    steps: u64,
}

impl Cover<'_> {
    /// Whether the rest can be covered; `None` if the steps do not suffice.
    fn extend(&mut self, effort: &mut Effort) -> Option<bool> {
        let open = (0..self.covered.len()).filter(|item| !self.covered[*item]);
        let Some(item) = open.min_by_key(|item| self.count[*item]) else { return Some(true) };
        for at in 0..self.with[item].len() {
            let pattern = self.with[item][at];
            if self.blocked[pattern] > 0 {
                continue;
            }
            let of = self.patterns[pattern].iter().map(|item| self.with[usize::from(*item)].len());
            let steps = (self.covered.len() + of.sum::<usize>()) as u64;
            self.steps = self.steps.checked_sub(steps).filter(|_| !effort.is_over())?;
            effort.spend(steps / 2);
            if self.choose(pattern) {
                match self.extend(effort) {
                    Some(false) => {}
                    found => return found,
                }
            }
            self.undo(pattern);
        }
        Some(false)
    }

    /// Whether what the bin leaves empty is within the slack that remains.
    fn choose(&mut self, pattern: usize) -> bool {
        self.chosen.push(pattern);
        take(&mut self.slack, &self.items.capacity);
        for item in &self.patterns[pattern] {
            let item = usize::from(*item);
            give(&mut self.slack, self.items.size(item));
            self.covered[item] = true;
            for other in &self.with[item] {
                if self.blocked[*other] == 0 {
                    self.patterns[*other]
                        .iter()
                        .for_each(|item| self.count[usize::from(*item)] -= 1);
                }
                self.blocked[*other] += 1;
            }
        }
        self.slack.iter().all(|slack| *slack >= 0)
    }

    fn undo(&mut self, pattern: usize) {
        self.chosen.pop();
        give(&mut self.slack, &self.items.capacity);
        for item in &self.patterns[pattern] {
            let item = usize::from(*item);
            take(&mut self.slack, self.items.size(item));
            self.covered[item] = false;
            for other in &self.with[item] {
                self.blocked[*other] -= 1;
                if self.blocked[*other] == 0 {
                    self.patterns[*other]
                        .iter()
                        .for_each(|item| self.count[usize::from(*item)] += 1);
                }
            }
        }
    }
}

//! The pattern worth most: a knapsack of several dimensions, by depth-first search.

use super::effort::Effort;
use super::items::{Items, take};
use super::master::Pattern;

/// Steps after which the effort is told.
const OFTEN: u64 = 4_096;

/// Items with a price, the best ones for their size first.
pub(crate) struct Pricing<'i> {
    items: &'i Items,
    /// Items by worth for size, with price and size; the size is a mean over the dimensions, weighted.
    order: Vec<(usize, f64, f64)>,
    free: Vec<i64>,
    chosen: Vec<usize>,
    best: f64,
    pub(crate) found: Vec<Pattern>,
    /// Steps that are left.
    steps: u64,
}

impl<'i> Pricing<'i> {
    /// Weights of the dimensions, which sum up to one, are changed so that the bound is less.
    pub(crate) fn new(items: &'i Items, price: &[f64], weight: &mut Vec<f64>) -> Pricing<'i> {
        let shares = items.shares();
        let mut pricing = Pricing {
            items,
            order: Vec::new(),
            free: items.capacity.clone(),
            chosen: Vec::new(),
            best: 0.0,
            found: Vec::new(),
            steps: 0,
        };
        pricing.sort(price, &shares, weight);
        let mut least = (pricing.most(0, 1.0), weight.clone());
        for step in [2.0, 1.0, 0.5, 0.25, 0.1] {
            let mut used = vec![0.0; weight.len()];
            let mut room = 1.0_f64;
            for (item, _, size) in &pricing.order {
                let count = f64::from(items.count[*item]).min(room / size);
                let of = &shares[item * weight.len()..];
                used.iter_mut().zip(of).for_each(|(used, share)| *used += count * share);
                room -= count * size;
                if room <= 0.0 {
                    break;
                }
            }
            // What the relaxation uses too much of weighs more.
            weight.iter_mut().zip(&used).for_each(|(weight, used)| {
                *weight = (*weight * (step * (used - 1.0)).clamp(-2.0, 2.0).exp()).max(1e-4);
            });
            let sum: f64 = weight.iter().sum();
            weight.iter_mut().for_each(|weight| *weight /= sum);
            pricing.sort(price, &shares, weight);
            let most = pricing.most(0, 1.0);
            if most < least.0 {
                least = (most, weight.clone());
            }
        }
        weight.clone_from(&least.1);
        pricing.sort(price, &shares, weight);
        pricing
    }

    fn sort(&mut self, price: &[f64], shares: &[f64], weight: &[f64]) {
        let size = |item: usize| -> f64 {
            let sizes = shares[item * weight.len()..].iter().zip(weight);
            sizes.map(|(size, weight)| size * weight).sum::<f64>().max(1e-12)
        };
        let items = (0..self.items.len()).filter(|item| price[*item] > 1e-12);
        self.order = items.map(|item| (item, price[item], size(item))).collect();
        self.order.sort_by(|one, other| {
            (other.1 / other.2).total_cmp(&(one.1 / one.2)).then(one.0.cmp(&other.0))
        });
    }

    /// Looks for patterns worth more than `above`, each worth more than the one before; those with `first`, if there
    /// is one. Returns the most that a pattern is worth, at least `above`, if that is certain.
    pub(crate) fn search(
        &mut self,
        first: Option<usize>,
        above: f64,
        steps: u64,
        effort: &mut Effort,
    ) -> Option<f64> {
        (self.best, self.steps) = (above, steps);
        self.free.clone_from(&self.items.capacity);
        self.chosen.clear();
        // A little more than a bin, because sizes are rounded.
        let (mut room, mut worth) = (1.0 + 1e-9, 0.0);
        if let Some(at) = first {
            let (item, price, size) = self.order[at];
            take(&mut self.free, self.items.size(item));
            self.chosen.push(item);
            (room, worth) = (room - size, price);
        }
        let used = u32::from(first == Some(0));
        self.extend(0, used, room, worth, first, effort);
        effort.spend((steps - self.steps) % OFTEN * 2);
        (self.steps > 0).then_some(self.best)
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// `used`: how many of the item at `from` are in the pattern.
    fn extend(
        &mut self,
        from: usize,
        used: u32,
        room: f64,
        worth: f64,
        first: Option<usize>,
        effort: &mut Effort,
    ) {
        if worth > self.best + 1e-9 {
            self.best = worth;
            let index = |item: &usize| u16::try_from(*item).expect("few items");
            let mut pattern: Pattern = self.chosen.iter().map(index).collect();
            pattern.sort_unstable();
            self.found.push(pattern);
        }
        for at in from..self.order.len() {
            if self.steps == 0 || worth + self.most(at, room) <= self.best + 1e-9 {
                return;
            }
            self.steps -= 1;
            if self.steps.is_multiple_of(OFTEN) {
                effort.spend(2 * OFTEN);
                if effort.is_over() {
                    self.steps = 0;
                }
            }
            let (item, price, size) = self.order[at];
            let used = if at == from { used } else { u32::from(first == Some(at)) };
            if used < self.items.count[item] && self.items.fits(item, &self.free) {
                take(&mut self.free, self.items.size(item));
                self.chosen.push(item);
                self.extend(at, used + 1, room - size, worth + price, first, effort);
                self.chosen.pop();
                super::items::give(&mut self.free, self.items.size(item));
            }
        }
    }

    /// What the items from a position on are worth at most in the room that is left: the last one in part.
    fn most(&self, from: usize, room: f64) -> f64 {
        let (mut room, mut worth) = (room.max(0.0), 0.0);
        for (item, price, size) in &self.order[from..] {
            let all = size * f64::from(self.items.count[*item]);
            if all >= room {
                return worth + price * room / size;
            }
            room -= all;
            worth += price * f64::from(self.items.count[*item]);
        }
        worth
    }
}

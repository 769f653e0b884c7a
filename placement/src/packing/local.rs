//! A packing into fewer bins, by local search over packings that overflow: moves and exchanges of single items, with a
//! short memory, and weights of the dimensions that adapt.

use super::effort::Effort;
use super::items::{Items, Packing};
use crate::cluster::Amount;
use crate::random::Random;

/// Steps without a better overflow after which weights adapt.
const STAGNANT: u64 = 2_000;

struct Local<'i> {
    items: &'i Items,
    /// Cost of a unit too much, by dimension.
    unit: Vec<f64>,
    bin_of: Vec<usize>,
    bins: Packing,
    load: Vec<Amount>,
    over: Vec<f64>,
    /// The bin that each item left last, and the step until which it stays away from it.
    away: Vec<(usize, u64)>,
}

/// One bin less than the packing, or `None` if the steps do not suffice.
pub(crate) fn shrink(
    items: &Items,
    packing: &Packing,
    random: &mut Random,
    steps: u64,
    effort: &mut Effort,
) -> Option<Packing> {
    let mut local = Local::new(items, packing, random)?;
    let (mut least, mut since) = (f64::INFINITY, 0);
    for step in 1..=steps {
        let over: Vec<usize> = (0..local.bins.len()).filter(|bin| local.over[*bin] > 0.0).collect();
        if over.is_empty() {
            local.bins.retain(|bin| !bin.is_empty());
            return Some(local.bins);
        }
        let total: f64 = over.iter().map(|bin| local.over[*bin]).sum();
        if total < least - 1e-12 {
            (least, since) = (total, step);
        }
        if step - since > STAGNANT {
            local.adapt();
            (least, since) = (f64::INFINITY, step);
        }
        effort.spend(items.len() as u64 / 8 + 1);
        if effort.is_over() {
            return None;
        }
        local.step(over[random.below(over.len())], step, least - total, random);
    }
    None
}

impl<'i> Local<'i> {
    fn new(items: &'i Items, packing: &Packing, random: &mut Random) -> Option<Local<'i>> {
        let dims = items.dims();
        let bins = packing.len().checked_sub(1).filter(|bins| *bins > 0)?;
        let mut local = Local {
            items,
            unit: items.capacity.iter().map(|limit| 1.0 / *limit as f64).collect(),
            bin_of: vec![0; items.len()],
            bins: vec![Vec::new(); bins],
            load: vec![0; bins * dims],
            over: vec![0.0; bins],
            away: vec![(0, 0); items.len()],
        };
        // The bin with the least in it, or a random one, is dissolved.
        let fill = |bin: &Vec<usize>| -> f64 {
            let of = |item: &usize| {
                items.size(*item).iter().zip(&local.unit).map(|(size, unit)| *size as f64 * unit)
            };
            bin.iter().flat_map(of).sum()
        };
        let least = (0..packing.len())
            .min_by(|one, other| fill(&packing[*one]).total_cmp(&fill(&packing[*other])))?;
        let dissolved = if random.below(3) == 0 { random.below(packing.len()) } else { least };
        let stay = (0..packing.len()).filter(|bin| *bin != dissolved);
        for (bin, from) in stay.enumerate() {
            packing[from].iter().for_each(|item| local.put(*item, bin));
        }
        for item in &packing[dissolved] {
            let best = (0..bins).min_by(|one, other| {
                local.with(*item, *one).total_cmp(&local.with(*item, *other))
            })?;
            local.put(*item, best);
        }
        Some(local)
    }

    fn load(&self, bin: usize) -> &[Amount] {
        &self.load[bin * self.items.dims()..(bin + 1) * self.items.dims()]
    }

    /// What a bin has too much, after an item has come and another one has left.
    fn changed(&self, bin: usize, comes: Option<usize>, leaves: Option<usize>) -> f64 {
        let mut over = 0.0;
        for dim in 0..self.items.dims() {
            let size = |item: Option<usize>| item.map_or(0, |item| self.items.size(item)[dim]);
            let load = self.load[bin * self.items.dims() + dim] + size(comes) - size(leaves);
            over += (load - self.items.capacity[dim]).max(0) as f64 * self.unit[dim];
        }
        over
    }

    fn with(&self, item: usize, bin: usize) -> f64 {
        self.changed(bin, Some(item), None) - self.over[bin]
    }

    fn put(&mut self, item: usize, bin: usize) {
        self.bin_of[item] = bin;
        self.bins[bin].push(item);
        let dims = self.items.dims();
        super::items::give(&mut self.load[bin * dims..(bin + 1) * dims], self.items.size(item));
        self.over[bin] = self.changed(bin, None, None);
    }

    fn take(&mut self, item: usize) {
        let bin = self.bin_of[item];
        self.bins[bin].retain(|other| *other != item);
        let dims = self.items.dims();
        super::items::take(&mut self.load[bin * dims..(bin + 1) * dims], self.items.size(item));
        self.over[bin] = self.changed(bin, None, None);
    }

    /// Dimensions that overflow weigh more from now on.
    fn adapt(&mut self) {
        let mut too_much = vec![0.0; self.unit.len()];
        for bin in 0..self.bins.len() {
            for (dim, load) in self.load(bin).iter().enumerate() {
                let limit = self.items.capacity[dim];
                too_much[dim] += (load - limit).max(0) as f64 / limit as f64;
            }
        }
        let most = too_much.iter().copied().fold(1e-12, f64::max);
        for (dim, too_much) in too_much.iter().enumerate() {
            let limit = self.items.capacity[dim] as f64;
            self.unit[dim] = 0.7 * self.unit[dim] + 0.3 * (0.3 + too_much / most) / limit;
        }
        for bin in 0..self.bins.len() {
            self.over[bin] = self.changed(bin, None, None);
        }
    }

    /// Moves a random item off a bin that overflows, or exchanges it: what overflows least then. Items stay away for
    /// a while from where they were, unless the overflow falls by more than `aspired`.
    fn step(&mut self, bin: usize, step: u64, aspired: f64, random: &mut Random) {
        let item = self.bins[bin][random.below(self.bins[bin].len())];
        let without = self.changed(bin, None, Some(item)) - self.over[bin];
        let mut best: Option<(f64, usize, Option<usize>)> = None;
        let mut ties = 0;
        for other in 0..self.bins.len() {
            if other == bin {
                continue;
            }
            let stays_away =
                |item: usize, bin: usize| self.away[item].0 == bin && self.away[item].1 > step;
            let item_away = stays_away(item, other);
            let mut consider = |change: f64, leaves: Option<usize>, is_away: bool| {
                if is_away && change >= aspired - 1e-12 {
                    return;
                }
                let least = best.map_or(f64::INFINITY, |(least, ..)| least);
                if change < least - 1e-12 {
                    ties = 1;
                    best = Some((change, other, leaves));
                } else if change <= least + 1e-12 {
                    ties += 1;
                    if random.below(ties) == 0 {
                        best = Some((change, other, leaves));
                    }
                }
            };
            consider(without + self.with(item, other), None, item_away);
            for leaves in &self.bins[other] {
                let there = self.changed(other, Some(item), Some(*leaves)) - self.over[other];
                let here = self.changed(bin, Some(*leaves), Some(item)) - self.over[bin];
                let is_away = item_away || stays_away(*leaves, bin);
                consider(there + here, Some(*leaves), is_away);
            }
        }
        let Some((_, to, leaves)) = best else { return };
        self.take(item);
        let until = |random: &mut Random| step + 5 + random.below(10) as u64;
        if let Some(leaves) = leaves {
            self.take(leaves);
            self.put(leaves, bin);
            self.away[leaves] = (to, until(random));
        }
        self.put(item, to);
        self.away[item] = (bin, until(random));
    }
}

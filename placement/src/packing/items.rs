//! Items and equal bins.

use crate::cluster::Amount;
use std::collections::BTreeMap;

/// Items that go into equal bins: vector bin packing.
#[derive(Clone, Debug)]
pub(crate) struct Items {
    /// Capacity of a bin by dimension; all are positive.
    pub(crate) capacity: Vec<Amount>,
    /// Size by dimension, of all items one after the other.
    sizes: Vec<Amount>,
    /// How many items there are of each. Bounds and linear programs know more than one.
    pub(crate) count: Vec<u32>,
}

/// Items by bin, by position; no bin is empty.
pub(crate) type Packing = Vec<Vec<usize>>;

impl Items {
    pub(crate) fn new(capacity: Vec<Amount>, sizes: Vec<Amount>) -> Items {
        let count = sizes.len().checked_div(capacity.len()).unwrap_or(0);
        Items { capacity, sizes, count: vec![1; count] }
    }

    /// Items with their numbers.
    pub(crate) fn counted(
        capacity: Vec<Amount>,
        items: impl IntoIterator<Item = (Vec<Amount>, u32)>,
    ) -> Items {
        let (sizes, count): (Vec<Vec<Amount>>, Vec<u32>) = items.into_iter().unzip();
        Items { capacity, sizes: sizes.concat(), count }
    }

    /// Equal items as one, and the kind of each item.
    pub(crate) fn kinds(&self) -> (Items, Vec<usize>) {
        let mut known: BTreeMap<&[Amount], usize> = BTreeMap::new();
        let (mut kinds, mut kind_of) = (Vec::new(), Vec::new());
        for item in 0..self.len() {
            let kind = *known.entry(self.size(item)).or_insert(kinds.len());
            if kind == kinds.len() {
                kinds.push((self.size(item).to_vec(), 0));
            }
            kinds[kind].1 += 1;
            kind_of.push(kind);
        }
        (Items::counted(self.capacity.clone(), kinds), kind_of)
    }

    pub(crate) fn len(&self) -> usize {
        self.count.len()
    }

    pub(crate) fn dims(&self) -> usize {
        self.capacity.len()
    }

    pub(crate) fn size(&self, item: usize) -> &[Amount] {
        &self.sizes[item * self.dims()..(item + 1) * self.dims()]
    }

    /// Some of the items, in this order, with how many there are of each.
    pub(crate) fn some(&self, of: &[usize], count: &[u32]) -> Items {
        let sizes = of.iter().flat_map(|item| self.size(*item).iter().copied());
        let count = of.iter().map(|item| count[*item]).collect();
        Items { capacity: self.capacity.clone(), sizes: sizes.collect(), count }
    }

    pub(crate) fn total(&self, dim: usize) -> Amount {
        (0..self.len()).map(|item| self.size(item)[dim] * Amount::from(self.count[item])).sum()
    }

    pub(crate) fn fits(&self, item: usize, free: &[Amount]) -> bool {
        self.size(item).iter().zip(free).all(|(size, free)| size <= free)
    }

    /// Whether some items fit into a bin together.
    pub(crate) fn share_a_bin(&self, items: &[usize]) -> bool {
        let mut free = self.capacity.clone();
        items.iter().for_each(|item| take(&mut free, self.size(*item)));
        free.iter().all(|free| *free >= 0)
    }

    /// Dimensions in which an item is less than nothing: two that fit with a third one may not fit alone.
    pub(crate) fn has_negative(&self, dim: usize) -> bool {
        (0..self.len()).any(|item| self.size(item)[dim] < 0)
    }

    /// Sizes as shares of a bin.
    pub(crate) fn shares(&self) -> Vec<f64> {
        let capacity = self.capacity.iter().cycle();
        self.sizes.iter().zip(capacity).map(|(size, limit)| *size as f64 / *limit as f64).collect()
    }
}

pub(crate) fn take(free: &mut [Amount], size: &[Amount]) {
    free.iter_mut().zip(size).for_each(|(free, size)| *free -= size);
}

pub(crate) fn give(free: &mut [Amount], size: &[Amount]) {
    free.iter_mut().zip(size).for_each(|(free, size)| *free += size);
}

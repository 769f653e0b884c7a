//! What servers of each item show of a reservation: RRU by MSB, datacenter and domain, and what is missing.

use crate::model::{AffinityRange, MsbSlice, Term};

impl Term {
    /// RRU of the largest MSB share where it is an embedded buffer; zero elsewhere.
    pub fn buffer(&self, counts: &[u32]) -> i64 {
        let amounts = self.slices.iter().map(|slice| self.slice_value(slice, counts));
        if self.buffered { amounts.max().unwrap_or(0) } else { 0 }
    }

    /// RRU below and above the range of each datacenter of [`Term::affinity`].
    pub fn outside(&self, counts: &[u32]) -> Vec<(i64, i64)> {
        if self.affinity.is_empty() {
            return Vec::new();
        }
        let buffer = self.buffer(counts);
        let outside = |(range, z): (&AffinityRange, i64)| {
            let high = range.high + if range.with_buffer { buffer } else { 0 };
            ((range.low - z).max(0), (z - high).max(0))
        };
        self.affinity.iter().zip(self.datacenter_values(counts)).map(outside).collect()
    }

    /// What the RRU of an MSB cost beyond the price of its servers by eq. 3: where each stretch of them
    /// ends, and its price per RRU, which rises. The last ends where no more may be.
    pub fn surcharges(&self, slice: &MsbSlice) -> Vec<(i64, f64)> {
        let spread = if self.beta > 0.0 { self.spread_limit } else { i64::MAX };
        let most = slice.hard_max();
        let mut all = vec![(spread.min(most), 0.0)];
        if spread < most {
            all.push((most, self.beta));
        }
        all.retain(|&(end, _)| end > 0);
        all
    }

    /// RRU in one MSB.
    pub fn slice_value(&self, slice: &MsbSlice, counts: &[u32]) -> i64 {
        slice.items.clone().map(|i| self.items[i].value * i64::from(counts[i])).sum()
    }

    /// RRU in each datacenter of [`Term::affinity`].
    pub fn datacenter_values(&self, counts: &[u32]) -> Vec<i64> {
        let mut values = vec![0; self.affinity.len()];
        if !values.is_empty() {
            for slice in &self.slices {
                values[slice.datacenter as usize] += self.slice_value(slice, counts);
            }
        }
        values
    }

    /// What eq. 6 is short of.
    pub fn shortfall(&self, counts: &[u32]) -> i64 {
        let mut held = MsbTotals::default();
        for slice in &self.slices {
            held.add(self.slice_value(slice, counts));
        }
        self.shortfall_of(held, counts)
    }

    /// What eq. 6 is short of with these RRU in its MSBs, which the counts show.
    pub fn shortfall_of(&self, held: MsbTotals, counts: &[u32]) -> i64 {
        let lost = if self.buffered { held.largest } else { 0 };
        (self.capacity - held.total + lost.max(self.lost_to_domains(counts))).max(0)
    }

    /// The most RRU that the loss of one domain takes, of the partitions that it survives besides MSBs.
    pub fn lost_to_domains(&self, counts: &[u32]) -> i64 {
        if self.crossing.is_empty() {
            return 0;
        }
        let items = self.items_rru(counts);
        self.crossing.iter().flat_map(|of| of.amounts(&items)).max().unwrap_or(0)
    }

    /// The domains of an item, by partition that it survives besides MSBs: servers of the same count alike.
    pub fn domains_of(&self, item: usize) -> Vec<Option<u32>> {
        self.crossing.iter().map(|of| of.domain[item]).collect()
    }

    /// RRU of each item.
    pub fn items_rru(&self, counts: &[u32]) -> Vec<i64> {
        self.items.iter().zip(counts).map(|(item, &n)| item.value * i64::from(n)).collect()
    }
}

/// RRU of a reservation over its MSBs.
#[derive(Clone, Copy, Debug, Default)]
pub struct MsbTotals {
    /// In all of them.
    pub total: i64,
    /// In the one with the most.
    pub largest: i64,
}

impl MsbTotals {
    /// Adds the RRU in one MSB.
    pub fn add(&mut self, rru: i64) {
        self.total += rru;
        self.largest = self.largest.max(rru);
    }
}

//! Whole servers of a reservation that survives the loss of domains which cross MSBs.

use super::Priced;
use crate::crossing::Crossing;
use crate::model::rru;
use crate::params::PARAMS;

impl Priced<'_> {
    /// Shares of a domain worth trying: the least with which the servers there are could do, or the largest MSB share if
    /// that is more, then larger ones.
    pub(super) fn domain_shares(&self, largest_msb: i64) -> impl Iterator<Item = i64> {
        let least = self.least_domain_share().max(largest_msb);
        let step = self.term.top_value();
        let growth = PARAMS.domains.share_growth;
        #[expect(clippy::cast_possible_truncation, reason = "a multiple of RRU; saturates")]
        let more = move |number: i32| (least as f64 * growth.powi(number)) as i64;
        (0..PARAMS.domains.share_tries)
            .map(move |number| more(number).saturating_add(i64::from(number) * step))
    }

    /// The least share of a domain with which the servers there are, if divisible, leave the capacity after its loss.
    fn least_domain_share(&self) -> i64 {
        let term = self.term;
        let mut items = vec![0; term.items.len()];
        for segment in &self.segments {
            let item = segment.item as usize;
            items[item] += i64::from(segment.count) * term.items[item].value;
        }
        let least = |of: &Crossing| {
            let mut amounts = of.amounts(&items);
            let within: i64 = amounts.iter().sum();
            let outside = items.iter().sum::<i64>() - within;
            amounts.sort_unstable();
            least_share(&amounts, term.capacity - outside)
        };
        term.crossing.iter().map(least).max().unwrap_or(0)
    }

    /// Moves servers out of domains whose loss would take too much, or adds servers elsewhere, the cheapest way first;
    /// gives the counts that are reached. Rows of limits with room are lifted no further than that.
    pub(super) fn mended(&self, mut counts: Vec<u32>) -> Vec<u32> {
        let (model, term) = (self.model, self.term);
        let mut left = self.room.as_ref().map_or(Vec::new(), |room| room.most.clone());
        let take = |left: &mut [i64], item: usize, count: i64| {
            if !left.is_empty() {
                model.take_from_limits(&term.items[item], left, count);
            }
        };
        for (item, &count) in counts.iter().enumerate() {
            take(&mut left, item, i64::from(count));
        }
        for _ in 0..PARAMS.domains.mend_steps {
            if term.shortfall(&counts) == 0 {
                break;
            }
            let Some((from, to)) = self.mending_step(&counts, &left) else { break };
            if let Some(from) = from {
                counts[from] -= 1;
                take(&mut left, from, -1);
            }
            counts[to] += 1;
            take(&mut left, to, 1);
        }
        counts
    }

    /// A server to take, and one to put back for it where that is cheaper for what it mends. `left`: what rows of
    /// limits have left; empty without limits.
    fn mending_step(&self, counts: &[u32], left: &[i64]) -> Option<(Option<usize>, usize)> {
        let term = self.term;
        let items = term.items_rru(counts);
        let total: i64 = items.iter().sum();
        // More in a domain than may be lost.
        let excess: Vec<Vec<i64>> = (term.crossing.iter())
            .map(|of| of.amounts(&items).iter().map(|rru| rru - (total - term.capacity)).collect())
            .collect();
        let of_item = |item: usize| -> i64 {
            let of = term.crossing.iter().zip(&excess);
            of.filter_map(|(of, excess)| Some(excess[of.domain[item]? as usize])).max().unwrap_or(0)
        };
        let slices: Vec<i64> = term.slices.iter().map(|s| term.slice_value(s, counts)).collect();
        let top = if term.buffered { slices.iter().copied().max()? } else { i64::MAX };
        let marginals = self.marginals(counts);
        let spread = |slice: usize, more: i64| {
            let above = |z: i64| rru((z - term.spread_limit).max(0));
            term.beta * (above(slices[slice] + more) - above(slices[slice]))
        };
        let mut costliest: Option<(f64, usize)> = None;
        let of_slices = || {
            let slices = term.slices.iter().enumerate();
            slices.flat_map(|(slice, of)| of.items.clone().map(move |item| (slice, of.most, item)))
        };
        for (slice, _, item) in of_slices().filter(|of| of_item(of.2) > 0 && counts[of.2] > 0) {
            let value = term.items[item].value;
            let saved = (marginals[item].0 - spread(slice, -value)) / rru(value);
            if !term.items[item].pinned && costliest.is_none_or(|known| saved > known.0) {
                costliest = Some((saved, item));
            }
        }
        let mut exchanged = left.to_vec();
        if let (Some((_, from)), false) = (costliest, left.is_empty()) {
            self.model.take_from_limits(&term.items[from], &mut exchanged, -1);
        }
        let fits = |item: usize, left: &[i64]| {
            left.is_empty() || self.model.fitting(&term.items[item], left, 1) == 1
        };
        // A server more makes more of every other domain spare; one instead of another, of that one alone.
        let (mut best, mut best_step) = (f64::INFINITY, None);
        for (slice, most, item) in of_slices() {
            let value = term.items[item].value;
            let Some(price) = marginals[item].1 else { continue };
            if slices[slice] + value > top.min(most) {
                continue;
            }
            let cost = (price + spread(slice, value)) / rru(value);
            if of_item(item) <= 0 && cost < best && fits(item, left) {
                (best, best_step) = (cost, Some((None, item)));
            }
            if let Some((saved, from)) = costliest
                && term.items[from].value == value
                && of_item(item) + value <= 0
                && cost - saved < best
                && fits(item, &exchanged)
            {
                (best, best_step) = (cost - saved, Some((Some(from), item)));
            }
        }
        best_step
    }

    /// What the last server of each item costs, and the next one if there is one.
    fn marginals(&self, counts: &[u32]) -> Vec<(f64, Option<f64>)> {
        let mut left = counts.to_vec();
        let mut marginals = vec![(0.0, None); counts.len()];
        for segment in &self.segments {
            let item = segment.item as usize;
            let price = segment.slope * rru(self.term.items[item].value);
            if left[item] > 0 {
                marginals[item].0 = price;
            }
            let taken = left[item].min(segment.count);
            left[item] -= taken;
            if taken < segment.count && marginals[item].1.is_none() {
                marginals[item].1 = Some(price);
            }
        }
        marginals
    }
}

/// The least `w` with `sum of min(amount, w) - w >= needed`, or the largest amount where none will do. Amounts ascend.
fn least_share(amounts: &[i64], needed: i64) -> i64 {
    if needed <= 0 {
        return 0;
    }
    let mut used_up = 0;
    for (position, &full) in amounts.iter().enumerate() {
        let others = i64::try_from(amounts.len() - position).unwrap_or(i64::MAX) - 1;
        if others > 0 {
            let level = ((needed - used_up).max(0) + others - 1) / others;
            if level <= full {
                return level;
            }
        }
        used_up += full;
    }
    amounts.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::least_share;

    #[test]
    fn least_share_agrees_with_trial() {
        let worlds: [&[i64]; 5] = [&[], &[4], &[3, 9, 9], &[1, 2, 3, 4, 50], &[7, 7, 7, 7]];
        for amounts in worlds {
            let top = amounts.last().copied().unwrap_or(0);
            for needed in -3..=30 {
                let left = |w: i64| amounts.iter().map(|amount| amount.min(&w)).sum::<i64>() - w;
                let expected = (0..=top).find(|&w| left(w) >= needed).unwrap_or(top);
                assert_eq!(least_share(amounts, needed), expected, "{amounts:?} {needed}");
            }
        }
    }
}

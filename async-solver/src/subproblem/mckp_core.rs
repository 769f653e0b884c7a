//! One sum per MSB, so that together they meet the demand: exact for a largest MSB share.
//!
//! At a price of the demand every MSB has a least sum, and other sums cost something above it. A
//! solution that is better than the bound by less than `slack` takes none that cost more, which
//! leaves each MSB a few, and one pass over the MSBs finds the cheapest combination of them by
//! its total (Pisinger's core of the multiple-choice knapsack). What the pass does not look at is
//! at least as expensive as it says, so the result is a bound in any case.

use super::group_relaxation::lower;
use super::lines::Purpose;
use super::share_window::ShareWindow;
use super::sum_costs::SumCosts;
use crate::params::PARAMS;

/// The sums of an MSB worth looking at.
struct Choices {
    slice: usize,
    /// Units more than the least sum, and the price above it; falling.
    more: Vec<(i64, f64)>,
}

/// The cheapest combination of sums.
pub(super) struct Combination {
    /// No whole-server assignment with this largest share costs less.
    pub bound: f64,
    /// The units of each slice there; none if the bound is that of what was not looked at.
    pub sums: Option<Vec<i64>>,
}

impl ShareWindow<'_> {
    /// The cheapest combination of sums under a largest share, if its cost is less than `slack`
    /// above the bound at the price `mu` of the demand.
    pub fn combine(&self, mu: f64, share: i64, slack: f64) -> Combination {
        let mut slack = slack;
        let mut base = self.tau * share as f64;
        let mut missing = self.demand + share;
        let mut least = Vec::with_capacity(self.sum_costs.lines.len());
        let mut choices = Vec::new();
        for slice in 0..self.sum_costs.lines.len() {
            let (value, z) = self.least(slice, mu, share);
            base += value;
            missing -= z;
            least.push(z);
            let cap = if self.shares.is_some() { share } else { i64::MAX };
            let (low, high) = self.sum_costs.near(slice, mu, value + slack, z, cap);
            if high - low > PARAMS.whole_servers.max_sums {
                slack = 0.0;
            }
            if slack <= 0.0 || low == high {
                continue;
            }
            let mut row = vec![0.0; usize::try_from(high - low + 1).expect("ordered")];
            self.sum_costs.row(slice, low, &mut row);
            let mut cheapest = f64::INFINITY;
            let mut more = Vec::new();
            // A sum that costs no less than a larger one is of no use.
            let mut sum = high + 1;
            for &price in row.iter().rev() {
                sum -= 1;
                if price < cheapest {
                    cheapest = price;
                    let above = (price - mu * sum as f64 - value).max(0.0);
                    if above <= slack {
                        more.push((sum - z, above));
                    }
                }
            }
            if more.len() > 1 || more.first().is_some_and(|more| more.0 != 0) {
                choices.push(Choices { slice, more });
            }
        }
        let floor = base + self.demand_cost(mu, share).0;
        let whole = base + mu * (self.demand + share) as f64;
        // Far-reaching ones last: totals stay near for longer.
        choices.sort_by_key(|choices| choices.reach().1 - choices.reach().0);
        for choices in choices.iter_mut().rev() {
            // Among sums that cost the same, those that meet the demand are the better start.
            let same =
                choices.more.iter().filter(|more| more.1 <= PARAMS.whole_servers.same_cost * slack);
            let start = same.map(|more| more.0).min_by_key(|more| (missing - more).abs());
            let start = start.unwrap_or(0);
            choices.more.iter_mut().for_each(|more| more.0 -= start);
            least[choices.slice] += start;
            missing -= start;
        }
        // Nothing is missing and nothing too much: no combination is better.
        let at_once = whole + mu * -missing as f64 + self.shortfall(missing);
        if at_once <= floor + PARAMS.whole_servers.same_cost * slack {
            return Combination { bound: floor.min(at_once), sums: Some(least) };
        }
        let stages = self.stages(&choices, mu, missing, slack);
        let totals = stages.layers.last().expect("one at least");
        let unknown = match self.sum_costs.purpose {
            Purpose::Bound => floor + stages.dropped,
            Purpose::Fill => f64::INFINITY,
        };
        let mut best = (unknown, None);
        for (total, &cost) in (totals.from..).zip(&totals.costs) {
            let over = total - missing;
            let cost = whole + cost + mu * over as f64 + self.shortfall(-over);
            if cost < best.0 {
                best = (cost, Some(total));
            }
        }
        let sums = best.1.map(|total| {
            stages.backtrack(&choices, total, &mut least);
            least
        });
        Combination { bound: if sums.is_some() { best.0 } else { floor + stages.dropped }, sums }
    }

    /// Adds up the choices of all slices. Totals that cannot become what is missing, or must exceed
    /// it by more than `slack` is worth, are left out.
    fn stages(&self, choices: &[Choices], mu: f64, missing: i64, slack: f64) -> Stages {
        #[expect(clippy::cast_possible_truncation, reason = "a small number or clipped")]
        let spare = (slack / mu.max(1e-12)).min(1e9) as i64 + 1;
        let (mut low, mut high) = (missing - self.short_units(), missing + spare);
        for choices in choices {
            let (down, up) = choices.reach();
            (low, high) = (low - up, high - down);
        }
        let mut layers = vec![Totals { from: 0, costs: vec![0.0] }];
        let mut dropped = slack;
        for choices in choices {
            let old = layers.last().expect("one at least");
            let (down, up) = choices.reach();
            (low, high) = (low + up, high + down);
            let from = (old.from + down).max(low);
            let to = (old.to() + up).min(high).max(from);
            let near = (
                missing.min(0) - PARAMS.whole_servers.max_totals,
                missing.max(0) + PARAMS.whole_servers.max_totals,
            );
            let clipped = (from.max(near.0), to.min(near.1).max(from.max(near.0)));
            let length = usize::try_from(clipped.1 - clipped.0 + 1).expect("ordered");
            let mut new = Totals { from: clipped.0, costs: vec![f64::INFINITY; length] };
            for &(more, cost) in &choices.more {
                new.lower(old, more, cost);
            }
            for (is_first, cut) in [(true, clipped.0 - from), (false, to - clipped.1)] {
                if cut <= 0 {
                    continue;
                }
                let extremes = old.extremes(is_first);
                for &(more, cost) in &choices.more {
                    let lost = if is_first {
                        clipped.0 - (old.from + more)
                    } else {
                        old.to() + more - clipped.1
                    };
                    let lost = usize::try_from(lost).unwrap_or(0).min(extremes.len() - 1);
                    dropped = dropped.min(extremes[lost] + cost);
                }
            }
            layers.push(new);
        }
        Stages { layers, dropped }
    }
}

/// Least costs of totals, units more than those of the start.
struct Totals {
    from: i64,
    costs: Vec<f64>,
}

impl Totals {
    fn to(&self) -> i64 {
        self.from + i64::try_from(self.costs.len()).expect("short") - 1
    }

    /// Lowers the costs to those of `old` with `more` units for `cost` each.
    fn lower(&mut self, old: &Totals, more: i64, cost: f64) {
        let (from, to) = (self.from.max(old.from + more), self.to().min(old.to() + more));
        if from > to {
            return;
        }
        let at = |total: i64, first: i64| usize::try_from(total - first).expect("in the row");
        lower(
            &mut self.costs[at(from, self.from)..=at(to, self.from)],
            &old.costs[at(from, old.from + more)..=at(to, old.from + more)],
            cost,
        );
    }

    /// Least costs of the first 0, 1, ... totals, or of the last ones.
    fn extremes(&self, first: bool) -> Vec<f64> {
        let mut least = f64::INFINITY;
        let next = |&cost: &f64| {
            least = least.min(cost);
            least
        };
        let costs = self.costs.iter();
        let rest: Vec<f64> =
            if first { costs.map(next).collect() } else { costs.rev().map(next).collect() };
        std::iter::once(f64::INFINITY).chain(rest).collect()
    }
}

/// The totals after each slice.
struct Stages {
    layers: Vec<Totals>,
    /// What was not looked at costs at least so much.
    dropped: f64,
}

impl Stages {
    /// Notes the sum each slice has on the way to a total.
    fn backtrack(&self, choices: &[Choices], total: i64, sums: &mut [i64]) {
        let mut total = total;
        for (choices, pair) in choices.iter().zip(self.layers.windows(2)).rev() {
            let cost = |totals: &Totals, total: i64| {
                let at = usize::try_from(total - totals.from).ok();
                at.and_then(|at| totals.costs.get(at)).copied().unwrap_or(f64::INFINITY)
            };
            let reached = cost(&pair[1], total);
            let found = choices
                .more
                .iter()
                .find(|&&(more, extra)| cost(&pair[0], total - more) + extra <= reached);
            let &(more, _) = found.expect("some choice led there");
            sums[choices.slice] += more;
            total -= more;
        }
    }
}

impl Choices {
    /// The smallest and the largest.
    fn reach(&self) -> (i64, i64) {
        let (first, last) = (self.more.first(), self.more.last());
        (last.map_or(0, |more| more.0), first.map_or(0, |more| more.0))
    }
}

impl SumCosts {
    /// The sums around `z` up to `share` whose line, less `mu` per unit, is at most `limit`: others
    /// cost more.
    fn near(&self, slice: usize, mu: f64, limit: f64, z: i64, share: i64) -> (i64, i64) {
        let line = &self.lines[slice];
        let top = share.min(line.end);
        let is_near = |z: i64| self.at(slice, z) - mu * z as f64 <= limit;
        // The line is convex and lowest near `z`, so both ends are found by halving.
        let (mut low, mut high) = (z.min(top), z.min(top));
        let (mut far, mut beyond) = (-1, top + 1);
        while low - far > 1 {
            let middle = i64::midpoint(low, far);
            if is_near(middle) { low = middle } else { far = middle }
        }
        while beyond - high > 1 {
            let middle = i64::midpoint(high, beyond);
            if is_near(middle) { high = middle } else { beyond = middle }
        }
        (low, high)
    }

    /// The line of a slice at a sum, surcharge included.
    fn at(&self, slice: usize, z: i64) -> f64 {
        let runs = &self.lines[slice].runs;
        match runs[..runs.partition_point(|run| run.start <= z)].last() {
            Some(run) => run.cost + run.slope * (z - run.start) as f64 + self.surcharge(z),
            None => 0.0,
        }
    }
}

//! What sums between whole servers of a run cost above the line of their MSB.
//!
//! Such a sum takes servers of other values, in exchange or on top. Least prices of that are found
//! in two ways, both never too high:
//!
//! - Modulo the value of the run, as if there were any number of its servers to add or to drop
//!   (Gomory's group relaxation): exact far from the ends of the run.
//! - As they are, but only for exchanges that move the sum by a few servers at any time; what goes
//!   farther is taken to be anywhere it may come back from.

use super::lines::{Line, Purpose, Run};
use crate::params::PARAMS;

/// Prices above the line of a run.
#[derive(Debug)]
pub(super) struct GroupRelaxation {
    /// Per residue, the run without ends; empty: not asked for.
    free: Vec<f64>,
    /// Of exchanges of other values.
    others: Others,
    /// No price is told above this.
    worth: f64,
    /// Of 0, 1, 2, ... servers of the same value before the run (dropped) and after it (added).
    before: Vec<f64>,
    after: Vec<f64>,
}

impl GroupRelaxation {
    /// Prices above the line of the sums from `first` above the start of the run on.
    pub fn gaps(&self, run: &Run, first: i64, gaps: &mut [f64]) {
        let length = i64::try_from(gaps.len()).expect("short");
        let last = first + length - 1;
        let value = run.value;
        gaps.fill(self.worth);
        // Lowers the sums from one on by the prices given.
        let mut lower_from = |from: i64, to: i64, price: f64| {
            let (from, to) = (from.max(first), to.min(last));
            if from <= to && price < self.worth {
                let at = |sum: i64| usize::try_from(sum - first).expect("in the row");
                for gap in &mut gaps[at(from)..=at(to)] {
                    *gap = if price < *gap { price } else { *gap };
                }
            }
        };
        let beyond = self.others.reach() + 1;
        if self.others.up.is_finite() {
            for fewer in (first - beyond).div_euclid(value)..=(last - beyond).div_euclid(value) {
                let price = self.others.up + self.outside(run, fewer.min(run.count));
                lower_from(fewer * value + beyond, (fewer + 1) * value + beyond - 1, price);
            }
        }
        if self.others.down.is_finite() {
            let least = -(-first - beyond).div_euclid(value);
            for more in least..=-(-last - beyond).div_euclid(value) {
                let price = self.others.down + self.outside(run, more.max(0));
                lower_from((more - 1) * value - beyond + 1, more * value - beyond, price);
            }
        }
        let reach = self.others.reach();
        let fewest = -(reach - first).div_euclid(value);
        for count in fewest..=(last + reach).div_euclid(value) {
            let price = self.outside(run, count);
            if price >= self.worth {
                continue;
            }
            let middle = count * value;
            let (from, to) = ((middle - reach).max(first), (middle + reach).min(last));
            if from > to {
                continue;
            }
            let into = usize::try_from(from - first).expect("in the row");
            let out = usize::try_from(from - middle + reach).expect("in the list");
            lower(
                &mut gaps[into..=usize::try_from(to - first).expect("in the row")],
                &self.others.costs[out..],
                price,
            );
        }
        if !self.free.is_empty() {
            let residue = usize::try_from(first.rem_euclid(value)).expect("not negative");
            for (gap, free) in gaps.iter_mut().zip(self.free.iter().cycle().skip(residue)) {
                *gap = if *free > *gap { *free } else { *gap };
            }
        }
    }

    /// Price of a number of servers of the run, fewer than none and more than all included.
    fn outside(&self, run: &Run, count: i64) -> f64 {
        let (list, beyond) = if count < 0 {
            (&self.before, -count)
        } else {
            (&self.after, (count - run.count).max(0))
        };
        let beyond = usize::try_from(beyond).expect("not negative");
        list.get(beyond).copied().unwrap_or(f64::INFINITY)
    }

    /// Numbers of servers of the run, fewer than none and more than all included, with which
    /// others reach a sum, and the prices above the line.
    pub fn bases(&self, run: &Run, above: i64) -> impl Iterator<Item = (i64, f64)> {
        let reach = self.others.reach();
        let most = (above + reach).div_euclid(run.value);
        let least = -(reach - above).div_euclid(run.value);
        (least..=most).map(move |count| {
            let others = self.others.of(above - count * run.value);
            (count, others + self.outside(run, count))
        })
    }
}

impl GroupRelaxation {
    /// Costs above the line of a run. `worth`: higher costs are never paid; `reach`: how far exchanges
    /// move a sum at most. `None` where the run's value has too many residues.
    pub fn new(
        line: &Line,
        position: usize,
        worth: f64,
        reach: i64,
        purpose: Purpose,
    ) -> Option<GroupRelaxation> {
        let run = line.runs[position];
        if run.value > PARAMS.whole_servers.max_residues {
            return None;
        }
        let mut others = others(line, position, worth, reach).pop().expect("one at least");
        let (mut free, mut most) = (Vec::new(), f64::INFINITY);
        if purpose == Purpose::Bound {
            (free, most) = (GroupRelaxation::free(line, position, worth), worth);
        } else {
            (others.down, others.up) = (f64::INFINITY, f64::INFINITY);
        }
        let [before, after] = [false, true].map(|more| {
            let costs = exchanges(line, position, run.value, more, worth);
            let most = usize::try_from(2 * reach / run.value + 4).expect("positive");
            std::iter::once(0.0).chain(costs).take(most).collect()
        });
        Some(GroupRelaxation { free, others, worth: most, before, after })
    }

    /// Prices above the line of a run per residue, as if the run had no ends.
    fn free(line: &Line, position: usize, worth: f64) -> Vec<f64> {
        let run = line.runs[position];
        let modulus = usize::try_from(run.value).expect("positive");
        let mut free = vec![worth; modulus];
        free[0] = 0.0;
        for value in line.values().filter(|value| value % run.value != 0) {
            let old = free.clone();
            let step = usize::try_from(value % run.value).expect("not negative");
            for more in [true, false] {
                let mut shift = 0;
                for cost in exchanges(line, position, value, more, worth) {
                    shift = (shift + if more { step } else { modulus - step }) % modulus;
                    if shift == 0 {
                        break;
                    }
                    lower(&mut free[shift..], &old[..modulus - shift], cost);
                    lower(&mut free[..shift], &old[modulus - shift..], cost);
                }
            }
        }
        free
    }
}

/// Least prices above the line of a run of exchanges of other values.
#[derive(Clone, Debug)]
pub(super) struct Others {
    /// By how far they move the sum, the same distance down and up.
    costs: Vec<f64>,
    /// Of those that move it down or up farther.
    down: f64,
    up: f64,
}

impl Others {
    fn reach(&self) -> i64 {
        i64::try_from(self.costs.len() / 2).expect("short")
    }

    /// Price of moving the sum by so much; infinite beyond what is told.
    pub fn of(&self, sum: i64) -> f64 {
        let at = usize::try_from(sum + self.reach()).ok();
        at.and_then(|at| self.costs.get(at)).copied().unwrap_or(f64::INFINITY)
    }

    /// With servers of another value added too, by the prices of 1, 2, ... of them. What was
    /// beyond the list before may be anywhere nearer by so much.
    fn add(&mut self, old: &Others, value: usize, prices: impl Iterator<Item = f64>) {
        let width = self.costs.len();
        // Least price of what adding so much takes beyond the list.
        let mut last = (0, f64::INFINITY);
        let mut shift = 0;
        for price in prices {
            shift += value;
            let kept = shift.min(width);
            lower(&mut self.costs[kept..], &old.costs[..width - kept], price);
            for cost in &mut self.costs[..kept] {
                *cost = cost.min(old.down + price);
            }
            last.1 = old.costs[width - kept..width - last.0].iter().fold(last.1, |a, &b| a.min(b));
            last.0 = kept;
            self.up = self.up.min(last.1 + price);
            if shift > width {
                self.up = self.up.min(old.down + price);
                break;
            }
        }
    }

    fn mirror(&mut self) {
        self.costs.reverse();
        std::mem::swap(&mut self.down, &mut self.up);
    }
}

/// Those of each value but that of the run, one after the other; the last has them all.
pub(super) fn others(line: &Line, position: usize, worth: f64, reach: i64) -> Vec<Others> {
    let run = line.runs[position];
    let width = usize::try_from(2 * reach + 1).expect("positive");
    let mut costs = vec![f64::INFINITY; width];
    costs[width / 2] = 0.0;
    let mut layers = vec![Others { costs, down: f64::INFINITY, up: f64::INFINITY }];
    for value in line.values().filter(|&value| value != run.value) {
        let mut old = layers.last().expect("one at least").clone();
        let mut new = old.clone();
        let step = usize::try_from(value).expect("positive");
        new.add(&old, step, exchanges(line, position, value, true, worth));
        new.mirror();
        old.mirror();
        new.add(&old, step, exchanges(line, position, value, false, worth));
        new.mirror();
        layers.push(new);
    }
    layers
}

/// Prices above the line of 1, 2, ... servers of a value more (or fewer), up to `worth`.
pub(super) fn exchanges(
    line: &Line,
    position: usize,
    value: i64,
    more: bool,
    worth: f64,
) -> impl Iterator<Item = f64> {
    let slope = line.runs[position].slope;
    let after = line.runs[position + 1..].iter().take(if more { usize::MAX } else { 0 });
    let before = line.runs[..position].iter().rev().take(if more { 0 } else { usize::MAX });
    let mut cost = 0.0;
    after
        .chain(before)
        .filter(move |run| run.value == value)
        .flat_map(move |run| {
            let each = (run.slope - slope).abs() * value as f64;
            std::iter::repeat_n(each, usize::try_from(run.count).expect("not negative"))
        })
        .map_while(move |each| {
            cost += each;
            (cost <= worth).then_some(cost)
        })
}

/// Lowers prices to those of another list with `cost` on top.
pub(super) fn lower(into: &mut [f64], from: &[f64], cost: f64) {
    for (into, from) in into.iter_mut().zip(from) {
        let through = from + cost;
        *into = if through < *into { through } else { *into };
    }
}

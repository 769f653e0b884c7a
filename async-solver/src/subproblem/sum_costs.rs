//! What whole servers of one MSB cost, as a function of their sum.
//!
//! By price per RRU, the servers of an MSB form a convex line, and where a run of like servers
//! starts or a number of whole ones of it ends, whole servers lie on it. In between they do not:
//! another sum takes servers of other values, in exchange or on top, and each of them costs
//! something above the line ([`GroupRelaxation`]).

use super::Priced;
use super::group_relaxation::GroupRelaxation;
use super::lines::{Line, Peak, Purpose, Run};
use crate::model::rru;
use crate::params::PARAMS;
use std::cell::OnceCell;

/// The lines of all MSBs of a reservation.
#[derive(Debug)]
pub(super) struct SumCosts {
    pub lines: Vec<Line>,
    /// By line and run, made on first use.
    relaxations: Vec<Vec<OnceCell<Option<GroupRelaxation>>>>,
    /// How many items the reservation has.
    pub items: usize,
    /// RRU of a unit.
    pub unit: f64,
    /// The largest value.
    pub value_max: i64,
    /// Price per unit above the spread limit, and the limit in units.
    pub beta: f64,
    pub limit: f64,
    /// No unit is worth more than this: larger prices need not be told apart.
    ceiling: f64,
    /// Largest price above the line of combinations looked at.
    slack: f64,
    pub purpose: Purpose,
}

impl SumCosts {
    /// The lines at the prices of `priced`, exact for prices per RRU up to `ceiling`.
    pub fn new(priced: &Priced, ceiling: f64, purpose: Purpose) -> SumCosts {
        let (term, divisor) = (priced.term, priced.geometry.divisor);
        let unit = rru(divisor);
        let mut lines: Vec<Line> =
            (term.slices.iter()).map(|_| Line { runs: Vec::new(), end: 0, cost: 0.0 }).collect();
        for segment in &priced.segments {
            lines[segment.slice as usize].runs.push(Run {
                slope: segment.slope * unit,
                value: term.items[segment.item as usize].value / divisor,
                count: i64::from(segment.count),
                item: segment.item,
                start: 0,
                cost: 0.0,
            });
        }
        for line in &mut lines {
            // Segments come in order of rank, which is not quite that of slope.
            line.runs.sort_by(|a, b| a.slope.total_cmp(&b.slope));
            for run in &mut line.runs {
                (run.start, run.cost) = (line.end, line.cost);
                line.end += run.value * run.count;
                line.cost += run.slope * (run.value * run.count) as f64;
            }
        }
        let cells = |line: &Line| line.runs.iter().map(|_| OnceCell::new()).collect();
        let limited = term.beta > 0.0 && term.spread_limit < i64::MAX;
        let params = PARAMS.whole_servers;
        let slack_max = f64::from(1 << (2 * params.max_raises)) * params.slack;
        let value_max = term.items.iter().map(|item| item.value / divisor).max().unwrap_or(1);
        SumCosts {
            purpose,
            items: term.items.len(),
            unit,
            value_max,
            slack: slack_max * (term.tau + ceiling) * unit * value_max as f64,
            beta: if limited { term.beta * unit } else { 0.0 },
            limit: if limited { rru(term.spread_limit) / unit } else { f64::INFINITY },
            ceiling: ceiling * unit,
            relaxations: lines.iter().map(cells).collect(),
            lines,
        }
    }

    /// Surcharge above the spread limit.
    pub fn surcharge(&self, z: i64) -> f64 {
        let over = z as f64 - self.limit;
        if over > 0.0 { self.beta * over } else { 0.0 }
    }

    /// Where the line of a slice, surcharge included, less `price` per unit is least.
    pub fn peak(&self, slice: usize, price: f64) -> Peak {
        let line = &self.lines[slice];
        for run in &line.runs {
            let start = run.start as f64;
            let surcharge = if start >= self.limit { self.beta } else { 0.0 };
            if run.slope + surcharge >= price {
                return Peak::Between(run.start, run.cost + self.surcharge(run.start));
            }
            let end = (run.start + run.value * run.count) as f64;
            if start < self.limit && self.limit < end && run.slope + self.beta >= price {
                return Peak::Limit;
            }
        }
        Peak::Between(line.end, line.cost + self.surcharge(line.end))
    }

    /// Lower bounds on the price of each sum from `from` on, infinite where no servers are left.
    pub fn row(&self, slice: usize, from: i64, row: &mut [f64]) {
        row.fill(f64::INFINITY);
        let line = &self.lines[slice];
        let last = from + i64::try_from(row.len()).expect("a short row") - 1;
        if line.runs.is_empty() && from <= 0 && last >= 0 {
            row[usize::try_from(-from).expect("not negative")] = 0.0;
        }
        for (position, run) in line.runs.iter().enumerate() {
            let end = run.start + run.value * run.count;
            if end < from || run.start > last {
                continue;
            }
            let (low, high) = (run.start.max(from), end.min(last));
            let at = |z: i64| usize::try_from(z - from).expect("in the row");
            let part = &mut row[at(low)..=at(high)];
            match self.group_relaxation(slice, position) {
                Some(relaxation) => relaxation.gaps(run, low - run.start, part),
                None if self.purpose == Purpose::Bound => part.fill(0.0),
                None => {
                    part.fill(f64::INFINITY);
                    let first = (run.start - low).rem_euclid(run.value);
                    let first = usize::try_from(first).expect("not negative");
                    let step = usize::try_from(run.value).expect("positive");
                    part.iter_mut().skip(first).step_by(step).for_each(|gap| *gap = 0.0);
                }
            }
            // The end of one run is the start of the next: whole servers are on both.
            for (z, gap) in (low..).zip(part) {
                *gap += run.cost + run.slope * (z - run.start) as f64 + self.surcharge(z);
            }
        }
    }

    /// Costs above the line of a run; `None` where the line itself is the bound.
    pub fn group_relaxation(&self, slice: usize, position: usize) -> Option<&GroupRelaxation> {
        let line = &self.lines[slice];
        let cell = &self.relaxations[slice][position];
        let made = || {
            let worth = self.worth(&line.runs[position]);
            GroupRelaxation::new(line, position, worth, self.reach(), self.purpose)
        };
        cell.get_or_init(made).as_ref()
    }

    /// What a sum within one server of a run can be worth at most: higher costs are not taken.
    pub fn worth(&self, run: &Run) -> f64 {
        ((self.ceiling - run.slope) * run.value as f64).max(self.slack)
    }

    /// How far exchanges move a sum at most.
    pub fn reach(&self) -> i64 {
        PARAMS.whole_servers.max_shift * self.value_max
    }
}

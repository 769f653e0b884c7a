//! The convex line of the servers of one MSB, cheapest RRU first.

use std::cmp::Reverse;

/// Servers of one MSB with one price and value. Amounts in units of the values' common divisor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Price per unit.
    pub slope: f64,
    pub value: i64,
    pub count: i64,
    pub item: u32,
    /// Units before it on the line, and their price.
    pub start: i64,
    pub cost: f64,
}

/// The servers of one MSB, cheapest units first.
#[derive(Debug)]
pub(super) struct Line {
    pub runs: Vec<Run>,
    /// Units of them all, and their price.
    pub end: i64,
    pub cost: f64,
}

/// Where the line less a price per unit is least.
#[derive(Clone, Copy, Debug)]
pub(super) enum Peak {
    /// Between runs: whole servers are there. Units and their price.
    Between(i64, f64),
    /// At the spread limit, within a run.
    Limit,
}

/// What prices above the line are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// No servers that show a sum cost less.
    Bound,
    /// Servers are known that show the sum at this price.
    Fill,
}

impl Line {
    /// The values of its servers.
    pub fn values(&self) -> impl Iterator<Item = i64> {
        let mut values: Vec<i64> = self.runs.iter().map(|run| run.value).collect();
        values.sort_unstable_by_key(|&value| Reverse(value));
        values.dedup();
        values.into_iter()
    }
}

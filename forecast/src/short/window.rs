//! What is known of the last values of a stream: a quantile, a maximum.

use std::collections::VecDeque;

/// Beyond this quantile a tail is fitted: fewer values lie there than a quantile needs.
const BODY: f64 = 0.9;

/// A quantile is computed again after this share of a window, so that a step costs O(1) on average.
const REFRESHES: usize = 16;

/// A quantile of the last values.
///
/// Up to Q90 it is the empirical one. Beyond, the distances above Q90 are taken as exponentially
/// distributed, as in the tails of the Laplace distribution: a day of 288 values has no Q99.9 of its own.
#[derive(Clone, Debug)]
pub(super) struct Quantile {
    quantile: f64,
    window: usize,
    values: Vec<f64>,
    /// Where the next value goes once the window is full.
    next: usize,
    /// Values since the last computation.
    since: usize,
    found: f64,
    scratch: Vec<f64>,
}

impl Quantile {
    pub(super) fn new(quantile: f64, window: usize) -> Quantile {
        let (values, scratch) = (Vec::new(), Vec::new());
        Quantile { quantile, window, values, next: 0, since: 0, found: 0.0, scratch }
    }

    pub(super) fn push(&mut self, value: f64) {
        if self.values.len() < self.window {
            self.values.push(value);
        } else if let Some(oldest) = self.values.get_mut(self.next) {
            *oldest = value;
            self.next = (self.next + 1) % self.window;
        }
        self.since += 1;
        if self.since >= self.values.len().div_ceil(REFRESHES) {
            self.since = 0;
            self.found = self.compute();
        }
    }

    /// The quantile, as of the last computation; 0 before the first value.
    pub(super) fn get(&self) -> f64 {
        self.found
    }

    fn compute(&mut self) -> f64 {
        self.scratch.clone_from(&self.values);
        let count = self.scratch.len();
        let body = self.quantile.min(BODY);
        // Not the smallest rank that reaches the share but the one above: a window of few values
        // gives its largest one.
        let rank = ((body * count as f64) as usize).min(count.saturating_sub(1));
        let (_, at, above) = self.scratch.select_nth_unstable_by(rank, f64::total_cmp);
        if self.quantile <= BODY || above.is_empty() {
            return *at;
        }
        let excess = above.iter().map(|value| value - *at).sum::<f64>() / above.len() as f64;
        *at + excess * ((1.0 - BODY) / (1.0 - self.quantile)).ln()
    }
}

/// The largest of the last values.
#[derive(Clone, Debug)]
pub(super) struct Largest {
    window: u64,
    pushed: u64,
    /// Values that nothing later exceeds, with their number: they fall from front to back.
    falling: VecDeque<(u64, f64)>,
}

impl Largest {
    pub(super) fn new(window: usize) -> Largest {
        Largest { window: window as u64, pushed: 0, falling: VecDeque::new() }
    }

    /// Takes a value and gives the largest of the window, this one included.
    pub(super) fn push(&mut self, value: f64) -> f64 {
        while self.falling.back().is_some_and(|(_, last)| *last <= value) {
            self.falling.pop_back();
        }
        self.falling.push_back((self.pushed, value));
        self.pushed += 1;
        while self.falling.front().is_some_and(|(number, _)| number + self.window < self.pushed) {
            self.falling.pop_front();
        }
        self.falling.front().map_or(value, |(_, largest)| *largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn largest_is_the_largest(values in prop::collection::vec(-9i32..9, 1..60), window in 1usize..9) {
            let mut largest = Largest::new(window);
            for end in 1..=values.len() {
                let of = &values[end.saturating_sub(window)..end];
                let found = largest.push(f64::from(values[end - 1]));
                prop_assert_eq!(Some(found), of.iter().max().map(|value| f64::from(*value)));
            }
        }
    }

    #[test]
    fn the_body_is_empirical_and_the_tail_exponential() {
        let mut median = Quantile::new(0.5, 100);
        let mut far = Quantile::new(0.999, 10_000);
        for step in 0..10_000 {
            // The quantiles of the exponential distribution with mean 1.
            let value = -(1.0 - (f64::from(step * 7_919 % 10_000) + 0.5) / 10_000.0).ln();
            median.push(f64::from(step));
            far.push(value);
        }
        assert!((median.get() - 9_949.0).abs() <= 8.0, "{}", median.get());
        assert!((far.get() - 1_000f64.ln()).abs() < 0.2, "{}", far.get());
    }
}

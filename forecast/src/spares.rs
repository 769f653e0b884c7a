//! Spares for failed servers: how many keep the chance of a shortfall below a bound.
//!
//! Servers fail in bursts: a rack loses power, an upgrade takes a row down. A burst is the
//! failures that begin within a short time of each other. Bursts arrive independently of each other, so the
//! number of servers that are down at an instant is a compound Poisson variable. Its distribution follows
//! from how long, in the history, exactly one, two, three ... servers of a burst were down at a time
//! (Panjer's recursion, ASTIN Bulletin 12(1), 1981). Repair times that differ, or that a burst
//! shares, need no model of their own. How often bursts come next is [`downs`]'s matter.

mod fleet;

pub use fleet::{Failures, downs};

use serde::Serialize;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Probabilities are kept until no more than this is left.
const TAIL: f64 = 1e-12;

/// The most servers of one type.
pub const SERVERS_MAX: usize = 1_000_000;

/// A server out of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Its number among the servers of its type.
    pub server: u32,
    /// When it failed, in seconds.
    pub start: i64,
    /// When it was back, in seconds.
    pub end: i64,
}

/// Why outages are not a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutageError {
    /// The history has no length.
    #[error("the history begins at {start} and ends at {end}; it must have a length")]
    Empty {
        /// Its start.
        start: i64,
        /// Its end.
        end: i64,
    },
    /// An outage ends before it begins.
    #[error("outage {index} begins at {start} and ends before, at {end}")]
    Reversed {
        /// Its place in the list.
        index: usize,
        /// Its start.
        start: i64,
        /// Its end.
        end: i64,
    },
}

/// How many servers are down at an instant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Down {
    /// Probability of exactly 0, 1, 2, ... servers.
    chances: Vec<f64>,
}

impl Down {
    /// The distribution if on average `rates[k]` bursts of which exactly k servers are down last at an instant, for
    /// a type of this many servers.
    fn new(rates: &[f64], servers: usize) -> Down {
        let mut chances = compound(rates, servers.min(SERVERS_MAX));
        // Not more servers are down than there are.
        if chances.len() > servers {
            let all = chances.drain(servers..).sum();
            chances.push(all);
        }
        Down { chances }
    }

    /// The fewest spares that at an instant suffice with this probability.
    pub fn quantile(&self, probability: f64) -> usize {
        let mut sum = 0.0;
        let enough = self.chances.iter().position(|chance| {
            sum += chance;
            sum >= probability
        });
        enough.unwrap_or(self.chances.len())
    }

    /// The chance that at an instant more servers are down than there are spares.
    pub fn chance_above(&self, spares: usize) -> f64 {
        self.chances.iter().skip(spares + 1).sum()
    }

    /// How many servers are down at an instant beyond the spares, on average.
    pub fn expected_above(&self, spares: usize) -> f64 {
        let beyond = self.chances.iter().skip(spares + 1);
        (1..).zip(beyond).map(|(count, chance)| f64::from(count) * chance).sum()
    }

    /// How many servers are down on average.
    pub fn mean(&self) -> f64 {
        self.chances.iter().enumerate().map(|(count, chance)| count as f64 * chance).sum()
    }
}

/// The time in which servers are out: one that is out for two reasons is out once.
///
/// # Errors
/// An outage that ends before it begins.
pub fn union(outages: &[Outage]) -> Result<Vec<Outage>, OutageError> {
    check(outages)?;
    let mut sorted = outages.to_vec();
    sorted.sort_unstable_by_key(|of| (of.server, of.start));
    let mut union: Vec<Outage> = Vec::new();
    for outage in sorted {
        match union.last_mut() {
            Some(last) if outage.server == last.server && outage.start <= last.end => {
                last.end = last.end.max(outage.end);
            }
            _ => union.push(outage),
        }
    }
    Ok(union)
}

fn check(outages: &[Outage]) -> Result<(), OutageError> {
    match outages.iter().enumerate().find(|(_, outage)| outage.end < outage.start) {
        Some((index, &Outage { start, end, .. })) => {
            Err(OutageError::Reversed { index, start, end })
        }
        None => Ok(()),
    }
}

/// How many of these outages last at a time: pairs of a number and for how many seconds, in the order of time,
/// over all of the range.
fn levels(outages: &[Outage], range: &Range<i64>) -> Vec<(usize, f64)> {
    let clip = |time: i64| time.clamp(range.start, range.end);
    let mut changes: Vec<(i64, i64)> = (outages.iter())
        .flat_map(|outage| [(clip(outage.start), 1), (clip(outage.end), -1)])
        .collect();
    changes.sort_unstable();
    let (mut levels, mut since, mut count) = (Vec::new(), range.start, 0i64);
    for (time, change) in changes.into_iter().chain([(range.end, 0)]) {
        if time > since {
            levels.push((count.max(0) as usize, time.abs_diff(since) as f64));
            since = time;
        }
        count += change;
    }
    levels
}

/// Probabilities of 0, 1, 2, ... for a sum of independent Poisson variables, the k-th of mean `rates[k]` and
/// counted k times (Panjer). Far beyond `servers` the probabilities are left out.
fn compound(rates: &[f64], servers: usize) -> Vec<f64> {
    let sizes: Vec<(usize, f64)> = (rates.iter().enumerate())
        .map(|(k, rate)| (k, k as f64 * rate))
        .filter(|(_, servers)| *servers > 0.0)
        .collect();
    let mean: f64 = sizes.iter().map(|(_, servers)| servers).sum();
    // Not from e to the minus of all rates, which is 0 for large ones: relative to each other.
    let mut weights = vec![1.0];
    let (mut sum, mut last) = (1.0, 0);
    // The tail counts as "all are down", so most of it is needed.
    let most = servers.saturating_mul(2) + mean as usize;
    while weights.len() <= most.min(SERVERS_MAX) {
        let n = weights.len();
        let terms = sizes.iter().take_while(|(k, _)| *k <= n);
        let next = terms.map(|(k, servers)| servers * weights[n - k]).sum::<f64>() / n as f64;
        weights.push(next);
        sum += next;
        if next >= TAIL * sum {
            last = n;
        }
        // Not even the largest burst raises the weights again.
        if n as f64 > mean && n - last >= rates.len().max(1) {
            break;
        }
        if sum > 1e250 {
            weights.iter_mut().for_each(|weight| *weight /= sum);
            sum = 1.0;
        }
    }
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// What spares did over a range of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SparesOutcome {
    /// The time judged, in hours.
    pub hours: f64,
    /// The time in which more servers were down than there were spares.
    pub short_hours: f64,
    /// Servers down beyond the spares, times hours.
    pub missing_hours: f64,
    /// Spares times hours: the cost.
    pub spare_hours: f64,
}

impl SparesOutcome {
    /// The share of the time in which the spares sufficed.
    pub fn coverage(&self) -> f64 {
        if self.hours > 0.0 { 1.0 - self.short_hours / self.hours } else { 1.0 }
    }

    /// Adds what happened in another range of time, or to another type.
    pub fn add(&mut self, other: &SparesOutcome) {
        self.hours += other.hours;
        self.short_hours += other.short_hours;
        self.missing_hours += other.missing_hours;
        self.spare_hours += other.spare_hours;
    }
}

/// Judges a number of spares over a range of time.
///
/// # Errors
/// An outage that ends before it begins.
pub fn judge(
    outages: &[Outage],
    range: Range<i64>,
    spares: usize,
) -> Result<SparesOutcome, OutageError> {
    check(outages)?;
    let mut outcome = SparesOutcome::default();
    let within = |outage: &&Outage| outage.end > range.start && outage.start < range.end;
    let within: Vec<Outage> = outages.iter().filter(within).copied().collect();
    for (count, seconds) in levels(&within, &range) {
        let hours = seconds / 3_600.0;
        outcome.hours += hours;
        outcome.spare_hours += spares as f64 * hours;
        let missing = count.saturating_sub(spares);
        outcome.short_hours += if missing > 0 { hours } else { 0.0 };
        outcome.missing_hours += missing as f64 * hours;
    }
    Ok(outcome)
}

/// A hardware type that shares spares with others.
#[derive(Clone, Copy, Debug)]
pub struct SpareType<'a> {
    /// How many of its servers are down at an instant.
    pub down: &'a Down,
    /// What a missing server of it is worth, such as its RRU; finite and above 0.
    pub value: f64,
}

/// Distributes a number of spares over types so that the expected missing value is least: each goes where the
/// chance that it is needed, times its value, is largest. Spares that no type can need are left over.
pub fn share_out(spares: usize, types: &[SpareType<'_>]) -> Vec<usize> {
    /// What the next spare of a type would save.
    #[derive(PartialEq)]
    struct Saving {
        value: f64,
        of: usize,
    }
    impl Eq for Saving {}
    impl PartialOrd for Saving {
        fn partial_cmp(&self, other: &Saving) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Saving {
        fn cmp(&self, other: &Saving) -> std::cmp::Ordering {
            // Of equal savings, the first type's.
            self.value.total_cmp(&other.value).then(other.of.cmp(&self.of))
        }
    }
    // The chance that more than n are down falls by the chance of n + 1 with each spare.
    let mut above: Vec<f64> = types.iter().map(|of| of.down.chance_above(0)).collect();
    let mut counts = vec![0; types.len()];
    let saving = |of: usize, above: f64| Saving { value: types[of].value * above, of };
    let mut open: BinaryHeap<Saving> =
        above.iter().enumerate().map(|(of, above)| saving(of, *above)).collect();
    for _ in 0..spares {
        let Some(Saving { value, of }) = open.pop() else { break };
        if value.is_nan() || value <= 0.0 {
            break;
        }
        counts[of] += 1;
        let next = types[of].down.chances.get(counts[of]).copied().unwrap_or(0.0);
        let is_last = counts[of] + 1 >= types[of].down.chances.len();
        above[of] = if is_last { 0.0 } else { (above[of] - next).max(0.0) };
        open.push(saving(of, above[of]));
    }
    counts
}

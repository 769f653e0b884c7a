//! What the failures of a fleet say of each of its hardware types.
//!
//! The bursts of a type are its own, and to a degree those of the fleet: a type of few failures is like the others until
//! it shows otherwise. How often they come depends on when servers were last out. An upgrade that takes each server down once
//! has most of its failures among those that it has not reached; a server that was repaired in vain fails again soon. So failures
//! are counted by the time since the last one of the same server, over the whole fleet, and expected of the servers as they are
//! at the end of the history.

use super::{Down, Outage, OutageError, check, levels};
use std::ops::Range;

/// Ages that are told apart, by the time since the last failure, in seconds; beyond them one more, and one for servers that
/// have not failed.
const AGES: [i64; 6] = [86_400, 2 * 86_400, 4 * 86_400, 8 * 86_400, 16 * 86_400, 32 * 86_400];
const NOT_FAILED: usize = AGES.len() + 1;

/// A server out for this long lasts, and another takes its place among those that do; in seconds.
const LASTING: i64 = 4 * 3_600;

/// The failures of a hardware type.
#[derive(Clone, Copy, Debug)]
pub struct Failures<'a> {
    /// Each, in any order; of a server none begins within another.
    pub outages: &'a [Outage],
    /// Servers of the type.
    pub servers: usize,
}

/// How many servers of each type are down at an instant after a history, in the order of the types. Failures of a type that begin
/// at most `burst` seconds after the one before are one burst. Each type counts as having had `likeness` bursts of the
/// fleet's kind beside its own. Parts of outages outside the history do not count.
///
/// # Errors
/// A history without a length, or an outage that ends before it begins.
pub fn downs(
    types: &[Failures<'_>],
    history: &Range<i64>,
    burst: i64,
    likeness: f64,
) -> Result<Vec<Down>, OutageError> {
    let (start, end) = (history.start, history.end);
    if start >= end {
        return Err(OutageError::Empty { start, end });
    }
    types.iter().try_for_each(|of| check(of.outages))?;
    let seen: Vec<Seen> = types.iter().map(|of| Seen::new(*of, history, burst)).collect();
    let mut fleet = Seen::default();
    seen.iter().for_each(|of| fleet.add(of));
    let length = end.abs_diff(start) as f64;
    let hazards = fleet.hazards();
    let down = |(seen, of): (&Seen, &Failures<'_>)| {
        let rates = rates(seen, &fleet, &hazards, likeness, length, of.servers);
        Down::new(&rates, of.servers)
    };
    Ok(seen.iter().zip(types).map(down).collect())
}

/// Bursts of which exactly k servers are down at an instant, on average.
fn rates(
    seen: &Seen,
    fleet: &Seen,
    hazards: &[f64; NOT_FAILED + 1],
    likeness: f64,
    length: f64,
    servers: usize,
) -> Vec<f64> {
    let mut times = seen.times.clone();
    for (count, seconds) in fleet.times.iter().enumerate().skip(1) {
        let rough = rough(count);
        let seconds = seconds * count as f64 / rough as f64;
        add(&mut times, rough.min(servers), seconds * likeness / fleet.bursts.max(1.0));
    }
    let expected = |of: fn(&Age) -> f64| -> f64 {
        let failures: f64 =
            seen.ages.iter().zip(hazards).map(|(age, hazard)| hazard * of(age)).sum();
        failures * fleet.bursts / fleet.failures().max(1.0)
    };
    let past = expected(|age| age.seconds);
    let next = length * expected(|age| age.servers);
    let scale = next / (past + likeness) / length;
    let mut rates: Vec<f64> = times.into_iter().map(|seconds| seconds * scale).collect();
    let mean: f64 = rates.iter().enumerate().map(|(count, rate)| count as f64 * rate).sum();
    add(&mut rates, 1, (seen.lasting - mean).max(0.0));
    rates
}

/// A number of five binary digits that is at least this one: of the fleet's bursts a type needs no more, and the work for each
/// number is that for all servers.
fn rough(count: usize) -> usize {
    let digits = usize::BITS - count.leading_zeros();
    let step = 1 << digits.saturating_sub(5);
    count.next_multiple_of(step)
}

fn add(to: &mut Vec<f64>, at: usize, value: f64) {
    if to.len() <= at {
        to.resize(at + 1, 0.0);
    }
    to[at] += value;
}

/// Servers by the time since their last failure.
#[derive(Clone, Copy, Debug, Default)]
struct Age {
    /// How often one of this age failed.
    failures: f64,
    /// For how long there were any, summed over servers.
    seconds: f64,
    /// How many there are at the end.
    servers: f64,
}

/// What a history says of a type, or of all together.
#[derive(Clone, Debug, Default)]
struct Seen {
    bursts: f64,
    /// By number of servers down together: the time, summed over bursts.
    times: Vec<f64>,
    ages: [Age; NOT_FAILED + 1],
    /// Servers out at the end that last.
    lasting: f64,
}

impl Seen {
    fn new(of: Failures<'_>, history: &Range<i64>, burst: i64) -> Seen {
        let (start, end) = (history.start, history.end);
        let mut seen = Seen::default();
        let mut within: Vec<Outage> = (of.outages.iter())
            .filter(|outage| outage.end > start && outage.start < end)
            .map(|outage| Outage {
                start: outage.start.max(start),
                end: outage.end.min(end),
                ..*outage
            })
            .collect();
        within.sort_unstable_by_key(|of| (of.start, of.end));
        for burst in within.chunk_by(|one, next| next.start.saturating_sub(one.start) <= burst) {
            seen.bursts += 1.0;
            for (count, seconds) in
                levels(burst, history).into_iter().filter(|(count, _)| *count > 0)
            {
                add(&mut seen.times, count, seconds);
            }
        }
        let lasts = |of: &&Outage| of.end > end && of.start.saturating_add(LASTING) <= end;
        seen.lasting = of.outages.iter().filter(lasts).count() as f64;

        let mut known: Vec<(u32, i64)> = (of.outages.iter())
            .filter(|outage| outage.start < end)
            .map(|outage| (outage.server, outage.start))
            .collect();
        known.sort_unstable();
        let mut failed = 0;
        for of_server in known.chunk_by(|one, next| one.0 == next.0) {
            failed += 1;
            let (mut last, mut at) = (None, start);
            for (_, time) in of_server {
                if *time >= start {
                    seen.pass(last, at..*time);
                    seen.ages[age(last, *time)].failures += 1.0;
                    at = *time;
                }
                last = Some(*time);
            }
            seen.pass(last, at..end);
            seen.ages[age(last, end)].servers += 1.0;
        }
        let others = of.servers.saturating_sub(failed) as f64;
        seen.ages[NOT_FAILED].servers += others;
        seen.ages[NOT_FAILED].seconds += others * end.abs_diff(start) as f64;
        seen
    }

    /// Time passes for a server that failed last at an instant.
    fn pass(&mut self, last: Option<i64>, time: Range<i64>) {
        let Some(last) = last else {
            self.ages[NOT_FAILED].seconds += time.end.abs_diff(time.start) as f64;
            return;
        };
        let mut from = time.start;
        let ends = AGES.iter().map(|age| last.saturating_add(*age)).chain([time.end]);
        for (age, until) in self.ages.iter_mut().zip(ends) {
            let until = until.clamp(from, time.end);
            age.seconds += until.abs_diff(from) as f64;
            from = until;
        }
    }

    fn add(&mut self, other: &Seen) {
        self.bursts += other.bursts;
        for (count, seconds) in other.times.iter().enumerate() {
            add(&mut self.times, count, *seconds);
        }
        for (age, other) in self.ages.iter_mut().zip(&other.ages) {
            age.failures += other.failures;
            age.seconds += other.seconds;
            age.servers += other.servers;
        }
    }

    fn failures(&self) -> f64 {
        self.ages.iter().map(|age| age.failures).sum()
    }

    /// Failures of a server in a second, by its age: an age of which little was seen is like all.
    fn hazards(&self) -> [f64; NOT_FAILED + 1] {
        let seconds: f64 = self.ages.iter().map(|age| age.seconds).sum();
        let one = seconds / self.failures().max(1.0);
        self.ages
            .map(|age| if one > 0.0 { (age.failures + 1.0) / (age.seconds + one) } else { 0.0 })
    }
}

/// The place among ages of a server that failed last at an instant.
fn age(last: Option<i64>, now: i64) -> usize {
    last.map_or(NOT_FAILED, |last| AGES.partition_point(|age| now.saturating_sub(last) >= *age))
}

//! When a search ends, and what it is told of the world.

use std::time::Duration;

/// When a search ends, and what it is told of the world. The search reads no clock.
pub struct Limits<'a> {
    /// Chooses the random moves.
    pub seed: u64,
    /// Moves tried by each thread, in thousands. With a limit here and no deadline, a seed gives the
    /// same answer on every machine.
    pub rounds: Option<u64>,
    /// When the search must have returned, on the clock of `elapsed`.
    pub deadline: Option<Duration>,
    /// It ends when the value is within this share of the bound.
    pub gap: f64,
    /// Threads that search, each from a seed of its own.
    pub threads: usize,
    /// Time since the search began.
    pub elapsed: &'a (dyn Fn() -> Duration + Sync),
    /// Whether an early end was requested.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Told of each better value.
    pub progress: &'a (dyn Fn(&Progress) + Sync),
}

impl Limits<'_> {
    /// Ends after some rounds of a thousand moves; there is no deadline.
    pub fn rounds(rounds: u64) -> Limits<'static> {
        Limits {
            seed: 0,
            rounds: Some(rounds),
            deadline: None,
            gap: 0.0,
            threads: 1,
            elapsed: &|| Duration::ZERO,
            interrupted: &|| false,
            progress: &|_| {},
        }
    }

    /// The share of the search that is over, from 0 to 1.
    pub(crate) fn share(&self, rounds: u64) -> f64 {
        let of_rounds = self.rounds.map_or(0.0, |all| rounds as f64 / all.max(1) as f64);
        let of_time = self.deadline.map_or(0.0, |deadline| {
            (self.elapsed)().as_secs_f64() / deadline.as_secs_f64().max(1e-9)
        });
        if (self.interrupted)() { 1.0 } else { of_rounds.max(of_time) }
    }
}

/// Where a search stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The best value so far.
    pub value: f64,
    /// The value that no assignment is below.
    pub bound: f64,
}

//! Steps that a search has made, and whether it must end.

use crate::limits::Limits;

/// Counts steps; a round of `Limits` is a thousand.
pub(crate) struct Effort<'a, 'l> {
    limits: &'a Limits<'l>,
    steps: u64,
    /// When the clock is asked next.
    next: u64,
    is_over: bool,
}

/// Steps after which the clock is asked: less than a millisecond.
const OFTEN: u64 = 20_000;

impl<'a, 'l> Effort<'a, 'l> {
    pub(crate) fn new(limits: &'a Limits<'l>) -> Effort<'a, 'l> {
        Effort { limits, steps: 0, next: 0, is_over: false }
    }

    pub(crate) fn spend(&mut self, steps: u64) {
        self.steps += steps;
        if self.steps >= self.next {
            self.next = self.steps + OFTEN;
            self.is_over |= self.limits.share(self.steps / 1000) >= 1.0;
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}

//! A solve an hour after the last one: prices and today's assignment are near the end already, so the search and
//! the ascent take turns, each for as long as it pays, until the gap is about what the last solve came to.

use super::{Run, rounded_down};
use crate::bound::{Ascent, DualPoint};
use crate::state::State;

/// What was made of today's assignment is searched on from if it is within so many times the gap that is near
/// enough; else the ascent's mixture is swept first.
const NEAR: f64 = 4.0;
/// Share of what is open that a pass of that sweep must close for another to follow.
const SWEEP_PAYS: f64 = 0.02;
/// Rounds without gain after which the ascent has its turn.
const STALL_ROUNDS: u32 = 1;
/// Share of what is open that a turn of both must close for another to follow.
const PAYS: f64 = 0.05;

impl Run<'_> {
    /// Ascends and searches in turn. Gives the prices it ends with; where it ends short of the gap that is near
    /// enough, they are the ascent's last.
    pub(super) fn follow(&mut self, ascent: &mut Ascent, keep: &dyn Fn(&State)) -> DualPoint {
        let mut prices = self.climb_a_while(ascent);
        if !self.is_within(NEAR * self.enough) {
            self.sweep(rounded_down(self.model, ascent.mixture()), &prices, SWEEP_PAYS, keep);
        }
        loop {
            let open = self.primal() - self.dual_bound;
            self.improve(&prices, STALL_ROUNDS, keep);
            if self.is_within_gap() || self.must_stop() {
                return prices;
            }
            prices = self.climb_a_while(ascent);
            if self.is_within_gap() || self.must_stop() {
                return prices;
            }
            if self.primal() - self.dual_bound > (1.0 - PAYS) * open {
                return self.climb_to_the_end(ascent);
            }
        }
    }
}

//! A solve an hour after the last one: prices and today's assignment are near the end already, so the search and
//! the ascent take turns, each for as long as it pays, until the gap is about what the last solve came to.

use super::rounds::Within;
use super::{Run, rounded_down};
use crate::bound::{Ascent, DualPoint};
use crate::neighbourhood::Neighbourhood;
use crate::state::State;

/// What was made of today's assignment is searched on from if it is within so many times the gap that is near
/// enough; else the ascent's mixture is swept first.
const NEAR: f64 = 4.0;
/// Share of what is open that a pass of that sweep must close for another to follow.
const SWEEP_PAYS: f64 = 0.02;
/// Likewise a round of the search...
const ROUND_PAYS: f64 = 0.01;
/// ...and a turn of both.
const TURN_PAYS: f64 = 0.05;

impl Run<'_> {
    /// Ascends and searches in turn. Gives the prices it ends with; where it ends short of the gap that is near
    /// enough, they are the ascent's last.
    pub(super) fn follow(&mut self, ascent: &mut Ascent, keep: &dyn Fn(&State)) -> DualPoint {
        let mut prices = self.climb_a_while(ascent);
        if !self.is_within(NEAR * self.enough) {
            self.sweep(rounded_down(self.model, ascent.mixture()), &prices, SWEEP_PAYS, keep);
        }
        let mut leg = 0.0;
        loop {
            let open = self.open();
            self.search_while_it_pays(&prices, leg, keep);
            if self.is_within_gap() || self.must_stop() {
                return prices;
            }
            let bound = self.dual_bound;
            prices = self.climb_a_leg(ascent);
            leg = self.dual_bound - bound;
            if self.open() > (1.0 - TURN_PAYS) * open {
                return self.climb_to_the_end(ascent);
            }
        }
    }

    /// Rounds of the search while they bring more than `leg`, what one of the ascent brought last: it takes about
    /// as long. The gap is near enough after an hour of another kind long before the search ends, so it goes on.
    fn search_while_it_pays(&mut self, prices: &DualPoint, leg: f64, keep: &dyn Fn(&State)) {
        let Some((mut state, _)) = self.best.clone() else { return };
        let mut hood = Neighbourhood::new(self.model, &state, prices, self.config.seed);
        loop {
            let open = self.open();
            let gained = self.round(&mut state, &mut hood, Within::GoesOn, keep);
            if self.is_within_gap() || self.must_stop() || gained < leg.max(ROUND_PAYS * open) {
                return;
            }
        }
    }
}

//! A solve an hour after the last one: prices and today's assignment are near the end already, so search and
//! ascent run in parallel, turn by turn, until the gap is about the last solve's.

use super::rounds::Within;
use super::{Run, rounded_down};
use crate::bound::{Ascent, DualPoint};
use crate::neighbourhood::Neighbourhood;
use crate::report::Termination;
use crate::state::State;
use std::ops::ControlFlow;

/// The search starts from the improved assignment of today if its gap is within this multiple of the accepted
/// gap; else the ascent's mixture is swept first.
const NEAR: f64 = 4.0;
/// Share of what is open that a pass of that sweep must close for another to follow.
const SWEEP_PAYS: f64 = 0.02;
/// The same factor for a round of the search.
const ROUND_PAYS: f64 = 0.01;
/// ...and a turn of both.
const TURN_PAYS: f64 = 0.05;
/// If turns stop paying within this multiple of the accepted gap, a large region ends there: continuing takes
/// longer than a cold solve, and brings little.
const NOT_FAR: f64 = 3.0;

impl Run<'_> {
    /// Searches, with the ascent beside it, turn by turn. Gives why it is over, or, short of the gap that is near
    /// enough, prices for the long way, of the ascent's last.
    pub(super) fn follow(
        &mut self,
        ascent: &mut Ascent,
        today: &State,
        keep: &dyn Fn(&State),
    ) -> ControlFlow<Termination, DualPoint> {
        let first = self.climb_a_while(ascent, |run| {
            run.improve_today(today, 1, keep);
            run.note("mip");
        });
        let Some(mut prices) = first else { return ControlFlow::Break(self.ended()) };
        let far = !self.is_within(NEAR * self.enough);
        let mut start = far.then(|| rounded_down(self.model, ascent.mixture()));
        let mut leg = 0.0;
        loop {
            let (open, bound) = (self.open(), self.dual_bound);
            let climbed = self.climb_a_leg(ascent, |run| {
                if let Some(start) = start.take() {
                    run.sweep(start, &prices, SWEEP_PAYS, keep);
                }
                run.search_while_it_pays(&prices, leg, keep);
            });
            let Some(climbed) = climbed else { return ControlFlow::Break(self.ended()) };
            prices = climbed;
            leg = self.dual_bound - bound;
            if self.open() > (1.0 - TURN_PAYS) * open {
                break;
            }
        }
        if self.is_large() && self.is_not_far(self.open() / self.worth()) {
            return ControlFlow::Break(Termination::Stalled);
        }
        self.take_time(ascent);
        ControlFlow::Continue(self.climb_to_the_end(ascent))
    }

    /// Whether a gap is about the last solve's, if it is not near enough.
    pub(super) fn is_not_far(&self, gap: f64) -> bool {
        self.last > 0.0 && gap <= NOT_FAR * self.enough
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

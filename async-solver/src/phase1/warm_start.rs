//! A warm start: prices and today's assignment are nearly right already, so search and ascent run in parallel,
//! turn by turn, until the gap limit is reached or turns gain little.

use super::{Run, rounded_down};
use crate::bound::{DualPoint, VolumeAlgorithm};
use crate::neighbourhood::Neighbourhood;
use crate::params::PARAMS;
use crate::report::Termination;
use crate::state::State;
use std::ops::ControlFlow;

impl Run<'_> {
    /// Searches, with the ascent beside it, turn by turn. Returns why the solve is over or, where turns stopped
    /// gaining at a large gap, prices of a full ascent for a cold search.
    pub(super) fn reoptimize(
        &mut self,
        ascent: &mut VolumeAlgorithm,
        today: &State,
    ) -> ControlFlow<Termination, DualPoint> {
        let first = self.ascend_until_slow(ascent, |run| {
            run.improve_today(today);
            run.note("mip");
        });
        let Some(mut prices) = first else { return ControlFlow::Break(self.ended()) };
        let far = self.relative_gap() > PARAMS.warm.far_gap;
        if far {
            let start = rounded_down(self.model, ascent.fractional_solution());
            self.sweep(start, &prices, PARAMS.sweep.min_gain);
        }
        self.search_while_it_pays(&prices);
        // The ascent has slowed down before: it goes on only where the gap is large.
        while self.relative_gap() > PARAMS.warm.cold_gap {
            let open = self.absolute_gap();
            let ascended = self.ascend_burst(ascent, |run| run.search_while_it_pays(&prices));
            let Some(ascended) = ascended else { return ControlFlow::Break(self.ended()) };
            prices = ascended;
            if self.absolute_gap() > (1.0 - PARAMS.warm.min_gain_per_turn) * open {
                break;
            }
        }
        if self.must_stop() {
            return ControlFlow::Break(self.ended());
        }
        if self.relative_gap() <= PARAMS.warm.cold_gap {
            return ControlFlow::Break(self.settled());
        }
        *ascent = self.ascent_from_zero();
        ControlFlow::Continue(self.ascend_fully(ascent))
    }

    /// Parts of rounds of the search while each gains a share of the gap.
    fn search_while_it_pays(&mut self, prices: &DualPoint) {
        let Some((mut state, _)) = self.best.clone() else { return };
        let mut hood = Neighbourhood::new(self.model, &state, prices, self.config.seed);
        let tries = self.round_tries() / PARAMS.warm.round_parts;
        while !self.is_within_gap() {
            let open = self.absolute_gap();
            let gained = self.round(&mut state, &mut hood, tries);
            if self.must_stop() || gained < PARAMS.warm.min_gain_per_part * open {
                return;
            }
        }
    }
}

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
        let mut start = far.then(|| rounded_down(self.model, ascent.fractional_solution()));
        let mut burst_gain = 0.0;
        loop {
            let (open, bound) = (self.absolute_gap(), self.dual_bound);
            let ascended = self.ascend_burst(ascent, |run| {
                if let Some(start) = start.take() {
                    run.sweep(start, &prices, PARAMS.sweep.min_gain);
                }
                run.search_while_it_pays(&prices, burst_gain);
            });
            let Some(ascended) = ascended else { return ControlFlow::Break(self.ended()) };
            prices = ascended;
            burst_gain = self.dual_bound - bound;
            if self.absolute_gap() > (1.0 - PARAMS.search.min_gain_per_turn) * open {
                break;
            }
        }
        if self.relative_gap() <= PARAMS.warm.cold_gap {
            return ControlFlow::Break(self.settled());
        }
        *ascent = self.ascent_from_zero();
        ControlFlow::Continue(self.ascend_fully(ascent))
    }

    /// Rounds of the search while each gains more than `burst_gain`, the gain of the last burst of the ascent,
    /// which takes about as long.
    fn search_while_it_pays(&mut self, prices: &DualPoint, burst_gain: f64) {
        let Some((mut state, _)) = self.best.clone() else { return };
        let mut hood = Neighbourhood::new(self.model, &state, prices, self.config.seed);
        loop {
            let open = self.absolute_gap();
            let gained = self.round(&mut state, &mut hood);
            if self.is_within_gap()
                || self.must_stop()
                || gained < burst_gain.max(PARAMS.search.min_gain_per_round * open)
            {
                return;
            }
        }
    }
}

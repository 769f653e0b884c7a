//! The search of a solve around a request: phase 1 on the whole region, where what the request is missing is
//! costly and every other reservation keeps what it asks for.
//!
//! The next solve places all reservations again, so it finds chains of exchanges that a search around one
//! reservation does not. Here it starts from the assignment and the prices that the plan has, and ends with the plan's
//! share of time, so its answer is as far as the next solve would be after as long.

use super::relaxed::Relaxed;
use crate::config::SolverConfig;
use crate::env::SolveEnv;
use crate::means::Means;
use crate::model::Model;
use crate::params::PARAMS;
use crate::phase1::{self, FollowUp};
use crate::state::State;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Phase 1 for a request that is short.
pub struct RegionSearch<'a> {
    /// The problem counted from the region before the request, its shortfall costly.
    pub costly: &'a Model,
    /// The reservation of the request.
    pub asking: usize,
    /// What the request can have at most.
    pub relaxed: &'a Relaxed,
    /// Price of a server of each pool to start from.
    pub prices: &'a [f64],
    /// Clock and HiGHS.
    pub means: &'a Means<'a>,
    /// Threads and seed.
    pub config: &'a SolverConfig,
}

impl RegionSearch<'_> {
    /// Gives the request more, if phase 1 finds more in its share of the time. It ends once the request has all that is
    /// possible.
    pub fn run(&self, state: &mut State) {
        let means = self.means.with_share(PARAMS.plan.region_share);
        let has_most = AtomicBool::new(false);
        let look = |found: &State| {
            if self.relaxed.is_most(&self.costly.terms[self.asking], &found.counts[self.asking]) {
                has_most.store(true, Ordering::Relaxed);
            }
        };
        let env = SolveEnv {
            elapsed: means.elapsed,
            deadline: means.deadline,
            interrupted: &|| has_most.load(Ordering::Relaxed) || (means.interrupted)(),
            progress: &|_| (),
            on_incumbent: &|_| (),
            backend: means.backend,
            warm: None,
        };
        let start = phase1::Start { prices: Some(self.prices.to_vec()), state: Some(state) };
        let follow_up = FollowUp {
            reserve: Duration::ZERO,
            on_incumbent: &look,
            refinement: &|_, _| (0.0, Duration::ZERO),
        };
        let found = phase1::run(self.costly, self.config, &env, start, follow_up).state;
        let missing = |of: &State| of.missing[self.asking];
        if missing(&found) < missing(state) && !found.regresses(self.costly) {
            *state = found;
        }
    }
}

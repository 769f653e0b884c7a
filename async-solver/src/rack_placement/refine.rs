//! Changes the counts of phase 1 where racks cost much: phase 1 counts for each reservation what racks cost it
//! if it has them to itself.

use super::network::Windows;
use super::{Network, RackPhase, place};
use crate::bound::DualPoint;
use crate::config::SolverConfig;
use crate::env::SolveEnv;
use crate::formulation::Lp;
use crate::means::Means;
use crate::model::Model;
use crate::order::in_order;
use crate::state::{IneligibleHeld, State};
use fleet::RegionSnapshot;
use std::time::Duration;

/// What it takes.
pub struct Refinement<'a> {
    /// The problem.
    pub model: &'a Model,
    /// The region.
    pub snapshot: &'a RegionSnapshot,
    /// Settings of the solve.
    pub config: &'a SolverConfig,
    /// Clock and HiGHS.
    pub env: &'a SolveEnv<'a>,
    /// Time that is needed afterwards.
    pub reserve: Duration,
    /// How far phase 1 is above its bound.
    pub gap: f64,
    /// Points with high bounds, of the model.
    pub points: &'a [DualPoint],
}

/// Other counts, and the servers with which they were found.
pub struct Refined<'a> {
    /// The counts.
    pub state: State,
    /// Who has which servers, unless nothing is to be changed today.
    pub placed: Option<(RackPhase, Network<'a>)>,
}

impl<'a> Refinement<'a> {
    /// Other counts than a state's, with which expressions 1 to 4 cost less and no more is missing; `None` if
    /// none were found, or it is not worth the time to look. Today's counts where others gain next to nothing.
    /// And what expressions 1 to 4 cost at least, where it was proved.
    pub fn run(&self, state: &State) -> (Option<Refined<'a>>, Option<f64>) {
        let Refinement { model, config, env, .. } = *self;
        // What is missing counts before anything else.
        let ordered = if state.is_short() { &in_order(model, state) } else { model };
        let must_stop = || env.must_stop(self.reserve);
        let ineligible_held = IneligibleHeld::new(model);
        let mut better = State::new(ordered, state.counts.clone());
        better.releases_ineligible = config.hand_back;
        let (placed, mut network) = self.placed(&better);
        if must_stop() {
            return (None, None);
        }
        let lp = Lp::new(ordered, false);
        let cost = better.total(ordered, &ineligible_held) - better.shortfall_cost(ordered);
        let limits = (cost - self.gap, config.gap_limit);
        let problem = (ordered, &lp);
        // Of others with other prices of what is missing nothing is proved.
        let points = if state.is_short() { &[] } else { self.points };
        let mut windows = Windows::new(
            &network,
            problem,
            &ineligible_held,
            self.means(),
            config.seed,
            limits,
            points,
        );
        if !windows.pay(&network, &better) {
            return (None, None);
        }
        network.exchange(&must_stop);
        network.update(ordered, &mut better);
        windows.run(&mut network, &mut better);
        let proved = windows.proved();
        let today = State::new(ordered, model.today());
        let mends = better.levels(ordered) != today.levels(ordered)
            || better.excess_cost(ordered) < today.excess_cost(ordered);
        if !mends && state.counts != today.counts {
            let whole =
                |network: &Network, state: &State| windows.whole(state, &network.contention(state));
            let now = whole(&self.placed(&today).1, &today);
            if now - whole(&network, &better) <= config.stay_gain * now {
                let state = State::new(model, today.counts);
                return (Some(Refined { state, placed: None }), proved);
            }
        }
        let refined = (better.counts != state.counts).then(|| {
            let state = State::new(model, better.counts);
            Refined { state, placed: Some((placed, network)) }
        });
        (refined, proved)
    }

    /// How much windows might gain on a state at most, and the longest time in which they would; zero where none
    /// promises enough.
    pub fn estimate(&self, state: &State) -> (f64, Duration) {
        let network = self.placed(state).1;
        let ineligible_held = IneligibleHeld::new(self.model);
        let cost = state.total(self.model, &ineligible_held) - state.shortfall_cost(self.model);
        let lp = Lp::new(self.model, false);
        let limits = (cost - self.gap, self.config.gap_limit);
        let problem = (self.model, &lp);
        let windows = Windows::new(
            &network,
            problem,
            &ineligible_held,
            self.means(),
            self.config.seed,
            limits,
            self.points,
        );
        if !windows.pay(&network, state) {
            return (0.0, Duration::ZERO);
        }
        (network.contention(state).total(), windows.longest_time())
    }

    fn means(&self) -> Means<'a> {
        Means {
            backend: self.env.backend,
            elapsed: self.env.elapsed,
            deadline: self.env.deadline.map(|end| end.saturating_sub(self.reserve)),
            interrupted: self.env.interrupted,
        }
    }

    fn placed(&self, state: &State) -> (RackPhase, Network<'a>) {
        let placed = place(self.model, self.snapshot, state, true, self.config.threads);
        let network = placed.network(self.model, self.snapshot, state);
        (placed, network)
    }
}

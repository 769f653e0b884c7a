//! Phase 1: everything but rack goals. Finds a good assignment and proves how good it is.
//!
//! The pools' prices come first: they give the proved bound and tell each reservation which servers
//! others need more. An ascent computes them, from zero or from the last solve's prices. Its
//! fractional solution, rounded down, is a second start of the search beside today's assignment.
//! Where the search has stalled, restarts near the incumbent, a restricted master problem and RINS follow, with
//! an effort that is fixed for regions of all sizes, so that a small region gets more of it, or until a deadline;
//! where the gap is large, exchanges between a few reservations by sub-MIPs.
//!
//! A solve ends when the gap limit is reached, at the deadline, or when nothing gains any more.
//!
//! | module | what it does |
//! |---|---|
//! | `driver` | the order of the steps |
//! | `ascent` | prices by the volume algorithm, alone or beside a search |
//! | `search` | sweeps over all reservations, rounds of ruin and recreate |
//! | `warm_start` | a solve that starts from the last solve's prices |
//! | `priority` | serves shortfalls in order of priority, and continues on that problem |
//! | `intensify` | the steps after the search has stalled |
//! | `exchange` | sub-MIPs over a few reservations |
//! | `restart` | restarts near the incumbent |
//! | `relaxation` | prices of the LP of a tiny region |
//! | `master` | the restricted master problem |
//! | `sub_mips` | branch and bound on small problems, RINS |

mod ascent;
mod driver;
mod exchange;
mod intensify;
mod master;
mod priority;
mod relaxation;
mod restart;
mod search;
mod sub_mips;
mod warm_start;

pub use driver::run;

use crate::bound::DualPoint;
use crate::config::SolverConfig;
use crate::env::{Progress, SolveEnv};
use crate::formulation::Lp;
use crate::lp::{LpJob, LpRequest, LpSolution, wait_for};
use crate::model::{Item, Model, Term};
use crate::params::PARAMS;
use crate::report::Termination;
use crate::search::Search;
use crate::state::{IneligibleHeld, State};
use crate::subproblem::Geometry;
use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// What phase 1 needs to know of what follows it.
#[derive(Clone, Copy)]
pub struct FollowUp<'a> {
    /// Time that is needed for it in any case.
    pub reserve: Duration,
    /// Called with each new incumbent.
    pub on_incumbent: &'a (dyn Fn(&State) + Sync),
    /// How much phase 2 might gain on a state by changing its counts, if phase 1 ends that far above its bound, and
    /// the longest time in which it would.
    pub refinement: &'a (dyn Fn(&State, f64) -> (f64, Duration) + Sync),
}

/// What phase 1 ended with.
pub struct Outcome {
    /// The best assignment.
    pub state: State,
    /// Its cost.
    pub primal: f64,
    /// What shortfalls cost of it, at the prices of the problem that was solved in the end.
    pub shortfall_cost: f64,
    /// The cost of today's assignment.
    pub initial_primal: f64,
    /// The best proved bound.
    pub dual_bound: f64,
    /// How it was proved.
    pub proof: Proof,
    /// Why it ended.
    pub termination: Termination,
    /// The LP's value and HiGHS' seconds.
    pub lp: Option<(f64, f64)>,
    /// Columns, rows and non-zeros of the LP.
    pub lp_size: (usize, usize, usize),
    /// Incumbents and bounds as they came.
    pub history: Vec<Progress>,
    /// Seconds of the steps "solver build", "initial state" and "mip".
    pub seconds: [f64; 3],
    /// The prices of the best bound, one per pool, where there was time for any.
    pub prices: Option<Vec<f64>>,
    /// Points with high bounds, of the model that was solved in the end.
    pub points: Vec<DualPoint>,
}

impl Outcome {
    /// What another assignment costs that is missing no more.
    pub fn cost_of(&self, model: &Model, state: &State) -> f64 {
        let cost = state.total(model, &IneligibleHeld::new(model));
        cost - state.shortfall_cost(model) + self.shortfall_cost
    }
}

/// What a dual bound rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Prices on servers: [`crate::bound`].
    Lagrangian,
    /// HiGHS' branch and bound over the whole of a small problem.
    BranchAndBound,
}

/// Where phase 1 starts from, besides today's assignment.
#[derive(Default)]
pub struct Start<'a> {
    /// Price of a server of each pool, such as the last solve's.
    pub prices: Option<Vec<f64>>,
    /// An assignment, which is the first incumbent where it is better than today's.
    pub state: Option<&'a State>,
}

/// A solve of phase 1 in progress.
struct Run<'a> {
    model: &'a Model,
    /// The linear relaxation of the model.
    lp: &'a Lp,
    config: &'a SolverConfig,
    env: &'a SolveEnv<'a>,
    /// Time that the caller needs after phase 1.
    reserve: Duration,
    follow_up: FollowUp<'a>,
    /// Options that all calls of HiGHS share.
    request: LpRequest,
    ineligible_held: IneligibleHeld,
    geometries: &'a [Geometry],
    /// The cost of today's assignment.
    initial_primal: f64,
    /// The incumbent and its cost.
    best: Option<(State, f64)>,
    dual_bound: f64,
    proof: Proof,
    /// The point with the highest Lagrangian bound.
    dual: Option<DualPoint>,
    /// Points with high bounds, of this model, the highest first.
    points: Vec<DualPoint>,
    /// A fractional solution near an optimum of the relaxation: servers of each item of each term.
    fractional: Vec<Vec<f64>>,
    /// Value of the LP and seconds of HiGHS, where the LP was solved.
    lp_solved: Option<(f64, f64)>,
    /// Columns, rows and non-zeros of the LP.
    lp_size: (usize, usize, usize),
    /// Seconds at which the run began, and at which the model was built.
    began: f64,
    built: f64,
    /// Whether it started from the last solve's prices.
    is_warm: bool,
    /// Restarts so far: each searches from a seed of its own.
    restarts: u64,
    /// Whether the clock ended an ascent or the master: the result then depends on the machine.
    hurried: bool,
    /// Whether the deadline has passed: once it has, the clock is not read again.
    stopped: AtomicBool,
    history: Vec<Progress>,
}

/// Rounds a fractional solution down, within pools and limits: an LP overfills them by its tolerances, a smoothed
/// usage by more.
pub fn rounded_down(model: &Model, near: &[Vec<f64>]) -> State {
    let mut used = vec![0; model.pools.len()];
    let rows = model.limits.rows.iter().zip(model.limits_without_items());
    let mut left: Vec<i64> = rows.map(|(row, without)| row.most - without).collect();
    let round = |(term, near): (&Term, &Vec<f64>)| -> Vec<u32> {
        let items = term.items.iter().zip(near);
        let count = |(item, near): (&Item, &f64)| {
            let pool = item.pool as usize;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "counts between 0 and the size of a pool"
            )]
            let floor = (near + 1e-6).floor().max(0.0) as u32;
            let count = floor.min(model.pools[pool].size - used[pool]);
            let count = model.fitting(item, &left, count);
            model.take_from_limits(item, &mut left, i64::from(count));
            used[pool] += count;
            count
        };
        items.map(count).collect()
    };
    let counts = model.terms.iter().zip(near).map(round).collect();
    State::new(model, counts)
}

impl Run<'_> {
    fn search(&self) -> Search<'_> {
        Search {
            model: self.model,
            geometries: self.geometries,
            ineligible_held: &self.ineligible_held,
        }
    }

    /// The seed of the next search.
    fn seed(&self) -> u64 {
        self.config.seed.wrapping_add(self.restarts)
    }

    /// Whether the time until a deadline is used while it pays. A solve that began as a warm start leaves the rest to the
    /// next one, a tiny region is soon at its best, and shortfalls are served in order of priority before that.
    fn uses_deadline(&self) -> bool {
        self.env.deadline.is_some() && !self.is_warm && !self.is_tiny() && !self.is_short()
    }

    fn must_stop(&self) -> bool {
        if !self.stopped.load(Relaxed) && self.env.must_stop(self.reserve) {
            self.stopped.store(true, Relaxed);
        }
        self.stopped.load(Relaxed)
    }

    /// Leaves phase 2 its part of the time until the deadline, which is divided in proportion to what each phase could
    /// gain.
    fn leave_time_for_refinement(&mut self) {
        let (Some(left), Some((state, _))) = (self.time_left(), &self.best) else { return };
        let open = self.absolute_gap();
        let (gain, longest) = (self.follow_up.refinement)(state, open);
        if gain > 0.0 {
            self.reserve += left.mul_f64(gain / (gain + open)).min(longest);
        }
    }

    fn stop_reason(&self) -> Termination {
        if (self.env.interrupted)() { Termination::Interrupted } else { Termination::Deadline }
    }

    fn primal(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.1)
    }

    /// Cost of the incumbent above the bound.
    fn absolute_gap(&self) -> f64 {
        (self.primal() - self.dual_bound).max(0.0)
    }

    /// Whether the gap limit is reached.
    fn is_within_gap(&self) -> bool {
        self.absolute_gap() <= self.gap_limit() + 1e-9
    }

    /// The gap limit in objective units.
    fn gap_limit(&self) -> f64 {
        self.config.gap_limit * self.cost_excluding_shortfall()
    }

    /// The gap as a share of the incumbent's cost.
    fn relative_gap(&self) -> f64 {
        self.absolute_gap() / self.cost_excluding_shortfall().max(f64::MIN_POSITIVE)
    }

    /// Cost of the incumbent without its shortfalls and what limits are exceeded by, whose prices are high and chosen by
    /// the solver.
    fn cost_excluding_shortfall(&self) -> f64 {
        let Some((state, primal)) = &self.best else { return 0.0 };
        (primal - state.shortfall_cost(self.model) - state.excess_cost(self.model)).max(0.0)
    }

    /// The termination of a search that was not interrupted.
    fn settled(&self) -> Termination {
        if self.is_within_gap() { Termination::Optimal } else { Termination::Stalled }
    }

    /// The termination of a solve that reached its gap or had to stop.
    fn ended(&self) -> Termination {
        if self.is_within_gap() { self.settled() } else { self.stop_reason() }
    }

    /// Keeps a point if its bound is one of the highest.
    fn keep_point(&mut self, point: &DualPoint) {
        let at = self.points.partition_point(|known| known.value >= point.value);
        self.points.insert(at, point.clone());
        self.points.truncate(PARAMS.sub_mip.points);
    }

    fn note(&mut self, step: &str) {
        let point = Progress {
            seconds: (self.env.elapsed)().as_secs_f64(),
            phase: 1,
            step: step.to_owned(),
            primal: self.best.as_ref().map(|best| best.1),
            dual_bound: self.dual_bound.is_finite().then_some(self.dual_bound),
        };
        (self.env.progress)(&point);
        self.history.push(point);
    }

    /// [`Run::accept`], and reports a new incumbent to the caller of the solve.
    fn offer(&mut self, state: &State, step: &str) {
        if self.accept(state) {
            (self.follow_up.on_incumbent)(state);
            self.note(step);
        }
    }

    /// Accepts a state as the incumbent if its shortfalls are smaller in order of priority, or equal at each
    /// level and its cost is lower, and if no reservation is worse off than today. Does not report it:
    /// reporting takes as long as many attempts of the search.
    fn accept(&mut self, state: &State) -> bool {
        let total = state.total(self.model, &self.ineligible_held);
        let missing = self.best.as_ref().map(|(best, _)| best.levels(self.model));
        let is_better = match missing.map(|missing| state.levels(self.model).cmp(&missing)) {
            Some(Ordering::Less) | None => true,
            Some(Ordering::Equal) => total < self.primal() - 1e-9,
            Some(Ordering::Greater) => false,
        };
        let accepted = is_better && !state.regresses(self.model);
        if accepted {
            self.best = Some((state.clone(), total));
        }
        accepted
    }

    /// Waits for HiGHS; `None` if it failed or time is up.
    fn wait(&self, job: &mut dyn LpJob, columns: usize) -> Option<LpSolution> {
        wait_for(job, columns, &|| self.must_stop())
    }

    fn finish(mut self, termination: Termination) -> Outcome {
        let searched = self.history.iter().find(|point| point.step == "mip");
        let initial = searched.map_or(self.built, |point| point.seconds);
        self.note("mip");
        let now = (self.env.elapsed)().as_secs_f64();
        let seconds = [self.built - self.began, initial - self.built, now - initial];
        let (state, primal) = self.best.take().expect("today's assignment at least");
        let mut dual_bound = self.dual_bound;
        if dual_bound > primal + 1e-6 * primal.abs().max(1.0) {
            tracing::error!(dual_bound, primal, "the bound contradicts the assignment; dropped");
            debug_assert!(false, "dual bound {dual_bound} above primal {primal}");
            dual_bound = 0.0;
        }
        // Every term of the objective is at least zero.
        let dual_bound = dual_bound.max(0.0);
        let shortfall_cost = state.shortfall_cost(self.model);
        let worth = (primal - shortfall_cost - state.excess_cost(self.model)).max(0.0);
        let limit = self.config.gap_limit * worth + 1e-9;
        let termination = match termination {
            // The last step may have reached the limit.
            Termination::Stalled if primal - dual_bound <= limit => Termination::Optimal,
            Termination::Stalled if self.hurried => Termination::Deadline,
            other => other,
        };
        Outcome {
            state,
            primal,
            shortfall_cost,
            initial_primal: self.initial_primal,
            dual_bound: dual_bound.min(primal),
            proof: self.proof,
            termination,
            lp: self.lp_solved,
            lp_size: self.lp_size,
            history: self.history,
            seconds,
            prices: self.dual.map(|dual| dual.prices),
            points: self.points,
        }
    }
}

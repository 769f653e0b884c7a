//! Phase 1: everything but rack goals. Finds a good assignment and proves how good it is.
//!
//! The pools' prices come first: they give the proved bound and tell each reservation which servers
//! others need more. Of a large region they are found by ascent alone, from nothing or from what the
//! last solve left; of a small one HiGHS solves the LP in another process, while the first incumbents
//! are made here. The mixture the ascent ends with, or the LP's solution, is rounded down to a second
//! start beside today's assignment. What the search leaves open in a small region, better prices
//! ([`prices`]) and branch and bound where they point ([`exact`]) nearly close.

mod climb;
mod exact;
mod hourly;
mod order;
mod prices;
mod rounds;

use crate::backend::{LpRequest, LpSolution};
use crate::bound::{DualPoint, in_parallel};
use crate::config::SolverConfig;
use crate::control::{Control, LpJob, Progress};
use crate::formulation::Lp;
use crate::model::{Item, Model, Term};
use crate::report::Termination;
use crate::search::Search;
use crate::state::{State, Worthless};
use crate::subproblem::Geometry;
use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

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
    /// The gap, shortfalls aside, if the search ended by itself.
    pub settled_gap: Option<f64>,
}

/// What the last solve left.
pub struct Start {
    /// Prices of the pools.
    pub prices: Vec<f64>,
    /// The gap at which it ended by itself.
    pub near_enough: f64,
}

/// What a dual bound rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Prices on servers: [`crate::bound`].
    Lagrangian,
    /// HiGHS' branch and bound over the whole of a small problem.
    BranchAndBound,
}

struct Run<'a> {
    model: &'a Model,
    /// Its linear relaxation.
    lp: &'a Lp,
    config: &'a SolverConfig,
    control: &'a Control<'a>,
    reserve: Duration,
    /// The gap that ends the solve, and the gap that the last solve reached.
    enough: f64,
    last: f64,
    worthless: Worthless,
    geometries: &'a [Geometry],
    best: Option<(State, f64)>,
    dual_bound: f64,
    proof: Proof,
    /// Where the Lagrangian bound is highest.
    dual: Option<DualPoint>,
    /// Whether the clock ended the ascent: what follows is not the same on every machine.
    hurried: bool,
    /// Whether the run was found to be at its end: that does not change again, so the clock is not read again.
    stopped: AtomicBool,
    history: Vec<Progress>,
}

/// Runs phase 1. `warm`: what the last solve left. `reserve`: time still needed afterwards.
/// `keep`: told of each better state.
pub fn run(
    model: &Model,
    config: &SolverConfig,
    control: &Control,
    warm: Option<Start>,
    reserve: Duration,
    keep: &dyn Fn(&State),
) -> Outcome {
    let clock = || (control.elapsed)().as_secs_f64();
    let begin = clock();
    let lp = Lp::new(model);
    let lp_size = (lp.problem.cost.len(), lp.problem.row_lower.len(), lp.problem.values.len());
    let request = LpRequest {
        solver: if lp_size.0 < SIMPLEX_COLUMNS { "simplex" } else { "ipx" }.into(),
        time_limit: control.deadline.map(|end| end.saturating_sub((control.elapsed)())),
        threads: 1,
        seed: u32::try_from(config.seed & 0x7fff_ffff).unwrap_or(0),
        start: None,
        mip_gap: 0.0,
        mip_nodes: 0,
    };
    let last = warm.as_ref().map_or(0.0, |warm| warm.near_enough);
    let mut run = Run {
        model,
        lp: &lp,
        config,
        control,
        reserve,
        enough: (last * (1.0 + WARM_SLACK)).max(config.gap_limit),
        last,
        worthless: Worthless::new(model),
        geometries: &[],
        best: None,
        dual_bound: f64::NEG_INFINITY,
        proof: Proof::Lagrangian,
        dual: None,
        hurried: false,
        stopped: AtomicBool::new(false),
        history: Vec::new(),
    };
    let today = State::new(model, model.today());
    let initial_primal = today.total(model, &run.worthless);
    run.best = Some((today.clone(), initial_primal));
    run.note("solver build");
    if run.must_stop() {
        let seconds = [clock() - begin, 0.0, 0.0];
        let termination = run.stop_reason();
        return run.finish(initial_primal, termination, None, lp_size, seconds);
    }
    // Of a large region the ascent finds better prices, and sooner, than HiGHS does.
    let mut job = (lp_size.0 <= SMALL_COLUMNS && warm.is_none())
        .then(|| control.backend.start(lp.problem.clone(), request.clone()));
    let geometries =
        in_parallel(model.terms.len(), config.threads, |t| Geometry::new(model, &model.terms[t]));
    run.geometries = &geometries;
    let built = clock();
    run.note("initial state");
    let mut solution = None;
    let prices = match warm {
        Some(warm) => {
            let mut ascent = run.ascent_from_last(warm.prices);
            let prices = run.follow(&mut ascent, &today, keep);
            prices.map_continue(|prices| (prices, ascent.mixture().to_vec()))
        }
        None => {
            run.improve_today(&today, if job.is_some() { 2 } else { 1 }, keep);
            solution = job.as_mut().and_then(|job| run.wait(job.as_mut(), lp_size.0));
            run.note("mip");
            ControlFlow::Continue(run.prices_and_start(solution.as_ref()))
        }
    };
    let found = prices.map_continue(|(prices, near)| {
        for start in [rounded_down(model, &near), today] {
            if !run.is_within_gap() {
                run.sweep(start, &prices, 0.0, keep);
            }
        }
        prices
    });
    let lp_value = solution.map(|solution| (solution.objective + lp.constant, solution.seconds));
    let end = |run: Run, termination: Termination, initial_primal: f64| {
        let searched = run.history.iter().find(|point| point.step == "mip");
        let initial = searched.map_or(built, |point| point.seconds);
        let seconds = [built - begin, initial - built, clock() - initial];
        run.finish(initial_primal, termination, lp_value, lp_size, seconds)
    };
    let is_short = run.is_short() && !run.must_stop();
    if is_short && run.is_small() && run.serve_in_order(&request, keep) {
        return run.go_on_in_order(found, &request, &end, keep);
    }
    let termination = match found {
        ControlFlow::Continue(prices) => run.search_from(&prices, &request, keep),
        ControlFlow::Break(termination) => termination,
    };
    // A large region's search is led best by the prices that it began with.
    if is_short && run.is_short() && !run.must_stop() {
        run.serve_in_order(&request, keep);
    }
    end(run, termination, initial_primal)
}

/// Largest LP, in columns, that is solved repeatedly: near the incumbent, and as a restricted master.
const SMALL_COLUMNS: usize = 20_000;
/// Restarts from an LP near the incumbent at most.
const RELAPSES: u32 = 4;
/// Below this many columns the simplex method is fast, and its duals are exact.
const SIMPLEX_COLUMNS: usize = 4_000;

/// The whole part of servers of each item of each term, as far as there are any in its pool: an LP
/// overfills it by its tolerances, a smoothed usage by more.
fn rounded_down(model: &Model, near: &[Vec<f64>]) -> State {
    let mut used = vec![0; model.pools.len()];
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
        Search { model: self.model, geometries: self.geometries, worthless: &self.worthless }
    }

    fn must_stop(&self) -> bool {
        if !self.stopped.load(Relaxed) && self.control.must_stop(self.reserve) {
            self.stopped.store(true, Relaxed);
        }
        self.stopped.load(Relaxed)
    }

    /// Whether the region is too large for an LP of it to be solved again and again.
    fn is_large(&self) -> bool {
        self.lp.problem.cost.len() > SMALL_COLUMNS
    }

    fn stop_reason(&self) -> Termination {
        if (self.control.interrupted)() { Termination::Interrupted } else { Termination::Deadline }
    }

    /// Reservations, the largest first: they have the most to lose from what others leave.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.model.terms.len()).collect();
        let servers = |&term: &usize| {
            let term = &self.model.terms[term];
            term.capacity / term.items.iter().map(|item| item.value).max().unwrap_or(1)
        };
        order.sort_by_key(|term| std::cmp::Reverse(servers(term)));
        order
    }

    fn primal(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.1)
    }

    /// What is open between the incumbent and the bound.
    fn open(&self) -> f64 {
        (self.primal() - self.dual_bound).max(0.0)
    }

    fn is_within_gap(&self) -> bool {
        self.is_within(self.enough)
    }

    fn is_within(&self, gap: f64) -> bool {
        self.primal() - self.dual_bound <= gap * self.worth() + 1e-9
    }

    /// The incumbent's cost without what shortfalls cost: their price is high, and set by us.
    fn worth(&self) -> f64 {
        let Some((state, primal)) = &self.best else { return 0.0 };
        (primal - state.shortfall_cost(self.model)).max(0.0)
    }

    /// How the search ended that ended by itself.
    fn settled(&self) -> Termination {
        match self {
            run if run.is_within(run.config.gap_limit) => Termination::Optimal,
            run if run.is_within(run.enough) => Termination::LastGap,
            _ => Termination::Stalled,
        }
    }

    /// How a solve ended that is near enough, or had to.
    fn ended(&self) -> Termination {
        if self.is_within_gap() { self.settled() } else { self.stop_reason() }
    }

    fn note(&mut self, step: &str) {
        let point = Progress {
            seconds: (self.control.elapsed)().as_secs_f64(),
            phase: 1,
            step: step.to_owned(),
            primal: self.best.as_ref().map(|best| best.1),
            dual_bound: self.dual_bound.is_finite().then_some(self.dual_bound),
        };
        (self.control.progress)(&point);
        self.history.push(point);
    }

    /// Accepts a state as the incumbent if less is missing in order of priority, or as much at each level
    /// and it costs less, and if nothing gets worse than today; the caller of the solve is told of it.
    fn offer(&mut self, state: &State, step: &str, keep: &dyn Fn(&State)) {
        if self.accept(state) {
            keep(state);
            self.note(step);
        }
    }

    /// [`Run::offer`], but nothing is told: to tell takes as long as many tries of the search.
    fn accept(&mut self, state: &State) -> bool {
        let total = state.total(self.model, &self.worthless);
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
        let fits = |solution: &LpSolution| {
            solution.columns.len() == columns && solution.columns.iter().all(|x| x.is_finite())
        };
        let mut outcome = None;
        while outcome.is_none() && !self.must_stop() {
            outcome = job.wait(Duration::from_millis(50));
        }
        match outcome? {
            Ok(solution) if fits(&solution) => Some(solution),
            Ok(_) => {
                tracing::warn!("HiGHS' answer does not fit the problem; going on without it");
                None
            }
            Err(failure) => {
                tracing::warn!(%failure, "HiGHS failed; going on without its answer");
                None
            }
        }
    }

    /// Improves today's assignment without prices, for an early incumbent. The number of passes is fixed,
    /// so that the result does not depend on how fast HiGHS answers.
    fn improve_today(&mut self, today: &State, passes: usize, keep: &dyn Fn(&State)) {
        let free = DualPoint::free(self.model);
        let mut early = today.clone();
        'passes: for _ in 0..passes {
            for term in self.order() {
                if self.must_stop() {
                    break 'passes;
                }
                self.search().replace(&mut early, term, &free, 0.0);
            }
            self.offer(&early, "initial state", keep);
        }
        self.repair(&mut early, &free);
        self.offer(&early, "initial state", keep);
    }

    /// Searches on from the best of what was swept.
    fn search_from(
        &mut self,
        prices: &DualPoint,
        request: &LpRequest,
        keep: &dyn Fn(&State),
    ) -> Termination {
        if self.is_within_gap() || self.solve_whole(request, keep) {
            self.settled()
        } else {
            self.search_on(prices, request, keep)
        }
    }

    /// The search: neighbourhoods, restarts, and at last better prices and what they show.
    fn search_on(
        &mut self,
        prices: &DualPoint,
        request: &LpRequest,
        keep: &dyn Fn(&State),
    ) -> Termination {
        let mut termination = self.improve(prices, self.config.stall_rounds, keep);
        if self.is_large() {
            return termination;
        }
        let mut mixture = None;
        while termination == Termination::Stalled {
            termination = self.relapse_on(request, keep);
            if termination != Termination::Stalled {
                break;
            }
            let before = self.primal();
            if mixture.is_none() {
                mixture = self.refine(request);
            }
            if let Some(mixture) = &mixture {
                termination = self.induce(mixture, request, keep);
            }
            if !self.has_gained(before) {
                break;
            }
        }
        termination
    }

    /// Whether a round brought more than next to nothing of what is open.
    fn has_gained(&self, before: f64) -> bool {
        before - self.primal() > RESTART_GAIN * (before - self.dual_bound)
    }

    /// Starts again from near the incumbent, while that helps.
    fn relapse_on(&mut self, request: &LpRequest, keep: &dyn Fn(&State)) -> Termination {
        for _ in 0..RELAPSES {
            let before = self.primal();
            let termination = self.relapse(request, keep);
            if termination != Termination::Stalled {
                return termination;
            }
            if !self.has_gained(before) {
                break;
            }
        }
        Termination::Stalled
    }

    /// Starts again from the LP solution nearest to the incumbent: the relaxation in which leaving
    /// the incumbent costs a little has other prices and another optimum to round.
    fn relapse(&mut self, request: &LpRequest, keep: &dyn Fn(&State)) -> Termination {
        let Some((incumbent, _)) = self.best.clone() else { return Termination::Deadline };
        let mut near = self.model.clone();
        for (term, counts) in near.terms.iter_mut().zip(&incumbent.counts) {
            for (item, &count) in term.items.iter_mut().zip(counts) {
                (item.held_in_use, item.held_idle) = (0, count);
            }
            term.worthless.clear();
            term.short_max = term.shortfall(counts);
        }
        let lp = Lp::new(&near);
        let columns = lp.problem.cost.len();
        let mut job = self.control.backend.start(lp.problem.clone(), request.clone());
        let solution = self.wait(job.as_mut(), columns);
        let Some(solution) = solution else {
            return if self.must_stop() { self.stop_reason() } else { Termination::Stalled };
        };
        let prices = self.prices(&solution);
        let counts = |term| lp.counts(self.model, term, &solution.columns);
        let near: Vec<_> = (0..self.model.terms.len()).map(counts).collect();
        self.sweep(rounded_down(self.model, &near), &prices, 0.0, keep);
        self.sweep(incumbent, &prices, 0.0, keep);
        self.improve(&prices, self.config.stall_rounds, keep)
    }

    fn finish(
        mut self,
        initial_primal: f64,
        termination: Termination,
        lp: Option<(f64, f64)>,
        lp_size: (usize, usize, usize),
        seconds: [f64; 3],
    ) -> Outcome {
        self.note("mip");
        let (state, primal) = self.best.take().expect("today's assignment at least");
        let mut dual_bound = self.dual_bound;
        if dual_bound > primal + 1e-6 * primal.abs().max(1.0) {
            tracing::error!(dual_bound, primal, "the bound contradicts the assignment; dropped");
            debug_assert!(false, "dual bound {dual_bound} above primal {primal}");
            dual_bound = 0.0;
        }
        let termination = match termination {
            Termination::Stalled if self.hurried => Termination::Deadline,
            other => other,
        };
        // Every term of the objective is at least zero.
        let dual_bound = dual_bound.max(0.0);
        let ended_by_itself =
            !matches!(termination, Termination::Deadline | Termination::Interrupted);
        let shortfall_cost = state.shortfall_cost(self.model);
        let worth = primal - shortfall_cost;
        let gap = (primal - dual_bound).max(0.0) / worth.max(f64::MIN_POSITIVE);
        // An accepted gap must not grow from solve to solve; it may shrink where a solve reached a smaller
        // one easily, as after a hard hour.
        let gap = match termination {
            Termination::LastGap => gap.clamp(NEARER_MOST * self.last, self.last),
            Termination::Stalled if self.is_not_far(gap) => gap.min(self.enough),
            _ => gap,
        };
        Outcome {
            state,
            primal,
            shortfall_cost,
            initial_primal,
            dual_bound: dual_bound.min(primal),
            proof: self.proof,
            termination,
            lp,
            lp_size,
            history: self.history,
            seconds,
            prices: self.dual.map(|dual| dual.prices),
            settled_gap: ended_by_itself.then_some(gap).filter(|gap| gap.is_finite()),
        }
    }
}

/// How much further from its bound than the last solve a warm one may end, as a share of that gap. What the
/// next may depends on the last that ended by itself, so that this does not add up.
const WARM_SLACK: f64 = 0.25;
/// How much nearer than the last solve had to come the next must, at most, as a share of that gap.
const NEARER_MOST: f64 = 0.5;
/// Share of the open gap a restart must gain to be followed by another.
const RESTART_GAIN: f64 = 0.02;

//! The solve ends when it must, with a valid answer, for any behaviour of HiGHS.

use crate::brute;
use crate::world::{
    Clock, HAMLET, TOWN, Unhurried, config, for_each, snapshot, solved_with, worlds,
};
use async_solver::backend::{InProcess, LpProblem, LpRequest, LpSolution};
use async_solver::baselines::raw::RawModel;
use async_solver::{
    Backend, LpFailure, LpJob, SolveEnv, SolveOutcome, SolverConfig, Termination, solve,
};
use datasets::generate::{GenerateOptions, State, generate};
use fleet::audit::audit;
use fleet::{RegionSnapshot, SnapshotParts, Targets};
use std::sync::Mutex;
use std::time::Duration;

/// HiGHS that never comes back.
struct Silent;

impl Backend for Silent {
    fn start(&self, _: LpProblem, _: LpRequest) -> Box<dyn LpJob> {
        Box::new(Silent)
    }
}

impl LpJob for Silent {
    fn wait(&mut self, _: Duration) -> Option<Result<LpSolution, LpFailure>> {
        None
    }
}

/// HiGHS that fails, or returns what is of no use.
#[derive(Clone)]
struct Answers(Result<LpSolution, LpFailure>);

impl Backend for Answers {
    fn start(&self, _: LpProblem, _: LpRequest) -> Box<dyn LpJob> {
        Box::new(self.clone())
    }
}

impl LpJob for Answers {
    fn wait(&mut self, _: Duration) -> Option<Result<LpSolution, LpFailure>> {
        Some(self.0.clone())
    }
}

/// Solves with a deadline on such a clock; gives the instant of the return too.
fn solved_by(
    deadline: Duration,
    snapshot: &RegionSnapshot,
    backend: &(dyn Backend + Sync),
) -> (SolveOutcome, Duration) {
    let clock = Clock::default();
    let env = SolveEnv {
        elapsed: &|| clock.read(),
        deadline: Some(deadline),
        ..SolveEnv::untimed(backend)
    };
    let outcome = solve(snapshot, &config(), &env);
    (outcome, clock.read())
}

fn assert_valid(snapshot: &RegionSnapshot, outcome: &SolveOutcome) {
    let report = audit(snapshot, &outcome.targets);
    assert!(report.is_clean(), "{report}");
    let phase1 = &outcome.stats.phase1;
    assert!(phase1.dual_bound <= phase1.primal);
}

/// The bound against the optimum that HiGHS finds on single servers. Where a reservation ends short the two
/// price what is missing differently, so there `tests/truth.rs` compares with brute force instead.
fn assert_proved(snapshot: &RegionSnapshot, outcome: &SolveOutcome) {
    if outcome.stats.phase1.shortfall_cost > 0.0 {
        return;
    }
    let optimum = RawModel::build(snapshot).solve().expect("HiGHS solves small models");
    let bound = outcome.stats.phase1.dual_bound;
    assert!(bound <= optimum + 1e-5 + 1e-7 * optimum.abs(), "bound {bound} above {optimum}");
}

/// Today's assignment, but for surplus handed back, and nothing taken up.
fn assert_today(snapshot: &RegionSnapshot, config: &SolverConfig, outcome: &SolveOutcome) {
    if !config.hand_back {
        assert_eq!(outcome.targets, Targets::unchanged(snapshot));
    }
    for step in outcome.targets.diff(snapshot) {
        assert_eq!(step.target, None, "{step:?} gives a server to a reservation");
    }
    assert_eq!(outcome.stats.phase1.primal, outcome.stats.phase1.initial_primal);
}

fn stopped(
    world: &SnapshotParts,
    config: &SolverConfig,
    deadline: Option<Duration>,
    interrupted: bool,
) -> Termination {
    let snapshot = snapshot(world);
    let env = SolveEnv { deadline, interrupted: &|| interrupted, ..SolveEnv::untimed(&InProcess) };
    let outcome = solve(&snapshot, config, &env);
    assert_valid(&snapshot, &outcome);
    assert_today(&snapshot, config, &outcome);
    outcome.stats.phase1.termination
}

#[test]
fn zero_deadline_returns_the_current_assignment() {
    for_each(20, worlds(TOWN), |world| {
        for hand_back in [false, true] {
            let config = SolverConfig { hand_back, ..config() };
            let ended = stopped(&world, &config, Some(Duration::ZERO), false);
            assert_eq!(ended, Termination::Deadline);
        }
    });
}

#[test]
fn immediate_interrupt_returns_the_current_assignment() {
    for_each(20, worlds(TOWN), |world| {
        for hand_back in [false, true] {
            let config = SolverConfig { hand_back, ..config() };
            assert_eq!(stopped(&world, &config, None, true), Termination::Interrupted);
        }
    });
}

#[test]
fn every_deadline_is_met() {
    for_each(10, worlds(TOWN), |world| {
        let snapshot = snapshot(&world);
        for millis in [1, 30, 100, 300, 1_000] {
            let deadline = Duration::from_millis(millis);
            let (outcome, at) = solved_by(deadline, &snapshot, &InProcess);
            assert_valid(&snapshot, &outcome);
            // Below its reserve a solve can only read the clock for its report.
            let least = Duration::from_millis(40);
            assert!(at <= deadline.max(least), "{deadline:?} wanted, {at:?} taken");
        }
    });
}

#[test]
fn silent_backend_does_not_delay_the_solve() {
    for_each(10, worlds(HAMLET), |world| {
        let snapshot = snapshot(&world);
        let deadline = Duration::from_millis(2_000);
        let (outcome, at) = solved_by(deadline, &snapshot, &Silent);
        assert!(at <= deadline, "{deadline:?} wanted, {at:?} taken");
        assert_valid(&snapshot, &outcome);
        assert_proved(&snapshot, &outcome);
    });
}

/// Above the size at which HiGHS solves the LP: the clock ends the solve, it says so, and it is on time, also with HiGHS
/// that never comes back.
#[test]
fn large_region_uses_the_time_until_its_deadline() {
    let options =
        GenerateOptions { reservations: 33, state: State::Greedy, ..GenerateOptions::new(10_000) };
    let region = RegionSnapshot::new(generate(&options).expect("generated")).expect("a region");
    let deadline = Duration::from_secs(10);
    for backend in [&Unhurried as &(dyn Backend + Sync), &Silent] {
        let (outcome, at) = solved_by(deadline, &region, backend);
        assert_valid(&region, &outcome);
        assert!(outcome.stats.sizes.phase1_columns >= 4_000, "a tiny region");
        assert_eq!(outcome.stats.phase1.termination, Termination::Deadline);
        assert!(at > deadline / 2 && at <= deadline, "{at:?}");
    }
}

#[test]
fn failed_backend_keeps_the_bound() {
    let useless = LpSolution { optimal: true, row_duals: Vec::new(), ..LpSolution::default() };
    let failures = [
        Err(LpFailure::Process("killed".into())),
        Err(LpFailure::Status("Unknown".into())),
        Ok(useless),
    ];
    for_each(10, worlds(HAMLET), |world| {
        let snapshot = snapshot(&world);
        for failure in &failures {
            let outcome = solved_with(&snapshot, &config(), &Answers(failure.clone()));
            assert_valid(&snapshot, &outcome);
            assert_proved(&snapshot, &outcome);
        }
    });
}

/// Each incumbent handed out on the way is an answer already: less missing in order of priority than the one
/// before it, or as much at a cost no higher.
#[test]
fn every_incumbent_is_valid_and_better_than_the_last() {
    for_each(10, worlds(TOWN), |world| {
        let snapshot = snapshot(&world);
        let kept: Mutex<Vec<Targets>> = Mutex::default();
        let env = SolveEnv {
            elapsed: &|| Duration::ZERO,
            deadline: None,
            interrupted: &|| false,
            progress: &|_| (),
            on_incumbent: &|targets| kept.lock().expect("not poisoned").push(targets.clone()),
            backend: &InProcess,
            warm: None,
        };
        let config = SolverConfig { hand_back: false, ..config() };
        solve(&snapshot, &config, &env);
        let by_level = brute::Phase1::new(&snapshot);
        let mut last: Option<(Vec<i128>, f64)> = None;
        for targets in kept.lock().expect("not poisoned").iter() {
            let report = audit(&snapshot, targets);
            assert!(report.is_clean(), "{report}");
            let found = by_level.standing(targets.holders()).expect("nothing worse than today");
            if let Some((missing, cost)) = &last {
                let better = found.0 < *missing || found.0 == *missing && found.1 <= cost + 1e-6;
                assert!(better, "{found:?} after {last:?}");
            }
            last = Some(found);
        }
    });
}

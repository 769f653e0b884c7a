//! Rivals against every assignment of tiny regions, and against each other.

use crate::brute::Phase1;
use crate::world::{TINY, config, empty, for_each, reservation, rru, server, snapshot, worlds};
use async_solver::SolveEnv;
use async_solver::backend::InProcess;
use async_solver::baselines::{greedy, mip};
use std::time::Duration;

const CASES: u32 = 40;

/// No deadline, and time stands still.
const CONTROL: SolveEnv<'static> = SolveEnv {
    elapsed: &|| Duration::ZERO,
    deadline: None,
    interrupted: &|| false,
    progress: &|_| {},
    on_incumbent: &|_| {},
    backend: &InProcess,
    warm: None,
};

#[test]
fn integer_solution_is_optimal_and_relaxation_is_below() {
    for_each(CASES, worlds(TINY), |world| {
        let snapshot = snapshot(&world);
        let phase1 = Phase1::new(&snapshot);
        let (optimum, whole) = (phase1.optimum(), phase1.whole_optimum());
        let slack = 1e-4 + 1e-6 * whole.abs();
        let env = CONTROL;
        let pooled = mip::pooled(&snapshot, &config(), &env);
        let primal = pooled.primal.expect("an assignment");
        assert!((primal - optimum).abs() <= slack, "{primal}, optimum {optimum}");
        assert!(pooled.dual_bound.expect("a bound") <= optimum + slack);
        // The raw model has expression 2 as it is, which is at least what phase 1 takes it for.
        let raw = mip::raw(&snapshot, &config(), &env);
        let bound = raw.dual_bound.expect("a bound");
        assert!((bound - whole).abs() <= slack, "{bound}, optimum {whole}");
        assert!(raw.primal.expect("an assignment") <= whole + slack);
        let bound = mip::relaxation(&snapshot, &config(), &env).dual_bound;
        assert!(bound.is_none_or(|bound| bound <= optimum + slack), "{bound:?}, {optimum}");
    });
}

/// Regression: where no reservation can use a pool, what is held there was taken for gone, and the bound of the
/// whole problem was too high by its price.
#[test]
fn servers_without_demand_cost_nothing() {
    let mut parts = empty();
    parts.reservations = vec![reservation("r0", 0.0)];
    parts.servers =
        vec![server("s0", ("dc0", "m0", "k0"), "t0"), server("s1", ("dc0", "m0", "k0"), "t1")];
    parts.servers[0].current_reservation = Some("r0".into());
    parts.rru = vec![rru("r0", "t1", 1.0)];
    let snapshot = snapshot(&parts);
    let answer = mip::pooled(&snapshot, &config(), &CONTROL);
    assert_eq!(answer.primal, Some(0.0));
    assert!(answer.dual_bound.expect("a bound").abs() < 1e-9, "{:?}", answer.dual_bound);
}

#[test]
fn assignment_cost_equals_brute_force() {
    for_each(CASES, worlds(TINY), |world| {
        let snapshot = snapshot(&world);
        let targets = greedy::assign(&snapshot);
        if let Some(cost) = Phase1::new(&snapshot).cost(targets.holders()) {
            let primal = mip::primal(&snapshot, &targets);
            // Servers worth zero to their holder leave only when others need their place.
            assert!(primal <= cost + 1e-6 + 1e-9 * cost.abs(), "{primal} instead of {cost}");
        }
    });
}

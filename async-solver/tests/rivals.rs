//! Rivals against every assignment of tiny regions, and against each other.

mod brute;
mod world;

use async_solver::backend::InProcess;
use async_solver::{Control, greedy, rivals};
use brute::Phase1;
use std::time::Duration;
use world::{TINY, config, for_each, snapshot, worlds};

const CASES: u32 = 40;

#[test]
fn whole_problems_have_the_optimum_and_the_relaxation_is_below() {
    for_each(CASES, worlds(TINY), |world| {
        let snapshot = snapshot(&world);
        let optimum = Phase1::new(&snapshot).optimum();
        let slack = 1e-4 + 1e-6 * optimum.abs();
        let control = Control {
            elapsed: &|| Duration::ZERO,
            deadline: None,
            interrupted: &|| false,
            progress: &|_| {},
            incumbent: &|_| {},
            backend: &InProcess,
        };
        for solve in [rivals::pooled, rivals::raw] {
            let answer = solve(&snapshot, &config(), &control);
            let primal = answer.primal.expect("an assignment");
            assert!((primal - optimum).abs() <= slack, "{primal}, optimum {optimum}");
            assert!(answer.dual_bound.expect("a bound") <= optimum + slack);
        }
        let bound = rivals::relaxation(&snapshot, &config(), &control).dual_bound;
        assert!(bound.is_none_or(|bound| bound <= optimum + slack), "{bound:?}, {optimum}");
    });
}

#[test]
fn the_price_of_an_assignment_is_that_of_brute_force() {
    for_each(CASES, worlds(TINY), |world| {
        let snapshot = snapshot(&world);
        let targets = greedy::assign(&snapshot);
        if let Some(cost) = Phase1::new(&snapshot).cost(targets.holders()) {
            let primal = rivals::primal(&snapshot, &targets);
            // Servers that count for nothing leave only when others need their place.
            assert!(primal <= cost + 1e-6 + 1e-9 * cost.abs(), "{primal} instead of {cost}");
        }
    });
}

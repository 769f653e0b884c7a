//! The solver against every assignment of tiny regions.

mod brute;
mod world;

use async_solver::SolverConfig;
use async_solver::raw::RawModel;
use brute::Phase1;
use std::cell::Cell;
use world::{HAMLET, TINY, config, for_each, snapshot, solved, worlds};

const CASES: u32 = 60;

/// Rounding in a cost: absolute, and relative for costs with shortfalls in them.
fn slack(cost: f64) -> f64 {
    1e-6 + 1e-11 * cost.abs()
}

#[test]
fn no_bound_lies_and_no_primal_is_below_the_optimum() {
    let (reached, proved, all) = (Cell::new(0), Cell::new(0), Cell::new(0));
    for_each(CASES, worlds(TINY), |world| {
        let snapshot = snapshot(&world);
        let phase1 = Phase1::new(&snapshot);
        let optimum = phase1.optimum();
        let config = SolverConfig { hand_back: false, ..config() };
        let outcome = solved(&snapshot, &config);
        let stats = &outcome.stats.phase1;
        assert!(
            stats.dual_bound <= optimum + slack(optimum),
            "bound {} above the optimum {optimum}",
            stats.dual_bound
        );
        for point in &outcome.stats.history {
            let bound = point.dual_bound.unwrap_or(f64::NEG_INFINITY);
            assert!(bound <= optimum + slack(optimum), "{point:?} above the optimum {optimum}");
        }
        assert!(
            stats.primal >= optimum - slack(optimum),
            "primal {} below the optimum {optimum}",
            stats.primal
        );
        // Without surplus handed back, phase 2 changes no cost of phase 1.
        let cost = phase1.cost(outcome.targets.holders()).expect("nothing worse than today");
        assert!((cost - stats.primal).abs() <= slack(cost), "{cost} claimed as {}", stats.primal);
        all.set(all.get() + 1);
        reached.set(reached.get() + u32::from(stats.primal <= optimum + slack(optimum)));
        proved.set(proved.get() + u32::from(stats.dual_bound >= optimum - 0.01 * optimum - 1e-6));
    });
    let (reached, proved, all) = (reached.get(), proved.get(), all.get());
    // Measured: 89.7 % over 8,000 worlds; single servers are what a search for regions is bad at.
    assert!(reached * 100 >= all * 85, "optimum reached in {reached} of {all} worlds only");
    println!("optimum reached in {reached}, bound within 1 % of it in {proved} of {all}");
}

#[test]
fn raw_model_has_the_optimum_of_every_assignment() {
    for_each(CASES, worlds(TINY), |world| {
        let snapshot = snapshot(&world);
        let optimum = Phase1::new(&snapshot).optimum();
        let raw = RawModel::build(&snapshot).solve().expect("HiGHS solves tiny models");
        assert!((raw - optimum).abs() <= highs_slack(optimum), "raw {raw}, optimum {optimum}");
    });
}

#[test]
fn raw_optimum_lies_between_bound_and_primal() {
    for_each(20, worlds(HAMLET), |world| {
        let snapshot = snapshot(&world);
        let raw = RawModel::build(&snapshot).solve().expect("HiGHS solves small models");
        let stats = solved(&snapshot, &config()).stats.phase1;
        let slack = highs_slack(raw);
        assert!(stats.dual_bound <= raw + slack, "bound {} above {raw}", stats.dual_bound);
        assert!(stats.primal >= raw - slack, "primal {} below {raw}", stats.primal);
    });
}

/// HiGHS lets rows be off by its tolerance, which prices of shortfalls make visible.
fn highs_slack(cost: f64) -> f64 {
    1e-5 + 1e-7 * cost.abs()
}

//! What a solve leaves for the next: it may cost time or gap, never truth.

use crate::brute::Phase1;
use crate::world::{TINY, TOWN, config, crossed, for_each, snapshot, solved, solved_from, worlds};
use async_solver::backend::InProcess;
use async_solver::{SolverConfig, Termination, WarmDomain, WarmPrice, WarmStart};
use fleet::RegionSnapshot;
use fleet::audit::audit;
use proptest::strategy::Strategy;
use std::cell::Cell;

/// Prices that no solve would leave: of the region or not, absurd or no numbers at all.
fn junk(snapshot: &RegionSnapshot, seed: u32) -> WarmStart {
    const PRICES: [f64; 10] =
        [0.0, 0.3, 2.0, 7.5, 1e3, 1e12, -1.0, f64::NAN, f64::INFINITY, f64::MAX];
    let mut state = seed;
    let mut below = |count: usize| {
        // Knuth's MMIX has more digits; these are enough to mix ten prices.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as usize % count
    };
    let places = snapshot.msbs.iter().map(|msb| msb.id.clone()).chain(["elsewhere".into()]);
    let types = snapshot.hardware_types.iter().cloned().chain(["unheard-of".into()]);
    let types: Vec<_> = types.collect();
    let mut prices = Vec::new();
    for msb in places {
        for hardware_type in &types {
            if below(4) > 0 {
                let (msb, hardware_type) = (msb.clone(), hardware_type.clone());
                prices.push(WarmPrice { msb, hardware_type, price: PRICES[below(PRICES.len())] });
            }
        }
    }
    let mut domains = Vec::new();
    let names = snapshot.reservations.iter().map(|of| of.id.clone()).chain(["unknown".into()]);
    for reservation in names {
        for partition in &snapshot.partitions {
            for domain in partition.domains.iter().cloned().chain(["unheard-of".into()]) {
                let (reservation, partition) = (reservation.clone(), partition.name.clone());
                let price = PRICES[below(PRICES.len())];
                domains.push(WarmDomain { reservation, partition, domain, price });
            }
        }
    }
    WarmStart { prices, domains, ..WarmStart::default() }
}

#[test]
fn bound_is_valid_for_any_warm_prices() {
    let seed = Cell::new(1);
    let some_crossed =
        worlds(TINY).prop_map(|of| if of.servers.len() % 2 == 0 { crossed(of) } else { of });
    for_each(150, some_crossed, |world| {
        let snapshot = snapshot(&world);
        seed.set(seed.get() + 1);
        let phase1 = Phase1::new(&snapshot);
        let (_, optimum) = phase1.best_in_order();
        let config = SolverConfig { hand_back: false, unguaranteed: false, ..config() };
        let left = junk(&snapshot, seed.get());
        let outcome = solved_from(&snapshot, &config, &InProcess, Some(&left));
        // Prices of shortfalls are the solver's; what they cost is in bound and primal alike.
        let short = outcome.stats.phase1.shortfall_cost;
        let slack = 1e-6 + 1e-11 * (optimum.abs() + short);
        for point in &outcome.stats.history {
            let bound = point.dual_bound.unwrap_or(f64::NEG_INFINITY) - short;
            assert!(bound <= optimum + slack, "{point:?} above the optimum {optimum}");
        }
        let (_, cost) =
            phase1.standing(outcome.targets.holders()).expect("nothing worse than today");
        assert!((cost - (outcome.stats.phase1.primal - short)).abs() <= slack, "{cost}");
        assert!(audit(&snapshot, &outcome.targets).is_clean());
        assert!(outcome.warm.prices.iter().all(|of| of.price.is_finite() && of.price >= 0.0));
    });
}

#[test]
fn warm_solve_is_as_good_with_any_number_of_threads() {
    for_each(12, worlds(TOWN), |world| {
        let snapshot = snapshot(&world);
        let first = solved(&snapshot, &config());
        let left = Some(&first.warm);
        let again = solved_from(&snapshot, &config(), &InProcess, left);
        let (cold, warm) = (&first.stats.phase1, &again.stats.phase1);
        let worth = 0.02 * cold.primal.abs() + 1e-6;
        assert!(warm.primal <= cold.primal + worth, "{} after {}", warm.primal, cold.primal);
        let two = SolverConfig { threads: 2, ..config() };
        let two = solved_from(&snapshot, &two, &InProcess, left);
        assert_eq!(two.targets, again.targets);
        assert_eq!(two.stats.phase1.dual_bound.to_bits(), warm.dual_bound.to_bits());
        assert_eq!(two.warm, again.warm);
    });
}

#[test]
fn warm_solve_ends_by_gap_limit_or_stall_at_any_prices() {
    for_each(12, worlds(TOWN), |world| {
        let snapshot = snapshot(&world);
        let outcome = solved_from(&snapshot, &config(), &InProcess, Some(&junk(&snapshot, 7)));
        let phase1 = &outcome.stats.phase1;
        let worth = phase1.primal - phase1.shortfall_cost;
        let gap = (phase1.primal - phase1.dual_bound) / worth.max(f64::MIN_POSITIVE);
        // A bound is reduced by the rounding of its sums, so a limit of zero may be missed by that.
        let limit = config().gap_limit;
        match phase1.termination {
            Termination::Optimal => assert!(gap <= limit + 1e-9, "{gap}"),
            Termination::Stalled => assert!(gap > limit, "{gap}"),
            other => panic!("{other:?} without a deadline"),
        }
    });
}

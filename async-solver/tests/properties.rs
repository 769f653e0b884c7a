//! What every solve promises, over regions drawn at random.

use crate::brute;
use crate::world::{
    HAMLET, TOWN, config, for_each, snapshot, solved, worlds, worlds_without_rules,
};
use async_solver::baselines::least_buffer;
use async_solver::{SolveOutcome, SolverConfig, Termination};
use fleet::audit::{Objective, audit};
use fleet::{MsbIx, RegionSnapshot, ReservationKind, Rru, SnapshotParts, Targets};
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, RngSeed};
use std::cell::Cell;
use std::sync::{Arc, Mutex, OnceLock};

fn assert_close(found: f64, claimed: f64, what: &str) {
    let slack = 1e-6 * found.abs().max(1.0);
    assert!((found - claimed).abs() <= slack, "{what}: {found}, claimed {claimed}");
}

fn total_shortfall(snapshot: &RegionSnapshot, targets: &Targets) -> Vec<Rru> {
    audit(snapshot, targets).reservations.iter().map(|row| row.holding.shortfall).collect()
}

/// The sum over MSBs of servers given to guaranteed reservations, squared, over the available ones.
fn unevenness(snapshot: &RegionSnapshot, outcome: &SolveOutcome) -> f64 {
    let mut full = vec![(0.0, 0.0); snapshot.msbs.len()];
    for (server, holder) in snapshot.servers.iter().zip(outcome.targets.holders()) {
        if server.available {
            let guaranteed = |holder: fleet::ReservationIx| {
                let of = &snapshot.reservations[holder.ix()];
                // Servers worth zero to their holder do not count.
                of.kind == ReservationKind::Guaranteed && snapshot.value(server, holder) > Rru::ZERO
            };
            let msb: &mut (f64, f64) = &mut full[snapshot.msb_of(server).ix()];
            msb.0 += if holder.is_some_and(guaranteed) { 1.0 } else { 0.0 };
            msb.1 += 1.0;
        }
    }
    full.iter().filter(|msb| msb.1 > 0.0).map(|msb| msb.0 * msb.0 / msb.1).sum()
}

/// Whether a reservation may have a server by `allowed_datacenters.parquet`.
fn is_allowed(world: &SnapshotParts, server: &fleet::Server, of: &fleet::Reservation) -> bool {
    let row = world.servers.iter().find(|row| row.server_id == server.id).expect("of this world");
    let mut rows = world.allowed_datacenters.iter().filter(|row| row.reservation_id == of.id);
    rows.clone().next().is_none() || rows.any(|allowed| allowed.datacenter == row.datacenter)
}

type Solved = (SnapshotParts, OnceLock<SolveOutcome>);

/// Worlds that were solved with [`config`]. All tests of this file draw the same ones: each is solved once.
static SOLVED: Mutex<Vec<Arc<Solved>>> = Mutex::new(Vec::new());

/// The outcome of a world, solved with [`config`].
fn outcome_of(world: &SnapshotParts, snapshot: &RegionSnapshot) -> SolveOutcome {
    let mut all = SOLVED.lock().expect("no test fails here");
    let known = all.iter().find(|known| known.0 == *world).cloned();
    let entry = known.unwrap_or_else(|| {
        let entry = Arc::new((world.clone(), OnceLock::new()));
        all.push(Arc::clone(&entry));
        entry
    });
    drop(all);
    entry.1.get_or_init(|| solved(snapshot, &config())).clone()
}

/// Who holds each server, by name: comparable between snapshots.
fn by_name(snapshot: &RegionSnapshot, outcome: &SolveOutcome) -> Vec<(String, String)> {
    (snapshot.servers.iter().zip(outcome.targets.holders()))
        .map(|(server, &holder)| {
            (server.id.to_string(), fleet::holder_name(snapshot, holder).to_string())
        })
        .collect()
}

/// Reverses and deals the rows of every table.
fn shuffled(parts: &SnapshotParts) -> SnapshotParts {
    fn deal<T: Clone>(rows: &[T]) -> Vec<T> {
        (0..3).flat_map(|from| rows.iter().rev().skip(from).step_by(3).cloned()).collect()
    }
    SnapshotParts {
        servers: deal(&parts.servers),
        reservations: deal(&parts.reservations),
        rru: deal(&parts.rru),
        affinity: deal(&parts.affinity),
        allowed_datacenters: deal(&parts.allowed_datacenters),
        unavailability: deal(&parts.unavailability),
        ..parts.clone()
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn solve_passes_audit(world in worlds(TOWN), hand_back: bool, rack_phase: bool) {
        let snapshot = snapshot(&world);
        let config = SolverConfig { hand_back, rack_phase, ..config() };
        let outcome = solved(&snapshot, &config);
        let report = audit(&snapshot, &outcome.targets);
        prop_assert!(report.is_clean(), "{report}");
        let Objective { total, stability, rack_spread, msb_spread, buffer } =
            outcome.stats.objective;
        assert_close(report.objective.stability, stability, "stability");
        assert_close(report.objective.rack_spread, rack_spread, "rack spread");
        assert_close(report.objective.msb_spread, msb_spread, "MSB spread");
        assert_close(report.objective.buffer, buffer, "buffer");
        assert_close(report.objective.total, total, "total");
        let phase1 = &outcome.stats.phase1;
        prop_assert!(phase1.dual_bound <= phase1.primal);
        // What is missing counts first, by order of priority, and only then what it costs.
        let by_level = brute::Phase1::new(&snapshot);
        let missing = |targets: &Targets| {
            by_level.standing(targets.holders()).expect("nothing worse than today").0
        };
        let order = missing(&outcome.targets).cmp(&missing(&Targets::unchanged(&snapshot)));
        prop_assert!(order.is_le());
        prop_assert!(order.is_lt() || phase1.primal <= phase1.initial_primal + 1e-9);
    }

    /// A solve within move budgets pins servers: goals of spread are still those of the whole region.
    #[test]
    fn pins_change_no_goal_of_spread(world in worlds(TOWN), pins: u64) {
        let mut snapshot = snapshot(&world);
        for (number, server) in snapshot.servers.iter_mut().enumerate() {
            server.pinned |= pins >> (number % 64) & 1 == 1;
        }
        let outcome = solved(&snapshot, &config());
        let report = audit(&snapshot, &outcome.targets);
        assert_close(report.objective.msb_spread, outcome.stats.objective.msb_spread, "MSB spread");
        assert_close(report.objective.total, outcome.stats.objective.total, "total");
    }

    #[test]
    fn solve_shortens_no_reservation(world in worlds(TOWN)) {
        let snapshot = snapshot(&world);
        let outcome = outcome_of(&world, &snapshot);
        let today = total_shortfall(&snapshot, &Targets::unchanged(&snapshot));
        let then = total_shortfall(&snapshot, &outcome.targets);
        for (position, (then, today)) in then.iter().zip(&today).enumerate() {
            let id = &snapshot.reservations[position].id;
            prop_assert!(then <= today, "{id} is {then} RRU short, today {today}");
        }
    }

    #[test]
    fn promises_hold_after_any_msb_loss(world in worlds(TOWN)) {
        let snapshot = snapshot(&world);
        let outcome = outcome_of(&world, &snapshot);
        let short = total_shortfall(&snapshot, &outcome.targets);
        for (position, reservation) in snapshot.reservations.iter().enumerate() {
            if reservation.kind == ReservationKind::Elastic || short[position] > Rru::ZERO {
                continue;
            }
            let holds = |server: &fleet::Server, lost: Option<MsbIx>| {
                server.available && Some(snapshot.msb_of(server)) != lost
            };
            let losses = (0..snapshot.msbs.len()).map(|msb| Some(MsbIx::new(msb)));
            let losses = losses.filter(|_| reservation.msb_buffer).chain([None]);
            for lost in losses {
                let left: Rru = (snapshot.servers.iter().zip(outcome.targets.holders()))
                    .filter(|(server, _)| holds(server, lost))
                    .filter(|(_, holder)| holder.is_some_and(|holder| holder.ix() == position))
                    .filter(|(server, _)| is_allowed(&world, server, reservation))
                    .filter_map(|(server, _)| reservation.value(server.hardware_type))
                    .sum();
                prop_assert!(left >= reservation.capacity, "{} after {lost:?}", reservation.id);
            }
        }
    }

    /// By the rows of the world, not by what the solver makes of them.
    #[test]
    fn only_allowed_servers_are_assigned(world in worlds(TOWN)) {
        let snapshot = snapshot(&world);
        let outcome = outcome_of(&world, &snapshot);
        for (server, &target) in snapshot.servers.iter().zip(outcome.targets.holders()) {
            let Some(target) = target.filter(|_| server.available) else { continue };
            let of = &snapshot.reservations[target.ix()];
            let stays = server.holder() == Some(target);
            prop_assert!(stays || is_allowed(&world, server, of), "{} to {}", server.id, of.id);
        }
    }

    #[test]
    fn replica_limit_per_msb_holds_or_improves(world in worlds(TOWN)) {
        let snapshot = snapshot(&world);
        let outcome = outcome_of(&world, &snapshot);
        let today = Targets::unchanged(&snapshot);
        for row in world.reservations.iter().filter(|row| row.capacity_rru > 0.0) {
            let Some((n, k)) = row.replicas.zip(row.replicas_per_msb) else { continue };
            let ix = snapshot.reservation(&row.reservation_id).expect("it is there");
            let most = row.capacity_rru * f64::from(k) / f64::from(n) + 1e-6;
            let there = |targets: &Targets, msb: usize| -> f64 {
                let of = &snapshot.reservations[ix.ix()];
                (snapshot.servers.iter().zip(targets.holders()))
                    .filter(|(server, holder)| server.available && **holder == Some(ix))
                    .filter(|(server, _)| snapshot.msb_of(server).ix() == msb)
                    .filter(|(server, _)| is_allowed(&world, server, of))
                    .filter_map(|(server, _)| of.value(server.hardware_type))
                    .sum::<Rru>()
                    .to_f64()
            };
            for msb in 0..snapshot.msbs.len() {
                let (was, is) = (there(&today, msb), there(&outcome.targets, msb));
                prop_assert!(is <= most.max(was), "{} in MSB {msb}: {is} of {most}", row.reservation_id);
            }
        }
    }

    #[test]
    fn unavailable_servers_keep_their_binding(world in worlds(TOWN)) {
        let snapshot = snapshot(&world);
        let outcome = outcome_of(&world, &snapshot);
        for (server, &target) in snapshot.servers.iter().zip(outcome.targets.holders()) {
            prop_assert!(server.available || target == server.holder(), "{}", server.id);
        }
    }

    #[test]
    fn row_order_does_not_change_the_result(world in worlds(TOWN)) {
        let (first, second) = (snapshot(&world), snapshot(&shuffled(&world)));
        let (one, other) = (outcome_of(&world, &first), solved(&second, &config()));
        prop_assert_eq!(by_name(&first, &one), by_name(&second, &other));
        prop_assert_eq!(one.stats.phase1, other.stats.phase1);
    }

    #[test]
    fn thread_count_does_not_change_the_result(world in worlds(TOWN)) {
        let snapshot = snapshot(&world);
        let one = outcome_of(&world, &snapshot);
        let two = solved(&snapshot, &SolverConfig { threads: 2, ..config() });
        prop_assert_eq!(one.targets, two.targets);
        prop_assert_eq!(one.stats.objective, two.stats.objective);
        prop_assert_eq!(one.stats.phase1, two.stats.phase1);
    }

    /// With `f` the rest of the objective and `d` the price of moves, an optimum `y` from `x` has
    /// `f(y) + d(x, y) <= f(z) + d(x, z) <= f(z) + d(x, y) + d(y, z)` for every `z`: from `y`,
    /// nothing is worth a move. (No term pays for released surplus, so it is left out.)
    #[test]
    fn solve_of_an_optimum_moves_nothing(world in worlds(HAMLET)) {
        let first = snapshot(&world);
        let config = SolverConfig { hand_back: false, ..config() };
        let outcome = solved(&first, &config);
        if outcome.stats.phase1.termination == Termination::Optimal {
            let second = snapshot(&outcome.targets.apply(&first));
            let again = solved(&second, &config);
            let moves: Vec<_> = again.targets.diff(&second).collect();
            prop_assert!(moves.is_empty(), "{moves:?}");
        }
    }

    /// Against the same solve without it; surplus that shows only then would blur the comparison.
    #[test]
    fn levelling_worsens_no_term(world in worlds(TOWN)) {
        let snapshot = snapshot(&world);
        let config = SolverConfig { hand_back: false, ..config() };
        let before = solved(&snapshot, &SolverConfig { level: false, ..config });
        let after = solved(&snapshot, &config);
        prop_assert_eq!(&before.stats.phase1, &after.stats.phase1);
        let report = audit(&snapshot, &after.targets);
        prop_assert!(report.is_clean(), "{report}");
        let (was, is) = (before.stats.objective, after.stats.objective);
        prop_assert_eq!(was.stability, is.stability);
        prop_assert!(is.msb_spread <= was.msb_spread + 1e-9 && is.buffer <= was.buffer + 1e-9);
        let (was, is) = (audit(&snapshot, &before.targets), report);
        for (was, is) in was.reservations.iter().zip(&is.reservations) {
            prop_assert_eq!(was.holding.assigned, is.holding.assigned);
            prop_assert!(is.holding.shortfall <= was.holding.shortfall);
            prop_assert!(is.holding.largest_msb <= was.holding.largest_msb || !is.msb_buffer);
            for (was, is) in was.datacenters.iter().zip(&is.datacenters) {
                prop_assert!(was.assigned == is.assigned || is.wanted.is_none());
            }
        }
        // What is held today is left alone, and what is given is given more evenly.
        for (at, server) in snapshot.servers.iter().enumerate() {
            let held = |outcome: &SolveOutcome| {
                server.holder().is_some() && outcome.targets.holders()[at] == server.holder()
            };
            prop_assert!(!held(&before) || held(&after), "{} left", server.id);
        }
        let (was, is) = (unevenness(&snapshot, &before), unevenness(&snapshot, &after));
        prop_assert!(is <= was + 1e-9, "{is}, before {was}");
    }

    #[test]
    fn buffer_is_at_least_its_lower_bound(world in worlds(TOWN)) {
        let snapshot = snapshot(&world);
        let least = least_buffer(&snapshot, 1, &|| false);
        let report = audit(&snapshot, &outcome_of(&world, &snapshot).targets);
        let kept = (report.reservations.iter().flat_map(|row| &row.datacenters))
            .all(|place| place.violation < 1e-5);
        if report.shortfall == Rru::ZERO && kept {
            let buffer = report.buffer.buffer.to_f64();
            prop_assert!(least <= buffer + 1e-6, "{least} above {buffer}");
        }
    }

    #[test]
    fn surplus_is_released(world in worlds(TOWN)) {
        let snapshot = snapshot(&world);
        let outcome = outcome_of(&world, &snapshot);
        // A reservation that is not short and has no shares to keep needs each of its servers.
        let short = total_shortfall(&snapshot, &outcome.targets);
        let mut without = outcome.targets.holders().to_vec();
        for (position, server) in snapshot.servers.iter().enumerate() {
            let Some(holder) = outcome.targets.holders()[position] else { continue };
            let reservation = &snapshot.reservations[holder.ix()];
            let elastic = reservation.kind == ReservationKind::Elastic;
            let is_short = short[holder.ix()] > Rru::ZERO;
            if !server.available || elastic || is_short || !reservation.affinity.is_empty() {
                continue;
            }
            without[position] = None;
            let targets = Targets::new(&snapshot, without.clone());
            let shorter = total_shortfall(&snapshot, &targets)[holder.ix()] > Rru::ZERO;
            prop_assert!(shorter, "{} does not need {}", reservation.id, server.id);
            without[position] = Some(holder);
        }
    }
}

/// Solves on the result until nothing moves; gives how many of them moved something.
fn solves_until_rest(world: &SnapshotParts) -> usize {
    let config = SolverConfig { threads: 1, ..SolverConfig::default() };
    let mut now = snapshot(world);
    now = snapshot(&solved(&now, &config).targets.apply(&now));
    for solves in 0..20 {
        let targets = solved(&now, &config).targets;
        if targets.diff(&now).next().is_none() {
            return solves;
        }
        now = snapshot(&targets.apply(&now));
    }
    panic!("twenty solves on, servers still move");
}

#[test]
fn repeated_solves_reach_a_fixed_point() {
    let (at_once, all) = (Cell::new(0_u32), Cell::new(0_u32));
    for_each(25, worlds_without_rules(TOWN), |world| {
        all.set(all.get() + 1);
        at_once.set(at_once.get() + u32::from(solves_until_rest(&world) == 0));
    });
    let (at_once, all) = (at_once.get(), all.get());
    println!("at rest at once in {at_once} of {all} worlds");
    assert!(at_once * 100 >= all * 95, "at rest at once in {at_once} of {all} worlds only");
}

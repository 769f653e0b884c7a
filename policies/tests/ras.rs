//! The paper's model, written as policies, against the raw model and every assignment of tiny regions.

use async_solver::backend::InProcess;
use async_solver::baselines::raw::RawModel;
use fleet::{AffinityRow, RegionSnapshot, ReservationRow, ServerRow, SnapshotParts};
use policies::{Effort, Kind, Model, Outcome, Policies, World, audit};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::rows;

const EQUATIONS: &str = include_str!("../library/ras.sql");

fn effort() -> Effort {
    Effort { time_limit: Duration::from_secs(60), seed: 1 }
}

/// Expressions 1 to 4 of an assignment, or `None` where expression 6 or 7 is broken. Written from the
/// paper: amounts are summed server by server.
fn cost(parts: &SnapshotParts, holders: &[Option<usize>]) -> Option<f64> {
    let weights = &parts.weights;
    let mut cost = 0.0;
    for (server, holder) in parts.servers.iter().zip(holders) {
        let now = holder.map(|at| &parts.reservations[at].reservation_id);
        if server.current_reservation.is_some() && server.current_reservation.as_ref() != now {
            cost += if server.in_use { weights.move_in_use } else { weights.move_idle };
        }
    }
    for (at, reservation) in parts.reservations.iter().enumerate() {
        let mut by_rack: BTreeMap<_, f64> = BTreeMap::new();
        let mut by_msb: BTreeMap<_, f64> = BTreeMap::new();
        let mut by_datacenter: BTreeMap<_, f64> = BTreeMap::new();
        for (server, holder) in parts.servers.iter().zip(holders) {
            let of = parts.rru.iter().find(|row| {
                row.reservation_id == reservation.reservation_id
                    && row.hardware_type == server.hardware_type
            });
            let value = if *holder == Some(at) { of.map_or(0.0, |row| row.rru) } else { 0.0 };
            *by_rack.entry(&server.rack).or_default() += value;
            *by_msb.entry(&server.msb).or_default() += value;
            *by_datacenter.entry(&server.datacenter).or_default() += value;
        }
        let capacity = reservation.capacity_rru;
        let over = |shares: Vec<&f64>, alpha: Option<f64>| -> f64 {
            let most = alpha.expect("worlds state their limits") * capacity;
            shares.into_iter().map(|share| (share - most).max(0.0)).sum()
        };
        cost += weights.spread_beta * over(by_rack.values().collect(), reservation.rack_alpha);
        cost += weights.spread_beta * over(by_msb.values().collect(), reservation.msb_alpha);
        let largest = by_msb.values().copied().fold(0.0, f64::max);
        let buffer = if reservation.msb_buffer { largest } else { 0.0 };
        cost += weights.buffer_tau * buffer;
        if by_msb.values().sum::<f64>() - buffer < capacity - 1e-9 {
            return None;
        }
        let wanted: Vec<_> = (parts.affinity.iter())
            .filter(|row| row.reservation_id == reservation.reservation_id)
            .collect();
        for (datacenter, rru) in by_datacenter.iter().filter(|_| !wanted.is_empty()) {
            let share = wanted.iter().find(|row| row.datacenter == **datacenter);
            let share = share.map_or(0.0, |row| row.share);
            let theta = reservation.affinity_theta.unwrap_or(weights.affinity_theta);
            let buffer = if share > 0.0 { buffer } else { 0.0 };
            let (least, most) = ((share - theta) * capacity, (share + theta) * capacity);
            if *rru < least - 1e-9 || rru - buffer > most + 1e-9 {
                return None;
            }
        }
    }
    Some(cost)
}

/// The least cost over all assignments.
fn brute(parts: &SnapshotParts) -> Option<f64> {
    let options = parts.reservations.len() + 1;
    let mut holders = vec![None; parts.servers.len()];
    let mut best: Option<f64> = None;
    for mut number in 0..options.pow(u32::try_from(holders.len()).expect("few servers")) {
        for holder in &mut holders {
            *holder = (number % options).checked_sub(1);
            number /= options;
        }
        if let Some(cost) = cost(parts, &holders) {
            best = Some(best.map_or(cost, |best| best.min(cost)));
        }
    }
    best
}

fn solved(snapshot: &RegionSnapshot) -> Option<f64> {
    let policies = Policies::parse([("ras.sql", EQUATIONS)]).expect("the file is SQL");
    let world = World::region(snapshot).expect("amounts are small");
    let model = Model::compile(&policies, &world).unwrap_or_else(|error| panic!("{error}"));
    let solution = match model.solve(&InProcess, effort()).expect("HiGHS solves tiny regions") {
        Outcome::Solved(solution) => solution,
        Outcome::Impossible(rows) => {
            assert!(!rows.is_empty(), "something contradicts");
            return None;
        }
    };
    // The library alone must see what the compiled program claims.
    let after = world.with(&solution.assignment).expect("one cell for each server");
    let findings = audit(&policies, &after).unwrap_or_else(|error| panic!("{error}"));
    let mut worth = 0.0;
    for finding in findings {
        match finding.kind {
            Kind::Hard => assert_eq!(finding.fails, [""; 0], "{}", finding.policy),
            _ => {
                let value = finding.value.expect("a goal has a number");
                worth +=
                    if value.is_empty() { 0.0 } else { value.parse::<f64>().expect("a number") };
            }
        }
    }
    let cost = solution.cost.to_f64();
    assert!((cost + worth).abs() < 1e-6, "claimed {cost}, the library says {worth}");
    Some(cost)
}

fn worlds() -> impl Strategy<Value = SnapshotParts> {
    let server = (0..4_usize, 0..2_usize, 0..3_usize, any::<bool>());
    let reservation = (0..4_u8, any::<bool>(), 0..3_usize, 0..3_usize);
    let affinity = proptest::option::of(0..3_usize);
    let all = (
        proptest::collection::vec(server, 3..6),
        proptest::collection::vec(reservation, 1..3),
        affinity,
        0..3_usize,
    );
    all.prop_map(|(servers, reservations, affinity, unlike)| {
        let mut parts = rows::parts();
        for (number, (place, ty, holder, in_use)) in servers.into_iter().enumerate() {
            // Four racks in three MSBs of two datacenters.
            let place =
                [("d0", "m0", "k0"), ("d0", "m0", "k1"), ("d0", "m1", "k2"), ("d1", "m2", "k3")]
                    [place];
            let holder =
                (holder < reservations.len()).then(|| format!("r{holder}").as_str().into());
            let row = rows::server(&format!("s{number}"), place, &format!("t{ty}"));
            let in_use = in_use && holder.is_some();
            parts.servers.push(ServerRow { current_reservation: holder, in_use, ..row });
        }
        for (number, (capacity, buffer, msb, rack)) in reservations.into_iter().enumerate() {
            let id = format!("r{number}");
            parts.reservations.push(ReservationRow {
                msb_buffer: buffer,
                msb_alpha: Some([0.25, 0.5, 1.0][msb]),
                rack_alpha: Some([0.125, 0.5, 1.0][rack]),
                affinity_theta: Some(0.25),
                ..rows::reservation(&id, f64::from(capacity) * 0.5)
            });
            parts.rru.push(rows::rru(&id, "t0", 1.0));
            if number != unlike {
                parts.rru.push(rows::rru(&id, "t1", [1.5, 0.5][number % 2]));
            }
        }
        if let Some(share) = affinity {
            for (datacenter, share) in [("d0", [0.25, 0.5, 1.0][share]), ("d1", 0.0)] {
                let (reservation_id, datacenter) = ("r0".into(), datacenter.into());
                parts.affinity.push(AffinityRow { reservation_id, datacenter, share });
            }
        }
        parts
    })
}

#[test]
fn the_papers_model_equals_raw_model_and_brute_force() {
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let (mut feasible, mut compared) = (0, 0);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let drawn = std::cell::RefCell::new(Vec::new());
    let ran = runner.run(&worlds(), |parts| {
        drawn.borrow_mut().push(parts);
        Ok(())
    });
    ran.expect("worlds are drawn");
    for parts in drawn.into_inner() {
        // Names of places that no server is in are no places of the region.
        let snapshot = RegionSnapshot::new(parts.clone());
        let Ok(snapshot) = snapshot else { continue };
        let (policies, brute) = (solved(&snapshot), brute(&parts));
        match (policies, brute) {
            (Some(ours), Some(best)) => {
                feasible += 1;
                assert!(
                    (ours - best).abs() < 1e-6,
                    "policies {ours}, brute force {best}: {parts:#?}"
                );
                // The raw model is softened: where nothing need be short, its optimum is the same.
                let raw = RawModel::build(&snapshot).solve().expect("HiGHS solves tiny models");
                assert!((ours - raw).abs() < 1e-4, "policies {ours}, raw model {raw}: {parts:#?}");
            }
            (ours, best) => assert_eq!(ours.is_some(), best.is_some(), "{parts:#?}"),
        }
        compared += 1;
    }
    assert!(compared >= 20 && feasible >= 8, "{feasible} of {compared} worlds are feasible");
}

//! The simulator: the same tenants for all techniques, counts that add up, replay by seed.

use placement::simulate::{Foresight, Kind, Outcome, Simulation, Tick, alike};
use placement::{Assignment, Cluster, Forecast, LevelIx, Limits, NodeIx, Trace, search};
use std::cell::Cell;
use std::time::Duration;

/// Demands that rise and fall with a period of their own.
fn trace(number: i64) -> Trace {
    let demand = (0..97 + number).flat_map(|step| {
        let wave = (step * (3 + number)) % (20 + number);
        [5 + wave, 10 + wave / 3]
    });
    Trace::new(2, demand.collect()).expect("it is whole")
}

fn simulation() -> Simulation {
    Simulation {
        cluster: alike(&["cpu", "memory"], &[120, 150], 10, [5, 5]),
        levels: [1, 2].map(LevelIx::new).into(),
        density: 1.2,
        steps: 120,
        kinds: (0..7).map(|at| Kind { trace: trace(at), move_cost: 1.0 + at as f64 }).collect(),
        mean_stay: 40.0,
        replicated: 0.3,
        replicas: 3,
        secondary: vec![50, 100],
        fragmentation: 0.05,
        foresight: Some(Foresight {
            forecast: Forecast { weight: 0.1, samples: 4, ahead: vec![1, 5], candidates: 3 },
            traces: (7..12).map(trace).collect(),
        }),
        seed: 7,
    }
}

fn run(of: &Simulation, technique: &mut dyn FnMut(&Cluster) -> Assignment) -> (Outcome, Vec<Tick>) {
    let mut ticks = Vec::new();
    let seconds = Cell::new(0);
    let clock = || {
        seconds.set(seconds.get() + 1);
        Duration::from_secs(seconds.get())
    };
    let outcome = of.run(technique, &clock, &mut |tick, _| ticks.push(tick.clone()));
    (outcome, ticks)
}

fn searched(cluster: &Cluster) -> Assignment {
    search(cluster, &Limits::rounds(20)).assignment
}

#[test]
fn all_techniques_see_the_same_tenants_and_a_seed_replays() {
    let of = simulation();
    let (first, ticks) = run(&of, &mut searched);
    let (again, _) = run(&of, &mut searched);
    assert_eq!(first, again);
    // All on one node, as far as the technique is concerned.
    let (crowded, same) =
        run(&of, &mut |cluster| vec![Some(NodeIx::new(0)); cluster.replicas.len()]);
    assert_eq!(ticks, same);
    assert_ne!(crowded.failovers, first.failovers);
    let (_, others) = run(&Simulation { seed: 8, ..of }, &mut searched);
    assert_ne!(ticks, others);
    assert!(ticks.iter().all(|tick| tick.density >= 1.2));
    let last = ticks.last().expect("a step");
    assert!(last.left > 0 && last.came > last.left);
}

#[test]
fn counts_are_those_of_the_answers() {
    let of = simulation();
    let (mut calls, mut moves, mut weight, mut moved) = (0, 0, 0.0, vec![0; 2]);
    let (outcome, _) = run(&of, &mut |cluster| {
        let answer = searched(cluster);
        calls += 1;
        for (replica, to) in cluster.replicas.iter().zip(&answer) {
            if let Some(from) = replica.node.filter(|from| Some(*from) != *to) {
                assert!(from.ix() < 10);
                moves += 1;
                weight += replica.move_cost;
                moved[0] += replica.demand[0];
                moved[1] += replica.demand[1];
            }
        }
        answer
    });
    assert!(moves > 0, "nothing moved");
    assert_eq!(outcome.failovers, moves);
    assert!((outcome.weighted - weight).abs() < 1e-9);
    assert_eq!(outcome.moved, moved);
    assert_eq!(outcome.latencies.len(), calls);
    // The clock of this test goes on by a second at each look.
    assert_eq!(outcome.latency(0.99), Duration::from_secs(1));
    assert!(outcome.violations > 0);
}

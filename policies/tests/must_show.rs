//! Weave's preemption (figure 16, section 6.1.3) and balance of virtual machines (section 6.2), on generated
//! clusters.

use crate::vms;
use async_solver::backend::InProcess;
use async_solver::random::Random;
use placement::{Cluster, NodeState, Service, ServiceIx};
use policies::{
    Decides, Effort, Model, Outcome, Policies, Search, Searched, Size, Solution, Value, World,
    audit, scope,
};
use std::time::Duration;

const CAPACITY: (&str, &str) = ("capacity.sql", include_str!("../library/cluster/capacity.sql"));
const DIFFERENT: (&str, &str) =
    ("different_nodes.sql", include_str!("../library/cluster/different_nodes.sql"));
const PREEMPTION: (&str, &str) =
    ("preemption.sql", include_str!("../library/cluster/preemption.sql"));
const TEN_MOVES: (&str, &str) = ("ten_moves.sql", include_str!("../library/cluster/ten_moves.sql"));

fn policies(files: &[(&str, &str)]) -> Policies {
    Policies::parse(files.iter().copied()).unwrap_or_else(|error| panic!("{error}"))
}

fn compiled(policies: &Policies, world: &World) -> Model {
    Model::compile(policies, world).unwrap_or_else(|error| panic!("{error}"))
}

/// Each hard policy holds as plain SQL.
fn holds(policies: &Policies, world: &World, solution: &Solution) {
    let after = world.with(&solution.assignment).expect("a cell for each replica");
    for finding in audit(policies, &after).unwrap_or_else(|error| panic!("{error}")) {
        assert!(finding.fails.is_empty(), "{} fails at {:?}", finding.policy, finding.fails);
    }
}

/// Ten nodes of 100, and replicas of 50: service and node of each.
fn by_priority(replicas: &[(&str, Option<String>)]) -> Cluster {
    let services = ["low", "mid", "high"];
    let mut builder = Cluster::builder("three priorities").metric("cpu", false);
    for node in 0..10 {
        builder = builder.node(&format!("n{node}"), [Some(100)]);
    }
    for (number, (_, node)) in replicas.iter().enumerate() {
        builder = builder.replica(&format!("p{number:02}"), node.as_deref(), [50]);
    }
    builder
        .with(|cluster| {
            let service = |name: &str| Service { name: name.to_owned(), allowed: None };
            cluster.services = services.map(service).to_vec();
            for (replica, (service, _)) in cluster.replicas.iter_mut().zip(replicas) {
                let at = services.iter().position(|own| own == service);
                replica.service = ServiceIx::new(at.expect("one of the three"));
            }
        })
        .build()
}

/// As each set of replicas arrives, it replaces as many of lower priority as it needs, and no more.
#[test]
fn three_priorities_arrive_one_after_the_other() {
    let policies = policies(&[CAPACITY, PREEMPTION]);
    let mut replicas: Vec<(&str, Option<String>)> = Vec::new();
    let mut placed = Vec::new();
    for (service, count) in [("low", 20), ("mid", 10), ("high", 15)] {
        replicas.extend((0..count).map(|_| (service, None)));
        let world = World::cluster(&by_priority(&replicas), Decides::AllOrNone).expect("a cluster");
        let model = compiled(&policies, &world);
        let effort = Effort { time_limit: Duration::from_secs(60), seed: 1 };
        let solution = match model.solve(&InProcess, effort).expect("HiGHS solves it") {
            Outcome::Solved(solution) => solution,
            Outcome::Impossible(rows) => panic!("{rows:?}"),
        };
        holds(&policies, &world, &solution);
        for (replica, node) in replicas.iter_mut().zip(&solution.assignment) {
            replica.1 = match node {
                Value::Text(node) => Some(node.clone()),
                _ => None,
            };
        }
        let running = |service: &str| {
            replicas.iter().filter(|(own, node)| *own == service && node.is_some()).count()
        };
        placed.push(["low", "mid", "high"].map(running));
        // The search loses no replica of the highest priority that there is.
        let search = Search { steps: 100_000, seed: 1 };
        let found = match model.search(&world.assignment(), search).expect("amounts fit") {
            Searched::Holds(found) => found.cost.to_f64(),
            Searched::Fails(rows) => panic!("{rows:?}"),
        };
        assert!(found <= 0.99 * solution.cost.to_f64(), "{found}, {}", solution.cost);
    }
    assert_eq!(placed, [[20, 0, 0], [10, 10, 0], [0, 5, 15]]);
}

#[test]
fn ten_moves_even_out_the_virtual_machines() {
    let cluster = vms::cluster(1);
    assert_eq!((cluster.nodes.len(), cluster.replicas.len()), (16, 524));
    let today = vms::today(&cluster);
    let (least, most) = vms::used(&cluster, &today);
    assert!(least < 39.5 && most > 84.5, "{least:.1} to {most:.1} %");
    let policies = policies(&[CAPACITY, DIFFERENT, TEN_MOVES]);
    let world = World::cluster(&cluster, Decides::All).expect("a cluster");
    let model = compiled(&policies, &world);
    let Size { columns, .. } = model.size().expect("small");
    assert_eq!(columns - 2, 16 * 524, "a column for each pair, and two for the ends");
    let search = Search { steps: 150_000, seed: 1 };
    let found = match model.search(&world.assignment(), search).expect("amounts fit") {
        Searched::Holds(solution) => solution,
        Searched::Fails(rows) => panic!("{rows:?}"),
    };
    holds(&policies, &world, &found);
    let nodes: Vec<String> = found.assignment.iter().map(Value::to_string).collect();
    let moves = nodes.iter().zip(&today).filter(|(after, before)| after != before).count();
    let (least, most) = vms::used(&cluster, &nodes);
    assert!(moves <= 10, "{moves} moves");
    assert!(least >= 51.0 && most <= 63.0, "{least:.1} to {most:.1} %");
    let bound = model.bound(&InProcess, Duration::from_secs(60)).expect("an optimum");
    assert!(bound.is_some_and(|bound| bound <= found.cost.to_f64() + 1e-6), "{bound:?}");
}

/// Nodes that differ in little, and two pending replicas: what they may need is as good as the whole.
#[test]
fn a_batch_needs_a_part_of_the_cluster() {
    const NODE_STATE: (&str, &str) =
        ("node_state.sql", include_str!("../library/cluster/node_state.sql"));
    const ONE_ZONE: (&str, &str) =
        ("one_zone.sql", include_str!("../library/cluster/one_zone.sql"));
    const PER_NODE: (&str, &str) =
        ("per_node.sql", include_str!("../library/cluster/per_node.sql"));
    const SPARE: (&str, &str) = ("spare.sql", include_str!("../library/cluster/spare.sql"));
    let policies = policies(&[CAPACITY, NODE_STATE, ONE_ZONE, PER_NODE, SPARE]);
    let effort = Effort { time_limit: Duration::from_secs(60), seed: 1 };
    let (mut smaller, mut solved) = (0, 0);
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let mut builder = Cluster::builder("batch").metric("cpu", false).metric("memory", false);
        for node in 0..12 {
            let capacity = [Some(3), Some(2 + node % 2)];
            builder = builder.node(&format!("n{node}"), capacity);
        }
        builder = builder.level("zone", (0..12).map(|node| if node < 6 { "east" } else { "west" }));
        for number in 0..8 {
            let node = (number < 6).then(|| format!("n{}", random.below(12)));
            builder = builder.replica(&format!("p{number}"), node.as_deref(), [1, 1]);
        }
        let closed = random.below(12);
        let cluster = builder
            .with(|cluster| {
                cluster.nodes[closed].state = NodeState::Closed;
                for replica in &mut cluster.replicas {
                    // What runs of a service is in one zone.
                    let east = replica.node.is_none_or(|node| node.ix() < 6);
                    let service = if east { random.below(2) } else { 2 };
                    replica.service = ServiceIx::new(service);
                }
            })
            .build();
        let part = scope(&cluster, &policies);
        smaller += usize::from(part.nodes.len() < cluster.nodes.len());
        let solve = |cluster: &Cluster| {
            let world = World::cluster(cluster, Decides::Pending).expect("a cluster");
            match compiled(&policies, &world).solve(&InProcess, effort).expect("HiGHS solves it") {
                Outcome::Solved(solution) => Some(solution),
                Outcome::Impossible(_) => None,
            }
        };
        // Where what runs breaks a policy already, there is nothing to compare.
        let Some(of_whole) = solve(&cluster) else { continue };
        let of_part = solve(&part).expect("the part can be solved if the whole can");
        // The pending ones are the last two of both.
        let world = World::cluster(&cluster, Decides::Pending).expect("a cluster");
        let mut assignment = world.assignment();
        let (kept, placed) = (assignment.len() - 2, of_part.assignment.len() - 2);
        assignment.splice(kept.., of_part.assignment[placed..].iter().cloned());
        let after = world.with(&assignment).expect("a cell for each replica");
        let found = audit(&policies, &after).unwrap_or_else(|error| panic!("{error}"));
        assert!(found.iter().all(|finding| finding.fails.is_empty()), "seed {seed}: {found:?}");
        let cost: f64 = found.iter().filter_map(|finding| finding.cost()).sum();
        assert!((cost - of_whole.cost.to_f64()).abs() < 1e-9, "seed {seed}: {cost}, {of_whole:?}");
        solved += 1;
    }
    assert!(smaller >= 10 && solved >= 4, "{smaller} are smaller, {solved} solved");
}

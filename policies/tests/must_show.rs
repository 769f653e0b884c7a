//! Weave's preemption (figure 16, section 6.1.3) and balance of virtual machines (section 6.2), on generated
//! clusters.

mod vms;

use async_solver::backend::InProcess;
use placement::{Cluster, Service, ServiceIx};
use policies::{
    Decides, Effort, Model, Outcome, Policies, Search, Searched, Size, Solution, Value, World,
    audit,
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

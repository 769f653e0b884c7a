//! What a batch of 50 pending replicas costs on clusters of 200 to 50,000 nodes, and ten moves of virtual
//! machines: `cargo run -p policies --example batches`. Generated clusters.
#![expect(clippy::disallowed_methods, reason = "it measures time")]

#[path = "../tests/vms/mod.rs"]
mod vms;

use async_solver::backend::InProcess;
use async_solver::random::Random;
use placement::{Cluster, NodeIx, Replica, Role, Service, ServiceIx};
use policies::{
    Decides, Effort, Model, Outcome, Policies, Search, Searched, Value, World, audit, scope,
};
use std::time::{Duration, Instant};

const BATCH: usize = 50;
const RUNS: usize = 20;

/// Nodes of three sizes in ten zones, each of which runs three replicas, and a batch of ten services.
fn cluster(nodes: usize, seed: u64) -> Cluster {
    let mut random = Random::new(seed);
    let zones: Vec<String> = (0..nodes).map(|node| format!("z{}", node % 10)).collect();
    let mut builder = Cluster::builder("generated").metric("cpu", false).metric("memory", false);
    for node in 0..nodes {
        let size = [32, 64, 96][random.below(3)];
        builder = builder.node(&format!("n{node:05}"), [Some(size), Some(4 * size)]);
    }
    builder = builder.level("zone", zones.iter().map(String::as_str));
    builder
        .with(|cluster| {
            for service in 0..200 {
                cluster.services.push(Service { name: format!("s{service}"), allowed: None });
            }
            let amount = |random: &mut Random| i64::try_from(1 + random.below(8)).unwrap_or(1);
            for number in 0..3 * nodes + BATCH {
                let pending = number >= 3 * nodes;
                let service = if pending { number % 10 } else { 10 + random.below(190) };
                let (cpu, memory) = (amount(&mut random), amount(&mut random));
                cluster.replicas.push(Replica {
                    name: format!("p{number}"),
                    service: ServiceIx::new(service),
                    role: Role::Instance,
                    node: (!pending).then(|| NodeIx::new(number / 3)),
                    demand: vec![cpu, 4 * memory],
                    move_cost: 1.0,
                });
            }
        })
        .build()
}

/// Milliseconds, sorted: the median and the 95th percentile.
fn quantiles(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        times[((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1]
    };
    format!("{:.0} / {:.0} ms", at(0.5), at(0.95))
}

fn measure(nodes: usize, files: &[(&str, &str)]) -> Result<(), String> {
    let policies = Policies::parse(files.iter().copied()).map_err(|error| error.to_string())?;
    let (mut scoped, mut compiled, mut solved) = (Vec::new(), Vec::new(), Vec::new());
    let mut searched = Vec::new();
    let mut what = String::new();
    for run in 0..RUNS {
        let whole = cluster(nodes, run as u64);
        let start = Instant::now();
        let part = scope(&whole, &policies);
        let world = World::cluster(&part, Decides::Pending).map_err(|error| error.to_string())?;
        scoped.push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        let model = Model::compile(&policies, &world).map_err(|error| error.to_string())?;
        compiled.push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        let effort = Effort { time_limit: Duration::from_secs(60), seed: 1 };
        let outcome = model.solve(&InProcess, effort).map_err(|error| error.to_string())?;
        solved.push(start.elapsed().as_secs_f64() * 1e3);
        let Outcome::Solved(solution) = outcome else { return Err("it contradicts".to_owned()) };
        let start = Instant::now();
        let search = Search { steps: 40_000, seed: 1 };
        let found = model.search(&world.assignment(), search).map_err(|error| error.to_string())?;
        searched.push(start.elapsed().as_secs_f64() * 1e3);
        let found = match found {
            Searched::Holds(found) => found.cost.to_string(),
            Searched::Fails(rows) => format!("{} rows fail", rows.len()),
        };
        if run == 0 {
            let size = model.size().map_err(|error| error.to_string())?;
            what = format!(
                "{} nodes in scope, {} columns, {} rows, cost {}, of the search {found}",
                part.nodes.len(),
                size.columns,
                size.rows,
                solution.cost
            );
            // On the whole cluster, each hard policy holds as plain SQL.
            let all =
                World::cluster(&whole, Decides::Pending).map_err(|error| error.to_string())?;
            let mut assignment = all.assignment();
            let mut new = solution.assignment.iter().zip(world.assignment());
            for cell in assignment.iter_mut().filter(|cell| **cell == Value::Null) {
                let placed = new.find(|(_, today)| *today == Value::Null);
                *cell = placed.ok_or("a replica is missing")?.0.clone();
            }
            let after = all.with(&assignment).map_err(|error| error.to_string())?;
            let found = audit(&policies, &after).map_err(|error| error.to_string())?;
            let fails: usize = found.iter().map(|finding| finding.fails.len()).sum();
            what.push_str(&format!(", {fails} rows fail"));
        }
    }
    println!(
        "{BATCH} of {nodes} nodes: scope {}, compile {}, solve {}, search {} (median / p95 of {RUNS}); {what}",
        quantiles(scoped),
        quantiles(compiled),
        quantiles(solved),
        quantiles(searched)
    );
    Ok(())
}

fn ten_moves() -> Result<(), String> {
    let files = [
        ("capacity.sql", include_str!("../library/cluster/capacity.sql")),
        ("different_nodes.sql", include_str!("../library/cluster/different_nodes.sql")),
        ("ten_moves.sql", include_str!("../library/cluster/ten_moves.sql")),
    ];
    let policies = Policies::parse(files).map_err(|error| error.to_string())?;
    for seed in 1..=3 {
        let cluster = vms::cluster(seed);
        let today = vms::today(&cluster);
        let (least, most) = vms::used(&cluster, &today);
        let world = World::cluster(&cluster, Decides::All).map_err(|error| error.to_string())?;
        let start = Instant::now();
        let model = Model::compile(&policies, &world).map_err(|error| error.to_string())?;
        let compiled = start.elapsed();
        let start = Instant::now();
        let search = Search { steps: 150_000, seed };
        let found = model.search(&world.assignment(), search).map_err(|error| error.to_string())?;
        let took = start.elapsed();
        let Searched::Holds(found) = found else { return Err("none was found".to_owned()) };
        let nodes: Vec<String> = found.assignment.iter().map(Value::to_string).collect();
        let moves = nodes.iter().zip(&today).filter(|(after, before)| after != before).count();
        let (after_least, after_most) = vms::used(&cluster, &nodes);
        let bound = model.bound(&InProcess, Duration::from_secs(60));
        println!(
            "{} virtual machines on {} hosts, seed {seed}: from {least:.1}-{most:.1} % to \
             {after_least:.2}-{after_most:.2} % in {moves} moves; difference {}, none below {:?}; compiled in \
             {compiled:?}, searched in {took:?}",
            cluster.replicas.len(),
            cluster.nodes.len(),
            found.cost,
            bound
        );
    }
    Ok(())
}

fn main() -> Result<(), String> {
    ten_moves()?;
    let hard = [
        ("capacity.sql", include_str!("../library/cluster/capacity.sql")),
        ("node_state.sql", include_str!("../library/cluster/node_state.sql")),
        ("allowed.sql", include_str!("../library/cluster/allowed.sql")),
        ("different_nodes.sql", include_str!("../library/cluster/different_nodes.sql")),
        ("per_node.sql", include_str!("../library/cluster/per_node.sql")),
    ];
    for nodes in [200, 1_000, 5_000, 50_000] {
        measure(nodes, &hard)?;
    }
    Ok(())
}

//! Sizes and times of small programs: `cargo run -p policies --example sizes`. Generated clusters and
//! regions.
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use async_solver::backend::InProcess;
use fleet::{RegionSnapshot, ReservationRow, ServerRow};
use placement::Cluster;
use policies::{Decides, Effort, Model, Outcome, Policies, World, audit};
use std::time::{Duration, Instant};
use testkit::rows;

/// Time of each file alone, after one that says nothing: tables, session and one plan.
fn phases(files: &[(&str, &str)], world: &World) -> Result<String, String> {
    let mut phases = Vec::new();
    for file in [&("session", "CREATE VIEW nothing AS SELECT 1 AS one")].into_iter().chain(files) {
        let policies = Policies::parse([*file]).map_err(|error| error.to_string())?;
        let start = Instant::now();
        Model::compile(&policies, world).map_err(|error| error.to_string())?;
        phases.push(format!("{} {:?}", file.0, start.elapsed()));
    }
    Ok(phases.join(", "))
}

fn measure(name: &str, files: &[(&str, &str)], world: &World) -> Result<(), String> {
    let policies = Policies::parse(files.iter().copied()).map_err(|error| error.to_string())?;
    let start = Instant::now();
    let model = Model::compile(&policies, world).map_err(|error| error.to_string())?;
    let compiled = start.elapsed();
    let size = model.size().map_err(|error| error.to_string())?;
    let start = Instant::now();
    let effort = Effort { time_limit: Duration::from_secs(120), seed: 1 };
    let outcome = model.solve(&InProcess, effort);
    let solved = start.elapsed();
    let end = match &outcome {
        Ok(Outcome::Solved(solution)) => {
            let after = world.with(&solution.assignment).map_err(|error| error.to_string())?;
            let start = Instant::now();
            let found = audit(&policies, &after).map_err(|error| error.to_string())?;
            let broken: usize = found.iter().map(|finding| finding.fails.len()).sum();
            format!("cost {}, audit {:?}, {broken} fail", solution.cost, start.elapsed())
        }
        Ok(Outcome::Impossible(rows)) => format!("impossible: {rows:?}"),
        Err(error) => error.to_string(),
    };
    println!(
        "{name}: {} columns, {} rows, compiled in {compiled:?}, solved in {solved:?}; {end}",
        size.columns, size.rows
    );
    println!("  {}", phases(files, world)?);
    Ok(())
}

fn cluster(nodes: usize, pods: usize) -> Result<World, String> {
    let mut builder = Cluster::builder("generated").metric("cpu", false);
    for node in 0..nodes {
        builder = builder.node(&format!("n{node:04}"), [Some(100)]);
    }
    for number in 0..pods {
        let demand = 10 + i64::try_from(number * 7 % 23).unwrap_or(0);
        builder = builder.replica(&format!("p{number:04}"), None, [demand]);
    }
    let group: Vec<usize> = (0..pods).step_by(5).collect();
    let cluster = builder.group("spread", group).build();
    World::cluster(&cluster, Decides::Pending).map_err(|error| error.to_string())
}

fn region(servers: usize, reservations: usize) -> Result<World, String> {
    let mut parts = rows::parts();
    for number in 0..servers {
        let (msb, rack) = (number % 6, number % 18);
        let place = (&*format!("d{}", msb % 2), &*format!("m{msb}"), &*format!("k{rack:02}"));
        let row = rows::server(&format!("s{number:04}"), place, &format!("t{}", number / 18 % 2));
        let holder = number % (reservations + 1);
        let current_reservation =
            (holder < reservations).then(|| format!("r{holder}").as_str().into());
        parts.servers.push(ServerRow { current_reservation, in_use: number % 3 == 0, ..row });
    }
    let capacity = 0.6 * servers as f64 / reservations as f64;
    for number in 0..reservations {
        let id = format!("r{number}");
        let row = rows::reservation(&id, (capacity * 2.0).floor() / 2.0);
        let (msb_alpha, rack_alpha) = (Some(0.25), Some(0.125));
        parts.reservations.push(ReservationRow { msb_alpha, rack_alpha, ..row });
        parts.rru.extend([rows::rru(&id, "t0", 1.0), rows::rru(&id, "t1", 1.5)]);
    }
    let snapshot = RegionSnapshot::new(parts).map_err(|error| error.to_string())?;
    World::region(&snapshot).map_err(|error| error.to_string())
}

fn main() -> Result<(), String> {
    let hard = [
        ("capacity.sql", include_str!("../library/cluster/capacity.sql")),
        ("node_state.sql", include_str!("../library/cluster/node_state.sql")),
        ("allowed.sql", include_str!("../library/cluster/allowed.sql")),
        ("different_nodes.sql", include_str!("../library/cluster/different_nodes.sql")),
    ];
    let balance = [hard[0], ("spare.sql", include_str!("../library/cluster/spare.sql"))];
    for (nodes, pods) in [(20, 20), (50, 50), (200, 50)] {
        let world = cluster(nodes, pods)?;
        measure(&format!("{pods} pods on {nodes} nodes, four hard policies"), &hard, &world)?;
    }
    let ras = [("ras.sql", include_str!("../library/ras.sql"))];
    for (servers, reservations) in [(36, 2), (72, 3), (180, 4), (600, 7)] {
        let world = region(servers, reservations)?;
        measure(&format!("{servers} servers, {reservations} reservations, RAS"), &ras, &world)?;
    }
    measure("10 pods on 6 nodes, capacity and balance", &balance, &cluster(6, 10)?)
}

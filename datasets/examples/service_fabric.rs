//! Service Fabric's simulator files: `annealing` with its own limits against `search` with a tenth of
//! the time, one thread each, one after the other.
//!
//! ```sh
//! cargo run --release -p datasets --no-default-features --example service_fabric -- FOLDER fast|slow [SEED] [NUMBER...]
//! ```
//!
//! `FOLDER` holds `randdata003.txt` to `randdata015.txt`. Energy is that of Service Fabric's balancer:
//! (average standard deviation + 0.001) (moves + replicas + 1,000).

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use datasets::cluster::service_fabric::{SEED, Simulated, read};
use placement::{Cluster, Found, Limits, ServiceFabric, annealing, audit, evaluate, search};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, balancing, rest @ ..] = arguments.as_slice() else {
        return Err("usage: service_fabric FOLDER fast|slow [SEED] [NUMBER...]".into());
    };
    let settings = match balancing.as_str() {
        "fast" => ServiceFabric::default(),
        "slow" => ServiceFabric::slow(),
        _ => return Err("balancing is fast or slow".into()),
    };
    let seed = rest.first().map_or(Ok(1), |seed| seed.parse())?;
    let wanted = rest.get(1..).unwrap_or(&[]);
    println!(
        "file  engine         seconds          energy    deviation  violations   moves  bound"
    );
    for number in 3..=15 {
        if !wanted.is_empty() && !wanted.contains(&number.to_string()) {
            continue;
        }
        let file = Path::new(folder).join(format!("randdata{number:03}.txt"));
        let Simulated { cluster, settings: of_file } = read(&file, SEED)?;
        let mut settings = settings.clone();
        // The files set the fast decay themselves.
        let decay = of_file.get("FastBalancingTemperatureDecayRate");
        if let (Some(decay), "fast") = (decay, balancing.as_str()) {
            settings.decay = decay.parse()?;
        }
        let time = settings.placement + settings.constraint_check + settings.balancing;
        let today = cluster.today();
        let violations = audit(&cluster, &today).len();
        let deviation = evaluate(&cluster, &today).terms["deviation"];
        println!("{number:03}   today    {:>40.0}  {violations:>10}", deviation);
        run(&cluster, "annealing", seed, time, |limits| annealing(&cluster, &settings, limits));
        run(&cluster, "search", seed, time / 10, |limits| search(&cluster, limits));
    }
    Ok(())
}

fn run(
    cluster: &Cluster,
    engine: &str,
    seed: u64,
    time: Duration,
    solve: impl Fn(&Limits) -> Found,
) {
    let began = Instant::now();
    let elapsed = || began.elapsed();
    let limits =
        Limits { seed, deadline: Some(time), elapsed: &elapsed, ..Limits::rounds(u64::MAX) };
    let found = solve(&limits);
    let seconds = began.elapsed().as_secs_f64();
    let moved = cluster.replicas.iter().zip(&found.assignment);
    let moves = moved.filter(|(replica, to)| replica.node.is_some() && replica.node != **to);
    let replicas = cluster.replicas.len() as f64 + 1_000.0;
    println!(
        "      {engine:<10} {seconds:>11.2} {:>15.5e} {:>12.0} {:>11} {:>7}  {:.5e}",
        found.value.total * replicas,
        found.value.terms["deviation"],
        found.violations.len(),
        moves.count(),
        found.bound * replicas,
    );
}

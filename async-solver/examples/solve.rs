//! Solves a generated region of 1,000 servers and audits the result.
//!
//! `cargo run --release -p async-solver --example solve`

use async_solver::backend::InProcess;
use async_solver::{SolveEnv, SolverConfig, solve};
use datasets::generate::{GenerateOptions, generate};
use fleet::RegionSnapshot;
use fleet::audit::audit;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let options = GenerateOptions { msbs: 12, ..GenerateOptions::new(1_000) };
    let region = RegionSnapshot::new(generate(&options)?)?;

    let env = SolveEnv {
        elapsed: &|| Duration::ZERO,
        deadline: None,
        interrupted: &|| false,
        progress: &|_| (),
        on_incumbent: &|_| (),
        backend: &InProcess,
        warm: None,
    };
    let solved = solve(&region, &SolverConfig::default(), &env);

    let phase1 = &solved.stats.phase1;
    println!("cost {:.2}, proved lower bound {:.2}", phase1.primal, phase1.dual_bound);
    for row in audit(&region, &solved.targets).reservations {
        let (guaranteed, servers) = (row.holding.guaranteed, row.holding.servers);
        println!("{}: {guaranteed} RRU guaranteed by {servers} servers", row.reservation_id);
    }
    Ok(())
}

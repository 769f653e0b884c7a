//! Solves a generated region of 1,000 servers and audits the result.
//!
//! `cargo run --release -p async-solver --example solve`

use async_solver::backend::InProcess;
use async_solver::{SolveEnv, SolverConfig, solve};
use datasets::generate::{GenerateOptions, generate};
use fleet::RegionSnapshot;
use fleet::audit::audit;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let options = GenerateOptions { msbs: 12, ..GenerateOptions::new(1_000) };
    let region = RegionSnapshot::new(generate(&options)?)?;

    let solved = solve(&region, &SolverConfig::default(), &SolveEnv::untimed(&InProcess));

    let phase1 = &solved.stats.phase1;
    println!("cost {:.2}, proved lower bound {:.2}", phase1.primal, phase1.dual_bound);
    for row in audit(&region, &solved.targets).reservations {
        let (guaranteed, servers) = (row.holding.guaranteed, row.holding.servers);
        println!("{}: {guaranteed} RRU guaranteed by {servers} servers", row.reservation_id);
    }
    Ok(())
}

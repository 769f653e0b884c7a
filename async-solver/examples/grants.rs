//! How long a plan takes whose request is granted, on a generated region after a solve.
//!
//! `cargo run --release -p async-solver --example grants -- SERVERS RESERVATIONS [COUNT] [SOLVE_SECONDS]`
//!
//! Reservations are resized by a tenth, half of them down. One line for each request: what was granted, price, wall time
//! and processor time. Only Linux says the latter.

mod fleets;

use async_solver::backend::InProcess;
use async_solver::random::Random;
use async_solver::{Means, QuoteContext, SolveEnv, SolverConfig, quote, solve};
use datasets::generate::{GenerateOptions, State, generate};
use fleet::{CapacityRequest, RegionSnapshot, ReservationKind};
use fleets::{now, processor_seconds};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| {
        arguments.get(at).map_or(Ok(default), |text| text.parse::<usize>())
    };
    let (servers, reservations) = (number(0, 10_000)?, number(1, 40)?);
    let (count, seconds) = (number(2, 6)?, number(3, 20)?);
    let steady = GenerateOptions { state: State::Steady, ..GenerateOptions::new(servers) };
    let region = RegionSnapshot::new(generate(&GenerateOptions { reservations, ..steady })?)?;
    let config = SolverConfig { threads: 2, ..SolverConfig::default() };
    let began = now();
    let env = SolveEnv {
        elapsed: &|| began.elapsed(),
        deadline: Some(Duration::from_secs(seconds as u64)),
        ..SolveEnv::untimed(&InProcess)
    };
    let solved = solve(&region, &config, &env);
    let region = RegionSnapshot::new(solved.targets.apply(&region))?;
    let guaranteed: Vec<_> = (region.reservations.iter())
        .filter(|of| of.kind == ReservationKind::Guaranteed && of.capacity.0 > 0)
        .collect();
    let mut random = Random::new(1);
    println!(
        "| request | granted | in full | price | s | processor s |\n|---|---|---|---|---|---|"
    );
    for number in 0..count {
        let of = guaranteed[random.below(guaranteed.len())];
        let times = if number % 2 == 0 { 1.1 } else { 0.9 };
        let request = CapacityRequest {
            reservation_id: of.id.clone(),
            capacity_rru: Some((of.capacity.to_f64() * times).ceil()),
            ..CapacityRequest::default()
        };
        let (began, before) = (now(), processor_seconds());
        let context = QuoteContext {
            snapshot: &region,
            config: &config,
            warm: Some(&solved.warm),
            offered: &[],
            limits: None,
            means: Means {
                backend: &InProcess,
                elapsed: &|| began.elapsed(),
                deadline: Some(Duration::from_secs(60)),
                interrupted: &|| false,
            },
        };
        let answer = quote(&context, &request)?;
        println!(
            "| {} x {times} | {} | {} | {:+.2} | {:.2} | {:.2} |",
            of.id,
            answer.granted,
            answer.refusal.is_none(),
            answer.plan.price,
            began.elapsed().as_secs_f64(),
            processor_seconds() - before
        );
    }
    Ok(())
}

//! `ras place simulate`

use crate::cli::{Simulate, Technique};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::{Table, facts};
use crate::number;
use crate::terminal::{Spinner, say};
use anyhow::{Context as _, Result, bail};
use datasets::cluster::read_with_history;
use fleet::number::{counted, decimal};
use placement::simulate::{Foresight, Kind, Outcome, Simulation};
use placement::{
    Amount, Assignment, Cluster, Failovers, LevelIx, Limits, Objective, ServiceFabric, annealing,
    search, with_energy,
};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Minutes of a day.
const DAY: u32 = 24 * 60;
/// A secondary needs this share of the primary's demand in the first metric, in percent, and all of it in
/// the others: SIL section 7.2.
const SECONDARY: Amount = 50;
/// Rounds of annealing.
const ROUNDS: u64 = 100;

/// The answer as JSON.
#[derive(Serialize)]
struct Answer<'a> {
    cluster: &'a str,
    days: u32,
    density: f64,
    seed: u64,
    engines: Vec<Figures>,
}

/// What an engine did.
#[derive(Serialize)]
struct Figures {
    engine: Technique,
    violations: u64,
    /// Nodes over their capacity, summed over steps.
    overloaded: u64,
    failovers: u64,
    /// Their move costs.
    weighted_failovers: f64,
    invalid: u64,
    /// Replicas without a node, summed over steps.
    unplaced: u64,
    calls: usize,
    latency_ms: Latency,
    tenants_came: u64,
    tenants_left: u64,
    replicas_at_end: usize,
}

#[derive(Serialize)]
struct Latency {
    p50: f64,
    p90: f64,
    p99: f64,
}

pub(super) fn run(options: &Simulate, context: &Context) -> Result<Verdict> {
    let (simulation, steps_a_day, name) = simulation(options)?;
    let mut engines = Vec::new();
    for engine in &options.engines {
        let outcome = simulated(&simulation, *engine, steps_a_day, options, context);
        engines.push(Figures::new(*engine, &outcome));
    }
    let (days, density, seed) = (options.days, options.density, options.seed);
    let answer = Answer { cluster: &name, days, density, seed, engines };
    context.answer(|| text(&answer, &simulation), &answer)?;
    Ok(Verdict::fine_if(true))
}

/// The simulation, the number of its steps in a day, and the name of the cluster.
fn simulation(options: &Simulate) -> Result<(Simulation, usize, String)> {
    let path = &options.cluster;
    let (cluster, history) = read_with_history(path)?;
    let shown = path.display();
    let history = history.with_context(|| format!("{shown}: has no history of demands"))?;
    let first = &cluster.metrics.first().with_context(|| format!("{shown}: has no metric"))?.name;
    if !cluster.nodes.iter().any(|node| node.capacity[0].is_some_and(|amount| amount > 0)) {
        bail!("{shown}: no node has a capacity of the first metric, {first:?}");
    }
    let (fragmentation, levels) = match &cluster.objective {
        Objective::Failovers(Failovers { fragmentation, levels, .. }) => {
            (*fragmentation, levels.clone())
        }
        _ => (0.0, Vec::new()),
    };
    // Half of the series are tenants, the others tell of the future.
    let all = history.classes.into_values().flatten().enumerate();
    let (tenants, others): (Vec<_>, Vec<_>) = all.partition(|(at, _)| at % 2 == 0);
    let traces = others.into_iter().map(|(_, trace)| trace).collect();
    let costs = options.move_costs.iter().cycle();
    let kinds: Vec<Kind> = (tenants.into_iter().zip(costs))
        .map(|((_, trace), move_cost)| Kind { trace, move_cost: *move_cost })
        .collect();
    if kinds.iter().all(|kind| kind.trace.peak()[0] == 0) {
        bail!("{shown}: no series of the history has a demand of the first metric, {first:?}");
    }
    let steps_a_day = (DAY / history.step_minutes).max(1) as usize;
    let steps = (options.days * DAY / history.step_minutes) as usize;
    let mut secondary = vec![100; cluster.metrics.len()];
    secondary[0] = SECONDARY;
    let name = cluster.name.clone();
    let simulation = Simulation {
        levels: levels.into_iter().filter(|level| *level != LevelIx::NODE).collect(),
        cluster,
        density: options.density,
        steps,
        kinds,
        mean_stay: f64::from(options.stay_days) * steps_a_day as f64,
        replicated: options.replicated,
        replicas: options.replicas.into(),
        secondary,
        fragmentation,
        foresight: Some(Foresight { forecast: history.forecast, traces }),
        seed: options.seed,
    };
    Ok((simulation, steps_a_day, name))
}

/// Runs an engine, and tells of each day.
fn simulated(
    simulation: &Simulation,
    engine: Technique,
    steps_a_day: usize,
    options: &Simulate,
    context: &Context,
) -> Outcome {
    let quiet = context.global.quiet;
    let line = if quiet { None } else { Spinner::new("{spinner} {wide_msg} {elapsed}") };
    let began = Instant::now();
    let mut place = |cluster: &Cluster| answer(engine, cluster, options);
    let outcome = simulation.run(&mut place, &|| began.elapsed(), &mut |tick, outcome| {
        if tick.step % steps_a_day != 0 {
            return;
        }
        let text = format!(
            "{engine}: day {} of {}, {}, {}, {}",
            tick.step / steps_a_day + 1,
            options.days,
            counted(tick.replicas, "replica"),
            counted(whole(outcome.violations), "violation"),
            counted(whole(outcome.failovers), "failover")
        );
        match &line {
            Some(line) => line.set(&text),
            None if !quiet => say(&text),
            None => {}
        }
    });
    if let Some(line) = line {
        line.finish();
    }
    outcome
}

fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// An engine's answer.
fn answer(engine: Technique, cluster: &Cluster, options: &Simulate) -> Assignment {
    let began = Instant::now();
    let elapsed = || began.elapsed();
    let limits = Limits {
        seed: options.seed,
        deadline: Some(options.deadline),
        elapsed: &elapsed,
        ..Limits::rounds(1_000)
    };
    match engine {
        Technique::Search => search(cluster, &limits).assignment,
        Technique::Annealing | Technique::AnnealingPrv => {
            // It mends what is broken, and does not balance in between.
            let settings = ServiceFabric { largest_share: 0.0, ..ServiceFabric::default() };
            let limits = Limits { rounds: Some(ROUNDS), ..limits };
            let cluster = with_energy(cluster, engine == Technique::AnnealingPrv);
            annealing(&cluster, &settings, &limits).assignment
        }
    }
}

impl Figures {
    fn new(engine: Technique, outcome: &Outcome) -> Figures {
        let ms = |share: f64| Duration::as_secs_f64(&outcome.latency(share)) * 1e3;
        let end = outcome.end.as_ref();
        Figures {
            engine,
            violations: outcome.violations,
            overloaded: outcome.overloaded,
            failovers: outcome.failovers,
            weighted_failovers: outcome.weighted,
            invalid: outcome.invalid,
            unplaced: outcome.unplaced,
            calls: outcome.latencies.len(),
            latency_ms: Latency { p50: ms(0.5), p90: ms(0.9), p99: ms(0.99) },
            tenants_came: end.map_or(0, |tick| tick.came),
            tenants_left: end.map_or(0, |tick| tick.left),
            replicas_at_end: end.map_or(0, |tick| tick.replicas),
        }
    }
}

fn text(answer: &Answer, simulation: &Simulation) -> String {
    let last = answer.engines.last();
    let head = facts(&[
        ("cluster", answer.cluster.to_owned()),
        ("simulated", counted(answer.days as usize, "day")),
        ("nodes", number::count(simulation.cluster.nodes.len())),
        ("density", decimal(answer.density)),
        (
            "tenants",
            last.map_or(String::new(), |of| {
                format!("{} came, {} left", of.tenants_came, of.tenants_left)
            }),
        ),
    ]);
    let columns = [
        "engine",
        "violations",
        "failovers",
        "weighted",
        "invalid",
        "unplaced",
        "calls",
        "p50 ms",
        "p90 ms",
        "p99 ms",
    ];
    let mut table = Table::new(&columns, 1..columns.len());
    for of in &answer.engines {
        let ms = |ms: f64| format!("{ms:.1}");
        table.add_row([
            of.engine.to_string(),
            of.violations.to_string(),
            of.failovers.to_string(),
            decimal(of.weighted_failovers),
            of.invalid.to_string(),
            of.unplaced.to_string(),
            of.calls.to_string(),
            ms(of.latency_ms.p50),
            ms(of.latency_ms.p90),
            ms(of.latency_ms.p99),
        ]);
    }
    format!("{head}\n\n{table}")
}

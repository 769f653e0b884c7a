//! 21 simulated days of a cluster, with the demands of virtual machines: SIL sections 7.2 and 7.3.
//!
//! ```sh
//! cargo run --release -p datasets --no-default-features --example simulate -- FILE TECHNIQUE DENSITY [DAYS] [SEED] [weights|equal] [PERCENTILE] [FRAGMENTATION]
//! ```
//!
//! `FILE` is a Parquet table of use with the columns `vm`, `bin` (10 minutes), `cpu_mhz`, `mem_kb`,
//! `disk_read_kbs` and `disk_write_kbs`, sorted by `vm` and `bin`.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int16Type};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use placement::simulate::{Foresight, Kind, Simulation, alike};
use placement::{
    Amount, Assignment, Cluster, Failovers, Forecast, LevelIx, Limits, Objective, ServiceFabric,
    Trace, annealing, search, with_energy,
};
use std::error::Error;
use std::fs::File;
use std::time::{Duration, Instant};

/// Steps of ten minutes in a day.
const DAY: usize = 144;
/// SIL's points in time, 5 to 5,000 minutes, in steps: the first is the next step.
const AHEAD: [usize; 5] = [1, 3, 6, 100, 500];
/// Nodes, and the replicas that a node has at the middle density.
const NODES: usize = 40;
const REPLICAS_BY_NODE: f64 = 25.0;
const MIDDLE: f64 = 2.2;
const REPLICATED: f64 = 0.25;
const REPLICAS: usize = 4;
/// A secondary needs half of the primary's CPU, and its memory and disk.
const SECONDARY: [Amount; 3] = [50, 100, 100];
/// Time that a technique has for a call.
const DEADLINE: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, technique, density, rest @ ..] = arguments.as_slice() else {
        return Err("usage: simulate FILE TECHNIQUE DENSITY [DAYS] [SEED] [weights|equal] [PERCENTILE] [FRAGMENTATION]".into());
    };
    let days: usize = rest.first().map_or(Ok(21), |days| days.parse())?;
    let seed: u64 = rest.get(1).map_or(Ok(1), |seed| seed.parse())?;
    let is_weighted = rest.get(2).is_some_and(|word| word == "weights");
    let percentile: f64 = rest.get(3).map_or(Ok(1.0), |share| share.parse())?;
    let traces = limited(&traces(file)?, percentile);
    let mut simulation = simulation(traces, density.parse()?, days, seed, is_weighted);
    if let Some(weight) = rest.get(4) {
        simulation.fragmentation = weight.parse()?;
    }
    if technique == "stats" {
        stats(&simulation);
        return Ok(());
    }
    let began = Instant::now();
    let clock = || began.elapsed();
    let call = |cluster: &Cluster| answer(technique, cluster, seed);
    answer(technique, &Cluster::builder("empty").build(), seed)?;
    let mut place = |cluster: &Cluster| call(cluster).unwrap_or_else(|_| cluster.today());
    let outcome = simulation.run(&mut place, &clock, &mut |tick, outcome| {
        if tick.step % (DAY * 3) == 0 {
            eprintln!(
                "day {:>2} {:>4} replicas {:>5} came, {:>4} violations {:>5} failovers {:>3} invalid {:>4.0} s",
                tick.step / DAY, tick.replicas, tick.came,
                outcome.violations, outcome.failovers, outcome.invalid, clock().as_secs_f64()
            );
        }
    });
    let ms = |share: f64| outcome.latency(share).as_secs_f64() * 1e3;
    println!(
        "{technique:<14} {density:>4} {:>6} {:>6} {:>6} {:>8} {:>6} {:>6} {:>6} {:>7.1} {:>7.1} {:>7.1} {:>8.1} {:>9.1}",
        outcome.violations,
        outcome.overloaded,
        outcome.failovers,
        outcome.weighted,
        outcome.invalid,
        outcome.unplaced,
        outcome.latencies.len(),
        ms(0.5),
        ms(0.9),
        ms(0.99),
        outcome.moved[1] as f64 / (1 << 20) as f64,
        outcome.moved[2] as f64 / 1024.0,
    );
    Ok(())
}

/// A technique's answer.
fn answer(technique: &str, cluster: &Cluster, seed: u64) -> Result<Assignment, String> {
    let began = Instant::now();
    let elapsed = || began.elapsed();
    let limits =
        Limits { seed, deadline: Some(DEADLINE), elapsed: &elapsed, ..Limits::rounds(1_000) };
    match technique {
        "search" => Ok(search(cluster, &limits).assignment),
        "search-no-cap" => Ok(search(&without_futures(cluster), &limits).assignment),
        "annealing" | "annealing-prv" | "annealing-balancing" => {
            let settings = ServiceFabric::default();
            let largest_share = if technique == "annealing-balancing" { 0.3 } else { 0.0 };
            let settings = ServiceFabric { largest_share, ..settings };
            let limits = Limits { rounds: Some(100), ..limits };
            let cluster = with_energy(cluster, technique == "annealing-prv");
            Ok(annealing(&cluster, &settings, &limits).assignment)
        }
        _ => Err(format!("there is no technique {technique:?}")),
    }
}

fn without_futures(cluster: &Cluster) -> Cluster {
    let mut cluster = cluster.clone();
    if let Objective::Failovers(Failovers { futures, .. }) = &mut cluster.objective {
        *futures = None;
    }
    cluster
}

/// The cluster of SIL section 7.2. Half of the machines are tenants, the others tell of the future.
fn simulation(
    traces: Vec<Trace>,
    density: f64,
    days: usize,
    seed: u64,
    is_weighted: bool,
) -> Simulation {
    let (tenants, held_out): (Vec<_>, Vec<_>) =
        traces.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let tenants: Vec<Trace> = tenants.into_iter().map(|(_, trace)| trace).collect();
    let traces = held_out.into_iter().map(|(_, trace)| trace).collect();
    let capacity = capacity(&tenants);
    let mut memory: Vec<Amount> = tenants.iter().map(|trace| trace.peak()[1]).collect();
    memory.sort_unstable();
    let above =
        |trace: &Trace, percent: usize| trace.peak()[1] > memory[memory.len() * percent / 100];
    let kind = |trace: Trace| {
        let move_cost = match () {
            () if !is_weighted => 1.0,
            () if above(&trace, 85) => 40.0,
            () if above(&trace, 50) => 15.0,
            () => 1.0,
        };
        Kind { trace, move_cost }
    };
    Simulation {
        cluster: alike(&["cpu", "memory", "disk"], &capacity, NODES, [5, 10]),
        levels: [1, 2].map(LevelIx::new).into(),
        density,
        steps: days * DAY,
        kinds: tenants.into_iter().map(kind).collect(),
        mean_stay: (7 * DAY) as f64,
        replicated: REPLICATED,
        replicas: REPLICAS,
        secondary: SECONDARY.into(),
        fragmentation: 0.05,
        foresight: Some(Foresight {
            forecast: Forecast { weight: 0.1, samples: 10, ahead: AHEAD.into(), candidates: 16 },
            traces,
        }),
        seed,
    }
}

/// Capacity of a node that has 25 average replicas at the middle density.
fn capacity(tenants: &[Trace]) -> Vec<Amount> {
    let secondaries = REPLICATED * (REPLICAS - 1) as f64;
    (0..3)
        .map(|metric| {
            let peaks: f64 = tenants.iter().map(|trace| trace.peak()[metric] as f64).sum();
            let mean = peaks / tenants.len().max(1) as f64;
            let by_replica =
                mean * (1.0 + secondaries * SECONDARY[metric] as f64 / 100.0) / (1.0 + secondaries);
            (REPLICAS_BY_NODE * by_replica / MIDDLE) as Amount
        })
        .collect()
}

fn stats(of: &Simulation) {
    let capacity: Vec<Amount> = of.cluster.nodes[0].capacity.iter().flatten().copied().collect();
    println!("{} kinds, capacity {capacity:?}", of.kinds.len());
    for (metric, capacity) in capacity.iter().enumerate() {
        let mut shares: Vec<f64> = Vec::new();
        let (mut sum, mut peaks, mut largest) = (0.0, 0.0, 0.0_f64);
        for Kind { trace, .. } in &of.kinds {
            let mean: f64 =
                (0..trace.steps()).map(|step| trace.at(step)[metric] as f64).sum::<f64>()
                    / trace.steps() as f64;
            let peak = trace.peak()[metric] as f64;
            sum += mean;
            peaks += peak;
            largest = largest.max(peak / *capacity as f64);
            shares.push(mean / peak.max(1.0));
        }
        shares.sort_by(f64::total_cmp);
        println!(
            "{}: mean over peak {:.3} (median of tenants {:.3}), largest tenant {largest:.2} of a node",
            of.cluster.metrics[metric].name,
            sum / peaks,
            shares[shares.len() / 2],
        );
    }
}

/// Use up to a limit, by metric, as a governor holds tenants to their size: a percentile of a machine's own
/// use, and no more than that of four in five machines.
fn limited(traces: &[Trace], percentile: f64) -> Vec<Trace> {
    let of_share = |mut amounts: Vec<Amount>, share: f64| {
        amounts.sort_unstable();
        amounts[((amounts.len() - 1) as f64 * share) as usize]
    };
    let own = |trace: &Trace| {
        [0, 1, 2].map(|metric| {
            let amounts = (0..trace.steps()).map(|at| trace.at(at)[metric]).collect();
            of_share(amounts, percentile)
        })
    };
    let own: Vec<[Amount; 3]> = traces.iter().map(own).collect();
    let most =
        [0, 1, 2].map(|metric| of_share(own.iter().map(|limits| limits[metric]).collect(), 0.8));
    let limit = |(trace, own): (&Trace, &[Amount; 3])| {
        let demand = (0..trace.steps()).flat_map(|at| {
            let limits = own.iter().zip(most).map(|(own, most)| *own.min(&most));
            trace.at(at).iter().zip(limits).map(|(amount, limit)| *amount.min(&limit))
        });
        Trace::new(3, demand.collect())
    };
    traces.iter().zip(&own).filter_map(limit).collect()
}

/// The use of each machine from its first bin to its last: CPU in MHz, memory in KB, disk in KB/s. In a
/// gap the last use goes on.
fn traces(file: &str) -> Result<Vec<Trace>, Box<dyn Error>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(file)?)?;
    let columns = ["vm", "bin", "cpu_mhz", "mem_kb", "disk_read_kbs", "disk_write_kbs"];
    let mask = ProjectionMask::columns(builder.parquet_schema(), columns);
    let mut traces = Vec::new();
    let mut machine: Option<(i16, i16, Vec<Amount>)> = None;
    for batch in builder.with_projection(mask).build()? {
        let batch = batch?;
        let column = |name: &str| batch.column_by_name(name).ok_or(format!("no column {name}"));
        let whole = |name: &str| {
            let column = column(name)?.as_primitive_opt::<Int16Type>();
            column.cloned().ok_or(format!("{name} is not int16"))
        };
        let float = |name: &str| {
            let column = column(name)?.as_primitive_opt::<Float32Type>();
            column.cloned().ok_or(format!("{name} is not float32"))
        };
        let (vm, bin) = (whole("vm")?, whole("bin")?);
        let (cpu, memory) = (float("cpu_mhz")?, float("mem_kb")?);
        let (read, written) = (float("disk_read_kbs")?, float("disk_write_kbs")?);
        for row in 0..batch.num_rows() {
            let disk = read.value(row) + written.value(row);
            let amounts = [cpu.value(row), memory.value(row), disk].map(|of| of.round() as Amount);
            let (vm, bin) = (vm.value(row), bin.value(row));
            if let Some((_, last, demand)) = machine.as_mut().filter(|(of, ..)| *of == vm) {
                let held: Vec<Amount> = demand[demand.len() - 3..].to_vec();
                for _ in *last + 1..bin {
                    demand.extend(&held);
                }
                demand.extend(amounts);
                *last = bin;
            } else if let Some((.., demand)) = machine.replace((vm, bin, amounts.into())) {
                traces.extend(Trace::new(3, demand));
            }
        }
    }
    traces.extend(machine.and_then(|(.., demand)| Trace::new(3, demand)));
    // Machines that were there for a short time only repeat it too often.
    traces.retain(|trace| trace.steps() >= 14 * DAY);
    Ok(traces)
}

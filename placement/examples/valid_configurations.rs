//! SIL section 7.1: 55 tenants on ten nodes of 100, placed one after the other with free moves. How
//! often are all placed, by `search` and by `annealing` (Service Fabric's balancer)? One thread.
//!
//! ```sh
//! cargo run --release -p placement --example valid_configurations -- 0.1 0.5 2
//! ```
//!
//! The arguments are the seconds that each placement may take.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use placement::{Cluster, Found, Limits, ServiceFabric, annealing, search};
use std::time::{Duration, Instant};

/// Divisible by 1 to 10, so that a node's share is a whole number.
const UNIT: i64 = 2_520;

type Engine = fn(&Cluster, &Limits) -> Found;

/// Only the placement of new replicas counts here: it may take all the time.
fn only_placement(cluster: &Cluster, limits: &Limits) -> Found {
    let settings = ServiceFabric {
        placement: Duration::MAX,
        constraint_check: Duration::ZERO,
        balancing: Duration::ZERO,
        ..ServiceFabric::default()
    };
    annealing(cluster, &settings, limits)
}

fn main() {
    let seconds = std::env::args().skip(1).filter_map(|text| text.parse().ok());
    let mut seconds: Vec<f64> = seconds.collect();
    if seconds.is_empty() {
        seconds = vec![0.1, 0.5, 2.0];
    }
    let engines: [(&str, Engine); 2] = [("search", search), ("annealing", only_placement)];
    println!("orders of ten in which all tenants are placed, by the average load of a node");
    let heads: Vec<String> = (90..=100).map(|fill| format!("{fill:>4}")).collect();
    println!("engine     seconds {}  90 to 99  slowest placement", heads.join(""));
    for (name, engine) in engines {
        for seconds in &seconds {
            print!("{name:<10} {seconds:>7} ");
            let (mut all, mut slowest) = (0, Duration::ZERO);
            for fill in 90..=100 {
                let mut placed = 0;
                for seed in 0..10 {
                    let (valid, time) = place_all(engine, fill, seed, *seconds);
                    placed += u32::from(valid);
                    slowest = slowest.max(time);
                }
                all += if fill < 100 { placed } else { 0 };
                print!("{placed:>4}");
            }
            println!("  {all:>8}  {:>15.3} s", slowest.as_secs_f64());
        }
    }
}

fn place_all(engine: Engine, fill: i64, seed: u64, seconds: f64) -> (bool, Duration) {
    let mut demands: Vec<i64> = Vec::new();
    for parts in 1..=10 {
        demands.extend((0..parts).map(|_| fill * UNIT / parts));
    }
    shuffle(&mut demands, seed);
    let nodes: Vec<String> = (0..10).map(|node| format!("n{node}")).collect();
    let mut today: Vec<Option<usize>> = Vec::new();
    let mut slowest = Duration::ZERO;
    while today.len() < demands.len() {
        today.push(None);
        let mut cluster = Cluster::builder("SIL 7.1").metric("r", false);
        for node in &nodes {
            cluster = cluster.node(node, [Some(100 * UNIT)]);
        }
        for (tenant, node) in today.iter().enumerate() {
            let node = node.map(|node: usize| nodes[node].as_str());
            cluster = cluster.replica(&format!("t{tenant}"), node, [demands[tenant]]);
        }
        let cluster = cluster.build();
        let began = Instant::now();
        let elapsed = || began.elapsed();
        let limits = Limits {
            seed,
            deadline: Some(Duration::from_secs_f64(seconds)),
            elapsed: &elapsed,
            ..Limits::rounds(u64::MAX)
        };
        let found = engine(&cluster, &limits);
        slowest = slowest.max(began.elapsed());
        if !found.violations.is_empty() {
            return (false, slowest);
        }
        today = found.assignment.iter().map(|node| node.map(|node| node.ix())).collect();
    }
    (true, slowest)
}

/// Fisher and Yates, with SplitMix64.
fn shuffle(items: &mut [i64], seed: u64) {
    let mut state = seed;
    for last in (1..items.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        items.swap(last, ((z ^ (z >> 31)) % (last as u64 + 1)) as usize);
    }
}

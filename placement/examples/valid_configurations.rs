//! SIL section 7.1: 55 tenants on ten nodes of 100, placed one after the other with free moves. How
//! often are all placed?
//!
//! ```sh
//! cargo run --release -p placement --example valid_configurations -- 0.1
//! ```

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use placement::{Cluster, Limits, search};
use std::time::{Duration, Instant};

/// Divisible by 1 to 10, so that a node's share is a whole number.
const UNIT: i64 = 2_520;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.1);
    println!("time for each placement: {seconds} s, one thread");
    println!("  F  all placed  slowest placement");
    let mut all = (0, 0);
    for fill in 90..=100 {
        let (mut placed, mut slowest) = (0, Duration::ZERO);
        for seed in 0..10 {
            let (valid, time) = place_all(fill, seed, seconds);
            placed += u32::from(valid);
            slowest = slowest.max(time);
        }
        println!("{fill:>3}  {placed:>7}/10  {:>14.3} s", slowest.as_secs_f64());
        if fill < 100 {
            all = (all.0 + placed, all.1 + 10);
        }
    }
    println!("F = 90 to 99: {} of {}", all.0, all.1);
}

fn place_all(fill: i64, seed: u64, seconds: f64) -> (bool, Duration) {
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
        let found = search(&cluster, &limits);
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

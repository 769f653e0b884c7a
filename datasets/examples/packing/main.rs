//! Packing and consolidation on ten clusters like those of Eigen's table 1.
//!
//! ```sh
//! cargo run --release -p datasets --no-default-features --example packing -- VM_REQUESTS ALIBABA_GPU_V2023 [ROUNDS] [SEED] [CLUSTER...]
//! ```
//!
//! The folders hold `vms.parquet`, and `pods.csv` and `servers.csv`. `clusters.rs` says how the clusters are
//! made. ROUNDS is the limit of our own search, in thousands of exchanges.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod clusters;
mod read;

use clusters::{Event, Pool};
use placement::vro::{Norm, Offline, Placer, Policy, Skewness, Vro, empty_nodes};
use placement::{Cluster, Consolidated, Limits, ReplicaIx, consolidate, emptied_bound};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

/// Budgets of moves, in percent of the sum of the move costs: Eigen figure 9 a.
const BUDGETS: [f64; 5] = [2.0, 5.0, 10.0, 15.0, 22.0];

const SKEWNESS: [(&str, Skewness); 3] = [
    ("Diagonal", Skewness::Diagonal),
    ("Bottleneck", Skewness::Bottleneck),
    ("DP", Skewness::DotProduct),
];

fn baselines() -> Vec<(&'static str, Policy)> {
    vec![
        ("First fit", Policy::FirstFit),
        ("Best fit", Policy::BestFit(Norm::L2)),
        ("MostAllocated", Policy::MostAllocated),
        ("RTCR", Policy::requested_to_capacity_ratio()),
    ]
}

/// The columns of table 1: baselines, then each policy of VRO without exchanges and with them.
fn columns() -> Vec<(String, Offline)> {
    let mut columns = Vec::new();
    for (name, policy) in baselines() {
        columns.push((name.to_owned(), Offline { policy, ..Offline::without_exchange() }));
    }
    for (name, skewness) in SKEWNESS {
        let policy = Policy::Vro(Vro::new(skewness));
        columns.push((name.to_owned(), Offline { policy, ..Offline::without_exchange() }));
        columns.push((format!("{name}+"), Offline::new(skewness)));
    }
    columns
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [vms, pods, rest @ ..] = arguments.as_slice() else {
        return Err(
            "usage: packing VM_REQUESTS ALIBABA_GPU_V2023 [ROUNDS] [SEED] [CLUSTER...]".into()
        );
    };
    let rounds = rest.first().map_or(Ok(100), |rounds| rounds.parse())?;
    let seed = rest.get(1).map_or(Ok(1), |seed| seed.parse())?;
    let wanted = rest.get(2..).unwrap_or(&[]);
    let mut pools = clusters::ten(Path::new(vms), Path::new(pods), seed)?;
    pools.retain(|pool| wanted.is_empty() || wanted.contains(&pool.cluster.name));
    without_limit(&pools, rounds);
    within_budgets(&pools, rounds);
    online(&pools);
    Ok(())
}

/// Nodes that an answer empties. An answer that breaks a rule or its budget ends the run.
fn emptied(found: &Consolidated, budget: f64) -> usize {
    assert!(found.violations.is_empty(), "{:?}", found.violations);
    assert!(found.cost <= budget * (1.0 + 1e-9), "{} exceeds {budget}", found.cost);
    found.emptied.len()
}

fn row(cells: impl IntoIterator<Item = String>) {
    println!("| {} |", cells.into_iter().collect::<Vec<String>>().join(" | "));
}

fn in_use(cluster: &Cluster) -> usize {
    let nodes = cluster.replicas.iter().filter_map(|replica| replica.node);
    nodes.collect::<std::collections::BTreeSet<_>>().len()
}

/// Table 1: nodes emptied when any number of replicas may move.
fn without_limit(pools: &[Pool], rounds: u64) {
    println!("Emptied nodes, any number of moves:\n");
    let columns = columns();
    let names = columns.iter().map(|(name, _)| name.clone());
    let heads = ["cluster", "in use", "replicas"].map(str::to_owned).into_iter().chain(names);
    let heads: Vec<String> =
        heads.chain(["consolidate", "bound", "seconds"].map(str::to_owned)).collect();
    row(heads.clone());
    row(heads.iter().map(|_| "---".to_owned()));
    let mut shares = vec![0.0; columns.len() + 1];
    for Pool { cluster, .. } in pools {
        let bound = emptied_bound(cluster, f64::INFINITY);
        let mut counts: Vec<usize> = Vec::new();
        let began = Instant::now();
        for (_, offline) in &columns {
            let found = empty_nodes(cluster, f64::INFINITY, offline);
            counts.push(emptied(&found, f64::INFINITY));
        }
        let theirs = began.elapsed();
        let began = Instant::now();
        let found = consolidate(cluster, f64::INFINITY, &Limits::rounds(rounds));
        counts.push(emptied(&found, f64::INFINITY));
        let ours = began.elapsed();
        for (share, count) in shares.iter_mut().zip(&counts) {
            *share += *count as f64 / bound.max(1) as f64 / pools.len() as f64;
        }
        let numbers = [in_use(cluster), cluster.replicas.len()].into_iter().chain(counts);
        let cells = std::iter::once(cluster.name.clone()).chain(numbers.map(|n| n.to_string()));
        let seconds = format!("{:.1} / {:.1}", theirs.as_secs_f64(), ours.as_secs_f64());
        row(cells.chain([bound.to_string(), seconds]));
    }
    let shares = shares.into_iter().map(|share| format!("{:.1} %", 100.0 * share));
    let blank = |text: &str| text.to_owned();
    let cells = [blank("mean share of the bound"), blank(""), blank("")].into_iter();
    row(cells.chain(shares).chain([blank("100 %"), blank("")]));
}

/// Figure 9 a: nodes emptied by budget.
fn within_budgets(pools: &[Pool], rounds: u64) {
    println!("\nEmptied nodes by budget, as a share of all replicas:");
    println!("first fit / best fit / best of VRO's six / consolidate / bound\n");
    let heads = BUDGETS.iter().map(|budget| format!("{budget} %"));
    row(std::iter::once("cluster".to_owned()).chain(heads));
    row(std::iter::repeat_n("---".to_owned(), BUDGETS.len() + 1));
    for Pool { cluster, .. } in pools {
        let total: f64 = cluster.replicas.iter().map(|replica| replica.move_cost).sum();
        let cells = BUDGETS.iter().map(|percent| {
            let budget = total * percent / 100.0;
            let of = |offline: &Offline| emptied(&empty_nodes(cluster, budget, offline), budget);
            let theirs: Vec<usize> = columns().iter().map(|(_, offline)| of(offline)).collect();
            let best = theirs[4..].iter().max().copied().unwrap_or(0);
            let ours = emptied(&consolidate(cluster, budget, &Limits::rounds(rounds)), budget);
            let bound = emptied_bound(cluster, budget);
            format!("{} / {} / {best} / {ours} / {bound}", theirs[0], theirs[1])
        });
        row(std::iter::once(cluster.name.clone()).chain(cells));
    }
}

/// Nodes in use when every arrival is placed by a policy, and the time of a decision.
fn online(pools: &[Pool]) {
    println!("\nNodes in use at the end, placed online; microseconds of a decision, p50 / p99:\n");
    let mut policies = baselines();
    let vro = |(name, skewness)| (name, Policy::Vro(Vro::new(skewness)));
    policies.extend(SKEWNESS.map(vro));
    let names = policies.iter().map(|(name, _)| (*name).to_owned());
    let heads: Vec<String> =
        ["cluster", "arrivals"].map(str::to_owned).into_iter().chain(names).collect();
    row(heads.clone());
    row(heads.iter().map(|_| "---".to_owned()));
    for pool in pools {
        let cells = policies.iter().map(|(_, policy)| {
            let mut placer = Placer::new(&pool.history, policy.clone());
            let (mut next, mut refused) = (0, 0);
            let mut times: Vec<Duration> = Vec::new();
            for event in &pool.events {
                match event {
                    Event::Comes => {
                        let began = Instant::now();
                        let node = placer.place(ReplicaIx::new(next));
                        times.push(began.elapsed());
                        refused += usize::from(node.is_none());
                        next += 1;
                    }
                    Event::Ends(arrival) => {
                        placer.remove(ReplicaIx::new(*arrival));
                    }
                }
            }
            times.sort_unstable();
            let at =
                |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
            let nodes: std::collections::BTreeSet<_> =
                placer.assignment().iter().copied().flatten().collect();
            let refused = if refused > 0 { format!(", {refused} refused") } else { String::new() };
            format!("{}{refused} ({:.1} / {:.1})", nodes.len(), at(0.5), at(0.99))
        });
        let numbers = [pool.cluster.name.clone(), pool.history.replicas.len().to_string()];
        row(numbers.into_iter().chain(cells));
    }
}

//! Section 6.1.2 of the paper of Weave: 30 applications of ten pods on 50 nodes, 35 workloads. Five
//! pods of an application are caches, on different nodes; five are web servers, on different nodes,
//! each with a cache of its application. The paper gives neither demands nor capacities: here both metrics are
//! exponential, and `load` is their expected sum as a share of the capacity.
//!
//! ```sh
//! cargo run --release -p placement --example weave -- 0.6 10
//! ```

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use placement::{Cluster, GroupIx, LevelIx, Limits, Rule, audit, search};
use std::time::{Duration, Instant};

const NODES: usize = 50;
const APPLICATIONS: usize = 30;
const CAPACITY: i64 = 1_000_000;

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|text| text.parse::<f64>().ok());
    let load = arguments.next().unwrap_or(0.6);
    let seconds = arguments.next().unwrap_or(10.0);
    println!("generated workloads, load {load}, deadline {seconds} s");
    println!("seed  demand/capacity  greedy  search  seconds");
    let (mut greedy_whole, mut search_whole, mut impossible, mut worst) = (0, 0, 0, 300);
    for seed in 0..35 {
        let demands = demands(seed, load);
        let sum = |metric: usize| demands.iter().map(|of| of[metric]).sum::<i64>() as f64;
        let share = sum(0).max(sum(1)) / (NODES as f64 * CAPACITY as f64);
        let by_greedy = greedy(&demands);
        let cluster = cluster(&demands);
        let began = Instant::now();
        let elapsed = || began.elapsed();
        let deadline = Some(Duration::from_secs_f64(seconds));
        let limits = Limits { deadline, elapsed: &elapsed, ..Limits::rounds(1) };
        let found = search(&cluster, &limits);
        let time = began.elapsed().as_secs_f64();
        let placed = found.assignment.iter().flatten().count();
        greedy_whole += u32::from(by_greedy == demands.len());
        search_whole += u32::from(audit(&cluster, &found.assignment).is_empty());
        worst = worst.min(placed);
        let proof = share > 1.0 || has_no_place(&demands);
        impossible += u32::from(proof);
        let proof = if proof { "  cannot be" } else { "" };
        println!("{seed:>4}  {share:>15.3}  {by_greedy:>6}  {placed:>6}  {time:>7.2}{proof}");
    }
    println!("all placed: greedy {greedy_whole} of 35, search {search_whole} of 35");
    println!(
        "fewest placed by search: {worst} of 300; proved that it cannot be: {impossible} of 35"
    );
}

/// Demands of the pods in their order of arrival: by application, caches first.
fn demands(seed: u64, load: f64) -> Vec<[i64; 2]> {
    let mut state = seed;
    let mut unit = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    let pods = APPLICATIONS * 10;
    let mean = load * NODES as f64 * CAPACITY as f64 / pods as f64;
    (0..pods).map(|_| [(); 2].map(|()| (-(1.0 - unit()).ln() * mean) as i64)).collect()
}

/// Whether the pods of one application cannot be placed even on a cluster of their own. Its five
/// caches are on five nodes, and so are its web servers, each with a cache: every node has one
/// of both. All pairings are tried.
fn has_no_place(demands: &[[i64; 2]]) -> bool {
    demands.chunks(10).any(|pods| {
        let (caches, webs) = pods.split_at(5);
        !can_pair(caches, webs, &mut vec![false; caches.len()])
    })
}

fn can_pair(caches: &[[i64; 2]], webs: &[[i64; 2]], taken: &mut Vec<bool>) -> bool {
    let Some((web, rest)) = webs.split_first() else { return true };
    (0..caches.len()).any(|cache| {
        let fits = web.iter().zip(caches[cache]).all(|(web, cache)| web + cache <= CAPACITY);
        if taken[cache] || !fits {
            return false;
        }
        taken[cache] = true;
        let paired = can_pair(caches, rest, taken);
        taken[cache] = false;
        paired
    })
}

fn is_cache(pod: usize) -> bool {
    pod % 10 < 5
}

fn cluster(demands: &[[i64; 2]]) -> Cluster {
    let mut builder = Cluster::builder("Weave").metric("cpu", false).metric("memory", false);
    for node in 0..NODES {
        builder = builder.node(&format!("n{node}"), [Some(CAPACITY); 2]);
    }
    for (pod, demand) in demands.iter().enumerate() {
        builder = builder.replica(&format!("p{pod}"), None, *demand);
    }
    let level = LevelIx::NODE;
    for application in 0..APPLICATIONS {
        let first = application * 10;
        let (group, to) = (GroupIx::new(2 * application + 1), GroupIx::new(2 * application));
        builder = builder
            .group(&format!("a{application} caches"), first..first + 5)
            .group(&format!("a{application} web"), first + 5..first + 10)
            .rule(Rule::PerDomain { group: to, level, most: 1 })
            .rule(Rule::PerDomain { group, level, most: 1 })
            .rule(Rule::Near { group, to, level });
    }
    builder.build()
}

/// kube-scheduler's way: one pod after the other goes to the node that passes the filters and has the
/// highest sum of `LeastAllocated` and `BalancedAllocation`. Returns the number of pods placed.
fn greedy(demands: &[[i64; 2]]) -> usize {
    let mut used = [[0_i64; 2]; NODES];
    let mut at: Vec<Option<usize>> = Vec::new();
    for (pod, demand) in demands.iter().enumerate() {
        let peers = |node: usize, caches: bool| {
            let first = pod / 10 * 10;
            (first..pod).any(|other| is_cache(other) == caches && at[other] == Some(node))
        };
        let passes = |node: &usize| {
            used[*node].iter().zip(demand).all(|(used, demand)| used + demand <= CAPACITY)
                && !peers(*node, is_cache(pod))
                && (is_cache(pod) || peers(*node, true))
        };
        let score = |node: usize| {
            let share =
                |metric: usize| (used[node][metric] + demand[metric]) as f64 / CAPACITY as f64;
            let (cpu, memory) = (share(0), share(1));
            // The deviation of two shares is half their difference.
            (1.0 - cpu.midpoint(memory)) + (1.0 - (cpu - memory).abs() / 2.0)
        };
        let best = (0..NODES)
            .filter(passes)
            .max_by(|one, other| score(*one).total_cmp(&score(*other)).then(other.cmp(one)));
        if let Some(node) = best {
            for (used, demand) in used[node].iter_mut().zip(demand) {
                *used += demand;
            }
        }
        at.push(best);
    }
    at.iter().flatten().count()
}

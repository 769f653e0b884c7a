//! How long the inner loops of the search take, in clusters of three sizes with 25 replicas a node:
//!
//! `cargo bench -p placement --bench moves`
//!
//! - try: a move of the annealing: a shift, swap, ejection or rebuilt nodes, with undo where it is not taken;
//! - mend: an overloaded node loses the replicas that cost least, from the file's cluster to the answer;
//! - schedule: phases of a hundredth of the replicas, and their audit.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

use placement::{
    Assignment, Cluster, Limits, NodeIx, Objective, Reassignment, audit_schedule, schedule, search,
};
use std::time::{Duration, Instant};

const NODES: [usize; 3] = [40, 400, 4_000];
const REPLICAS_PER_NODE: usize = 25;
/// Tried by the annealing, in thousands.
const ROUNDS: u64 = 100;
const TIMES: usize = 5;

fn cluster(nodes: usize) -> Cluster {
    let mut builder = Cluster::builder("bench").metric("cpu", false).metric("memory", false);
    for node in 0..nodes {
        builder = builder.node(&format!("n{node}"), [Some(1_000), Some(1_000)]);
    }
    for replica in 0..nodes * REPLICAS_PER_NODE {
        let node = format!("n{}", replica % nodes);
        let demand = [10 + replica as i64 * 7 % 37, 10 + replica as i64 * 11 % 41];
        builder = builder.replica(&format!("r{replica}"), Some(&node), demand);
    }
    builder.build()
}

/// Loads above those of an average node cost.
fn balanced(mut cluster: Cluster) -> Cluster {
    let nodes = cluster.nodes.len();
    cluster.objective = Objective::Reassignment(Reassignment {
        load: vec![1.0, 1.0],
        safety: vec![vec![720, 760]; nodes],
        balance: Vec::new(),
        replica_moves: 1.0,
        service_moves: 1.0,
        node_moves: 1.0,
        between: vec![vec![1; nodes]; nodes],
    });
    cluster
}

/// The median time.
fn timed(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..TIMES)
        .map(|_| {
            let began = Instant::now();
            run();
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[TIMES / 2]
}

/// The replicas of each hundredth place go to the next node.
fn moved(cluster: &Cluster) -> Assignment {
    let nodes = cluster.nodes.len();
    let mut to = cluster.today();
    for node in to.iter_mut().step_by(100) {
        *node = node.map(|node| NodeIx::new((node.ix() + 1) % nodes));
    }
    to
}

fn main() {
    println!("{:>6} {:>9} {:>12} {:>12} {:>12}", "nodes", "replicas", "try", "mend", "schedule");
    for nodes in NODES {
        let mut cluster = cluster(nodes);
        let to = moved(&cluster);
        let phases = timed(|| {
            let made = schedule(&cluster, &to);
            assert_eq!(audit_schedule(&cluster, &to, &made), []);
        });
        let balanced = balanced(cluster.clone());
        // What the search does before its first move is not counted.
        let few = timed(|| drop(search(&balanced, &Limits::rounds(1))));
        let many = timed(|| drop(search(&balanced, &Limits::rounds(1 + ROUNDS))));
        let tried = many.saturating_sub(few) / u32::try_from(ROUNDS * 1_000).expect("few");
        cluster.nodes[0].capacity = vec![Some(500), Some(500)];
        let mend = timed(|| {
            let found = search(&cluster, &Limits::rounds(1));
            assert!(found.violations.is_empty() && found.value.total > 0.0);
        });
        let replicas = cluster.replicas.len();
        println!("{nodes:>6} {replicas:>9} {tried:>12.2?} {mend:>12.2?} {phases:>12.2?}");
    }
}

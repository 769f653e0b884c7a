//! How long a violation takes to be mended, by the size of the cluster (SIL section 7.4): 25 replicas a
//! node, 5 fault domains and 10 upgrade domains, partitions of three replicas, three metrics. The
//! clusters are generated.
//!
//! ```sh
//! cargo run --release -p placement --example scale -- 100 0.92
//! ```

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use placement::{
    Cluster, DomainIx, Failovers, Group, GroupIx, Level, LevelIx, Limits, Metric, Node, NodeIx,
    NodeState, Objective, Replica, ReplicaIx, Role, Rule, Service, ServiceIx, Session, audit,
};
use std::time::{Duration, Instant};

const CAPACITY: i64 = 1_000_000;

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let events = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(100);
    let density = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(0.92);
    println!("generated clusters, density {density}, {events} events of a kind; milliseconds");
    println!(
        "{:>6} {:>8} {:<10} {:>8} {:>8} {:>8} {:>6} {:>7} {:>9}",
        "nodes", "replicas", "event", "p50", "p99", "max", "whole", "moves", "peak MiB"
    );
    for nodes in [40, 100, 400, 1_000, 4_000, 10_000] {
        let cluster = generate(nodes, density);
        assert!(audit(&cluster, &cluster.today()).is_empty(), "the generated cluster is valid");
        let mut session = Session::new(cluster);
        assert!(session.mend(&Limits::rounds(1)).moves.is_empty());
        measure(&mut session, "overload", events, |session, random| {
            // A replica whose demand doubles, at least until its node is over its capacity.
            let replica = ReplicaIx::new(random.below(session.cluster().replicas.len()));
            let node = session.cluster().replicas[replica.ix()].node.expect("it has a node");
            let of_node = session.cluster().replicas.iter().filter(|of| of.node == Some(node));
            let used: i64 = of_node.map(|of| of.demand[0]).sum();
            let mut demand = session.cluster().replicas[replica.ix()].demand.clone();
            let old = demand.clone();
            demand[0] += demand[0].max(CAPACITY - used + 1).min(CAPACITY / 2);
            let began = Instant::now();
            session.set_demand(replica, &demand);
            let mended = session.mend(&limits(began));
            let time = began.elapsed();
            session.set_demand(replica, &old);
            (time, mended.is_whole, mended.moves.len())
        });
        for (name, state) in [("drain", NodeState::Draining), ("loss", NodeState::Down)] {
            measure(&mut session, name, events, |session, random| {
                let node = NodeIx::new(random.below(nodes));
                let began = Instant::now();
                session.set_node_state(node, state);
                let mended = session.mend(&limits(began));
                let time = began.elapsed();
                session.set_node_state(node, NodeState::Up);
                session.mend(&Limits::rounds(1));
                (time, mended.is_whole, mended.moves.len())
            });
        }
        let end = session.snapshot();
        let broken = audit(&end, &end.today());
        println!("{nodes:>6} rules broken after all events: {}", broken.len());
    }
}

/// Two seconds from `began`.
fn limits(began: Instant) -> Limits<'static> {
    let elapsed = Box::leak(Box::new(move || began.elapsed()));
    Limits { deadline: Some(Duration::from_secs(2)), elapsed, ..Limits::rounds(1) }
}

fn measure(
    session: &mut Session,
    name: &str,
    events: usize,
    mut event: impl FnMut(&mut Session, &mut Random) -> (Duration, bool, usize),
) {
    let mut random = Random(name.len() as u64);
    let (mut times, mut whole, mut moves) = (Vec::new(), 0, 0);
    for _ in 0..events {
        let (time, is_whole, moved) = event(session, &mut random);
        times.push(time.as_secs_f64() * 1_000.0);
        whole += usize::from(is_whole);
        moves += moved;
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    let (nodes, replicas) = (session.cluster().nodes.len(), session.cluster().replicas.len());
    println!(
        "{nodes:>6} {replicas:>8} {name:<10} {:>8.3} {:>8.3} {:>8.3} {whole:>6} {:>7.1} {:>9}",
        at(0.5),
        at(0.99),
        at(1.0),
        moves as f64 / events as f64,
        peak()
    );
}

/// Peak of resident memory in MiB, where the system tells it.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{:.0}", kib / 1024.0))
}

/// Partitions of three replicas, each on the least used of a few random nodes of other domains than
/// its partition's, the largest partitions first. Demands are exponential, each metric on its own,
/// and add up to `density` of the capacity.
fn generate(nodes: usize, density: f64) -> Cluster {
    let mut random = Random(nodes as u64);
    let name = |prefix: &str, number: usize| format!("{prefix}{number}");
    let level = |prefix: &str, count: usize, of: &dyn Fn(usize) -> usize| Level {
        name: prefix.to_owned(),
        domains: (0..count).map(|domain| name(prefix, domain)).collect(),
        domain_of: (0..nodes).map(|node| DomainIx::new(of(node))).collect(),
    };
    let levels = vec![
        level("node", nodes, &|node| node),
        level("fault", 5, &|node| node % 5),
        level("upgrade", 10, &|node| node / 5 % 10),
    ];
    let mut cluster = Cluster::builder("scale").build();
    cluster.metrics = ["cpu", "memory", "disk"]
        .map(|metric| Metric { name: metric.to_owned(), transient: false })
        .to_vec();
    cluster.levels = levels;
    cluster.nodes = (0..nodes)
        .map(|node| Node {
            name: name("n", node),
            state: NodeState::Up,
            capacity: vec![Some(CAPACITY); 3],
        })
        .collect();
    cluster.objective = Objective::Failovers(Failovers::default());
    let mut used = vec![[0_i64; 3]; nodes];
    let partitions = demands(nodes * 25 / 3, nodes as f64 * CAPACITY as f64 * density, &mut random);
    for (partition, demands) in partitions.into_iter().enumerate() {
        cluster.services.push(Service { name: name("s", partition), allowed: None });
        let mut members: Vec<NodeIx> = Vec::new();
        for (member, demand) in demands.into_iter().enumerate() {
            let may = |node: usize| {
                let node = NodeIx::new(node);
                let differs = |level| {
                    members.iter().all(|m| cluster.domain(level, *m) != cluster.domain(level, node))
                };
                differs(LevelIx::new(1))
                    && differs(LevelIx::new(2))
                    && used[node.ix()].iter().zip(demand).all(|(used, d)| used + d <= CAPACITY)
            };
            let most = |node: &usize| used[*node].iter().zip(demand).map(|(u, d)| u + d).max();
            let some: Vec<usize> = (0..12).map(|_| random.below(nodes)).collect();
            let best = some.into_iter().filter(|node| may(*node)).min_by_key(most);
            let all = || (0..nodes).filter(|node| may(*node)).min_by_key(most);
            let node = best.or_else(all).expect("a node has room: lower the density");
            for (used, demand) in used[node].iter_mut().zip(demand) {
                *used += demand;
            }
            members.push(NodeIx::new(node));
            cluster.replicas.push(Replica {
                name: format!("s{partition}/{member}"),
                service: ServiceIx::new(partition),
                role: if member == 0 { Role::Primary } else { Role::Secondary },
                node: Some(NodeIx::new(node)),
                demand: demand.to_vec(),
                move_cost: 1.0,
            });
        }
        let group = GroupIx::new(partition);
        let members = (partition * 3..partition * 3 + 3).map(ReplicaIx::new).collect();
        cluster.groups.push(Group { name: name("s", partition), members });
        for level in [1, 2].map(LevelIx::new) {
            cluster.rules.push(Rule::PerDomain { group, level, most: 1 });
        }
    }
    cluster
}

/// Demands of the three replicas of each partition, the largest partitions first, whose sum by metric
/// is `total`.
fn demands(partitions: usize, total: f64, random: &mut Random) -> Vec<[[i64; 3]; 3]> {
    let mut draw = || (-(1.0 - random.unit()).ln()).min(6.0);
    let raw: Vec<[[f64; 3]; 3]> =
        (0..partitions).map(|_| [(); 3].map(|()| [(); 3].map(|()| draw()))).collect();
    let sum: [f64; 3] =
        std::array::from_fn(|metric| raw.iter().flatten().map(|replica| replica[metric]).sum());
    let scale = |replica: &[f64; 3]| -> [i64; 3] {
        std::array::from_fn(|metric| (replica[metric] * total / sum[metric]) as i64)
    };
    let mut scaled: Vec<[[i64; 3]; 3]> =
        raw.iter().map(|partition| partition.each_ref().map(scale)).collect();
    scaled.sort_by_key(|partition| std::cmp::Reverse(partition.as_flattened().iter().sum::<i64>()));
    scaled
}

//! Ten clusters of the kinds and sizes of Eigen's table 1, fragmented by arrivals and departures.
//!
//! | clusters | Eigen | here |
//! |---|---|---|
//! | 1, 2 | physical machines: memory, disk | requests of virtual machines: processors, memory |
//! | 3, 4 | physical machines: memory, disk | requests of virtual machines: memory; 4 to 256 GiB of disk, made up |
//! | 5, 6 | physical machines: processors, memory, disk | pods: processors, memory, GPUs |
//! | 7 to 10 | ECS machines: memory, number of cloud disks | requests of virtual machines: memory; 1, 2 or 4 disks, made up |
//!
//! The number of nodes is that of the table, and the demand is chosen so that the scarcest metric is used
//! to 1 - optimum / total of the table. Each arrival goes to a random node with room.

use crate::read::{Request, amounts, requests};
use placement::{Builder, Cluster};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

/// A replica that came, by metric, with its node, and whether it has ended.
struct Arrival {
    demand: Vec<i64>,
    node: Option<usize>,
    ended: bool,
}

/// What happens at a node pool, in order: arrivals, and ends of arrivals by number.
pub enum Event {
    /// The next arrival.
    Comes,
    /// The arrival of this number ends.
    Ends(usize),
}

/// A fragmented cluster, and how it grew.
pub struct Pool {
    /// The cluster at the end: replicas that have not ended, on their nodes.
    pub cluster: Cluster,
    /// The cluster without a node in use, with every arrival as a replica.
    pub history: Cluster,
    /// Arrivals and ends.
    pub events: Vec<Event>,
}

/// What a cluster made of requests is like.
struct Shape {
    nodes: usize,
    /// Share of the scarcest metric that is used at the end.
    used: f64,
    /// Capacity of a node by metric.
    capacity: [i64; 2],
    metrics: [&'static str; 2],
    /// Seconds of the trace at which it ends.
    until: u32,
}

/// Memory of a physical machine is allocated to 95 %: Eigen section 6.1.
const fn gib(memory: i64) -> i64 {
    memory * 1024 * 95 / 100
}

/// Local disk of a physical machine, to 85 %.
const fn disk(gib: i64) -> i64 {
    gib * 85 / 100
}

const END: u32 = 2_100_000;
const DAY: u32 = 86_400;

/// Makes the ten clusters.
pub fn ten(vms: &Path, pods: &Path, seed: u64) -> Result<Vec<Pool>, Box<dyn Error>> {
    let all = requests(&vms.join("vms.parquet"))?;
    let shape =
        |nodes, used, capacity, metrics, until| Shape { nodes, used, capacity, metrics, until };
    let (machine, local, cloud) = (["cores", "memory"], ["memory", "disk"], ["memory", "disks"]);
    let shapes = [
        shape(445, 1.0 - 156.0 / 445.0, [64, gib(192)], machine, END),
        shape(158, 1.0 - 64.0 / 158.0, [64, gib(172)], machine, END - DAY / 2),
        shape(211, 1.0 - 89.0 / 211.0, [gib(256), disk(2048)], local, END - DAY),
        shape(203, 1.0 - 76.0 / 203.0, [gib(144), disk(1024)], local, END - DAY / 4),
        shape(451, 1.0 - 141.0 / 451.0, [gib(64), 16], cloud, END),
        shape(230, 1.0 - 20.0 / 230.0, [gib(64), 16], cloud, END - DAY / 2),
        shape(281, 1.0 - 52.0 / 281.0, [gib(128), 16], cloud, END - DAY),
        shape(1476, 1.0 - 96.0 / 1476.0, [gib(64), 16], cloud, END),
    ];
    let mut pools = Vec::new();
    for (number, shape) in (1..).zip(&shapes[..4]) {
        pools.push(of_requests(&format!("{number}"), shape, &all, seed + number));
    }
    let demands = amounts(&pods.join("pods.csv"), ["cpu", "mem_gb", "gpu"])?;
    let equal = vec![[96_000, gib(384), 8_000]; 298];
    pools.push(of_pods("5", &equal, &demands, 1.0 - 117.0 / 298.0, seed + 5));
    let mut servers = amounts(&pods.join("servers.csv"), ["cpu", "mem_gb", "gpus"])?;
    servers.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    servers.truncate(350);
    for server in &mut servers {
        server[1] = server[1] * 95 / 100;
    }
    pools.push(of_pods("6", &servers, &demands, 1.0 - 111.0 / 350.0, seed + 6));
    for (number, shape) in (7..).zip(&shapes[4..]) {
        pools.push(of_requests(&format!("{number}"), shape, &all, seed + number));
    }
    Ok(pools)
}

/// A random part of the batches, whose demand at the end is as wanted, in the order of the trace.
fn of_requests(name: &str, shape: &Shape, all: &[Request], seed: u64) -> Pool {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let demands: Vec<[i64; 2]> = all
        .iter()
        .map(|request| {
            shape.metrics.map(|metric| match metric {
                "cores" => request.cores,
                "disks" => [1, 2, 4][rng.random_range(0..3_usize)],
                // Each size from 4 to 256 is as likely as its double.
                "disk" => (4.0 * 64_f64.powf(rng.random::<f64>())) as i64,
                _ => request.memory,
            })
        })
        .collect();
    let is_live = |request: &Request| {
        request.from < shape.until && request.to.is_none_or(|to| to >= shape.until)
    };
    let mut batches: BTreeMap<u32, [i64; 2]> = BTreeMap::new();
    for (request, demand) in all.iter().zip(&demands) {
        let live = i64::from(is_live(request));
        let sum = batches.entry(request.batch).or_default();
        *sum = [sum[0] + live * demand[0], sum[1] + live * demand[1]];
    }
    let mut order: Vec<(u32, [i64; 2])> = batches.into_iter().collect();
    order.shuffle(&mut rng);
    let capacity = shape.capacity.map(|capacity| capacity * shape.nodes as i64);
    let mut sum = [0; 2];
    let mut chosen: Vec<u32> = Vec::new();
    for (batch, of_batch) in order {
        sum = [sum[0] + of_batch[0], sum[1] + of_batch[1]];
        if (0..2).any(|at| sum[at] as f64 > shape.used * capacity[at] as f64) {
            break;
        }
        chosen.push(batch);
    }
    chosen.sort_unstable();
    let mut fleet = Fleet::new(vec![shape.capacity.to_vec(); shape.nodes]);
    // Ends of those that run, the next one first.
    let mut ends: std::collections::BinaryHeap<Reverse<(u32, usize)>> = Default::default();
    for (request, demand) in all.iter().zip(&demands) {
        if request.from >= shape.until || chosen.binary_search(&request.batch).is_err() {
            continue;
        }
        while let Some(Reverse((at, arrival))) = ends.peek().copied()
            && at <= request.from
        {
            ends.pop();
            fleet.ends(arrival);
        }
        let arrival = fleet.comes(demand.to_vec(), &mut rng);
        if let Some(to) = request.to.filter(|to| *to < shape.until) {
            ends.push(Reverse((to, arrival)));
        }
    }
    for Reverse((_, arrival)) in ends.into_sorted_vec().into_iter().rev() {
        fleet.ends(arrival);
    }
    fleet.pool(name, &shape.metrics)
}

/// Pods that come in random order until the fleet is used to 40 % more than wanted, or to 95 %, and of
/// which random ones end.
fn of_pods(name: &str, nodes: &[[i64; 3]], pods: &[[i64; 3]], used: f64, seed: u64) -> Pool {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let total: Vec<i64> = (0..3).map(|at| nodes.iter().map(|node| node[at]).sum()).collect();
    let share = |fleet: &Fleet| {
        let shares = (0..3).map(|at| fleet.live(at) as f64 / total[at] as f64);
        shares.fold(0.0, f64::max)
    };
    let mut order: Vec<[i64; 3]> = pods.to_vec();
    order.shuffle(&mut rng);
    let mut fleet = Fleet::new(nodes.iter().map(|node| node.to_vec()).collect());
    for pod in order {
        if share(&fleet) >= (used * 1.4).min(0.95) {
            break;
        }
        fleet.comes(pod.to_vec(), &mut rng);
    }
    let mut arrivals: Vec<usize> = (0..fleet.arrivals.len()).collect();
    arrivals.shuffle(&mut rng);
    for arrival in arrivals {
        if share(&fleet) <= used {
            break;
        }
        fleet.ends(arrival);
    }
    fleet.pool(name, &["cpu", "memory", "gpu"])
}

/// Nodes that take arrivals at random.
struct Fleet {
    capacity: Vec<Vec<i64>>,
    free: Vec<Vec<i64>>,
    arrivals: Vec<Arrival>,
    events: Vec<Event>,
}

impl Fleet {
    fn new(capacity: Vec<Vec<i64>>) -> Fleet {
        Fleet { free: capacity.clone(), capacity, arrivals: Vec::new(), events: Vec::new() }
    }

    /// Used amount of a metric.
    fn live(&self, metric: usize) -> i64 {
        self.capacity.iter().zip(&self.free).map(|(of, free)| of[metric] - free[metric]).sum()
    }

    /// Places an arrival on a random node with room; where none has, it is refused.
    fn comes(&mut self, demand: Vec<i64>, rng: &mut ChaCha8Rng) -> usize {
        let fits = |node: usize| self.free[node].iter().zip(&demand).all(|(free, of)| free >= of);
        let mut nodes: Vec<usize> = (0..self.free.len()).collect();
        nodes.retain(|node| fits(*node));
        let node = (!nodes.is_empty()).then(|| nodes[rng.random_range(0..nodes.len())]);
        if let Some(node) = node {
            self.free[node].iter_mut().zip(&demand).for_each(|(free, of)| *free -= of);
        }
        self.arrivals.push(Arrival { demand, node, ended: false });
        self.events.push(Event::Comes);
        self.arrivals.len() - 1
    }

    fn ends(&mut self, arrival: usize) {
        let of = &mut self.arrivals[arrival];
        of.ended = true;
        if let Some(node) = of.node {
            self.free[node].iter_mut().zip(&of.demand).for_each(|(free, of)| *free += of);
        }
        self.events.push(Event::Ends(arrival));
    }

    fn pool(self, name: &str, metrics: &[&str]) -> Pool {
        let mut empty = Cluster::builder(name);
        for metric in metrics {
            empty = empty.metric(metric, false);
        }
        for (node, capacity) in self.capacity.iter().enumerate() {
            empty = empty.node(&format!("n{node}"), capacity.iter().copied().map(Some));
        }
        let node_name = |node: usize| format!("n{node}");
        let add = |builder: Builder, (number, of): (usize, &Arrival), placed: bool| {
            let node = of.node.filter(|_| placed).map(node_name);
            builder.replica(&format!("r{number}"), node.as_deref(), of.demand.iter().copied())
        };
        let arrivals = || self.arrivals.iter().enumerate();
        let live = arrivals().filter(|(_, of)| !of.ended && of.node.is_some());
        let cluster = live.fold(empty.clone(), |builder, of| add(builder, of, true)).build();
        let history = arrivals().fold(empty, |builder, of| add(builder, of, false)).build();
        Pool { cluster, history, events: self.events }
    }
}

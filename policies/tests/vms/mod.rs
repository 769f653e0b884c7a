//! A generated cluster of the shape of Weave's section 6.2: 16 hosts of different sizes, 524 virtual machines,
//! and between 39 and 85 % of each host's memory in use.

use async_solver::random::Random;
use placement::Cluster;

/// Memory of each host in GiB, and how much of it is used, in percent.
const HOSTS: [(i64, i64); 16] = [
    (512, 85),
    (768, 39),
    (384, 78),
    (512, 44),
    (512, 58),
    (512, 55),
    (512, 61),
    (512, 53),
    (768, 57),
    (768, 60),
    (384, 54),
    (256, 62),
    (1024, 56),
    (256, 59),
    (640, 52),
    (640, 63),
];
const SIZES: [i64; 8] = [4, 4, 8, 8, 16, 16, 32, 64];
const MACHINES: usize = 524;
/// Groups of three machines that are kept on different hosts.
const GROUPS: usize = 40;

/// Host and memory of each machine.
fn machines(random: &mut Random) -> Vec<(usize, i64)> {
    let mut machines = Vec::new();
    for (host, (memory, percent)) in HOSTS.into_iter().enumerate() {
        let mut left = (memory * percent + 50) / 100;
        while left > 0 {
            let size = SIZES[random.below(SIZES.len())].min(left);
            machines.push((host, size));
            left -= size;
        }
    }
    // Two halves for one keep each host's load. Large machines stay whole, so that a few moves are enough.
    while machines.len() < MACHINES {
        let at = random.below(machines.len());
        let (host, size) = machines[at];
        if (2..=16).contains(&size) {
            machines[at].1 = size / 2;
            machines.push((host, size - size / 2));
        }
    }
    machines
}

/// The cluster of a seed.
pub fn cluster(seed: u64) -> Cluster {
    let mut random = Random::new(seed);
    let machines = machines(&mut random);
    let mut builder = Cluster::builder("generated").metric("memory", false);
    for (host, (memory, _)) in HOSTS.into_iter().enumerate() {
        builder = builder.node(&format!("host{host:02}"), [Some(memory)]);
    }
    for (number, (host, size)) in machines.iter().enumerate() {
        let host = format!("host{host:02}");
        builder = builder.replica(&format!("vm{number:03}"), Some(&host), [*size]);
    }
    for group in 0..GROUPS {
        let mut members: Vec<usize> = Vec::new();
        while members.len() < 3 {
            let drawn = random.below(machines.len());
            if members.iter().all(|&member| machines[member].0 != machines[drawn].0) {
                members.push(drawn);
            }
        }
        builder = builder.group(&format!("group{group:02}"), members);
    }
    builder.build()
}

/// The least and the largest share of memory in use, in percent, where each machine is on the node given.
pub fn used(cluster: &Cluster, nodes: &[String]) -> (f64, f64) {
    let share = |(node, (memory, _)): (&placement::Node, (i64, i64))| {
        let on = cluster.replicas.iter().zip(nodes).filter(|(_, at)| **at == node.name);
        100.0 * on.map(|(replica, _)| replica.demand[0]).sum::<i64>() as f64 / memory as f64
    };
    let shares = cluster.nodes.iter().zip(HOSTS).map(share);
    shares.fold((f64::INFINITY, 0.0), |(least, most), share| (least.min(share), most.max(share)))
}

/// The node of each machine today.
pub fn today(cluster: &Cluster) -> Vec<String> {
    let node = |replica: &placement::Replica| {
        replica.node.map_or_else(String::new, |node| cluster.nodes[node.ix()].name.clone())
    };
    cluster.replicas.iter().map(node).collect()
}

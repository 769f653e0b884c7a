//! Requests placed on machines, day by day.

use super::arrivals::{Request, STEPS_A_DAY};
use placement::vro::{Offline, Placer, Policy, empty_nodes};
use placement::{Builder, Cluster, NodeIx, ReplicaIx};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Cores and memory (MiB) of a machine: Eigen's, whose memory is allocated to 95 %.
pub const MACHINE: [i64; 2] = [64, 192 * 1024 * 95 / 100];

/// How requests are placed.
pub struct Packing {
    /// Where a request goes.
    pub policy: Policy,
    /// Share of the move costs of all that run which may be spent once a day to empty machines.
    pub rebalanced: Option<(f64, Offline)>,
}

/// Ten minutes.
#[derive(Clone, Debug, Default)]
pub struct Tick {
    /// The most machines in use.
    pub machines: usize,
    /// The fewest that have the cores and the memory in use, however requests are placed.
    pub fewest: usize,
    /// Memory in use at the end, in MiB.
    pub memory: i64,
    /// Requests, with the machines in use right after each.
    pub requests: Vec<usize>,
}

struct Live {
    of: Request,
    /// The step at which it ends.
    end: usize,
    node: NodeIx,
}

/// The fewest machines with these cores and this memory.
fn fewest(needed: [i64; 2]) -> usize {
    let machines = needed
        .iter()
        .zip(MACHINE)
        .map(|(needed, of)| needed.div_euclid(of) + i64::from(needed % of > 0));
    usize::try_from(machines.max().unwrap_or(0)).unwrap_or(0)
}

fn cluster(machines: usize, running: &[Live], new: &[Request]) -> Cluster {
    let empty = Cluster::builder("machines").metric("cores", false).metric("memory", false);
    let names: Vec<String> = (0..machines).map(|node| format!("n{node}")).collect();
    let nodes =
        names.iter().fold(empty, |builder: Builder, name| builder.node(name, MACHINE.map(Some)));
    let demand = |of: &Request| [of.cores, of.memory];
    let running = running.iter().enumerate().fold(nodes, |builder, (number, live)| {
        let node = names[live.node.ix()].as_str();
        builder.replica(&format!("r{number}"), Some(node), demand(&live.of))
    });
    let new = new.iter().enumerate();
    new.fold(running, |builder, (number, of)| {
        builder.replica(&format!("a{number}"), None, demand(of))
    })
    .build()
}

/// Places requests by step on at most `machines` machines, which must be enough.
pub fn pack(
    steps: &[Vec<Request>],
    machines: usize,
    packing: &Packing,
) -> Result<Vec<Tick>, String> {
    let mut running: Vec<Live> = Vec::new();
    let mut ticks = Vec::new();
    for (day, steps) in steps.chunks(STEPS_A_DAY).enumerate() {
        if let Some((share, offline)) = &packing.rebalanced {
            let cluster = cluster(machines, &running, &[]);
            let budget = share * cluster.replicas.iter().map(|of| of.move_cost).sum::<f64>();
            let found = empty_nodes(&cluster, budget, offline);
            for (live, node) in running.iter_mut().zip(found.assignment) {
                live.node = node.unwrap_or(live.node);
            }
        }
        let new: Vec<Request> = steps.iter().flatten().copied().collect();
        let cluster = cluster(machines, &running, &new);
        let mut placer = Placer::new(&cluster, packing.policy.clone());
        let mut used = vec![0_usize; machines];
        let (mut count, mut cores, mut memory) = (0, 0, 0);
        let mut ends: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
        for (at, live) in running.iter().enumerate() {
            count += usize::from(used[live.node.ix()] == 0);
            used[live.node.ix()] += 1;
            cores += live.of.cores;
            memory += live.of.memory;
            ends.push(Reverse((live.end, at)));
        }
        let before = running.len();
        let mut next = before;
        let mut tick = Tick::default();
        for (offset, requests) in steps.iter().enumerate() {
            let now = day * STEPS_A_DAY + offset;
            while let Some(Reverse((end, at))) = ends.peek().copied()
                && end <= now
            {
                ends.pop();
                if let Some(node) = placer.remove(ReplicaIx::new(at)) {
                    used[node.ix()] -= 1;
                    count -= usize::from(used[node.ix()] == 0);
                    cores -= cluster.replicas[at].demand[0];
                    memory -= cluster.replicas[at].demand[1];
                }
            }
            tick.machines = tick.machines.max(count);
            tick.fewest = tick.fewest.max(fewest([cores, memory]));
            for of in requests {
                let node = placer.place(ReplicaIx::new(next)).ok_or("too few machines")?;
                count += usize::from(used[node.ix()] == 0);
                used[node.ix()] += 1;
                cores += of.cores;
                memory += of.memory;
                tick.fewest = tick.fewest.max(fewest([cores, memory]));
                ends.push(Reverse((now + of.life as usize, next)));
                tick.machines = tick.machines.max(count);
                tick.requests.push(count);
                next += 1;
            }
            if offset % 2 == 1 {
                tick.memory = memory;
                ticks.push(std::mem::take(&mut tick));
            }
        }
        let mut left = Vec::new();
        for Reverse((end, at)) in ends {
            let of = if at < before { running[at].of } else { new[at - before] };
            let node = placer.assignment()[at].ok_or("a request that runs has no machine")?;
            left.push((at, Live { of, end, node }));
        }
        // In the order in which they came, so that the next day does not depend on the heap.
        left.sort_unstable_by_key(|(at, _)| *at);
        running = left.into_iter().map(|(_, live)| live).collect();
    }
    Ok(ticks)
}

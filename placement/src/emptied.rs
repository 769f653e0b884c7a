//! Consolidation: which nodes an assignment empties, at what cost, and how many any could.

use crate::audit::{Violation, audit};
use crate::bound::cover;
use crate::cluster::{Amount, Assignment, Cluster, NodeIx, NodeState, Replica};
use crate::packing::{Items, bound};
use std::collections::{BTreeMap, BTreeSet};

/// A consolidated cluster.
#[derive(Clone, Debug)]
pub struct Consolidated {
    /// The node of each replica.
    pub assignment: Assignment,
    /// Nodes that have replicas today and none afterwards; nodes that are down do not count.
    pub emptied: Vec<NodeIx>,
    /// Replicas that leave their node.
    pub moved: usize,
    /// Their cost, in the unit of `Replica::move_cost`.
    pub cost: f64,
    /// Every rule that the assignment breaks.
    pub violations: Vec<Violation>,
}

impl Consolidated {
    /// What an assignment does to the cluster of today.
    pub fn new(cluster: &Cluster, assignment: Assignment) -> Consolidated {
        let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
        let (mut moved, mut cost) = (0, 0.0);
        for (replica, to) in cluster.replicas.iter().zip(&assignment) {
            before.extend(replica.node.filter(|node| !is_lost(cluster, *node)));
            after.extend(*to);
            if replica.node.is_some() && to.is_some() && replica.node != *to {
                moved += 1;
                cost += replica.move_cost;
            }
        }
        Consolidated {
            emptied: before.difference(&after).copied().collect(),
            moved,
            cost,
            violations: audit(cluster, &assignment),
            assignment,
        }
    }
}

/// Whether a node's replicas are lost: it empties nothing, and holds nothing.
fn is_lost(cluster: &Cluster, node: NodeIx) -> bool {
    cluster.nodes[node.ix()].state == NodeState::Down
}

/// Thresholds looked at for each metric.
const THRESHOLDS: usize = 256;

/// The number of nodes that no consolidation exceeds whose moves cost at most `budget` and that places
/// nothing on a node that is empty today. The least of:
///
/// - the cheapest nodes that the budget can empty, as each of their replicas must move; those with replicas of more than
///   half a node only in exchange for others that make room;
/// - by metric and whole number t: each replica counts floor(demand / t), a node holds at most
///   floor(capacity / t) of it, and what the remaining nodes hold is at least what the replicas count. With
///   t = 1 that is the total demand; with more, replicas of more than half a node count alone;
/// - where nodes are equal and demands of few kinds, the linear program of all ways to fill a node.
pub fn emptied_bound(cluster: &Cluster, budget: f64) -> usize {
    let nodes = cluster.nodes.len();
    let placed = || {
        let placed = cluster.replicas.iter().filter_map(|of| of.node.map(|node| (of, node)));
        placed.filter(|(_, node)| !is_lost(cluster, *node))
    };
    let (mut in_use, mut cost) = (vec![false; nodes], vec![0.0; nodes]);
    for (replica, node) in placed() {
        in_use[node.ix()] = true;
        cost[node.ix()] += replica.move_cost;
    }
    let in_use: Vec<usize> = (0..nodes).filter(|node| in_use[*node]).collect();
    let affordable = budget + 1e-9 * budget.abs().max(1.0);
    let mut bound = most(in_use.iter().map(|node| cost[*node]).collect(), affordable);
    for metric in 0..cluster.metrics.len() {
        bound = bound.min(with_large(cluster, metric, &in_use, &cost, affordable));
    }
    for metric in 0..cluster.metrics.len() {
        let mut usage: Vec<Amount> = vec![0; nodes];
        let mut demands: Vec<Amount> = Vec::new();
        for (replica, node) in placed() {
            usage[node.ix()] += replica.demand[metric];
            demands.push(replica.demand[metric]);
        }
        // A node that is over its capacity today may stay so, and one that takes nothing holds at most
        // what it holds today.
        let holds = |node: &usize| {
            let of = &cluster.nodes[*node];
            match of.state {
                NodeState::Up => of.capacity[metric].map(|limit| limit.max(usage[*node])),
                _ => Some(usage[*node]),
            }
        };
        let Some(holds) = in_use.iter().map(holds).collect::<Option<Vec<Amount>>>() else {
            continue;
        };
        for threshold in thresholds(&demands) {
            let count = |amount: &Amount| amount / threshold;
            let room: Amount = holds.iter().map(count).sum();
            let need: Amount = demands.iter().map(count).sum();
            let spare = (room - need).max(0) as f64;
            bound = bound.min(most(holds.iter().map(|of| count(of) as f64).collect(), spare));
        }
    }
    bound.min(in_use.len().saturating_sub(fewest(cluster, &in_use)))
}

/// How many nodes moves of a cost can empty, as far as replicas are concerned that need more than half of the largest
/// node's metric. No two of them share a node, so those of `j` emptied nodes end on `j` others that had none and are not
/// emptied, and what must leave these costs too. To empty `k` nodes, `k` without such a replica are emptied or
/// make room.
fn with_large(
    cluster: &Cluster,
    metric: usize,
    in_use: &[usize],
    cost: &[f64],
    affordable: f64,
) -> usize {
    let limits = in_use.iter().map(|node| cluster.nodes[*node].capacity[metric]);
    let largest = limits.collect::<Option<Vec<Amount>>>().and_then(|of| of.into_iter().max());
    let Some(largest) = largest else { return in_use.len() };
    let mut on: Vec<Vec<&Replica>> = vec![Vec::new(); cluster.nodes.len()];
    for replica in &cluster.replicas {
        replica.node.inspect(|node| on[node.ix()].push(replica));
    }
    let is_large = |of: &&Replica| 2 * of.demand[metric] > largest;
    let demands: BTreeSet<&[Amount]> = (in_use.iter())
        .flat_map(|node| on[*node].iter().copied().filter(is_large))
        .map(|of| of.demand.as_slice())
        .collect();
    let (large, usual): (Vec<usize>, Vec<usize>) =
        in_use.iter().partition(|node| on[**node].iter().any(is_large));
    // The least that must leave a node before a demand fits.
    let leaves = |node: usize, demand: &[Amount]| -> f64 {
        let limits = cluster.nodes[node].capacity.iter().enumerate();
        let limits = limits.filter_map(|(metric, limit)| limit.map(|limit| (metric, limit)));
        let of_metric = |(metric, limit): (usize, Amount)| {
            let of = |of: &&Replica| (of.demand[metric], of.move_cost);
            let there: Vec<(Amount, f64)> = on[node].iter().map(of).collect();
            let used: Amount = there.iter().map(|(demand, _)| demand).sum();
            match demand[metric] {
                0 => 0.0,
                demand if demand > limit => f64::INFINITY,
                demand => cover(there, used + demand - limit),
            }
        };
        limits.map(of_metric).fold(0.0, f64::max)
    };
    let least = |node: &usize| {
        let least =
            demands.iter().map(|demand| leaves(*node, demand)).fold(f64::INFINITY, f64::min);
        least.is_finite().then_some((*node, least))
    };
    let targets = usual.iter().filter(|node| cluster.nodes[**node].state == NodeState::Up);
    let targets: Vec<(usize, f64)> = targets.filter_map(least).collect();
    let saved = sums(targets.iter().map(|(node, least)| least - cost[*node]));
    let making_room = sums(targets.iter().map(|(_, least)| *least));
    let of_large = sums(large.iter().map(|node| cost[*node]));
    let of_usual = sums(usual.iter().map(|node| cost[*node]));
    // With `j` large ones: `k` of the others, less the most that is saved; or those that are emptied, and room.
    let cost = |k: usize, j: usize| {
        of_large[j] + (of_usual[k] + saved[j]).max(of_usual[k - j] + making_room[j])
    };
    let affords = |k: &usize| {
        (0..of_large.len().min(saved.len()).min(k + 1)).any(|j| cost(*k, j) <= affordable)
    };
    (0..of_usual.len()).rev().find(affords).unwrap_or(0)
}

/// Sums of the least none, one, two and so on.
fn sums(of: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = of.collect();
    sorted.sort_by(f64::total_cmp);
    let sums = sorted.into_iter().scan(0.0, |sum, of| {
        *sum += of;
        Some(*sum)
    });
    std::iter::once(0.0).chain(sums).collect()
}

/// Demands of this many kinds are packed for the bound.
const KINDS: usize = 300;

/// The least number of equal nodes that hold what runs on some nodes; 0 if these differ, or if that is too much work.
fn fewest(cluster: &Cluster, in_use: &[usize]) -> usize {
    let Some(first) = in_use.first().map(|node| &cluster.nodes[*node]) else { return 0 };
    let limited: Vec<usize> = (0..cluster.metrics.len())
        .filter(|metric| first.capacity[*metric].is_some_and(|limit| limit > 0))
        .collect();
    let limit = |metric: &usize| first.capacity[*metric].unwrap_or(Amount::MAX);
    let mut kinds: BTreeMap<Vec<Amount>, u32> = BTreeMap::new();
    let mut usage = vec![vec![0; limited.len()]; cluster.nodes.len()];
    for replica in &cluster.replicas {
        let Some(node) = replica.node.filter(|node| !is_lost(cluster, *node)) else { continue };
        let demand: Vec<Amount> = limited.iter().map(|metric| replica.demand[*metric]).collect();
        usage[node.ix()].iter_mut().zip(&demand).for_each(|(used, demand)| *used += demand);
        *kinds.entry(demand).or_default() += 1;
    }
    let is_usual = |node: &usize| {
        let of = &cluster.nodes[*node];
        of.state == NodeState::Up
            && of.capacity == first.capacity
            && usage[*node].iter().zip(&limited).all(|(used, metric)| *used <= limit(metric))
    };
    if limited.is_empty() || kinds.len() > KINDS || !in_use.iter().all(is_usual) {
        return 0;
    }
    bound(&Items::counted(limited.iter().map(limit).collect(), kinds))
}

/// One, and different demands: all, or some in even steps where there are many.
fn thresholds(demands: &[Amount]) -> Vec<Amount> {
    let different: BTreeSet<Amount> = demands.iter().copied().filter(|of| *of > 1).collect();
    let step = different.len().div_ceil(THRESHOLDS).max(1);
    std::iter::once(1).chain(different.into_iter().step_by(step)).collect()
}

/// How many of some weights, the least first, a limit allows.
fn most(mut weights: Vec<f64>, limit: f64) -> usize {
    weights.sort_by(f64::total_cmp);
    let mut left = limit;
    let allowed = weights.iter().take_while(|weight| {
        left -= **weight;
        left >= 0.0
    });
    allowed.count()
}

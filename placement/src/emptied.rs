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
/// - the cheapest nodes that the budget can empty, as each of their replicas must move, and others must make room for
///   those that need more than half a node: no two of these go to one node;
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
    let costs = |extra: Vec<f64>| in_use.iter().map(|node| cost[*node] + extra[*node]).collect();
    let mut bound = most(costs(vec![0.0; nodes]), affordable);
    for metric in 0..cluster.metrics.len() {
        let extra = making_room(cluster, metric, &in_use);
        bound = bound.min(most(costs(extra), affordable));
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

/// By node, the least cost of moves off other nodes that make room for a replica of it that needs more than half of
/// the largest node's metric, and for which no node has room today.
fn making_room(cluster: &Cluster, metric: usize, in_use: &[usize]) -> Vec<f64> {
    let mut extra = vec![0.0; cluster.nodes.len()];
    let limits = in_use.iter().map(|node| cluster.nodes[*node].capacity[metric]);
    let Some(largest) = limits.collect::<Option<Vec<Amount>>>().and_then(|of| of.into_iter().max())
    else {
        return extra;
    };
    let mut on: Vec<Vec<&Replica>> = vec![Vec::new(); cluster.nodes.len()];
    for replica in &cluster.replicas {
        replica.node.inspect(|node| on[node.ix()].push(replica));
    }
    let leaves = |replica: &Replica, node: usize| -> f64 {
        let of_metric = |(metric, capacity): (usize, &Option<Amount>)| {
            let Some(capacity) = capacity else { return 0.0 };
            let demand = |of: &&Replica| of.demand[metric];
            if replica.demand[metric] > *capacity {
                return f64::INFINITY;
            }
            let excess =
                on[node].iter().map(demand).sum::<Amount>() + replica.demand[metric] - capacity;
            let excess = if replica.demand[metric] > 0 { excess } else { 0 };
            cover(on[node].iter().map(|of| (demand(of), of.move_cost)).collect(), excess)
        };
        cluster.nodes[node].capacity.iter().enumerate().map(of_metric).fold(0.0, f64::max)
    };
    let mut known: BTreeMap<&[Amount], (f64, usize, f64)> = BTreeMap::new();
    for node in in_use {
        for replica in on[*node].iter().filter(|of| 2 * of.demand[metric] > largest) {
            // The least and its node, and the least of the others.
            let (least, at, next) = *known.entry(&replica.demand).or_insert_with(|| {
                let (mut least, mut at, mut next) = (f64::INFINITY, usize::MAX, f64::INFINITY);
                for other in in_use {
                    let cost = leaves(replica, *other);
                    if cost < least {
                        (next, least, at) = (least, cost, *other);
                    } else {
                        next = next.min(cost);
                    }
                }
                (least, at, next)
            });
            extra[*node] += if at == *node { next } else { least };
        }
    }
    extra
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

//! Consolidation: which nodes an assignment empties, at what cost, and how many any could.

use crate::audit::{Violation, audit};
use crate::cluster::{Amount, Assignment, Cluster, NodeIx, NodeState};
use std::collections::BTreeSet;

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
/// - the cheapest nodes that the budget can empty, as each of their replicas must move;
/// - by metric and whole number t: each replica counts floor(demand / t), a node holds at most
///   floor(capacity / t) of it, and what the remaining nodes hold is at least what the replicas count. With
///   t = 1 that is the total demand; with more, replicas of more than half a node count alone.
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
    bound
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

//! What is minimized, from scratch: the reference that the incremental sums of the engines are
//! tested against, and what the audit reports.

use crate::cluster::{
    Assignment, Cluster, Failovers, LevelIx, MetricIx, NodeState, Objective, Reassignment,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Value of an assignment, by term.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Value {
    /// Sum of the terms.
    pub total: f64,
    /// The terms by name, in the unit of the objective.
    pub terms: BTreeMap<&'static str, f64>,
}

/// The value of an assignment.
pub fn evaluate(cluster: &Cluster, assignment: &Assignment) -> Value {
    let terms: BTreeMap<&'static str, f64> = match &cluster.objective {
        Objective::Failovers(costs) => BTreeMap::from([
            ("moves", moves(cluster, assignment)),
            ("fragmentation", costs.fragmentation * fragmentation(cluster, costs, assignment)),
        ]),
        Objective::Reassignment(costs) => reassignment(cluster, costs, assignment),
        Objective::FewestNodes => {
            let used: BTreeSet<_> = assignment.iter().flatten().collect();
            BTreeMap::from([("nodes", used.len() as f64)])
        }
    };
    Value { total: terms.values().sum(), terms }
}

/// Replicas that leave their node, by weight. SIL eq. 5'.
fn moves(cluster: &Cluster, assignment: &Assignment) -> f64 {
    let moved = cluster.replicas.iter().zip(assignment);
    moved.filter(|(r, to)| r.node.is_some() && r.node != **to).map(|(r, _)| r.move_cost).sum()
}

/// The least weight that must leave a node of each domain before a replica as large as a node
/// fits: averages over the domains with a node that is up, summed over levels. SIL eq. 6' to 12.
fn fragmentation(cluster: &Cluster, costs: &Failovers, assignment: &Assignment) -> f64 {
    let mut weight = vec![0.0; cluster.nodes.len()];
    for (replica, node) in cluster.replicas.iter().zip(assignment) {
        if let Some(node) = node {
            weight[node.ix()] += replica.move_cost;
        }
    }
    let of_level = |level: &LevelIx| {
        let level = &cluster.levels[level.ix()];
        let mut least = vec![f64::INFINITY; level.domains.len()];
        for (node, domain) in level.domain_of.iter().enumerate() {
            // Nothing fits on a node that takes no replicas, however empty it is.
            if cluster.nodes[node].state == NodeState::Up {
                least[domain.ix()] = least[domain.ix()].min(weight[node]);
            }
        }
        least.retain(|least| least.is_finite());
        least.iter().sum::<f64>() / least.len().max(1) as f64
    };
    // An empty sum is -0.
    costs.levels.iter().map(of_level).fold(0.0, |sum, level| sum + level)
}

fn reassignment(
    cluster: &Cluster,
    costs: &Reassignment,
    assignment: &Assignment,
) -> BTreeMap<&'static str, f64> {
    let metrics = cluster.metrics.len();
    let mut usage = vec![vec![0; metrics]; cluster.nodes.len()];
    let mut moved_of_service = vec![0_u32; cluster.services.len()];
    let (mut replica_moves, mut node_moves) = (0.0, 0.0);
    for (replica, node) in cluster.replicas.iter().zip(assignment) {
        let Some(node) = node else { continue };
        for (used, demand) in usage[node.ix()].iter_mut().zip(&replica.demand) {
            *used += demand;
        }
        if let Some(from) = replica.node.filter(|from| from != node) {
            moved_of_service[replica.service.ix()] += 1;
            replica_moves += replica.move_cost;
            node_moves += f64::from(costs.between[from.ix()][node.ix()]);
        }
    }
    let (mut load, mut balance) = (0.0, 0.0);
    for ((node, used), safety) in cluster.nodes.iter().zip(&usage).zip(&costs.safety) {
        for metric in 0..metrics {
            load += costs.load[metric] * (used[metric] - safety[metric]).max(0) as f64;
        }
        for pair in &costs.balance {
            // Without a limit of the first there is no need, without one of the second no lack.
            let free = |metric: MetricIx| node.capacity[metric.ix()].map(|c| c - used[metric.ix()]);
            if let (Some(first), Some(second)) = (free(pair.first), free(pair.second)) {
                balance += pair.weight * (pair.target * first - second).max(0) as f64;
            }
        }
    }
    let most = moved_of_service.into_iter().max().unwrap_or(0);
    BTreeMap::from([
        ("load", load),
        ("balance", balance),
        ("replica_moves", costs.replica_moves * replica_moves),
        ("service_moves", costs.service_moves * f64::from(most)),
        ("node_moves", costs.node_moves * node_moves),
    ])
}

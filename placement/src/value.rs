//! What is minimized, from scratch: the reference that the incremental sums of the engines are
//! tested against, and what the audit reports.

use crate::cluster::{
    Amount, Assignment, Cluster, DomainIx, Evenness, Failovers, Futures, GroupIx, LevelIx,
    MetricIx, NodeState, Objective, Reassignment, ReplicaIx, Soft, Swaps,
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
    evaluate_as(cluster, &cluster.objective, assignment)
}

/// The value of an assignment under another objective than the cluster's.
pub(crate) fn evaluate_as(
    cluster: &Cluster,
    objective: &Objective,
    assignment: &Assignment,
) -> Value {
    let terms: BTreeMap<&'static str, f64> = match objective {
        Objective::Failovers(costs) => {
            let fragmentation = fragmentation(cluster, costs, assignment);
            let (saved, swaps) = swaps(cluster, &costs.swaps, assignment);
            let moves = ("moves", moves(cluster, assignment) - saved);
            let swaps = (!costs.swaps.partitions.is_empty()).then_some(("swaps", swaps));
            let futures = costs.futures.as_ref();
            let capacity =
                futures.map(|of| ("capacity", of.weight * capacity(cluster, of, assignment)));
            let terms = [moves, ("fragmentation", costs.fragmentation * fragmentation)];
            let mut terms: BTreeMap<_, _> =
                terms.into_iter().chain(swaps).chain(capacity).collect();
            for soft in &costs.soft {
                let (name, cost) = self::soft(cluster, soft, assignment);
                *terms.entry(name).or_default() += cost;
            }
            terms
        }
        Objective::Reassignment(costs) => reassignment(cluster, costs, assignment),
        Objective::Balance(evenness) => balance(cluster, evenness, assignment),
        Objective::FewestNodes => BTreeMap::from([("nodes", nodes_in_use(assignment))]),
    };
    Value { total: terms.values().sum(), terms }
}

/// Replicas that leave their node, by weight. SIL eq. 5'.
fn moves(cluster: &Cluster, assignment: &Assignment) -> f64 {
    let moved = cluster.replicas.iter().zip(assignment);
    let moved = moved.filter(|(r, to)| r.node.is_some() && r.node != **to);
    // An empty sum is -0.
    moved.fold(0.0, |sum, (replica, _)| sum + replica.move_cost)
}

/// Nodes with a replica.
fn nodes_in_use(assignment: &Assignment) -> f64 {
    let used: BTreeSet<_> = assignment.iter().flatten().collect();
    used.len() as f64
}

/// What a soft constraint costs, and the name of its term.
fn soft(cluster: &Cluster, of: &Soft, assignment: &Assignment) -> (&'static str, f64) {
    let placed = |group: &GroupIx| {
        let members = cluster.groups[group.ix()].members.iter();
        members.filter_map(|member| assignment[member.ix()])
    };
    match of {
        Soft::Preferred { group, nodes, weight } => {
            let elsewhere = placed(group).filter(|node| !nodes[node.ix()]).count();
            ("preferred", weight * elsewhere as f64)
        }
        Soft::Spread { group, level, most, weight } => {
            let mut counts: BTreeMap<DomainIx, u32> = BTreeMap::new();
            for node in placed(group) {
                *counts.entry(cluster.domain(*level, node)).or_default() += 1;
            }
            let above: u32 = counts.values().map(|count| count.saturating_sub(*most)).sum();
            ("spread", weight * f64::from(above))
        }
        Soft::Balance { weight } => {
            let capacity = cluster.average_capacity();
            let metrics = capacity.iter().enumerate();
            let shares: Vec<f64> = metrics
                .filter_map(|(metric, capacity)| {
                    capacity.map(|capacity| deviation(cluster, metric, assignment) / capacity)
                })
                .collect();
            ("balance", weight * shares.iter().sum::<f64>() / shares.len().max(1) as f64)
        }
        Soft::Nodes { weight } => ("nodes", weight * nodes_in_use(assignment)),
    }
}

/// The moves, by weight, that are swaps of roles; and what the swaps cost.
fn swaps(cluster: &Cluster, swaps: &Swaps, assignment: &Assignment) -> (f64, f64) {
    let weight = |of: ReplicaIx| cluster.replicas[of.ix()].move_cost;
    let made = exchanged(cluster, swaps, assignment);
    made.into_iter().fold((0.0, 0.0), |(saved, cost), (primary, secondary, of)| {
        (saved + weight(primary) + weight(secondary), cost + of)
    })
}

/// The pairs of primary and secondary that exchange their nodes of today, with what that costs.
fn exchanged(
    cluster: &Cluster,
    swaps: &Swaps,
    assignment: &Assignment,
) -> Vec<(ReplicaIx, ReplicaIx, f64)> {
    let is_at =
        |one: ReplicaIx, home: ReplicaIx| assignment[one.ix()] == cluster.replicas[home.ix()].node;
    let pairs = cluster.role_pairs(swaps);
    pairs.filter(|(one, other, _)| is_at(*one, *other) && is_at(*other, *one)).collect()
}

/// What the move of each replica costs: of two that exchange roles, the primary has the cost of the swap.
pub fn move_costs(cluster: &Cluster, assignment: &Assignment) -> Vec<f64> {
    let moved = cluster.replicas.iter().zip(assignment);
    let cost = moved.map(|(of, to)| match of.node {
        Some(from) if *to != Some(from) => of.move_cost,
        _ => 0.0,
    });
    let mut costs: Vec<f64> = cost.collect();
    if let Objective::Failovers(of) = &cluster.objective {
        for (primary, secondary, cost) in exchanged(cluster, &of.swaps, assignment) {
            costs[primary.ix()] = cost;
            costs[secondary.ix()] = 0.0;
        }
    }
    costs
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

/// Failovers to expect because of demands in future: in each sample, the lightest replica leaves each
/// node that exceeds its capacity at some time. Averages over samples. SIL eq. 13', 14', 17 and 18.
fn capacity(cluster: &Cluster, futures: &Futures, assignment: &Assignment) -> f64 {
    let metrics = cluster.metrics.len();
    let mut expected = 0.0;
    for (position, node) in cluster.nodes.iter().enumerate() {
        let is_here = |at: &usize| assignment[*at].is_some_and(|node| node.ix() == position);
        let here: Vec<usize> = (0..assignment.len()).filter(is_here).collect();
        let Some(first) = here.first() else { continue };
        let weights = here.iter().map(|replica| cluster.replicas[*replica].move_cost);
        let lightest = weights.fold(f64::INFINITY, f64::min);
        let of_sample = futures.demand[*first].len() / futures.samples;
        let exceeds = |at: usize| {
            let demand: Amount = here.iter().map(|replica| futures.demand[*replica][at]).sum();
            node.capacity[at % metrics].is_some_and(|capacity| demand > capacity)
        };
        let violated = (0..futures.samples).filter(|sample| {
            let mut amounts = sample * of_sample..(sample + 1) * of_sample;
            amounts.any(exceeds)
        });
        expected += lightest * violated.count() as f64 / futures.samples as f64;
    }
    expected
}

/// What keeps the value of moves from vanishing where the load is even, in the unit of the metrics.
pub(crate) const EVEN: f64 = 0.001;
/// What keeps a move from doubling the value of a small cluster, in replicas.
pub(crate) const STEADY: f64 = 1_000.0;

/// The standard deviation of the load of the nodes that hold replicas.
fn deviation(cluster: &Cluster, metric: usize, assignment: &Assignment) -> f64 {
    let mut load = vec![0; cluster.nodes.len()];
    for (replica, node) in cluster.replicas.iter().zip(assignment) {
        if let Some(node) = node {
            load[node.ix()] += replica.demand[metric];
        }
    }
    let nodes = cluster.nodes.iter().zip(&load);
    let loads: Vec<f64> =
        nodes.filter(|(node, _)| node.state.holds()).map(|(_, load)| *load as f64).collect();
    let count = loads.len().max(1) as f64;
    let mean = loads.iter().sum::<f64>() / count;
    let variance = loads.iter().map(|load| (load - mean).powi(2)).sum::<f64>() / count;
    variance.sqrt()
}

/// The deviation, and what the moves add to it.
fn balance(
    cluster: &Cluster,
    evenness: &Evenness,
    assignment: &Assignment,
) -> BTreeMap<&'static str, f64> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (metric, weight) in evenness.weights.iter().enumerate() {
        sum += weight * deviation(cluster, metric, assignment);
        weights += weight;
    }
    let deviation = if weights > 0.0 { sum / weights } else { 0.0 } + EVEN;
    let steady = cluster.replicas.len() as f64 + STEADY;
    let moves = deviation * evenness.moves * moves(cluster, assignment) / steady;
    let futures = evenness.futures.as_ref();
    let risk = futures.map(|of| of.weight * capacity(cluster, of, assignment));
    let capacity = risk.map(|risk| ("capacity", (deviation + moves) * risk));
    [("deviation", deviation), ("moves", moves)].into_iter().chain(capacity).collect()
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

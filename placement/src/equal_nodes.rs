//! Clusters of equal nodes without rules: the fewest nodes for their replicas are a bin packing.

use crate::cluster::{Amount, Assignment, Cluster, NodeIx, NodeState};
use crate::limits::Limits;
use crate::packing::{Items, Packing, pack};

/// An assignment and a number of nodes that no valid one is below, for clusters of which every answer of bin packing
/// is valid: equal nodes that are up, no rules, and no replica that counts on two nodes while it moves.
pub(crate) fn packed(cluster: &Cluster, limits: &Limits) -> Option<(Assignment, f64)> {
    let first = cluster.nodes.first()?;
    let moves_freely = cluster.metrics.iter().all(|metric| !metric.transient)
        || cluster.replicas.iter().all(|replica| replica.node.is_none());
    let is_plain = moves_freely
        && cluster.rules.is_empty()
        && cluster.services.iter().all(|service| service.allowed.is_none())
        && cluster
            .nodes
            .iter()
            .all(|node| node.state == NodeState::Up && node.capacity == first.capacity);
    // Metrics without a limit, or of which nodes have nothing, are no dimensions.
    let limited: Vec<(usize, Amount)> = (0..cluster.metrics.len())
        .filter_map(|metric| {
            first.capacity[metric].filter(|limit| *limit > 0).map(|limit| (metric, limit))
        })
        .collect();
    let fits = |demand: &[Amount]| {
        demand
            .iter()
            .zip(&first.capacity)
            .all(|(demand, limit)| limit.is_none_or(|limit| *demand <= limit))
    };
    if !is_plain
        || limited.is_empty()
        || !cluster.replicas.iter().all(|replica| fits(&replica.demand))
    {
        return None;
    }
    let sizes = cluster
        .replicas
        .iter()
        .flat_map(|replica| limited.iter().map(|(metric, _)| replica.demand[*metric]));
    let items = Items::new(limited.iter().map(|(_, limit)| *limit).collect(), sizes.collect());
    let packed = pack(&items, limits);
    let is_enough = packed.packing.len() <= cluster.nodes.len();
    is_enough.then(|| (on_nodes(cluster, &packed.packing), packed.bound as f64))
}

/// Each bin on the node where most of its replicas are today, of those that are left; nodes that are empty today last.
fn on_nodes(cluster: &Cluster, packing: &Packing) -> Assignment {
    let mut assignment = vec![None; cluster.replicas.len()];
    let mut is_free = vec![true; cluster.nodes.len()];
    let mut in_use = vec![false; cluster.nodes.len()];
    let nodes = cluster.replicas.iter().filter_map(|replica| replica.node);
    nodes.for_each(|node| in_use[node.ix()] = true);
    for bin in packing {
        let mut there = vec![0_usize; cluster.nodes.len()];
        let nodes = bin.iter().filter_map(|replica| cluster.replicas[*replica].node);
        nodes.for_each(|node| there[node.ix()] += 1);
        let free = (0..is_free.len()).filter(|node| is_free[*node]);
        let Some(node) =
            free.max_by_key(|node| (there[*node], in_use[*node], std::cmp::Reverse(*node)))
        else {
            break;
        };
        is_free[node] = false;
        bin.iter().for_each(|replica| assignment[*replica] = Some(NodeIx::new(node)));
    }
    assignment
}

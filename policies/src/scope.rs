//! The part of a cluster that pending replicas may need, so that the program of a batch does not grow with
//! the cluster.

use crate::source::Policies;
use placement::{Amount, Cluster, NodeState, ReplicaIx};
use std::collections::{BTreeMap, BTreeSet};

/// What is told apart about a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Class<'a> {
    /// Its name, if a policy names it.
    name: Option<&'a str>,
    state: u8,
    /// Its domain at each level that a policy names.
    domains: Vec<usize>,
    /// Whether each restricted service with a pending replica may run on it.
    allowed: Vec<bool>,
    /// How many replicas of each service and members of each group it runs.
    company: Vec<(usize, usize)>,
}

/// The pending replicas of a cluster, the nodes that they may need, and what runs on these.
///
/// Nodes are alike if they have the same state, the same domains at levels that policies name, the same allowed
/// services, and run as many replicas of each service that is pending or named by a policy, and as many members of
/// each group with a pending member. Of like nodes, one is left out if there are at least as many others as there
/// are pending replicas that have no less room in each metric. So where more room is never worse, the part has as
/// good an assignment as the whole. A policy that counts nodes counts those of the part only: audit the answer on
/// the whole cluster.
pub fn scope(cluster: &Cluster, policies: &Policies) -> Cluster {
    let said = policies.literals();
    let pending: Vec<usize> =
        (0..cluster.replicas.len()).filter(|&at| cluster.replicas[at].node.is_none()).collect();
    let nodes = cluster.nodes.len();
    // Numbers of what is told apart: services first, then groups.
    let services: BTreeSet<usize> =
        pending.iter().map(|&at| cluster.replicas[at].service.ix()).collect();
    let apart: Vec<bool> = (0..cluster.services.len())
        .map(|at| services.contains(&at) || said.contains(cluster.services[at].name.as_str()))
        .collect();
    let mut room: Vec<Vec<Amount>> = cluster
        .nodes
        .iter()
        .map(|node| node.capacity.iter().map(|capacity| capacity.unwrap_or(Amount::MAX)).collect())
        .collect();
    let mut company: Vec<BTreeMap<usize, usize>> = vec![BTreeMap::new(); nodes];
    for replica in &cluster.replicas {
        let Some(node) = replica.node else { continue };
        for (room, demand) in room[node.ix()].iter_mut().zip(&replica.demand) {
            *room = if *room == Amount::MAX { *room } else { room.saturating_sub(*demand) };
        }
        if apart[replica.service.ix()] {
            *company[node.ix()].entry(replica.service.ix()).or_insert(0) += 1;
        }
    }
    let is_pending = |member: &ReplicaIx| cluster.replicas[member.ix()].node.is_none();
    for (number, group) in cluster.groups.iter().enumerate() {
        if !group.members.iter().any(is_pending) && !said.contains(group.name.as_str()) {
            continue;
        }
        for node in group.members.iter().filter_map(|member| cluster.replicas[member.ix()].node) {
            *company[node.ix()].entry(cluster.services.len() + number).or_insert(0) += 1;
        }
    }
    let levels: Vec<_> =
        cluster.levels.iter().filter(|level| said.contains(level.name.as_str())).collect();
    let restricted: Vec<&Vec<bool>> =
        services.iter().filter_map(|&at| cluster.services[at].allowed.as_ref()).collect();
    let mut classes: BTreeMap<Class<'_>, Vec<usize>> = BTreeMap::new();
    for (at, node) in cluster.nodes.iter().enumerate() {
        let state = match node.state {
            NodeState::Up => 0,
            NodeState::Closed => 1,
            NodeState::Draining => 2,
            NodeState::Down => 3,
        };
        let domain = |level: &&placement::Level| {
            level.domain_of.get(at).map_or(usize::MAX, |domain| domain.ix())
        };
        let class = Class {
            name: said.contains(node.name.as_str()).then_some(node.name.as_str()),
            state,
            domains: levels.iter().map(domain).collect(),
            allowed: restricted.iter().map(|may| may.get(at) == Some(&true)).collect(),
            company: company[at].iter().map(|(&what, &count)| (what, count)).collect(),
        };
        classes.entry(class).or_default().push(at);
    }
    let mut kept: Vec<usize> =
        classes.into_values().flat_map(|class| roomiest(class, &room, pending.len())).collect();
    kept.sort_unstable();
    part(cluster, &kept)
}

/// The nodes to which fewer than `count` others have no less room in each metric.
fn roomiest(mut class: Vec<usize>, room: &[Vec<Amount>], count: usize) -> Vec<usize> {
    if class.len() <= count {
        return class;
    }
    let sum = |at: usize| room[at].iter().map(|&room| i128::from(room)).sum::<i128>();
    // Only nodes with as large a sum can have no less of each.
    class.sort_by_cached_key(|&at| (std::cmp::Reverse(sum(at)), at));
    let mut kept: Vec<usize> = Vec::new();
    for at in class {
        let no_less = |other: &&usize| room[**other].iter().zip(&room[at]).all(|(a, b)| a >= b);
        if kept.iter().filter(no_less).take(count).count() < count {
            kept.push(at);
        }
    }
    kept
}

/// The cluster with these nodes alone, in order.
fn part(cluster: &Cluster, kept: &[usize]) -> Cluster {
    let mut node_at = vec![None; cluster.nodes.len()];
    for (new, &old) in kept.iter().enumerate() {
        node_at[old] = Some(placement::NodeIx::new(new));
    }
    let (mut replicas, mut replica_at) = (Vec::new(), vec![None; cluster.replicas.len()]);
    for (old, replica) in cluster.replicas.iter().enumerate() {
        let node = replica.node.map(|node| node_at[node.ix()]);
        if node == Some(None) {
            continue;
        }
        replica_at[old] = Some(ReplicaIx::new(replicas.len()));
        replicas.push(placement::Replica { node: node.flatten(), ..replica.clone() });
    }
    let services = cluster.services.iter().map(|service| placement::Service {
        name: service.name.clone(),
        allowed: service.allowed.as_ref().map(|may| kept.iter().map(|&at| may[at]).collect()),
    });
    let levels = cluster.levels.iter().map(|level| placement::Level {
        name: level.name.clone(),
        domains: level.domains.clone(),
        domain_of: kept.iter().filter_map(|&at| level.domain_of.get(at).copied()).collect(),
    });
    let groups = cluster.groups.iter().map(|group| placement::Group {
        name: group.name.clone(),
        members: group.members.iter().filter_map(|member| replica_at[member.ix()]).collect(),
    });
    Cluster {
        name: cluster.name.clone(),
        metrics: cluster.metrics.clone(),
        levels: levels.collect(),
        nodes: kept.iter().map(|&at| cluster.nodes[at].clone()).collect(),
        services: services.collect(),
        groups: groups.collect(),
        replicas,
        rules: Vec::new(),
        objective: cluster.objective.clone(),
    }
}

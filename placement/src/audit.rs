//! Checks an assignment against every rule, from scratch and by code that no engine uses.

use crate::cluster::{
    Amount, Assignment, Cluster, DomainIx, GroupIx, LevelIx, NodeIx, NodeState, ReplicaIx, Rule,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A rule that an assignment breaks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Violation {
    /// The replica has no node.
    Unplaced {
        /// The replica.
        replica: String,
    },
    /// The replica is on a node that its service excludes, or that takes no replicas.
    Excluded {
        /// The replica.
        replica: String,
        /// The node.
        node: String,
    },
    /// The demand on a node exceeds its capacity.
    Capacity {
        /// The node.
        node: String,
        /// The metric.
        metric: String,
        /// What its replicas need.
        demand: Amount,
        /// What it has.
        capacity: Amount,
        /// Whether only moving replicas, which count on both nodes, exceed it.
        in_transit: bool,
    },
    /// A domain has more members of a group than allowed.
    PerDomain {
        /// The group.
        group: String,
        /// The level.
        level: String,
        /// The domain.
        domain: String,
        /// Members there.
        members: u32,
        /// The limit.
        most: u32,
    },
    /// A group uses too few domains.
    AtLeast {
        /// The group.
        group: String,
        /// The level.
        level: String,
        /// Domains used.
        domains: usize,
        /// The limit.
        least: u32,
    },
    /// A group uses too many domains.
    AtMost {
        /// The group.
        group: String,
        /// The level.
        level: String,
        /// Domains used.
        domains: usize,
        /// The limit.
        most: u32,
    },
    /// Members have no member of the group that they need in their domain.
    Near {
        /// The group.
        group: String,
        /// What it needs.
        to: String,
        /// The level.
        level: String,
        /// The domain without one.
        domain: String,
    },
    /// Members of two groups that must be apart share a domain.
    Apart {
        /// The one group.
        group: String,
        /// The other.
        from: String,
        /// The level.
        level: String,
        /// The domain.
        domain: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Unplaced { replica } => write!(f, "replica {replica} has no node"),
            Violation::Excluded { replica, node } => {
                write!(f, "replica {replica} may not run on node {node}")
            }
            Violation::Capacity { node, metric, demand, capacity, in_transit } => {
                let when = if *in_transit { " while replicas move" } else { "" };
                write!(f, "node {node}: {metric} {demand} of {capacity}{when}")
            }
            Violation::PerDomain { group, level, domain, members, most } => {
                write!(f, "{group}: {members} replicas in {level} {domain}, at most {most} may be")
            }
            Violation::AtLeast { group, level, domains, least } => {
                write!(f, "{group}: uses {domains} domains of level {level}, needs {least}")
            }
            Violation::AtMost { group, level, domains, most } => {
                write!(f, "{group}: uses {domains} domains of level {level}, may use {most}")
            }
            Violation::Near { group, to, level, domain } => {
                write!(f, "{group}: no replica of {to} in {level} {domain}")
            }
            Violation::Apart { group, from, level, domain } => {
                write!(f, "{group}: a replica of {from} in {level} {domain}")
            }
        }
    }
}

/// Every rule that an assignment breaks, in the order of the cluster's lists.
pub fn audit(cluster: &Cluster, assignment: &Assignment) -> Vec<Violation> {
    assert_eq!(assignment.len(), cluster.replicas.len(), "one node for each replica");
    let mut found = Vec::new();
    for (position, node) in assignment.iter().enumerate() {
        let replica = || cluster.replicas[position].name.clone();
        match node {
            None => found.push(Violation::Unplaced { replica: replica() }),
            Some(node) if !cluster.may_run(ReplicaIx::new(position), *node) => {
                let node = cluster.nodes[node.ix()].name.clone();
                found.push(Violation::Excluded { replica: replica(), node });
            }
            Some(_) => {}
        }
    }
    capacity(cluster, assignment, &mut found);
    for rule in &cluster.rules {
        broken(cluster, assignment, rule, &mut found);
    }
    found
}

fn capacity(cluster: &Cluster, assignment: &Assignment, found: &mut Vec<Violation>) {
    let mut residents: Vec<Vec<usize>> = vec![Vec::new(); cluster.nodes.len()];
    let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); cluster.nodes.len()];
    let mut residents_today: Vec<Vec<usize>> = vec![Vec::new(); cluster.nodes.len()];
    for (position, (replica, node)) in cluster.replicas.iter().zip(assignment).enumerate() {
        if let Some(node) = node {
            residents[node.ix()].push(position);
        }
        if let Some(today) = replica.node {
            residents_today[today.ix()].push(position);
        }
        if let Some(from) = replica.node.filter(|from| Some(*from) != *node) {
            leaving[from.ix()].push(position);
        }
    }
    for (position, node) in cluster.nodes.iter().enumerate() {
        if node.state == NodeState::Down {
            // What is on it is excluded anyway, and needs nothing.
            continue;
        }
        for (of_metric, metric) in cluster.metrics.iter().enumerate() {
            let Some(capacity) = node.capacity[of_metric] else { continue };
            let sum = |of: &[usize]| -> Amount {
                of.iter().map(|replica| cluster.replicas[*replica].demand[of_metric]).sum()
            };
            let stays = sum(&residents[position]);
            let demand = stays + if metric.transient { sum(&leaving[position]) } else { 0 };
            // An overloaded node may keep its demand of today while its replicas leave it.
            let passes = demand <= capacity
                || (metric.transient && demand <= sum(&residents_today[position]));
            if stays > capacity || !passes {
                found.push(Violation::Capacity {
                    node: node.name.clone(),
                    metric: metric.name.clone(),
                    demand,
                    capacity,
                    in_transit: stays <= capacity,
                });
            }
        }
    }
}

fn broken(cluster: &Cluster, assignment: &Assignment, rule: &Rule, found: &mut Vec<Violation>) {
    let nodes = |group: GroupIx| {
        let members = cluster.groups[group.ix()].members.iter();
        members.filter_map(|replica| assignment[replica.ix()])
    };
    let domain = |level: LevelIx, node: NodeIx| cluster.levels[level.ix()].domain_of[node.ix()];
    let domains =
        |group, level| -> BTreeSet<DomainIx> { nodes(group).map(|n| domain(level, n)).collect() };
    let group_name = |group: GroupIx| cluster.groups[group.ix()].name.clone();
    let level_name = |level: LevelIx| cluster.levels[level.ix()].name.clone();
    let domain_name =
        |level: LevelIx, domain: DomainIx| cluster.levels[level.ix()].domains[domain.ix()].clone();
    match *rule {
        Rule::PerDomain { group, level, most } => {
            let mut members: BTreeMap<DomainIx, u32> = BTreeMap::new();
            for node in nodes(group) {
                *members.entry(domain(level, node)).or_default() += 1;
            }
            for (at, members) in members.into_iter().filter(|(_, members)| *members > most) {
                found.push(Violation::PerDomain {
                    group: group_name(group),
                    level: level_name(level),
                    domain: domain_name(level, at),
                    members,
                    most,
                });
            }
        }
        Rule::AtLeast { group, level, least } => {
            let domains = domains(group, level).len();
            if domains < least as usize {
                let (group, level) = (group_name(group), level_name(level));
                found.push(Violation::AtLeast { group, level, domains, least });
            }
        }
        Rule::AtMost { group, level, most } => {
            let domains = domains(group, level).len();
            if domains > most as usize {
                let (group, level) = (group_name(group), level_name(level));
                found.push(Violation::AtMost { group, level, domains, most });
            }
        }
        Rule::Near { group, to, level } => {
            let (members, needed) = (domains(group, level), domains(to, level));
            for at in members.difference(&needed) {
                found.push(Violation::Near {
                    group: group_name(group),
                    to: group_name(to),
                    level: level_name(level),
                    domain: domain_name(level, *at),
                });
            }
        }
        Rule::Apart { group, from, level } => {
            let (members, others) = (domains(group, level), domains(from, level));
            for at in members.intersection(&others) {
                found.push(Violation::Apart {
                    group: group_name(group),
                    from: group_name(from),
                    level: level_name(level),
                    domain: domain_name(level, *at),
                });
            }
        }
    }
}

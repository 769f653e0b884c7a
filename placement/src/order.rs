//! A cluster in an order that does not depend on how its lists are written: by name. What the search
//! finds then depends on neither.

use crate::cluster::{
    Assignment, Cluster, DomainIx, GroupIx, Level, LevelIx, NodeIx, Objective, ReplicaIx, Rule,
    ServiceIx, Soft,
};

/// A cluster by name, and the way back.
pub(crate) struct Ordered {
    pub(crate) cluster: Cluster,
    /// The old position of each node, and the new position of each replica.
    nodes: Vec<usize>,
    replicas: Vec<usize>,
}

/// Old positions in the order of the names. Where names are equal, the old order stays.
fn by_name<'n>(names: impl Iterator<Item = &'n str>) -> Vec<usize> {
    let names: Vec<&str> = names.collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|position| names[*position]);
    order
}

/// The new position of each old one.
fn inverse(order: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; order.len()];
    for (new, old) in order.iter().enumerate() {
        inverse[*old] = new;
    }
    inverse
}

fn pick<T: Clone>(of: &[T], order: &[usize]) -> Vec<T> {
    order.iter().map(|old| of[*old].clone()).collect()
}

impl Ordered {
    /// The cluster with nodes, domains, services, replicas and groups by name, and rules by what they are
    /// about. Metrics and levels stay in their order.
    pub(crate) fn new(of: &Cluster) -> Ordered {
        let nodes = by_name(of.nodes.iter().map(|node| node.name.as_str()));
        let services = by_name(of.services.iter().map(|service| service.name.as_str()));
        let replicas = by_name(of.replicas.iter().map(|replica| replica.name.as_str()));
        let (new_node, new_service, new_replica) =
            (inverse(&nodes), inverse(&services), inverse(&replicas));
        let mut cluster = Cluster {
            name: of.name.clone(),
            metrics: of.metrics.clone(),
            levels: of.levels.iter().map(|level| ordered_level(level, &nodes)).collect(),
            nodes: pick(&of.nodes, &nodes),
            services: pick(&of.services, &services),
            replicas: pick(&of.replicas, &replicas),
            groups: of.groups.clone(),
            rules: Vec::new(),
            objective: of.objective.clone(),
        };
        for service in &mut cluster.services {
            service.allowed = service.allowed.as_ref().map(|allowed| pick(allowed, &nodes));
        }
        for replica in &mut cluster.replicas {
            replica.node = replica.node.map(|node| NodeIx::new(new_node[node.ix()]));
            replica.service = ServiceIx::new(new_service[replica.service.ix()]);
        }
        for group in &mut cluster.groups {
            for member in &mut group.members {
                *member = ReplicaIx::new(new_replica[member.ix()]);
            }
            group.members.sort_unstable();
        }
        let mut groups: Vec<usize> = (0..of.groups.len()).collect();
        let key = |group: &usize| {
            let group = &cluster.groups[*group];
            (&group.name, &group.members)
        };
        groups.sort_by(|one, other| key(one).cmp(&key(other)));
        let new_group = inverse(&groups);
        cluster.groups = pick(&cluster.groups, &groups);
        let group = |of: GroupIx| GroupIx::new(new_group[of.ix()]);
        cluster.rules = of.rules.iter().map(|rule| with_groups(*rule, group)).collect();
        cluster.rules.sort_by_key(|rule| key_of(*rule));
        if let Objective::Failovers(costs) = &mut cluster.objective {
            costs.swaps.partitions.iter_mut().for_each(|of| *of = group(*of));
            costs.swaps.partitions.sort_unstable();
            for of in &mut costs.soft {
                match of {
                    Soft::Preferred { group: of, nodes: preferred, .. } => {
                        *of = group(*of);
                        *preferred = pick(preferred, &nodes);
                    }
                    Soft::Spread { group: of, .. } => *of = group(*of),
                    Soft::Balance { .. } | Soft::Nodes { .. } => {}
                }
            }
            costs.soft.sort_by(|one, other| key_of_soft(one).cmp(&key_of_soft(other)));
        }
        if let Objective::Reassignment(costs) = &mut cluster.objective {
            costs.safety = pick(&costs.safety, &nodes);
            costs.between = pick(&costs.between, &nodes);
            costs.between.iter_mut().for_each(|to| *to = pick(to, &nodes));
        }
        Ordered { cluster, nodes, replicas: new_replica }
    }

    /// An assignment of the cluster as it was, for the ordered cluster.
    pub(crate) fn forth(&self, assignment: &Assignment) -> Assignment {
        let new_node = inverse(&self.nodes);
        let mut ordered = vec![None; assignment.len()];
        for (new, node) in self.replicas.iter().zip(assignment) {
            ordered[*new] = node.map(|node| NodeIx::new(new_node[node.ix()]));
        }
        ordered
    }

    /// The node of the cluster as it was.
    pub(crate) fn old_node(&self, node: NodeIx) -> NodeIx {
        NodeIx::new(self.nodes[node.ix()])
    }

    /// The old position of each replica.
    pub(crate) fn old_replicas(&self) -> Vec<usize> {
        inverse(&self.replicas)
    }

    /// An assignment of the ordered cluster, for the cluster as it was.
    pub(crate) fn back(&self, assignment: &Assignment) -> Assignment {
        self.replicas.iter().map(|new| assignment[*new].map(|node| self.old_node(node))).collect()
    }
}

fn ordered_level(of: &Level, nodes: &[usize]) -> Level {
    let domains = by_name(of.domains.iter().map(String::as_str));
    let new_domain = inverse(&domains);
    let domain = |old: &usize| DomainIx::new(new_domain[of.domain_of[*old].ix()]);
    Level {
        name: of.name.clone(),
        domains: pick(&of.domains, &domains),
        domain_of: nodes.iter().map(domain).collect(),
    }
}

fn with_groups(rule: Rule, new: impl Fn(GroupIx) -> GroupIx) -> Rule {
    match rule {
        Rule::PerDomain { group, level, most } => {
            Rule::PerDomain { group: new(group), level, most }
        }
        Rule::AtLeast { group, level, least } => Rule::AtLeast { group: new(group), level, least },
        Rule::AtMost { group, level, most } => Rule::AtMost { group: new(group), level, most },
        Rule::Near { group, to, level } => Rule::Near { group: new(group), to: new(to), level },
        Rule::Apart { group, from, level } => {
            Rule::Apart { group: new(group), from: new(from), level }
        }
    }
}

/// Kind, group, level, number, weight (not negative, so that its bits are in order) and nodes.
fn key_of_soft(of: &Soft) -> (u8, GroupIx, LevelIx, u32, u64, &[bool]) {
    let first = GroupIx::new(0);
    match of {
        Soft::Preferred { group, nodes, weight } => {
            (0, *group, LevelIx::NODE, 0, weight.to_bits(), nodes)
        }
        Soft::Spread { group, level, most, weight } => {
            (1, *group, *level, *most, weight.to_bits(), &[])
        }
        Soft::Balance { weight } => (2, first, LevelIx::NODE, 0, weight.to_bits(), &[]),
        Soft::Nodes { weight } => (3, first, LevelIx::NODE, 0, weight.to_bits(), &[]),
    }
}

/// Kind, groups, level and number.
fn key_of(rule: Rule) -> (u8, GroupIx, GroupIx, LevelIx, u32) {
    match rule {
        Rule::PerDomain { group, level, most } => (0, group, group, level, most),
        Rule::AtLeast { group, level, least } => (1, group, group, level, least),
        Rule::AtMost { group, level, most } => (2, group, group, level, most),
        Rule::Near { group, to, level } => (3, group, to, level, 0),
        Rule::Apart { group, from, level } => (4, group, from, level, 0),
    }
}

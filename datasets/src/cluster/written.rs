//! A cluster as members of `ras-cluster/1`.

use super::broken::{Broken, broken};
use super::objective::ObjectiveOf;
use super::reader::{NODE, cluster_of};
use super::schema::{
    CLUSTER_FORMAT, MetricOf, Neighbour, NodeOf, ReplicaOf, RoleOf, Root, ServiceOf, StateOf,
};
use placement::{Amount, Cluster, Group, GroupIx, LevelIx, NodeIx, NodeState, Replica, Role, Rule};
use std::collections::BTreeMap;

/// The members that say what a cluster is, or what the format cannot say.
pub fn members_of(cluster: &Cluster) -> Result<Root, Broken> {
    let mut writer = Writer::new(cluster);
    for (position, rule) in cluster.rules.iter().enumerate() {
        writer.rule(rule).map_err(|rule| broken(format!("rules[{position}]"), rule))?;
    }
    let nodes = writer.nodes();
    let services = writer.services()?;
    let members = Root {
        format: CLUSTER_FORMAT.to_owned(),
        name: cluster.name.clone(),
        metrics: (cluster.metrics.iter())
            .map(|of| MetricOf { name: of.name.clone(), transient: of.transient })
            .collect(),
        nodes,
        hardware_types: BTreeMap::new(),
        services,
        history: None,
        objective: ObjectiveOf::written(cluster)?,
    };
    // A service says what it wants of its partitions for all of them.
    match cluster_of(&members)?.rules.len() == cluster.rules.len() {
        true => Ok(members),
        false => Err(broken("rules", "partitions of a service differ in their rules")),
    }
}

struct Writer<'c> {
    cluster: &'c Cluster,
    services: Vec<ServiceOf>,
    /// The groups that are partitions.
    partitions: Vec<bool>,
    /// Number of replicas of each service.
    sizes: Vec<usize>,
}

impl<'c> Writer<'c> {
    fn new(cluster: &'c Cluster) -> Writer<'c> {
        let mut sizes = vec![0; cluster.services.len()];
        for replica in &cluster.replicas {
            sizes[replica.service.ix()] += 1;
        }
        Writer {
            cluster,
            services: cluster.services.iter().map(|of| ServiceOf::named(&of.name)).collect(),
            partitions: vec![false; cluster.groups.len()],
            sizes,
        }
    }

    fn group(&self, group: GroupIx) -> &'c Group {
        &self.cluster.groups[group.ix()]
    }

    /// The service that all members of a group are of.
    fn service(&self, group: GroupIx) -> Result<usize, String> {
        let of = self.group(group);
        let mut services = of.members.iter().map(|of| self.cluster.replicas[of.ix()].service.ix());
        let service = services.next().ok_or_else(|| format!("group {:?} is empty", of.name))?;
        match services.all(|of| of == service) {
            true => Ok(service),
            false => Err(format!("group {:?} has replicas of two services", of.name)),
        }
    }

    /// The service that a group is all replicas of.
    fn whole(&self, group: GroupIx) -> Result<usize, String> {
        let service = self.service(group)?;
        let of = self.group(group);
        match of.members.len() == self.sizes[service] {
            true => Ok(service),
            false => Err(format!("group {:?} is not a whole service", of.name)),
        }
    }

    fn rule(&mut self, rule: &Rule) -> Result<(), String> {
        let name = |level: LevelIx| self.cluster.levels[level.ix()].name.clone();
        match *rule {
            Rule::PerDomain { group, level, most } => {
                let service = self.service(group)?;
                let (members, domains) =
                    (self.group(group).members.len(), &self.cluster.levels[level.ix()].domains);
                let even = members.div_ceil(domains.len().max(1));
                match level {
                    LevelIx::NODE if most == 1 => self.partitions[group.ix()] = true,
                    // As many as an even spread allows; a partition says it once for its service.
                    _ if level != LevelIx::NODE && most as usize == even => {
                        let spread = &mut self.services[service].spread;
                        if !spread.contains(&name(level)) {
                            spread.push(name(level));
                        }
                    }
                    _ => {
                        let of = &self.group(group).name;
                        return Err(format!("at most {most} of group {of:?} in a domain"));
                    }
                }
            }
            Rule::AtLeast { group, level, least } => {
                let service = self.whole(group)?;
                self.services[service].at_least.insert(name(level), least);
            }
            Rule::AtMost { group, level, most } => {
                let service = self.whole(group)?;
                self.services[service].at_most.insert(name(level), most);
            }
            Rule::Near { group, to, level } => {
                let (service, of) = (self.whole(group)?, self.neighbour(to, level)?);
                self.services[service].near.push(of);
            }
            Rule::Apart { group, from, level } => {
                let (service, of) = (self.whole(group)?, self.neighbour(from, level)?);
                self.services[service].apart.push(of);
            }
        }
        Ok(())
    }

    fn neighbour(&self, group: GroupIx, level: LevelIx) -> Result<Neighbour, String> {
        let service = self.cluster.services[self.whole(group)?].name.clone();
        Ok(Neighbour { service, level: self.cluster.levels[level.ix()].name.clone() })
    }

    fn nodes(&mut self) -> Vec<NodeOf> {
        let node = |(position, node): (usize, &placement::Node)| NodeOf {
            name: node.name.clone(),
            state: match node.state {
                NodeState::Up => StateOf::Up,
                NodeState::Closed => StateOf::Closed,
                NodeState::Draining => StateOf::Draining,
                NodeState::Down => StateOf::Down,
            },
            domains: (self.cluster.levels.iter().filter(|level| level.name != NODE))
                .map(|level| {
                    let domain = level.domain_of[position].ix();
                    (level.name.clone(), level.domains[domain].clone())
                })
                .collect(),
            labels: BTreeMap::new(),
            capacity: (self.cluster.metrics.iter().zip(&node.capacity))
                .filter_map(|(metric, amount)| Some((metric.name.clone(), (*amount)?)))
                .collect(),
        };
        let mut nodes: Vec<NodeOf> = self.cluster.nodes.iter().enumerate().map(node).collect();
        // The nodes that a service may use are those with a label of their own: a set of nodes is one
        // label, however many services share it.
        let mut labels: BTreeMap<&[bool], String> = BTreeMap::new();
        for (service, of) in self.cluster.services.iter().zip(&mut self.services) {
            let Some(allowed) = &service.allowed else { continue };
            let next = format!("allowed_{}", labels.len());
            let label = labels.entry(allowed).or_insert(next);
            of.labels.insert(label.clone(), vec!["yes".to_owned()]);
        }
        for (allowed, label) in labels {
            for (node, _) in nodes.iter_mut().zip(allowed).filter(|(_, allowed)| **allowed) {
                node.labels.insert(label.clone(), "yes".to_owned());
            }
        }
        nodes
    }

    fn services(mut self) -> Result<Vec<ServiceOf>, Broken> {
        // Replicas of the same partition have its group; all others are alone.
        let mut partition_of = vec![None; self.cluster.replicas.len()];
        for (group, _) in self.partitions.iter().enumerate().filter(|(_, is_one)| **is_one) {
            for member in &self.cluster.groups[group].members {
                if partition_of[member.ix()].replace(group).is_some() {
                    let name = &self.cluster.replicas[member.ix()].name;
                    return Err(broken("rules", format!("replica {name:?} is in two partitions")));
                }
            }
        }
        let mut known: BTreeMap<usize, usize> = BTreeMap::new();
        for (replica, partition) in self.cluster.replicas.iter().zip(partition_of) {
            let partitions = &mut self.services[replica.service.ix()].partitions;
            let next = partitions.len();
            let at = partition.map_or(next, |group| *known.entry(group).or_insert(next));
            if at == next {
                partitions.push(Vec::new());
            }
            partitions[at].push(written(self.cluster, replica));
        }
        Ok(self.services)
    }
}

fn written(cluster: &Cluster, replica: &Replica) -> ReplicaOf {
    let name = |node: NodeIx| cluster.nodes[node.ix()].name.clone();
    let demand = cluster.metrics.iter().zip(&replica.demand);
    ReplicaOf {
        name: replica.name.clone(),
        role: match replica.role {
            Role::Primary => RoleOf::Primary,
            Role::Secondary => RoleOf::Secondary,
            Role::Instance => RoleOf::Instance,
        },
        node: replica.node.map(name),
        demand: demand
            .map(|(metric, amount): (_, &Amount)| (metric.name.clone(), *amount))
            .collect(),
        class: None,
        move_cost: Some(replica.move_cost),
    }
}

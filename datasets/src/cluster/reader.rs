//! Members of `ras-cluster/1` as a cluster: every rule of the format is checked here, whichever form the
//! members were read from.

use super::broken::{Broken, broken};
use super::history::History;
use super::limits::{MOST, sums_are_limited};
use super::schema::{ReplicaOf, Root, ServiceOf, StateOf};
use super::soft;
use placement::{
    Amount, Cluster, DomainIx, Group, GroupIx, Level, LevelIx, Metric, Node, NodeIx, NodeState,
    Objective, Replica, ReplicaIx, Rule, Service, ServiceIx,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// The level of the nodes themselves.
pub const NODE: &str = "node";

/// Demands of the past, if the members name any.
pub fn history_of(root: &Root) -> Result<Option<History>, Broken> {
    let metrics = positions("metrics", root.metrics.iter().map(|of| of.name.as_str()))?;
    let read = |of| History::read(of, &metrics, root.objective.capacity());
    root.history.as_ref().map(read).transpose()
}

/// The cluster, or the first member that breaks a rule.
pub fn cluster_of(root: &Root) -> Result<Cluster, Broken> {
    let mut cluster = Reader::new(root)?.read(root)?;
    let history = history_of(root)?;
    let is_known = |class: &str| history.as_ref().is_some_and(|of| of.classes.contains_key(class));
    for (service, of) in root.services.iter().enumerate() {
        for (partition, replicas) in of.partitions.iter().enumerate() {
            let class = |of: &ReplicaOf| of.class.as_ref().is_some_and(|class| !is_known(class));
            if let Some(replica) = replicas.iter().position(class) {
                let at = format!("services[{service}].partitions[{partition}][{replica}].class");
                return Err(broken(at, "the history has no series of this class"));
            }
        }
    }
    if let Some(capacity) = root.objective.capacity() {
        let missing = || broken("objective.failovers.capacity", "needs a history");
        let futures = history.ok_or_else(missing)?.futures(root, capacity.seed, &cluster)?;
        if let Objective::Failovers(of) = &mut cluster.objective {
            of.futures = Some(futures);
        }
    }
    Ok(cluster)
}

/// Positions by name.
struct Reader<'r> {
    metrics: HashMap<&'r str, usize>,
    nodes: HashMap<&'r str, usize>,
    levels: BTreeMap<&'r str, LevelIx>,
    services: HashMap<&'r str, usize>,
}

/// Groups of whole services, made where a rule is about one.
#[derive(Default)]
struct WholeServices {
    /// Positions of the replicas of each service.
    replicas: Vec<Range<usize>>,
    groups: BTreeMap<usize, GroupIx>,
}

impl WholeServices {
    fn group(&mut self, cluster: &mut Cluster, service: usize) -> GroupIx {
        let replicas = self.replicas[service].clone();
        *self.groups.entry(service).or_insert_with(|| {
            let name = cluster.services[service].name.clone();
            let members = replicas.map(ReplicaIx::new).collect();
            cluster.groups.push(Group { name, members });
            GroupIx::new(cluster.groups.len() - 1)
        })
    }
}

/// Positions of names, each of which may stand once.
fn positions<'r>(
    kind: &str,
    names: impl Iterator<Item = &'r str>,
) -> Result<HashMap<&'r str, usize>, Broken> {
    let mut known = HashMap::new();
    for (position, name) in names.enumerate() {
        if name.is_empty() {
            return Err(broken(format!("{kind}[{position}].name"), "is empty"));
        }
        if known.insert(name, position).is_some() {
            return Err(broken(
                format!("{kind}[{position}].name"),
                format!("{name:?} stands twice"),
            ));
        }
    }
    Ok(known)
}

impl<'r> Reader<'r> {
    fn new(root: &'r Root) -> Result<Reader<'r>, Broken> {
        let metrics = positions("metrics", root.metrics.iter().map(|of| of.name.as_str()))?;
        let nodes = positions("nodes", root.nodes.iter().map(|of| of.name.as_str()))?;
        let services = positions("services", root.services.iter().map(|of| of.name.as_str()))?;
        let named = root.nodes.iter().flat_map(|node| node.domains.keys().map(String::as_str));
        let named: BTreeSet<&str> = named.collect();
        if named.contains(NODE) {
            return Err(broken("nodes", format!("{NODE:?} is the level of the nodes themselves")));
        }
        if named.contains("") || root.nodes.iter().any(|node| node.labels.contains_key("")) {
            return Err(broken("nodes", "a level or label has no name"));
        }
        let levels = std::iter::once(NODE).chain(named);
        let levels = levels.enumerate().map(|(position, name)| (name, LevelIx::new(position)));
        Ok(Reader { metrics, nodes, levels: levels.collect(), services })
    }

    fn read(&self, root: &'r Root) -> Result<Cluster, Broken> {
        let mut cluster = Cluster {
            name: root.name.clone(),
            metrics: (root.metrics.iter())
                .map(|of| Metric { name: of.name.clone(), transient: of.transient })
                .collect(),
            levels: self.read_levels(root),
            nodes: Vec::new(),
            services: Vec::new(),
            replicas: Vec::new(),
            groups: Vec::new(),
            rules: Vec::new(),
            objective: root.objective.read(&self.metrics, &self.levels)?,
        };
        let at = |position| format!("nodes[{position}].capacity");
        for (position, node) in root.nodes.iter().enumerate() {
            let mut capacity = vec![None; root.metrics.len()];
            for (metric, amount) in self.amounts(|| at(position), &node.capacity)? {
                capacity[metric] = Some(amount);
            }
            let state = match node.state {
                StateOf::Up => NodeState::Up,
                StateOf::Closed => NodeState::Closed,
                StateOf::Draining => NodeState::Draining,
                StateOf::Down => NodeState::Down,
            };
            cluster.nodes.push(Node { name: node.name.clone(), state, capacity });
        }
        let mut whole = WholeServices::default();
        for (position, service) in root.services.iter().enumerate() {
            let first = cluster.replicas.len();
            self.service(root, position, service, &mut cluster)?;
            whole.replicas.push(first..cluster.replicas.len());
        }
        let names = cluster.replicas.iter().map(|replica| replica.name.as_str());
        positions("replicas", names)?;
        sums_are_limited(&cluster)?;
        for (position, service) in root.services.iter().enumerate() {
            let first = whole.replicas[position].start;
            soft::read(root, &self.levels, (position, service), first, &mut cluster)?;
            self.rules(position, service, &mut whole, &mut cluster)?;
        }
        Ok(cluster)
    }

    fn read_levels(&self, root: &Root) -> Vec<Level> {
        let mut levels: Vec<(&str, LevelIx)> =
            self.levels.iter().map(|(name, level)| (*name, *level)).collect();
        levels.sort_by_key(|(_, level)| *level);
        let read = |name: &str| {
            let mut domains: Vec<String> = Vec::new();
            let mut known: BTreeMap<String, usize> = BTreeMap::new();
            let mut domain_of = Vec::new();
            for node in &root.nodes {
                // A node without a domain is one of its own, under a name that no domain has.
                let domain = node.domains.get(name).map_or_else(
                    || format!("{}{}", if name == NODE { "" } else { "node " }, node.name),
                    |domain| domain.clone(),
                );
                let position = *known.entry(domain.clone()).or_insert(domains.len());
                if position == domains.len() {
                    domains.push(domain);
                }
                domain_of.push(DomainIx::new(position));
            }
            Level { name: name.to_owned(), domains, domain_of }
        };
        levels.into_iter().map(|(name, _)| read(name)).collect()
    }

    fn level(&self, at: &str, name: &str) -> Result<LevelIx, Broken> {
        let unknown = || broken(at, format!("no node has a domain of the level {name:?}"));
        self.levels.get(name).copied().ok_or_else(unknown)
    }

    fn node(&self, at: impl Fn() -> String, name: &str) -> Result<usize, Broken> {
        let unknown = || broken(at(), format!("there is no node {name:?}"));
        self.nodes.get(name).copied().ok_or_else(unknown)
    }

    fn amounts(
        &self,
        // Made for a message only: there may be millions of amounts.
        at: impl Fn() -> String,
        of: &BTreeMap<String, Amount>,
    ) -> Result<Vec<(usize, Amount)>, Broken> {
        let amount = |(name, amount): (&String, &Amount)| {
            let at = || format!("{}.{name}", at());
            let Some(metric) = self.metrics.get(name.as_str()) else {
                return Err(broken(at(), "there is no such metric"));
            };
            if !(0..=MOST).contains(amount) {
                return Err(broken(at(), format!("is {amount}; it must be from 0 to {MOST}")));
            }
            Ok((*metric, *amount))
        };
        of.iter().map(amount).collect()
    }

    fn service(
        &self,
        root: &Root,
        position: usize,
        of: &ServiceOf,
        cluster: &mut Cluster,
    ) -> Result<(), Broken> {
        let at = format!("services[{position}]");
        for (partition, replicas) in of.partitions.iter().enumerate() {
            if replicas.is_empty() {
                return Err(broken(format!("{at}.partitions[{partition}]"), "has no replica"));
            }
            let first = cluster.replicas.len();
            for (replica, it) in replicas.iter().enumerate() {
                let at = |member: &str| format!("{at}.partitions[{partition}][{replica}].{member}");
                let mut demand = vec![0; cluster.metrics.len()];
                for (metric, amount) in self.amounts(|| at("demand"), &it.demand)? {
                    demand[metric] = amount;
                }
                let node = it.node.as_ref().map(|name| self.node(|| at("node"), name));
                let move_cost = it.move_cost.unwrap_or(of.move_cost);
                if !(0.0..=1e9).contains(&move_cost) {
                    return Err(broken(at("move_cost"), "must be from 0 to 1e9"));
                }
                cluster.replicas.push(Replica {
                    name: it.name.clone(),
                    service: ServiceIx::new(position),
                    role: it.role.into(),
                    node: node.transpose()?.map(NodeIx::new),
                    demand,
                    move_cost,
                });
            }
            let of_partition: Vec<ReplicaIx> =
                (first..cluster.replicas.len()).map(ReplicaIx::new).collect();
            self.partition(&at, partition, of, of_partition, cluster)?;
        }
        let allowed = self.allowed(root, &at, of)?;
        cluster.services.push(Service { name: of.name.clone(), allowed });
        Ok(())
    }

    /// Replicas of a partition are on different nodes, and spread over domains.
    fn partition(
        &self,
        at: &str,
        partition: usize,
        of: &ServiceOf,
        members: Vec<ReplicaIx>,
        cluster: &mut Cluster,
    ) -> Result<(), Broken> {
        if members.len() < 2 {
            return Ok(());
        }
        let count = members.len();
        let group = GroupIx::new(cluster.groups.len());
        cluster.groups.push(Group { name: format!("{}/{partition}", of.name), members });
        cluster.rules.push(Rule::PerDomain { group, level: LevelIx::NODE, most: 1 });
        if let Objective::Failovers(objective) = &mut cluster.objective {
            objective.swaps.partitions.push(group);
        }
        for (position, name) in of.spread.iter().enumerate() {
            let level = self.level(&format!("{at}.spread[{position}]"), name)?;
            let domains = cluster.levels[level.ix()].domains.len().max(1);
            let most = u32::try_from(count.div_ceil(domains)).unwrap_or(u32::MAX);
            cluster.rules.push(Rule::PerDomain { group, level, most });
        }
        Ok(())
    }

    fn allowed(&self, root: &Root, at: &str, of: &ServiceOf) -> Result<Option<Vec<bool>>, Broken> {
        if of.labels.is_empty() && of.blocked_nodes.is_empty() {
            return Ok(None);
        }
        let mut allowed: Vec<bool> = root.nodes.iter().map(|node| node.has(&of.labels)).collect();
        if let Some((label, _)) = of.labels.iter().find(|(_, values)| values.is_empty()) {
            return Err(broken(format!("{at}.labels.{label}"), "has no value"));
        }
        for (position, name) in of.blocked_nodes.iter().enumerate() {
            allowed[self.node(|| format!("{at}.blocked_nodes[{position}]"), name)?] = false;
        }
        Ok(Some(allowed))
    }

    /// Rules about whole services.
    fn rules(
        &self,
        position: usize,
        of: &ServiceOf,
        whole: &mut WholeServices,
        cluster: &mut Cluster,
    ) -> Result<(), Broken> {
        let at = format!("services[{position}]");
        for (name, least) in &of.at_least {
            let level = self.level(&format!("{at}.at_least.{name}"), name)?;
            let group = whole.group(cluster, position);
            cluster.rules.push(Rule::AtLeast { group, level, least: *least });
        }
        for (name, most) in &of.at_most {
            let level = self.level(&format!("{at}.at_most.{name}"), name)?;
            let group = whole.group(cluster, position);
            cluster.rules.push(Rule::AtMost { group, level, most: *most });
        }
        for (member, neighbours) in [("near", &of.near), ("apart", &of.apart)] {
            for (number, neighbour) in neighbours.iter().enumerate() {
                let at = format!("{at}.{member}[{number}]");
                let level = self.level(&format!("{at}.level"), &neighbour.level)?;
                let Some(other) = self.services.get(neighbour.service.as_str()) else {
                    let rule = format!("there is no service {:?}", neighbour.service);
                    return Err(broken(format!("{at}.service"), rule));
                };
                let (group, to) = (whole.group(cluster, position), whole.group(cluster, *other));
                if group == to {
                    return Err(broken(format!("{at}.service"), "a service is always near itself"));
                }
                cluster.rules.push(match member {
                    "near" => Rule::Near { group, to, level },
                    _ => Rule::Apart { group, from: to, level },
                });
            }
        }
        Ok(())
    }
}

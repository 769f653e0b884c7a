//! `ras-cluster/1`: a cluster as one JSON file, with the members that `schema` names.
//!
//! Amounts are whole numbers in the smallest unit of their metric. A service lists its replicas by
//! partition; replicas of a partition never share a node.

use super::ClusterError;
use super::broken::{Broken, broken, not_read};
use super::limits::sums_are_limited;
use super::reservation::nodes_of;
use super::schema::{NodeOf, RoleOf, Root, ServiceOf, StateOf};
use fleet::{RegionSnapshot, ReservationIx};
use placement::{
    Amount, Cluster, DomainIx, Group, GroupIx, Level, LevelIx, Metric, Node, NodeIx, NodeState,
    Replica, ReplicaIx, Role, Rule, Service, ServiceIx,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// The format.
pub const CLUSTER_FORMAT: &str = "ras-cluster/1";
/// The largest amount that is read.
const MOST: Amount = 1_000_000_000_000_000;
/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// Reads a cluster.
pub fn read(file: &Path) -> Result<Cluster, ClusterError> {
    read_file(file, |text| parse(text, own_nodes))
}

/// Reads a cluster whose nodes are the servers of a reservation: the file has `hardware_types` in
/// place of nodes.
pub fn read_on(
    file: &Path,
    snapshot: &RegionSnapshot,
    reservation: ReservationIx,
) -> Result<Cluster, ClusterError> {
    read_file(file, |text| parse(text, |root| nodes_of(snapshot, reservation, root)))
}

fn read_file(
    file: &Path,
    parse: impl FnOnce(&[u8]) -> Result<Cluster, Broken>,
) -> Result<Cluster, ClusterError> {
    let length = fs::metadata(file).map_err(ClusterError::file(file))?.len();
    let rule = |at: &str, rule: String| ClusterError::Member {
        file: file.to_owned(),
        at: at.to_owned(),
        rule,
    };
    if length > LARGEST {
        return Err(rule("the file", format!("has {length} bytes; at most {LARGEST} are read")));
    }
    let text = fs::read(file).map_err(ClusterError::file(file))?;
    parse(&text).map_err(|(at, of)| rule(&at, of))
}

/// Parses a file; `nodes` completes the nodes or refuses them.
fn parse(
    text: &[u8],
    nodes: impl FnOnce(&mut Root) -> Result<(), Broken>,
) -> Result<Cluster, Broken> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let mut root: Root =
        serde_path_to_error::deserialize(&mut json).map_err(|error| not_read(&error))?;
    json.end().map_err(|error| ("the file".to_owned(), error.to_string()))?;
    if root.format != CLUSTER_FORMAT {
        return Err(broken(
            "format",
            format!("is {:?}; this reads {CLUSTER_FORMAT:?}", root.format),
        ));
    }
    nodes(&mut root)?;
    Reader::new(&root)?.read(&root)
}

fn own_nodes(root: &mut Root) -> Result<(), Broken> {
    match root.hardware_types.is_empty() {
        true => Ok(()),
        false => Err(broken("hardware_types", "is for the servers of a reservation; name nodes")),
    }
}

/// Positions by name.
struct Reader<'r> {
    metrics: BTreeMap<&'r str, usize>,
    nodes: BTreeMap<&'r str, usize>,
    levels: BTreeMap<&'r str, LevelIx>,
    services: BTreeMap<&'r str, usize>,
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
) -> Result<BTreeMap<&'r str, usize>, Broken> {
    let mut known = BTreeMap::new();
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
        for (position, node) in root.nodes.iter().enumerate() {
            let at = format!("nodes[{position}].capacity");
            let mut capacity = vec![None; root.metrics.len()];
            for (metric, amount) in self.amounts(&at, &node.capacity)? {
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

    fn node(&self, at: &str, name: &str) -> Result<usize, Broken> {
        let unknown = || broken(at, format!("there is no node {name:?}"));
        self.nodes.get(name).copied().ok_or_else(unknown)
    }

    fn amounts(
        &self,
        at: &str,
        of: &BTreeMap<String, Amount>,
    ) -> Result<Vec<(usize, Amount)>, Broken> {
        let amount = |(name, amount): (&String, &Amount)| {
            let at = format!("{at}.{name}");
            let Some(metric) = self.metrics.get(name.as_str()) else {
                return Err(broken(at, "there is no such metric"));
            };
            if !(0..=MOST).contains(amount) {
                return Err(broken(at, format!("is {amount}; it must be from 0 to {MOST}")));
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
            let first = cluster.replicas.len();
            for (replica, it) in replicas.iter().enumerate() {
                let at = format!("{at}.partitions[{partition}][{replica}]");
                let mut demand = vec![0; cluster.metrics.len()];
                for (metric, amount) in self.amounts(&format!("{at}.demand"), &it.demand)? {
                    demand[metric] = amount;
                }
                let node = it.node.as_ref().map(|name| self.node(&format!("{at}.node"), name));
                let move_cost = it.move_cost.unwrap_or(of.move_cost);
                if !(0.0..=1e9).contains(&move_cost) {
                    return Err(broken(format!("{at}.move_cost"), "must be from 0 to 1e9"));
                }
                cluster.replicas.push(Replica {
                    name: it.name.clone(),
                    service: ServiceIx::new(position),
                    role: match it.role {
                        RoleOf::Primary => Role::Primary,
                        RoleOf::Secondary => Role::Secondary,
                        RoleOf::Instance => Role::Instance,
                    },
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
        for name in &of.spread {
            let level = self.level(&format!("{at}.spread"), name)?;
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
        let fits = |node: &NodeOf| {
            of.labels.iter().all(|(label, values)| {
                node.labels.get(label).is_some_and(|value| values.contains(value))
            })
        };
        let mut allowed: Vec<bool> = root.nodes.iter().map(fits).collect();
        for name in &of.blocked_nodes {
            allowed[self.node(&format!("{at}.blocked_nodes"), name)?] = false;
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
            let level = self.level(&format!("{at}.at_least"), name)?;
            let group = whole.group(cluster, position);
            cluster.rules.push(Rule::AtLeast { group, level, least: *least });
        }
        for (name, most) in &of.at_most {
            let level = self.level(&format!("{at}.at_most"), name)?;
            let group = whole.group(cluster, position);
            cluster.rules.push(Rule::AtMost { group, level, most: *most });
        }
        for (member, neighbours) in [("near", &of.near), ("apart", &of.apart)] {
            for neighbour in neighbours {
                let at = format!("{at}.{member}");
                let level = self.level(&at, &neighbour.level)?;
                let Some(other) = self.services.get(neighbour.service.as_str()) else {
                    let rule = format!("there is no service {:?}", neighbour.service);
                    return Err(broken(at, rule));
                };
                let (group, to) = (whole.group(cluster, position), whole.group(cluster, *other));
                if group == to {
                    return Err(broken(at, "a service is always near itself"));
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

/// The level of the nodes themselves.
const NODE: &str = "node";

#[cfg(test)]
mod tests {
    use super::{own_nodes, parse};
    use placement::{Limits, search};
    use serde_json::{Value, json};

    fn whole() -> Value {
        json!({
            "format": "ras-cluster/1",
            "name": "orders",
            "metrics": [{"name": "cpu"}, {"name": "disk", "transient": true}],
            "nodes": [
                {"name": "n1", "domains": {"rack": "r1"}, "labels": {"disk": "ssd"}, "capacity": {"cpu": 100}},
                {"name": "n2", "domains": {"rack": "r1"}, "labels": {"disk": "ssd"}, "capacity": {"cpu": 100}},
                {"name": "n3", "domains": {"rack": "r2"}, "labels": {"disk": "hdd"}, "capacity": {"cpu": 100}},
                {"name": "n4", "labels": {"disk": "ssd"}, "capacity": {"cpu": 100}}
            ],
            "services": [
                {"name": "db", "spread": ["rack"], "labels": {"disk": ["ssd"]}, "partitions": [[
                    {"name": "db-0", "role": "primary", "node": "n1", "demand": {"cpu": 60, "disk": 7}},
                    {"name": "db-1", "role": "secondary", "node": "n2", "demand": {"cpu": 60}}
                ]]},
                {"name": "api", "near": [{"service": "db", "level": "rack"}],
                 "apart": [{"service": "batch", "level": "node"}],
                 "partitions": [[{"name": "api-0", "demand": {"cpu": 30}}]]},
                {"name": "batch", "partitions": [[{"name": "batch-0", "node": "n1", "demand": {"cpu": 5}}]]}
            ]
        })
    }

    #[test]
    fn rules_of_a_file_hold_in_the_answer() {
        let cluster = parse(whole().to_string().as_bytes(), own_nodes).expect("it is whole");
        let found = search(&cluster, &Limits::rounds(1));
        assert!(found.violations.is_empty(), "{:?}", found.violations);
        let node = |name: &str| {
            let at = cluster.replicas.iter().position(|replica| replica.name == name);
            let node = found.assignment[at.expect("a replica")].expect("a node");
            cluster.nodes[node.ix()].name.as_str()
        };
        // One of the two leaves rack r1 for the only other node with an SSD.
        assert_eq!(found.value.total, 1.0);
        assert!([node("db-0"), node("db-1")].contains(&"n4"));
        assert_ne!(node("api-0"), node("batch-0"));
    }

    #[test]
    fn amounts_that_add_up_to_too_much_are_refused() {
        let most = 1_000_000_000_000_000_i64;
        let replica = |at: usize| json!([{"name": format!("r{at}"), "demand": {"cpu": most}}]);
        let mut file = whole();
        file["services"][2]["partitions"] = (0..5_000).map(replica).collect();
        let (at, rule) = parse(file.to_string().as_bytes(), own_nodes).expect_err("too much");
        assert_eq!(at, "metric \"cpu\"");
        assert!(rule.contains("add up to more than"), "{rule}");
    }

    #[test]
    fn broken_files_are_refused_with_member_and_rule() {
        let broken = [
            ("/format", json!("ras-cluster/9"), "format", "this reads \"ras-cluster/1\""),
            ("/nodes/1/name", json!("n1"), "nodes[1].name", "stands twice"),
            ("/nodes/0/capacity/cpu", json!(-1), "nodes[0].capacity.cpu", "must be from 0"),
            ("/nodes/0/capacity/cpu", json!(0.5), "nodes[0].capacity.cpu", "invalid type"),
            ("/services/0/spread/0", json!("row"), "services[0].spread", "no node has a domain"),
            (
                "/services/0/partitions/0/0/node",
                json!("n9"),
                "services[0].partitions[0][0].node",
                "no node",
            ),
            ("/services/0/partitions/0/1/name", json!("db-0"), "replicas[1].name", "stands twice"),
            ("/services/1/near/0/service", json!("x"), "services[1].near", "no service"),
            ("/services/1/near/0/service", json!("api"), "services[1].near", "near itself"),
            ("/services/2/colour", json!(1), "services[2].colour", "unknown field"),
        ];
        for (pointer, value, at, rule) in broken {
            let mut file = whole();
            match file.pointer_mut(pointer) {
                Some(member) => *member = value,
                None => file["services"][2]["colour"] = value,
            }
            let (found_at, found_rule) =
                parse(file.to_string().as_bytes(), own_nodes).expect_err("it breaks a rule");
            assert_eq!(found_at, at);
            assert!(found_rule.contains(rule), "{found_rule}");
        }
    }
}

//! Nodes and pods of Kubernetes as a cluster: `kubectl get nodes,pods -A -o json`.
//!
//! Metrics are the resources that pods request: milli-cores of `cpu`, bytes of `memory`, numbers of
//! anything else, and `pods`. A service is a controller with its namespace. Required affinities,
//! selectors, taints and hard topology spread become rules; what cannot be said is a note.

mod objects;
mod pod;
mod quantity;
mod rules;
mod scheduling;
#[cfg(test)]
mod tests;

use super::ClusterError;
use super::broken::Broken;
use super::limits::sums_are_limited;
use fleet::number::counted;
use objects::{Kind, List, Node};
use placement::{
    Amount, Cluster, DomainIx, Failovers, Level, Metric, NodeIx, NodeState, Objective, Replica,
    Role, Service, ServiceIx,
};
use pod::{Listed, PODS, amount};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A cluster, and what of the input it leaves out.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The cluster.
    pub cluster: Cluster,
    /// What is not in it, a sentence each.
    pub notes: Vec<String>,
}

/// The label that names the node itself.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// Reads nodes and pods as `kubectl get nodes,pods -A -o json` prints them.
pub fn read(file: &Path) -> Result<Imported, ClusterError> {
    let text = fs::read(file).map_err(ClusterError::file(file))?;
    parse(&text).map_err(|(at, rule)| ClusterError::Member { file: file.to_owned(), at, rule })
}

/// Whether a JSON file looks like the output of `kubectl`.
pub fn is_list(file: &Path) -> bool {
    let list = fs::read(file).ok().and_then(|text| serde_json::from_slice::<Kind>(&text).ok());
    list.is_some_and(|of| of.kind == "List")
}

fn parse(text: &[u8]) -> Result<Imported, Broken> {
    let list: List =
        serde_json::from_slice(text).map_err(|error| ("the file".to_owned(), error.to_string()))?;
    if list.kind != "List" {
        return Err(("kind".to_owned(), format!("is {:?}; this reads a List", list.kind)));
    }
    let (mut nodes, mut pods) = (Vec::new(), Vec::new());
    let mut others = BTreeSet::new();
    for (position, item) in list.items.iter().enumerate() {
        let kind: Kind = member(position, item)?;
        match kind.kind.as_str() {
            "Node" => nodes.push(member(position, item)?),
            "Pod" => pods.push(Listed { position, pod: member(position, item)?, item }),
            other => {
                others.insert(other.to_owned());
            }
        }
    }
    if nodes.is_empty() {
        return Err(("items".to_owned(), "there is no node".to_owned()));
    }
    let mut reader = Reader::new(nodes)?;
    if !others.is_empty() {
        let kinds: Vec<String> = others.into_iter().collect();
        reader.notes.push(format!("objects of these kinds are not read: {}", kinds.join(", ")));
    }
    reader.read(&pods)
}

fn member<T: DeserializeOwned>(position: usize, item: &Value) -> Result<T, Broken> {
    serde_path_to_error::deserialize(item.clone())
        .map_err(|error| (format!("items[{position}].{}", error.path()), error.inner().to_string()))
}

/// Nodes, and what is found on the way.
struct Reader {
    nodes: Vec<Node>,
    by_name: BTreeMap<String, usize>,
    notes: Vec<String>,
}

impl Reader {
    fn new(nodes: Vec<Node>) -> Result<Reader, Broken> {
        let mut by_name = BTreeMap::new();
        for (position, node) in nodes.iter().enumerate() {
            if by_name.insert(node.metadata.name.clone(), position).is_some() {
                return Err((
                    "items".to_owned(),
                    format!("two nodes are {:?}", node.metadata.name),
                ));
            }
        }
        Ok(Reader { nodes, by_name, notes: Vec::new() })
    }

    fn node(&self, of: &Listed) -> Result<Option<usize>, Broken> {
        let Some(name) = &of.pod.spec.node_name else { return Ok(None) };
        let unknown = || of.broken("spec.nodeName", format!("there is no node {name:?}"));
        self.by_name.get(name).copied().map(Some).ok_or_else(unknown)
    }

    fn read(mut self, pods: &[Listed]) -> Result<Imported, Broken> {
        let running: Vec<&Listed> = pods.iter().filter(|of| !of.is_over()).collect();
        let (fixed, movable): (Vec<&Listed>, Vec<&Listed>) =
            running.into_iter().partition(|of| of.is_fixed());
        let metrics = metrics(&movable)?;
        let levels = self.levels(&movable);
        let mut cluster = Cluster {
            name: "kubernetes".to_owned(),
            levels: levels.into_values().collect(),
            nodes: self.read_nodes(&metrics, &fixed)?,
            services: Vec::new(),
            replicas: Vec::new(),
            groups: Vec::new(),
            rules: Vec::new(),
            objective: Objective::Failovers(Failovers::default()),
            metrics: (metrics.iter())
                .map(|name| Metric { name: name.clone(), transient: false })
                .collect(),
        };
        let alike = self.read_pods(&movable, &metrics, &mut cluster)?;
        sums_are_limited(&cluster)?;
        rules::read(&movable, &alike, &self.nodes, &mut cluster, &mut self.notes)?;
        if !fixed.is_empty() {
            self.notes.push(format!(
                "{} of daemon sets, of nodes themselves or about to end: their requests are taken off the \
                 capacity of their nodes",
                counted(fixed.len(), "pod")
            ));
        }
        let tied = |of: &&&Listed| {
            let volumes = of.item["spec"]["volumes"].as_array();
            volumes
                .is_some_and(|all| all.iter().any(|of| of.get("persistentVolumeClaim").is_some()))
        };
        if let tied @ 1.. = movable.iter().filter(tied).count() {
            self.notes.push(format!(
                "{} with volumes, whose nodes are not known here",
                counted(tied, "pod")
            ));
        }
        Ok(Imported { cluster, notes: self.notes })
    }

    fn read_nodes(
        &self,
        metrics: &[String],
        fixed: &[&Listed],
    ) -> Result<Vec<placement::Node>, Broken> {
        let mut taken: Vec<BTreeMap<String, Amount>> = vec![BTreeMap::new(); self.nodes.len()];
        for pod in fixed {
            let Some(node) = self.node(pod)? else { continue };
            for (name, amount) in pod.requests()? {
                let sum = taken[node].entry(name).or_default();
                *sum = sum.saturating_add(amount);
            }
        }
        let read = |(node, taken): (&Node, &BTreeMap<String, Amount>)| {
            let capacity = |metric: &String| {
                let none = Value::from(0);
                let value = node.status.allocatable.get(metric).unwrap_or(&none);
                let all = amount(metric, value, false).map_err(|rule| {
                    (format!("node {:?}: status.allocatable", node.metadata.name), rule)
                })?;
                Ok(Some((all - taken.get(metric).copied().unwrap_or(0)).max(0)))
            };
            let mut conditions = node.status.conditions.iter();
            let is_ready =
                conditions.find(|of| of.kind == "Ready").is_none_or(|of| of.status == "True");
            let state = match (is_ready, node.spec.unschedulable) {
                (false, _) => NodeState::Down,
                (true, true) => NodeState::Closed,
                (true, false) => NodeState::Up,
            };
            let capacity = metrics.iter().map(capacity).collect::<Result<_, Broken>>()?;
            Ok(placement::Node { name: node.metadata.name.clone(), state, capacity })
        };
        self.nodes.iter().zip(&taken).map(read).collect()
    }

    /// The nodes themselves, and the labels that pods name as topology.
    fn levels(&self, pods: &[&Listed]) -> BTreeMap<usize, Level> {
        let mut keys = BTreeSet::new();
        for of in pods {
            let affinity = &of.pod.spec.affinity;
            let terms = affinity.pod_affinity.required.iter();
            let terms = terms.chain(&affinity.pod_anti_affinity.required);
            let preferred = affinity.pod_anti_affinity.preferred.iter();
            let terms = terms.chain(preferred.map(|of| &of.pod_affinity_term));
            keys.extend(terms.map(|term| term.topology_key.as_str()));
            let spread = of.pod.spec.topology_spread_constraints.iter();
            keys.extend(spread.map(|of| of.topology_key.as_str()));
        }
        keys.remove(HOSTNAME);
        let names = self.nodes.iter().map(|node| node.metadata.name.clone());
        let of_nodes = Level {
            name: "node".to_owned(),
            domains: names.collect(),
            domain_of: (0..self.nodes.len()).map(DomainIx::new).collect(),
        };
        let by_label = keys.into_iter().map(|key| self.level(key));
        std::iter::once(of_nodes).chain(by_label).enumerate().collect()
    }

    fn level(&self, key: &str) -> Level {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut level = Level { name: key.to_owned(), domains: Vec::new(), domain_of: Vec::new() };
        for node in &self.nodes {
            let value = node.metadata.labels.get(key).cloned();
            let name = value.unwrap_or_else(|| format!("node {}", node.metadata.name));
            let position = *known.entry(name.clone()).or_insert(level.domains.len());
            if position == level.domains.len() {
                level.domains.push(name);
            }
            level.domain_of.push(DomainIx::new(position));
        }
        level
    }

    /// Makes replicas and services; returns the sets of pods that are alike, by position.
    fn read_pods(
        &mut self,
        pods: &[&Listed],
        metrics: &[String],
        cluster: &mut Cluster,
    ) -> Result<Vec<Vec<usize>>, Broken> {
        let mut alike: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
        let mut names = BTreeSet::new();
        for (position, of) in pods.iter().enumerate() {
            if !names.insert(of.name()) {
                return Err(of.broken("metadata.name", format!("two pods are {}", of.name())));
            }
            alike.entry((of.controller(), of.constraints())).or_default().push(position);
        }
        let mut replicas: Vec<Option<Replica>> = vec![None; pods.len()];
        let mut stay = 0;
        for ((controller, _), members) in &alike {
            let first = pods[members[0]];
            let mut fits = Vec::new();
            for node in &self.nodes {
                let fit = scheduling::fit(&first.pod.spec, node);
                fits.push(fit.map_err(|rule| first.broken("spec.affinity", rule))?);
            }
            // A pod that runs where it could not be scheduled now may stay: it is a service of its own.
            let mut services: BTreeMap<Option<usize>, ServiceIx> = BTreeMap::new();
            for member in members {
                let of = pods[*member];
                let node = self.node(of)?;
                let beyond = node.filter(|node| !fits[*node].schedulable && fits[*node].may_stay);
                stay += usize::from(beyond.is_some());
                let service = *services.entry(beyond).or_insert_with(|| {
                    let allowed: Vec<bool> = (fits.iter().enumerate())
                        .map(|(n, fit)| fit.schedulable || beyond == Some(n))
                        .collect();
                    let allowed = Some(allowed).filter(|all| all.contains(&false));
                    cluster.services.push(Service { name: controller.clone(), allowed });
                    ServiceIx::new(cluster.services.len() - 1)
                });
                let requests = of.requests()?;
                let demand = |metric: &String| requests.get(metric).copied().unwrap_or(0);
                replicas[*member] = Some(Replica {
                    name: of.name(),
                    service,
                    role: Role::Instance,
                    node: node.map(NodeIx::new),
                    demand: metrics.iter().map(demand).collect(),
                    move_cost: 1.0,
                });
            }
        }
        cluster.replicas = replicas.into_iter().flatten().collect();
        if stay > 0 {
            let pods = counted(stay, "pod");
            self.notes.push(format!("{pods} where they could not be scheduled now; they may stay"));
        }
        Ok(alike.into_values().collect())
    }
}

/// The resources that pods request.
fn metrics(pods: &[&Listed]) -> Result<Vec<String>, Broken> {
    let mut names = BTreeSet::from([PODS.to_owned()]);
    for of in pods {
        names.extend(of.requests()?.into_keys());
    }
    Ok(names.into_iter().collect())
}

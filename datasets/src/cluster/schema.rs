//! Members of `ras-cluster/1`.

use super::objective::ObjectiveOf;
use placement::{Amount, Role};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    pub format: String,
    pub name: String,
    pub metrics: Vec<MetricOf>,
    #[serde(default)]
    pub nodes: Vec<NodeOf>,
    /// Capacity by metric of a server, by hardware type: in place of nodes, for the servers of a
    /// reservation.
    #[serde(default)]
    pub hardware_types: BTreeMap<String, BTreeMap<String, Amount>>,
    pub services: Vec<ServiceOf>,
    #[serde(default)]
    pub objective: ObjectiveOf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricOf {
    pub name: String,
    /// Whether a replica that moves needs it on both nodes.
    #[serde(default)]
    pub transient: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeOf {
    pub name: String,
    #[serde(default)]
    pub state: StateOf,
    /// Domain by level: fault domain, rack, datacenter, or any other name.
    #[serde(default)]
    pub domains: BTreeMap<String, String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Capacity by metric; a metric that is not named has no limit.
    pub capacity: BTreeMap<String, Amount>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateOf {
    #[default]
    Up,
    Closed,
    Draining,
    Down,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceOf {
    pub name: String,
    /// Cost of moving a replica that names none.
    #[serde(default = "one")]
    pub move_cost: f64,
    /// Nodes must have one of the values of each label.
    #[serde(default)]
    pub labels: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub blocked_nodes: Vec<String>,
    /// Levels over whose domains the replicas of a partition are spread: one in a domain, or as
    /// evenly as their number allows.
    #[serde(default)]
    pub spread: Vec<String>,
    /// Least and largest number of domains that the service uses, by level.
    #[serde(default)]
    pub at_least: BTreeMap<String, u32>,
    #[serde(default)]
    pub at_most: BTreeMap<String, u32>,
    #[serde(default)]
    pub near: Vec<Neighbour>,
    #[serde(default)]
    pub apart: Vec<Neighbour>,
    /// Nodes that replicas should be on.
    #[serde(default)]
    pub preferred: Vec<PreferredOf>,
    /// Levels over whose domains the replicas of a partition should be spread evenly.
    #[serde(default)]
    pub spread_softly: Vec<SpreadOf>,
    pub partitions: Vec<Vec<ReplicaOf>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreferredOf {
    /// Nodes have one of the values of each label.
    pub labels: BTreeMap<String, Vec<String>>,
    /// Only replicas of this role count.
    pub role: Option<RoleOf>,
    /// Cost of a replica elsewhere, in failovers.
    pub weight: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadOf {
    pub level: String,
    /// Cost of a replica above the even share of its domain, in failovers.
    pub weight: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbour {
    pub service: String,
    pub level: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicaOf {
    pub name: String,
    #[serde(default)]
    pub role: RoleOf,
    /// Its node today; a replica without one is new.
    pub node: Option<String>,
    #[serde(default)]
    pub demand: BTreeMap<String, Amount>,
    pub move_cost: Option<f64>,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleOf {
    Primary,
    Secondary,
    #[default]
    Instance,
}

impl NodeOf {
    /// Whether it has one of the values of each label.
    pub fn has(&self, labels: &BTreeMap<String, Vec<String>>) -> bool {
        labels.iter().all(|(label, values)| {
            self.labels.get(label).is_some_and(|value| values.contains(value))
        })
    }
}

impl From<RoleOf> for Role {
    fn from(of: RoleOf) -> Role {
        match of {
            RoleOf::Primary => Role::Primary,
            RoleOf::Secondary => Role::Secondary,
            RoleOf::Instance => Role::Instance,
        }
    }
}

fn one() -> f64 {
    1.0
}

//! Members of `ras-cluster/1`.

use super::objective::ObjectiveOf;
use placement::{Amount, Role};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The format.
pub const CLUSTER_FORMAT: &str = "ras-cluster/1";

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    pub format: String,
    pub name: String,
    pub metrics: Vec<MetricOf>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeOf>,
    /// Capacity by metric of a server, by hardware type: in place of nodes, for the servers of a
    /// reservation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hardware_types: BTreeMap<String, BTreeMap<String, Amount>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceOf>,
    /// Demands of the past.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryOf>,
    #[serde(default)]
    pub objective: ObjectiveOf,
}

/// Demands of the past, by class of replicas.
#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryOf {
    /// Minutes from one demand of a series to the next.
    pub step_minutes: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<SeriesOf>,
}

/// The demand of a replica of a class over time.
#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesOf {
    pub class: String,
    /// Unique in the class.
    pub name: String,
    /// Demand at each step, by metric; lists of the same length.
    pub demand: BTreeMap<String, Vec<Amount>>,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MetricOf {
    pub name: String,
    /// Whether a replica that moves needs it on both nodes.
    #[serde(default)]
    pub transient: bool,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NodeOf {
    pub name: String,
    #[serde(default)]
    pub state: StateOf,
    /// Domain by level: fault domain, rack, datacenter, or any other name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Capacity by metric; a metric that is not named has no limit.
    pub capacity: BTreeMap<String, Amount>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StateOf {
    #[default]
    Up,
    Closed,
    Draining,
    Down,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceOf {
    pub name: String,
    /// Cost of moving a replica that names none.
    #[serde(default = "one")]
    pub move_cost: f64,
    /// Nodes must have one of the values of each label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_nodes: Vec<String>,
    /// Levels over whose domains the replicas of a partition are spread: one in a domain, or as
    /// evenly as their number allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<String>,
    /// Least and largest number of domains that the service uses, by level.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at_least: BTreeMap<String, u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at_most: BTreeMap<String, u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Neighbour>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<Neighbour>,
    /// Nodes that replicas should be on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferred: Vec<PreferredOf>,
    /// Levels over whose domains the replicas of a partition should be spread evenly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread_softly: Vec<SpreadOf>,
    pub partitions: Vec<Vec<ReplicaOf>>,
}

impl ServiceOf {
    /// A service without replicas and rules.
    pub fn named(name: &str) -> ServiceOf {
        ServiceOf {
            name: name.to_owned(),
            move_cost: one(),
            labels: BTreeMap::new(),
            blocked_nodes: Vec::new(),
            spread: Vec::new(),
            at_least: BTreeMap::new(),
            at_most: BTreeMap::new(),
            near: Vec::new(),
            apart: Vec::new(),
            preferred: Vec::new(),
            spread_softly: Vec::new(),
            partitions: Vec::new(),
        }
    }
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PreferredOf {
    /// Nodes have one of the values of each label.
    pub labels: BTreeMap<String, Vec<String>>,
    /// Only replicas of this role count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleOf>,
    /// Cost of a replica elsewhere, in failovers.
    pub weight: f64,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadOf {
    pub level: String,
    /// Cost of a replica above the even share of its domain, in failovers.
    pub weight: f64,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbour {
    pub service: String,
    pub level: String,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicaOf {
    pub name: String,
    #[serde(default)]
    pub role: RoleOf,
    /// Its node today; a replica without one is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub demand: BTreeMap<String, Amount>,
    /// The class whose history tells of its demand in future; without one it is as it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub move_cost: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
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

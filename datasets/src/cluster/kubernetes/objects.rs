//! The members of nodes and pods that placement depends on, as the Kubernetes API names them.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// `kind: List`, as `kubectl get -o json` prints it.
#[derive(Deserialize)]
pub struct List {
    pub kind: String,
    pub items: Vec<Value>,
}

#[derive(Deserialize)]
pub struct Kind {
    pub kind: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub owner_references: Vec<Owner>,
    pub deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
pub struct Owner {
    pub kind: String,
    pub name: String,
    #[serde(default)]
    pub controller: bool,
}

#[derive(Deserialize)]
pub struct Node {
    pub metadata: Metadata,
    #[serde(default)]
    pub spec: NodeSpec,
    pub status: NodeStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct NodeSpec {
    pub unschedulable: bool,
    pub taints: Vec<Taint>,
}

#[derive(Deserialize)]
pub struct Taint {
    pub key: String,
    #[serde(default)]
    pub value: String,
    pub effect: String,
}

#[derive(Deserialize)]
pub struct NodeStatus {
    pub allocatable: BTreeMap<String, Value>,
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

#[derive(Deserialize)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
}

#[derive(Deserialize)]
pub struct Pod {
    pub metadata: Metadata,
    pub spec: PodSpec,
    #[serde(default)]
    pub status: PodStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct PodStatus {
    pub phase: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    pub node_name: Option<String>,
    pub containers: Vec<Container>,
    pub init_containers: Vec<Container>,
    pub overhead: BTreeMap<String, Value>,
    pub node_selector: BTreeMap<String, String>,
    pub affinity: Affinity,
    pub tolerations: Vec<Toleration>,
    pub topology_spread_constraints: Vec<TopologySpread>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    pub resources: Resources,
    /// `Always`: a sidecar, which runs as long as the pod.
    pub restart_policy: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Resources {
    pub requests: BTreeMap<String, Value>,
}

#[derive(Deserialize, Default, PartialEq)]
#[serde(default)]
pub struct Toleration {
    pub key: String,
    pub operator: String,
    pub value: String,
    pub effect: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    pub node_affinity: NodeAffinity,
    pub pod_affinity: PodAffinity,
    pub pod_anti_affinity: PodAffinity,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: Vec<PreferredNodes>,
}

#[derive(Deserialize)]
pub struct PreferredNodes {
    /// From 1 to 100.
    pub weight: u8,
    pub preference: NodeSelectorTerm,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    pub match_expressions: Vec<Requirement>,
    pub match_fields: Vec<Requirement>,
}

/// A requirement on a label.
#[derive(Deserialize)]
pub struct Requirement {
    pub key: String,
    pub operator: String,
    #[serde(default)]
    pub values: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct PodAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Vec<PodAffinityTerm>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: Vec<PreferredPods>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreferredPods {
    /// From 1 to 100.
    pub weight: u8,
    pub pod_affinity_term: PodAffinityTerm,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodAffinityTerm {
    pub label_selector: Option<LabelSelector>,
    pub topology_key: String,
    #[serde(default)]
    pub namespaces: Vec<String>,
    pub namespace_selector: Option<LabelSelector>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    pub match_labels: BTreeMap<String, String>,
    pub match_expressions: Vec<Requirement>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpread {
    pub max_skew: u32,
    pub topology_key: String,
    pub when_unsatisfiable: String,
    pub label_selector: Option<LabelSelector>,
}

//! A pod of the list.

use super::objects::{Pod, PodSpec};
use super::quantity;
use crate::cluster::broken::Broken;
use placement::Amount;
use serde_json::Value;
use std::collections::BTreeMap;

/// The resource that each pod needs one of.
pub const PODS: &str = "pods";
/// Pods that are made by the node itself.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// A pod, and its position in the list.
pub struct Listed<'v> {
    pub position: usize,
    pub pod: Pod,
    pub item: &'v Value,
}

impl Listed<'_> {
    pub fn broken(&self, member: &str, rule: String) -> Broken {
        (format!("items[{}].{member}", self.position), rule)
    }

    pub fn name(&self) -> String {
        format!("{}/{}", self.pod.metadata.namespace, self.pod.metadata.name)
    }

    /// Whether the node makes it, a daemon set puts one on each node, or it ends.
    pub fn is_fixed(&self) -> bool {
        let of = &self.pod.metadata;
        let daemon = of.owner_references.iter().any(|owner| owner.kind == "DaemonSet");
        daemon || of.annotations.contains_key(MIRROR) || of.deletion_timestamp.is_some()
    }

    /// Whether it runs no more.
    pub fn is_over(&self) -> bool {
        matches!(self.pod.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Namespace and controller; the deployment of a replica set that carries its hash.
    pub fn controller(&self) -> String {
        let of = &self.pod.metadata;
        let Some(owner) = of.owner_references.iter().find(|owner| owner.controller) else {
            return self.name();
        };
        let hash = of.labels.get("pod-template-hash").filter(|_| owner.kind == "ReplicaSet");
        let deployment = hash.and_then(|hash| owner.name.strip_suffix(hash)?.strip_suffix('-'));
        format!("{}/{}", of.namespace, deployment.unwrap_or(&owner.name))
    }

    /// The members that say where it may run: pods of a controller with equal ones are alike.
    pub fn constraints(&self) -> String {
        let spec = &self.item["spec"];
        let members = ["affinity", "nodeSelector", "tolerations", "topologySpreadConstraints"];
        let text: Vec<String> = members.iter().map(|member| spec[*member].to_string()).collect();
        format!("{} {}", text.join(" "), Value::from_iter(self.pod.metadata.labels.clone()))
    }

    pub fn requests(&self) -> Result<BTreeMap<String, Amount>, Broken> {
        let rule = |rule| self.broken("spec", rule);
        requests(&self.pod.spec).map_err(rule)
    }
}

/// The amount of a resource, in its smallest unit.
pub fn amount(resource: &str, value: &Value, up: bool) -> Result<Amount, String> {
    let scale = if resource == "cpu" { 1_000.0 } else { 1.0 };
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => return Err(format!("{resource}: {other} is not a quantity")),
    };
    quantity::read(&text, scale, up).map_err(|rule| format!("{resource}: {rule}"))
}

/// Sums are limited once all pods are read.
fn add(name: String, amount: Amount, sum: &mut BTreeMap<String, Amount>) {
    let sum = sum.entry(name).or_default();
    *sum = sum.saturating_add(amount);
}

/// What a pod requests: its containers together, or what one of its init containers needs beside the
/// sidecars before it, if that is more; and the overhead of its runtime.
fn requests(spec: &PodSpec) -> Result<BTreeMap<String, Amount>, String> {
    let mut sum: BTreeMap<String, Amount> = BTreeMap::new();
    let mut most: BTreeMap<String, Amount> = BTreeMap::new();
    let read = |of: &BTreeMap<String, Value>| -> Result<Vec<(String, Amount)>, String> {
        of.iter().map(|(name, value)| Ok((name.clone(), amount(name, value, true)?))).collect()
    };
    for container in &spec.init_containers {
        let is_sidecar = container.restart_policy.as_deref() == Some("Always");
        for (name, amount) in read(&container.resources.requests)? {
            let beside = sum.get(&name).copied().unwrap_or(0);
            let peak = most.entry(name.clone()).or_default();
            *peak = (*peak).max(beside.saturating_add(amount));
            if is_sidecar {
                sum.insert(name, beside.saturating_add(amount));
            }
        }
    }
    for container in &spec.containers {
        for (name, amount) in read(&container.resources.requests)? {
            add(name, amount, &mut sum);
        }
    }
    for (name, peak) in most {
        let sum = sum.entry(name).or_default();
        *sum = (*sum).max(peak);
    }
    for (name, amount) in read(&spec.overhead)? {
        add(name, amount, &mut sum);
    }
    sum.insert(PODS.to_owned(), 1);
    Ok(sum)
}

//! Where a pod may be scheduled: selectors of labels, taints and tolerations.

use super::objects::{
    LabelSelector, Node, NodeSelectorTerm, PodSpec, Requirement, Taint, Toleration,
};
use std::collections::BTreeMap;

type Labels = BTreeMap<String, String>;

/// Whether a requirement holds for the value of its label; an unknown operator is an error.
fn meets(requirement: &Requirement, value: Option<&str>) -> Result<bool, String> {
    let listed = || value.is_some_and(|value| requirement.values.iter().any(|of| of == value));
    let number = |text: &str| text.parse::<i64>().ok();
    let compare = |holds: fn(i64, i64) -> bool| {
        let limit = requirement.values.first().and_then(|text| number(text));
        value.and_then(number).zip(limit).is_some_and(|(value, limit)| holds(value, limit))
    };
    Ok(match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compare(|value, limit| value > limit),
        "Lt" => compare(|value, limit| value < limit),
        other => return Err(format!("there is no operator {other:?}")),
    })
}

/// Whether all requirements hold.
fn meet_all<'l>(
    requirements: &[Requirement],
    value: impl Fn(&str) -> Option<&'l str>,
) -> Result<bool, String> {
    for requirement in requirements {
        if !meets(requirement, value(&requirement.key))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a selector selects labels. No selector selects nothing, an empty one everything.
pub fn selects(selector: Option<&LabelSelector>, labels: &Labels) -> Result<bool, String> {
    let Some(selector) = selector else { return Ok(false) };
    let value = |key: &str| labels.get(key).map(String::as_str);
    let equal =
        selector.match_labels.iter().all(|(key, wanted)| value(key) == Some(wanted.as_str()));
    Ok(equal && meet_all(&selector.match_expressions, value)?)
}

/// Whether a running pod may stay on a node, and whether it could be scheduled there.
pub struct Fit {
    pub may_stay: bool,
    pub schedulable: bool,
}

/// How a node fits what a pod requires of it.
pub fn fit(spec: &PodSpec, node: &Node) -> Result<Fit, String> {
    let labels = &node.metadata.labels;
    let selected =
        spec.node_selector.iter().all(|(key, value)| labels.get(key).is_some_and(|of| of == value));
    let mut matched = spec.affinity.node_affinity.required.is_none();
    for term in spec.affinity.node_affinity.required.iter().flat_map(|of| &of.node_selector_terms) {
        matched |= matches(term, node)?;
    }
    let needs_label = (spec.affinity.pod_affinity.required.iter())
        .all(|term| labels.contains_key(&term.topology_key));
    let schedulable = selected
        && matched
        && needs_label
        && !intolerable(spec, node, &["NoSchedule", "NoExecute"]);
    Ok(Fit { may_stay: schedulable || !intolerable(spec, node, &["NoExecute"]), schedulable })
}

/// Whether a node has a taint that the scheduler avoids for a pod without forbidding it.
pub fn avoids(spec: &PodSpec, node: &Node) -> bool {
    intolerable(spec, node, &["PreferNoSchedule"])
}

fn intolerable(spec: &PodSpec, node: &Node, effects: &[&str]) -> bool {
    let mut taints = node.spec.taints.iter();
    taints.any(|taint| {
        effects.contains(&taint.effect.as_str())
            && !spec.tolerations.iter().any(|toleration| tolerates(toleration, taint))
    })
}

/// Whether a term selects a node. An empty term selects nothing.
pub fn matches(term: &NodeSelectorTerm, node: &Node) -> Result<bool, String> {
    if term.match_expressions.is_empty() && term.match_fields.is_empty() {
        return Ok(false);
    }
    let label = |key: &str| node.metadata.labels.get(key).map(String::as_str);
    let field = |key: &str| (key == "metadata.name").then_some(node.metadata.name.as_str());
    Ok(meet_all(&term.match_expressions, label)? && meet_all(&term.match_fields, field)?)
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.is_empty() || toleration.effect == taint.effect;
    let exists = toleration.operator == "Exists";
    let key = toleration.key == taint.key || (toleration.key.is_empty() && exists);
    effect && key && (exists || toleration.value == taint.value)
}

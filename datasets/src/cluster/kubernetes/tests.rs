use super::{Imported, parse};
use placement::{Limits, NodeIx, NodeState, Rule, audit, search};
use serde_json::{Value, json};

fn node(name: &str, zone: &str, spec: Value, ready: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "zone": zone, "disk": zone}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110", "ephemeral-storage": "10Gi"},
            "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}],
        },
    })
}

fn pod(name: &str, owner: Option<(&str, &str)>, node: Option<&str>, spec: Value) -> Value {
    let mut spec = spec;
    spec["containers"] =
        json!([{"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]);
    if let Some(node) = node {
        spec["nodeName"] = json!(node);
    }
    let app = name.split('-').next();
    let mut metadata = json!({"name": name, "namespace": "shop", "labels": {"app": app}});
    if let Some((kind, name)) = owner {
        metadata["ownerReferences"] = json!([{"kind": kind, "name": name, "controller": true}]);
    }
    json!({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}})
}

/// Two zones of two nodes; one node is cordoned, one tainted.
fn list() -> Value {
    let apart = json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution":
            [{"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}],
    }}});
    let near = json!({"affinity": {"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution":
            [{"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, "topologyKey": "zone"}],
    }}});
    let in_b = json!({"nodeSelector": {"disk": "b"}});
    let tainted = json!({"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]});
    json!({"kind": "List", "items": [
        node("n1", "a", json!({}), "True"),
        node("n2", "a", json!({"unschedulable": true}), "True"),
        node("n3", "b", json!({}), "True"),
        node("n4", "b", tainted, "True"),
        pod("web-1", Some(("StatefulSet", "web")), Some("n1"), apart.clone()),
        pod("web-2", Some(("StatefulSet", "web")), Some("n1"), apart),
        pod("cache-1", Some(("StatefulSet", "cache")), None, near),
        pod("db-1", Some(("StatefulSet", "db")), Some("n1"), in_b),
        pod("job-1", None, Some("n4"), json!({})),
        pod("agent-1", Some(("DaemonSet", "agent")), Some("n1"), json!({})),
    ]})
}

fn read(list: &Value) -> Result<Imported, (String, String)> {
    parse(list.to_string().as_bytes())
}

#[test]
fn pods_and_nodes_become_a_cluster() {
    let Imported { cluster, notes } = read(&list()).expect("a list");
    let metrics: Vec<&str> = cluster.metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(metrics, ["cpu", "memory", "pods"]);
    let gib = 1 << 30;
    // The daemon set's pod is taken off its node.
    assert_eq!(cluster.nodes[0].capacity, [Some(1_500), Some(3 * gib), Some(109)]);
    assert_eq!(cluster.nodes[2].capacity, [Some(2_000), Some(4 * gib), Some(110)]);
    let states: Vec<NodeState> = cluster.nodes.iter().map(|node| node.state).collect();
    assert_eq!(states, [NodeState::Up, NodeState::Closed, NodeState::Up, NodeState::Up]);
    assert_eq!(cluster.replicas.len(), 5, "all but the daemon set's");
    assert_eq!(cluster.replicas[0].demand, [500, gib, 1]);
    let kinds: Vec<&str> = (cluster.rules.iter())
        .map(|rule| match rule {
            Rule::PerDomain { most: 1, .. } => "one on a node",
            Rule::Near { .. } => "near",
            _ => "other",
        })
        .collect();
    assert_eq!(kinds, ["near", "one on a node"]);
    assert!(notes.iter().any(|note| note.starts_with("1 pod of daemon sets")), "{notes:?}");
    // db-1 and job-1 run where they could not be scheduled now.
    assert!(notes.iter().any(|note| note.starts_with("2 pods where")), "{notes:?}");
}

#[test]
fn search_separates_pods_and_places_the_pending_one() {
    let Imported { cluster, .. } = read(&list()).expect("a list");
    let found = search(&cluster, &Limits::rounds(10));
    assert_eq!(audit(&cluster, &found.assignment), []);
    let at = |pod: &str| {
        let replica = cluster.replicas.iter().position(|of| of.name == format!("shop/{pod}"));
        found.assignment[replica.expect("the pod")].map(NodeIx::ix)
    };
    // One web pod leaves n1: not for the cordoned node, not for the tainted one.
    assert_eq!(found.value.total, 1.0);
    assert_ne!(at("web-1"), at("web-2"));
    assert!([at("web-1"), at("web-2")].contains(&Some(2)));
    assert_eq!(at("job-1"), Some(3), "it tolerates no taint, and runs there already");
    assert_eq!(at("db-1"), Some(0));
    assert!(matches!(at("cache-1"), Some(0 | 2)));
}

#[test]
fn new_pods_follow_preferences_and_running_pods_stay() {
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let in_b = json!({"weight": 100, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["b"]}]}});
    let apart = json!({"weight": 50, "podAffinityTerm":
        {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}});
    let web = json!({"affinity": {"nodeAffinity": {preferred: [in_b]}, "podAntiAffinity": {preferred: [apart]}}});
    let by_zone = json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "api"}}}]});
    let avoided = json!({"taints": [{"key": "old", "effect": "PreferNoSchedule"}]});
    let web_set = Some(("StatefulSet", "web"));
    let list = json!({"kind": "List", "items": [
        node("n1", "a", json!({}), "True"),
        node("n2", "a", avoided, "True"),
        node("n3", "b", json!({}), "True"),
        node("n4", "b", json!({}), "True"),
        pod("web-1", web_set, Some("n1"), web.clone()),
        pod("web-2", web_set, None, web.clone()),
        pod("web-3", web_set, None, web),
        pod("api-1", Some(("ReplicaSet", "api")), None, by_zone.clone()),
        pod("api-2", Some(("ReplicaSet", "api")), None, by_zone),
    ]});
    let Imported { cluster, notes } = read(&list).expect("a list");
    let found = search(&cluster, &Limits::rounds(10));
    assert_eq!(audit(&cluster, &found.assignment), []);
    let at: Vec<Option<usize>> = found.assignment.iter().map(|node| node.map(NodeIx::ix)).collect();
    assert_eq!(at[0], Some(0), "web-1 does not move for a preference");
    let mut new_web = [at[1], at[2]];
    new_web.sort();
    assert_eq!(new_web, [Some(2), Some(3)], "each on a node of its own in zone b");
    assert!(at[3..].contains(&Some(0)), "one in zone a, on the node without a taint: {at:?}");
    assert!(at[3..].iter().any(|node| matches!(node, Some(2 | 3))), "one in zone b: {at:?}");
    assert_eq!(found.value.total, 0.5, "web-1 is not in zone b");
    assert!(notes.iter().any(|note| note.starts_with("preferences count")), "{notes:?}");
}

#[test]
fn broken_lists_are_refused_with_member_and_rule() {
    for (pointer, value, at, rule) in [
        ("/kind", json!("PodList"), "kind", "this reads a List"),
        ("/items/4/spec/nodeName", json!("n9"), "items[4].spec.nodeName", "no node \"n9\""),
        (
            "/items/4/spec/containers/0/resources/requests/cpu",
            json!("2x"),
            "items[4].spec",
            "cpu: \"2x\" is not a quantity",
        ),
        (
            "/items/5/metadata/name",
            json!("web-1"),
            "items[5].metadata.name",
            "two pods are shop/web-1",
        ),
        ("/items/1/metadata/name", json!("n1"), "items", "two nodes are \"n1\""),
        ("/items/0/status/allocatable", json!(7), "items[0].status.allocatable", "invalid type"),
        (
            "/items/6/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector/matchExpressions/0/operator",
            json!("Near"),
            "items[6].spec.affinity",
            "no operator \"Near\"",
        ),
    ] {
        let mut list = list();
        *list.pointer_mut(pointer).expect("a member") = value;
        let (found_at, found_rule) = read(&list).expect_err("it breaks a rule");
        assert_eq!(found_at, at);
        assert!(found_rule.contains(rule), "{found_rule}");
    }
}

//! Replicas placed on the nodes of a cluster.

use crate::folder::Folder;
use serde_json::json;
use std::fs;

/// Two nodes of 100; node `a` is at 110.
fn cluster(demand_of_small: i64) -> String {
    let replica = |name: &str, demand: i64| json!({"name": name, "partitions": [[{"name": name, "node": "a", "demand": {"cpu": demand}}]]});
    json!({
        "format": "ras-cluster/1",
        "name": "two nodes",
        "metrics": [{"name": "cpu"}],
        "nodes": [{"name": "a", "capacity": {"cpu": 100}}, {"name": "b", "capacity": {"cpu": 100}}],
        "services": [replica("large", 80), replica("small", demand_of_small)],
    })
    .to_string()
}

#[test]
fn overloaded_node_loses_one_replica() {
    let folder = Folder::new();
    folder.write("cluster.json", &cluster(30));
    let text = folder.ras("place cluster.json --out placed").code(0).stdout();
    assert!(text.contains("violations  1 today, 0 after"), "{text}");
    assert!(text.contains("1 move at a cost of 1"), "{text}");
    let file = fs::read_to_string(folder.path("placed/placement.json")).expect("the answer");
    let placed: serde_json::Value = serde_json::from_str(&file).expect("JSON");
    assert_eq!(placed["format"], "ras-placement/1");
    assert_eq!((&placed["value"], &placed["bound"]), (&json!(1.0), &json!(1.0)));
    assert_eq!(placed["moves"].as_array().map(Vec::len), Some(1));
    let page = fs::read_to_string(folder.path("placed/placement.html")).expect("the page");
    assert!(page.contains("two nodes: placement") && page.contains("a, cpu: 110 of 100 today"));
    let printed = folder.ras_json("place cluster.json --out placed");
    assert_eq!(printed["moves"], placed["moves"]);
}

#[test]
fn cluster_without_a_valid_assignment_is_reported_with_the_broken_rule() {
    let folder = Folder::new();
    folder.write("cluster.json", &cluster(120));
    let text = folder.ras("place cluster.json --out placed").code(2).stdout();
    assert!(text.contains("the assignment breaks rules:\n  node "), "{text}");
    assert!(text.contains("cpu 120 of 100"), "{text}");
}

#[test]
fn pods_of_kubernetes_are_placed_and_what_is_not_read_is_said() {
    let folder = Folder::new();
    let allocatable = json!({"cpu": "1", "pods": "10"});
    let node = |name: &str| json!({"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}});
    let pod = |name: &str| {
        let containers = json!([{"resources": {"requests": {"cpu": "600m"}}}]);
        json!({"kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"nodeName": "n1", "containers": containers}})
    };
    let items = json!([node("n1"), node("n2"), pod("a"), pod("b"), {"kind": "Service"}]);
    folder.write("now.json", &json!({"kind": "List", "items": items}).to_string());
    let done = folder.ras("place now.json --out placed").code(0);
    assert!(done.stdout().contains("1 move at a cost of 1"), "{}", done.stdout());
    assert!(done.stderr().contains("note: objects of these kinds are not read: Service"));
}

#[test]
fn servers_of_a_reservation_are_the_nodes() {
    let folder = Folder::new();
    folder.region("region");
    let snapshot = datasets::read_snapshot(&folder.path("region")).expect("a snapshot");
    let capacity = |name: &fleet::HardwareTypeName| (name.to_string(), json!({"cpu": 64}));
    let types: serde_json::Map<_, _> = snapshot.hardware_types.iter().map(capacity).collect();
    let held = snapshot.servers.iter().find_map(|server| server.current).expect("one is held");
    let name = &snapshot.reservations[held.ix()].id;
    let servers = snapshot.servers.iter().filter(|server| server.current == Some(held)).count();
    let services = json!({
        "format": "ras-cluster/1", "name": "web", "metrics": [{"name": "cpu"}], "hardware_types": types,
        "services": [{"name": "db", "spread": ["msb"], "partitions": [[
            {"name": "db-0", "demand": {"cpu": 40}}, {"name": "db-1", "demand": {"cpu": 40}},
        ]]}],
    });
    folder.write("services.json", &services.to_string());
    let line = format!("place services.json --snapshot region --reservation {name} --out placed");
    let text = folder.ras(&line).code(0).stdout();
    assert!(text.contains(&format!("{servers} nodes, 2 replicas of 1 service")), "{text}");
    assert!(text.contains("0 moves at a cost of 0, 2 new"), "{text}");
    let error = folder
        .ras("place services.json --snapshot region --reservation none --out placed")
        .code(1)
        .stderr();
    assert!(error.contains("no reservation \"none\""), "{error}");
}

#[test]
fn broken_cluster_is_refused_with_its_member_and_nothing_is_written() {
    let folder = Folder::new();
    folder.write("cluster.json", &cluster(30).replace("\"small\"", "\"large\""));
    let error = folder.ras("place cluster.json --out placed").code(1).stderr();
    assert!(error.contains("cluster.json: services[1].name: \"large\" stands twice"), "{error}");
    folder.write("model.txt", "2 0 x");
    let error = folder.ras("place model.txt --out placed").code(1).stderr();
    assert!(error.contains("needs --assignment FILE"), "{error}");
    let error = folder.ras("place model.txt --assignment model.txt --out placed").code(1).stderr();
    assert!(error.contains("model.txt: number 3: a load cost weight is \"x\""), "{error}");
    assert_eq!(folder.names(), ["cluster.json", "model.txt"]);
}

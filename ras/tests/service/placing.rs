//! Replicas placed on the servers that a reservation has in a running region.

use crate::owners::serving;
use crate::place::Place;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

#[test]
fn servers_of_a_running_region_are_the_nodes() {
    let place = Place::new();
    let up = serving(&place, "", "--no-worker");
    let listed = place.json("list reservations --data data --sort-by=-servers");
    let name = listed["reservations"][0]["reservation"].as_str().expect("a name").to_owned();
    let servers =
        place.json(&format!("list servers --reservation {name} --limit 5000 --data data"));
    let servers = servers["servers"].as_array().expect("rows");
    let ready: Vec<&Value> = servers.iter().filter(|of| of["state"] == "available").collect();
    assert!(ready.len() > 2, "{name} has {} servers that are ready", ready.len());
    let of = |server: &Value, member: &str| server[member].as_str().expect("text").to_owned();
    let types: BTreeMap<String, Value> =
        servers.iter().map(|server| (of(server, "hardware_type"), json!({"cpu": 64}))).collect();
    let replica = |name: String| json!([{"name": name, "demand": {"cpu": 40}}]);
    let partitions: Vec<Value> = (0..ready.len()).map(|at| replica(format!("db-{at}"))).collect();
    let file = json!({
        "format": "ras-cluster/1", "name": name, "metrics": [{"name": "cpu"}],
        "hardware_types": types, "services": [{"name": "db", "partitions": partitions}],
    });
    fs::write(place.path("services.json"), file.to_string()).expect("writes");
    let line = format!("place services.json --reservation {name} --data data --out placed");
    let answer = place.json(&line);
    // A node has room for one replica, and only servers that are ready take one.
    assert_eq!(answer["violations"], json!([]), "{answer}");
    let placed = answer["assignment"].as_array().expect("rows");
    let mut nodes: Vec<String> = placed.iter().map(|of_replica| of(of_replica, "node")).collect();
    let mut expected: Vec<String> = ready.iter().map(|server| of(server, "server")).collect();
    nodes.sort();
    expected.sort();
    assert_eq!(nodes, expected);
    place
        .ras("place services.json --reservation nothing --data data --out other")
        .fails_with(&["nothing"]);
    fs::write(
        place.path("bare.json"),
        json!({"format": "ras-cluster/1", "name": "x", "metrics": []}).to_string(),
    )
    .expect("writes");
    place
        .ras(&format!("place bare.json --reservation {name} --data data --out other"))
        .fails_with(&["bare.json", "hardware_types"]);
    assert!(!place.path("other").exists());
    up.stop();
}

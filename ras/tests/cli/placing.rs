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

/// Two replicas that would exchange their nodes, which have no room for both, and one that must wait.
#[test]
fn schedule_is_shown_with_its_phases() {
    let folder = Folder::new();
    let replica = |name: &str, node: Option<&str>, demand: i64| {
        let replica = json!({"name": name, "node": node, "demand": {"cpu": demand}});
        json!({"name": name, "partitions": [[replica]]})
    };
    let node = |name: &str| json!({"name": name, "capacity": {"cpu": 100}});
    let cluster = json!({
        "format": "ras-cluster/1", "name": "two phases", "metrics": [{"name": "cpu"}],
        "nodes": [node("a"), node("b")],
        "services": [replica("x", Some("a"), 30), replica("y", Some("b"), 30), replica("large", None, 80)],
    });
    folder.write("cluster.json", &cluster.to_string());
    let text = folder.ras("place cluster.json --out placed").code(0).stdout();
    assert!(text.contains("schedule    2 phases, at least 2 without detours\n"), "{text}");
    assert!(text.contains("    1      1  1 move\n    2      1  1 new"), "{text}");
    let printed = folder.ras_json("place cluster.json --out placed");
    let schedule = &printed["schedule"];
    assert_eq!(schedule["phases"].as_array().map(Vec::len), Some(2));
    assert_eq!((&schedule["bound"], &schedule["stuck"]), (&json!(2), &json!([])));
    assert!(schedule["seconds"].as_f64().is_some_and(|seconds| seconds < 5.0), "{schedule}");
    let page = fs::read_to_string(folder.path("placed/placement.html")).expect("the page");
    assert!(page.contains("2 moves in 2 phases, at least 2 without detours"), "{page}");
}

#[test]
fn replicas_are_explained() {
    let folder = Folder::new();
    folder.write("cluster.json", &cluster(30));
    folder.ras("place cluster.json --out placed").code(0);
    let file = fs::read_to_string(folder.path("placed/placement.json")).expect("the answer");
    let placed: serde_json::Value = serde_json::from_str(&file).expect("JSON");
    let moved = placed["moves"][0]["replica"].as_str().expect("one moves").to_owned();
    for placement in ["placed", "placed/placement.json"] {
        let line = format!("place explain cluster.json {moved} --placement {placement}");
        let text = folder.ras(&line).code(0).stdout();
        let why = "moves from node a to node b: its place today breaks a rule: it needs";
        assert!(text.contains(why) && text.contains("no other node can take it"), "{text}");
    }
    let text = folder.ras("place explain cluster.json small").code(0).stdout();
    assert!(
        text.contains("replica small stays on node a\nnodes that can also take it: b"),
        "{text}"
    );

    folder.write("cluster.json", &cluster(120));
    folder.ras("place cluster.json --out placed").code(2);
    let file = fs::read_to_string(folder.path("placed/placement.json")).expect("the answer");
    let mut placed: serde_json::Value = serde_json::from_str(&file).expect("JSON");
    placed["assignment"][1] = json!({"replica": "small", "node": null});
    folder.write("edited.json", &placed.to_string());
    let line = "place explain cluster.json small --placement edited.json";
    let text = folder.ras(line).code(2).stdout();
    assert!(text.contains("replica small is not placed: of 2 nodes 2 lack cpu"), "{text}");
    assert!(text.contains("if the replica needed 20 less of cpu"), "{text}");
    let json = folder.ras(&format!("{line} --output json")).code(2).stdout();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["outcome"]["outcome"], "not_placed");
    assert_eq!(json["outcome"]["conflict"][0]["obstacle"]["metric"], "cpu");
}

#[test]
fn explanations_name_what_is_wrong_with_the_question() {
    let folder = Folder::new();
    folder.write("cluster.json", &cluster(30));
    folder
        .ras("place explain cluster.json smal")
        .fails_with(&["no replica \"smal\"", "\"small\"?"]);
    folder.write(
        "placement.json",
        r#"{"format": "ras-placement/1", "assignment": [{"replica": "x", "node": "a"}]}"#,
    );
    let line = "place explain cluster.json small --placement";
    for (placement, parts) in [
        ("placement.json", ["placement.json: assignment[0].replica", "no replica \"x\""]),
        (".", ["placement.json: assignment[0].replica", "no replica \"x\""]),
        ("none", ["none", "cannot be read"]),
        ("cluster.json", ["cluster.json: ", "assignment"]),
    ] {
        folder.ras(&format!("{line} {placement}")).fails_with(&parts);
    }
    folder.ras("place cluster.json").fails_with(&["--out"]);
    folder.ras("place --out placed explain cluster.json small").fails_with(&["explain"]);
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

#[test]
fn folder_of_tables_is_placed_as_its_file_is() {
    let folder = Folder::new();
    folder.write("cluster.json", &cluster(30));
    datasets::cluster::convert(&folder.path("cluster.json"), &folder.path("tables"))
        .expect("is a cluster");
    let of_file = folder.ras_json("place cluster.json --out placed");
    let of_tables = folder.ras_json("place tables --out placed2");
    assert_eq!(of_file["assignment"], of_tables["assignment"]);
    assert!(of_file["assignment"].is_array());
}

/// Six nodes of 100, each with two replicas of 20 in one rack of two.
fn half_empty() -> String {
    let node = |name: usize| json!({"name": format!("n{name}"), "capacity": {"cpu": 100}});
    let replica = |name: usize| {
        let replica = json!({"name": format!("r{name}"), "node": format!("n{}", name / 2), "demand": {"cpu": 20}});
        json!({"name": format!("s{name}"), "partitions": [[replica]]})
    };
    json!({
        "format": "ras-cluster/1", "name": "half empty", "metrics": [{"name": "cpu"}],
        "nodes": (0..6).map(node).collect::<Vec<_>>(), "services": (0..12).map(replica).collect::<Vec<_>>(),
    })
    .to_string()
}

#[test]
fn nodes_are_emptied_within_a_budget() {
    let folder = Folder::new();
    folder.write("cluster.json", &half_empty());
    // Twelve replicas of 20 need three nodes; six moves empty three nodes, four of twelve two.
    let text =
        folder.ras("place consolidate cluster.json --budget 50% --out packed").code(0).stdout();
    assert!(text.contains("emptied     3 nodes of at most 3 within a budget of 6: "), "{text}");
    assert!(text.contains("6 moves at a cost of 6"), "{text}");
    let page = fs::read_to_string(folder.path("packed/placement.html")).expect("the page");
    assert!(page.contains("Emptied nodes"), "{page}");
    assert!(page.contains("of at most 3 within a budget of 6"), "{page}");
    let answer = folder.ras_json("place consolidate cluster.json --budget 40% --out packed");
    assert_eq!(answer["consolidation"]["emptied"].as_array().map(Vec::len), Some(2), "{answer}");
    assert_eq!(answer["consolidation"]["bound"], json!(2));
    assert_eq!((&answer["value"], &answer["gap"]), (&json!(4.0), &json!(0.0)));
    for policy in ["dot-product", "first-fit"] {
        let line = format!(
            "place consolidate cluster.json --budget 50% --engine vro --policy {policy} --out vro"
        );
        let answer = folder.ras_json(&line);
        assert_eq!(answer["violations"], json!([]));
        let emptied = answer["consolidation"]["emptied"].as_array().map_or(0, Vec::len);
        assert!((1..=3).contains(&emptied), "{answer}");
    }
    folder
        .ras("place consolidate cluster.json --budget 120% --out packed")
        .fails_with(&["--budget", "120%"]);
}

#[test]
fn best_fit_places_new_replicas_and_moves_no_other() {
    let folder = Folder::new();
    let mut file: serde_json::Value = serde_json::from_str(&half_empty()).expect("JSON");
    let new = json!({"name": "new", "demand": {"cpu": 60}});
    file["services"][0]["partitions"] = json!([[new]]);
    folder.write("cluster.json", &file.to_string());
    for policy in ["dot-product", "most-allocated"] {
        let answer = folder
            .ras_json(&format!("place cluster.json --engine vro --policy {policy} --out placed"));
        assert_eq!(answer["violations"], json!([]));
        assert_eq!(answer["moves"].as_array().map(Vec::len), Some(1), "{answer}");
        // On n0, which lost a replica, it would leave room; on any other it fills the node.
        assert_ne!(answer["moves"][0]["to"], json!("n0"), "{answer}");
    }
}

#[test]
fn items_of_an_instance_are_packed() {
    let folder = Folder::new();
    // Two dimensions, bins of 10 and 10, three kinds of items.
    folder.write("small.vbp", "2\n10 10\n3\n6 2 2\n2 6 2\n4 4 2\n");
    let answer = folder.ras_json("place small.vbp --out packed");
    assert_eq!((&answer["value"], &answer["bound"]), (&json!(3.0), &json!(3.0)), "{answer}");
    folder.write("broken.vbp", "2\n10\n");
    folder
        .ras("place broken.vbp --out packed2")
        .fails_with(&["broken.vbp", "a capacity is missing"]);
}

#[test]
fn days_are_simulated_with_the_same_tenants_for_all_engines() {
    let folder = Folder::new();
    let series = |name: usize| {
        let cpu: Vec<usize> = (0..24).map(|hour| 5 + (hour * (name + 2)) % 12).collect();
        json!({"class": "web", "name": name.to_string(), "demand": {"cpu": cpu}})
    };
    let node = |name: usize| json!({"name": name.to_string(), "domains": {"rack": (name % 3).to_string()}, "capacity": {"cpu": 60}});
    let file = json!({
        "format": "ras-cluster/1", "name": "weeks", "metrics": [{"name": "cpu"}],
        "nodes": (0..6).map(node).collect::<Vec<_>>(),
        "history": {"step_minutes": 60, "series": (0..6).map(series).collect::<Vec<_>>()},
        "objective": {"failovers": {"fragmentation": 0.05, "levels": ["rack"], "capacity": {"samples": 3}}},
    });
    folder.write("weeks.json", &file.to_string());
    let line = "place simulate weeks.json --days 2 --density 1.4 --deadline 20ms --engine search,annealing,annealing-prv --move-costs 1,15";
    let done = folder.ras(line).code(0);
    assert!(done.stderr().contains("search: day 1 of 2"), "{}", done.stderr());
    let text = done.stdout();
    for word in ["violations", "failovers", "invalid", "p99 ms", "annealing"] {
        assert!(text.contains(word), "{text}");
    }
    let answer = folder.ras_json(line);
    let [search, annealing] = [0, 1].map(|at| &answer["engines"][at]);
    assert_eq!(search["engine"], "search");
    assert_eq!(answer["engines"][2]["engine"], "annealing_prv");
    // With one cost for all, each failover weighs that much.
    let costly = folder.ras_json(&line.replace("--move-costs 1,15", "--move-costs 15"));
    let costly = &costly["engines"][1];
    let (failovers, weighted) = (&costly["failovers"], &costly["weighted_failovers"]);
    let failovers = failovers.as_f64().expect("a number");
    assert!(failovers > 0.0, "{costly}");
    assert_eq!(weighted.as_f64(), Some(15.0 * failovers));
    assert!(search["calls"].as_u64().is_some_and(|calls| calls > 0), "{answer}");
    assert!(search["latency_ms"]["p50"].is_f64(), "{answer}");
    for member in ["tenants_came", "tenants_left", "replicas_at_end"] {
        assert_eq!(search[member], annealing[member], "{member}");
    }
    folder.write("bare.json", &cluster(30));
    folder.ras("place simulate bare.json").fails_with(&["bare.json", "has no history of demands"]);
    folder.ras("place simulate weeks.json --density 0").fails_with(&["--density", "0.01"]);
    folder.ras("place simulate weeks.json --move-costs=-1").fails_with(&["--move-costs", "from 0"]);
}

//! Damaged bytes never make the reader panic: it reads something valid or says what is wrong.
//!
//! The poor man's companion of the fuzz target: a few thousand mutations by seed, on stable Rust,
//! in every test run.

use crate::common::{bytes_of, said, small, small_snapshot};
use datasets::cluster::{ClusterError, kubernetes, roadef, service_fabric};
use datasets::{read_assignment, read_snapshot, write_parts, write_result};
use fleet::Targets;
use placement::{Cluster, Limits, audit, audit_schedule, evaluate, schedule, search};
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::path::Path;

/// Changes some bytes, cuts the end off, or repeats a piece.
fn mutate(bytes: &[u8], rng: &mut impl Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match rng.random_range(0..10) {
        0 => bytes.truncate(rng.random_range(0..bytes.len())),
        1 => {
            let at = rng.random_range(0..bytes.len());
            let piece = bytes[at..(at + 16).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
        2 => {
            let at = rng.random_range(0..bytes.len());
            bytes.drain(at..(at + 8).min(bytes.len()));
        }
        3..=6 => {
            for _ in 0..rng.random_range(1..=4) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = rng.random();
            }
        }
        _ => {
            // The footer, where lengths and offsets are: most damage elsewhere is found early.
            let footer = bytes.len() / 2;
            for _ in 0..rng.random_range(1..=3) {
                let at = rng.random_range(footer..bytes.len());
                bytes[at] ^= 1 << rng.random_range(0..8);
            }
        }
    }
    bytes
}

/// Values that a member of a JSON file may be by mistake.
fn values() -> [Value; 14] {
    let most = 1_000_000_000_000_000_i64;
    [
        Value::Null,
        json!(""),
        json!("n1"),
        json!("1e15"),
        json!("\u{0}"),
        json!(0),
        json!(-1),
        json!(0.5),
        json!(most),
        json!(u64::MAX),
        json!(1e300),
        json!(true),
        json!([]),
        json!({}),
    ]
}

/// Changes, removes, renames or repeats something below a member of a JSON file.
fn change(at: &mut Value, rng: &mut impl Rng) {
    let goes_down = rng.random_range(0..16) > 0;
    match at {
        Value::Array(items) if goes_down && !items.is_empty() => {
            let position = rng.random_range(0..items.len());
            match rng.random_range(0..32) {
                0 => drop(items.remove(position)),
                1 => items.push(items[position].clone()),
                _ => change(&mut items[position], rng),
            }
        }
        Value::Object(members) if goes_down && !members.is_empty() => {
            let position = rng.random_range(0..members.len());
            let name = members.keys().nth(position).unwrap().clone();
            match rng.random_range(0..32) {
                0 => drop(members.remove(&name)),
                1 => {
                    let member = members.remove(&name).unwrap();
                    members.insert(format!("{name}x"), member);
                }
                _ => change(&mut members[&name], rng),
            }
        }
        Value::Number(_) if rng.random_range(0..4) > 0 => {
            *at = json!(rng.random_range(-2..200));
        }
        other => *other = values().choose(rng).unwrap().clone(),
    }
}

/// Changes members of a JSON file; now and then its bytes.
fn mutate_members(bytes: &[u8], rng: &mut impl Rng) -> Vec<u8> {
    if rng.random_range(0..5) == 0 {
        return mutate(bytes, rng);
    }
    let mut root: Value = serde_json::from_slice(bytes).unwrap();
    for _ in 0..rng.random_range(1..=2) {
        change(&mut root, rng);
    }
    root.to_string().into_bytes()
}

/// Changes, removes or repeats numbers of a text file; now and then its bytes.
fn mutate_numbers(bytes: &[u8], rng: &mut impl Rng) -> Vec<u8> {
    if rng.random_range(0..5) == 0 {
        return mutate(bytes, rng);
    }
    let text = std::str::from_utf8(bytes).unwrap();
    let mut words: Vec<&str> = text.split_ascii_whitespace().collect();
    let other =
        ["", "0", "1", "2", "3", "-1", "x", "1e3", "10000001", "1000000000000", "4294967296"];
    for _ in 0..rng.random_range(1..=3) {
        let at = rng.random_range(0..words.len());
        match rng.random_range(0..6) {
            0 => words.insert(at, words[at]),
            1 => words[at] = words.choose(rng).unwrap(),
            _ => words[at] = other.choose(rng).unwrap(),
        }
    }
    words.join(" ").into_bytes()
}

/// Mutates one file at a time; returns how many mutations were read all the same, and how many
/// were errors that a panic inside the Parquet crate was turned into.
fn rounds(
    dir: &Path,
    count: usize,
    seed: u64,
    read: impl Fn() -> Result<(), String>,
) -> [usize; 2] {
    rounds_of(dir, count, seed, mutate, read)
}

fn rounds_of(
    dir: &Path,
    count: usize,
    seed: u64,
    mutate: impl Fn(&[u8], &mut ChaCha8Rng) -> Vec<u8>,
    read: impl Fn() -> Result<(), String>,
) -> [usize; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let files = bytes_of(dir);
    let (mut survived, mut contained) = (0, 0);
    for round in 0..count {
        let (name, good) = &files[round % files.len()];
        std::fs::write(dir.join(name), mutate(good, &mut rng)).unwrap();
        match read() {
            Ok(()) => survived += 1,
            Err(text) => {
                contained += usize::from(text.contains("its decoder gave up"));
                // A clear error names its file. One damaged file can break a rule of another:
                // a lost reservation is unknown to the servers.
                let named = files.iter().any(|(name, _)| text.contains(name));
                assert!(named, "round {round} of {name}: {text}");
            }
        }
        std::fs::write(dir.join(name), good).unwrap();
    }
    [survived, contained]
}

#[test]
fn snapshots() {
    let dir = tempfile::tempdir().unwrap();
    write_parts(dir.path(), &small()).unwrap();
    let [survived, contained] = rounds(dir.path(), 3_000, 7, || {
        read_snapshot(dir.path()).map(drop).map_err(|error| said(&error))
    });
    println!("3000 damaged snapshots: {survived} read, {contained} panics contained");
    assert!(survived < 2_500, "the mutations hardly hurt: {survived} read");
    assert_eq!(read_snapshot(dir.path()).unwrap(), small_snapshot());
}

#[test]
fn assignments() {
    let dir = tempfile::tempdir().unwrap();
    let snapshot = small_snapshot();
    let report = json!({"format": "ras-solve/1"});
    write_result(dir.path(), &snapshot, &Targets::unchanged(&snapshot), &report, None).unwrap();
    std::fs::remove_file(dir.path().join("report.json")).unwrap();
    let [survived, contained] = rounds(dir.path(), 1_000, 8, || {
        read_assignment(dir.path(), &snapshot).map(drop).map_err(|error| said(&error))
    });
    println!("1000 damaged assignments: {survived} read, {contained} panics contained");
    assert!(survived < 750, "the mutations hardly hurt: {survived} read");
}

/// Replicas of a cluster that is searched.
const SEARCHED: usize = 40;

/// A cluster that is read is one that can be placed, and an error names its file, a place and a rule.
fn used(dir: &Path, read: Result<Cluster, ClusterError>) -> Result<(), String> {
    let folder = format!("{}/", dir.display());
    let cluster = read.map_err(|error| {
        let text = said(&error);
        let of_file = text.strip_prefix(&folder).unwrap_or_else(|| panic!("no file: {text}"));
        let parts: Vec<&str> = of_file.splitn(3, ": ").collect();
        assert!(parts.len() == 3 && parts.iter().all(|part| !part.is_empty()), "{text}");
        assert_ne!(parts[1], ".", "{text}");
        text
    })?;
    let today = cluster.today();
    audit(&cluster, &today);
    evaluate(&cluster, &today);
    if cluster.replicas.len() > SEARCHED {
        return Ok(());
    }
    let found = search(&cluster, &Limits::rounds(1));
    let made = schedule(&cluster, &found.assignment);
    assert_eq!(audit_schedule(&cluster, &found.assignment, &made), []);
    Ok(())
}

/// A cluster with every kind of rule.
fn orders() -> Value {
    let node = |name: &str, rack: &str| {
        json!({"name": name, "domains": {"rack": rack}, "labels": {"disk": "ssd"}, "state": "up",
            "capacity": {"cpu": 100, "memory": 1_000}})
    };
    let replica = |name: &str, role: &str, node: Option<&str>| {
        json!({"name": name, "role": role, "node": node, "move_cost": 1.0,
            "demand": {"cpu": 60, "memory": 7}})
    };
    json!({
        "format": "ras-cluster/1", "name": "orders",
        "metrics": [{"name": "cpu"}, {"name": "memory", "transient": true}],
        "nodes": [node("n1", "a"), node("n2", "a"), node("n3", "b"), node("n4", "c")],
        "services": [
            {"name": "db", "spread": ["rack"], "labels": {"disk": ["ssd"]}, "blocked_nodes": ["n4"],
             "at_least": {"rack": 2}, "at_most": {"node": 3}, "move_cost": 2.0, "partitions": [
                [replica("db-0", "primary", Some("n1")), replica("db-1", "secondary", Some("n2"))]]},
            {"name": "api", "near": [{"service": "db", "level": "rack"}],
             "apart": [{"service": "batch", "level": "node"}],
             "partitions": [[{"name": "api-0", "demand": {"cpu": 30}}]]},
            {"name": "batch", "partitions": [[{"name": "batch-0", "node": "n1", "demand": {"cpu": 5}}]]},
        ],
        "objective": {"failovers": {"fragmentation": 0.05, "levels": ["rack"]}},
    })
}

#[test]
fn clusters() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = orders();
    let [path, balanced] = ["cluster.json", "balanced.json"].map(|name| dir.path().join(name));
    std::fs::write(&path, file.to_string()).unwrap();
    file["objective"] = json!({"balance": {"weights": {"cpu": 0.5}, "moves": 2.0}});
    std::fs::write(&balanced, file.to_string()).unwrap();
    let read = || {
        used(dir.path(), datasets::cluster::read(&path))?;
        used(dir.path(), datasets::cluster::read(&balanced))
    };
    let [survived, _] = rounds_of(dir.path(), 3_000, 9, mutate_members, read);
    println!("3000 damaged clusters: {survived} read");
    assert!((100..2_000).contains(&survived), "{survived} read");
}

#[test]
fn clusters_as_tables() {
    let dir = tempfile::tempdir().unwrap();
    let [path, tables] = ["cluster.json", "tables"].map(|name| dir.path().join(name));
    let mut file = orders();
    file["services"][0]["partitions"][0][0]["class"] = json!("db");
    file["history"] = json!({"step_minutes": 10, "series": [
        {"class": "db", "name": "a", "demand": {"cpu": [60, 70, 50], "memory": [7, 8, 9]}}]});
    file["objective"]["failovers"]["capacity"] = json!({"samples": 2});
    std::fs::write(&path, file.to_string()).unwrap();
    datasets::cluster::convert(&path, &tables).unwrap();
    let [survived, contained] =
        rounds(&tables, 2_000, 12, || used(&tables, datasets::cluster::read(&tables)));
    println!("2000 damaged clusters: {survived} read, {contained} panics contained");
    assert!(survived < 1_600, "the mutations hardly hurt: {survived} read");
}

#[test]
fn kubernetes_lists() {
    let dir = tempfile::tempdir().unwrap();
    let node = |name: &str, zone: &str| {
        json!({"kind": "Node",
            "metadata": {"name": name, "labels": {"zone": zone, "kubernetes.io/hostname": name}},
            "spec": {"unschedulable": false, "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}]}})
    };
    let terms = |app: &str, key: &str| {
        json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key,
            "labelSelector": {"matchLabels": {"app": app},
                "matchExpressions": [{"key": "app", "operator": "In", "values": [app]}]}}]})
    };
    let pod = |name: &str, app: &str, owner: &str, node: Option<&str>| {
        json!({"kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "labels": {"app": app},
                "ownerReferences": [{"kind": owner, "name": app, "controller": true}]},
            "spec": {"nodeName": node, "nodeSelector": {"zone": "a"},
                "tolerations": [{"key": "gpu", "operator": "Exists"}],
                "affinity": {"podAntiAffinity": terms(app, "kubernetes.io/hostname"),
                    "podAffinity": terms("web", "zone"),
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]}}},
                "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": app}}}],
                "overhead": {"cpu": "10m"},
                "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}],
                "containers": [{"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]},
            "status": {"phase": "Running"}})
    };
    let items = json!([
        node("n1", "a"),
        node("n2", "a"),
        node("n3", "b"),
        pod("web-0", "web", "StatefulSet", Some("n1")),
        pod("web-1", "web", "StatefulSet", Some("n1")),
        pod("agent-0", "agent", "DaemonSet", Some("n1")),
        pod("cache-0", "cache", "ReplicaSet", None),
    ]);
    let path = dir.path().join("now.json");
    std::fs::write(&path, json!({"kind": "List", "items": items}).to_string()).unwrap();
    let read = || used(dir.path(), kubernetes::read(&path).map(|imported| imported.cluster));
    let [survived, _] = rounds_of(dir.path(), 3_000, 10, mutate_members, read);
    println!("3000 damaged lists: {survived} read");
    assert!((100..2_500).contains(&survived), "{survived} read");
}

#[test]
fn models_of_the_challenge() {
    let dir = tempfile::tempdir().unwrap();
    let model = "2  1 10  0 100  2  0 0 30 400 16 80 0 1  0 1 10 240 8 160 1 0 \
        2  2 0  1 1 0  3  0 12 10 1000  0 10 20 100  1 6 200 1  1 0 1 20 10 1 10 100";
    let files = [("model.txt", model), ("assignment.txt", "0 1 0")];
    let [model, assignment] = files.map(|(name, text)| {
        std::fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name)
    });
    let read = || used(dir.path(), roadef::read(&model, &assignment));
    let [survived, _] = rounds_of(dir.path(), 3_000, 11, mutate_numbers, read);
    println!("3000 damaged models: {survived} read");
    assert!((100..2_500).contains(&survived), "{survived} read");
}

#[test]
fn parameters_of_the_service_fabric_simulator() {
    let dir = tempfile::tempdir().unwrap();
    let text = "# 1\n<Config\nLoadBalancingEnabled = true\n>\n\nMetricCount:2\n\
        FaultDomains:{dc1,dc2,dc3}\nNodeCount:6\nPartitionCount:{2, 3, 2}\n\
        ReplicaCountPerPartition:{3, 2, 2}\nNodeCapacityRange:{P/5/100/100,P/5/100/100}\n\
        PrimaryLoadRange:{P/5/10/0,P/5/10/0}\nSecondaryLoadRange:{U/5/10,U/5/10}\n\
        AffinitizedServicePair:1,2\n";
    let path = dir.path().join("parameters.txt");
    std::fs::write(&path, text).unwrap();
    let read = || used(dir.path(), service_fabric::read(&path, 1).map(|of| of.cluster));
    let [survived, _] = rounds(dir.path(), 1_000, 12, read);
    println!("1000 damaged parameters: {survived} read");
    assert!((20..900).contains(&survived), "{survived} read");
}

//! Both forms of a cluster say the same, and refuse the same.

use crate::cluster::{convert, read, write};
use crate::write::{ids, names, write_columns};
use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow_schema::{Field, Schema};
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn whole() -> Value {
    json!({
        "format": "ras-cluster/1",
        "name": "orders",
        "metrics": [{"name": "cpu", "transient": false}, {"name": "disk", "transient": true}],
        "nodes": [
            {"name": "n1", "state": "up", "domains": {"rack": "r1"}, "labels": {"disk": "ssd", "gpu": "no"}, "capacity": {"cpu": 100}},
            {"name": "n2", "state": "draining", "domains": {"rack": "r2"}, "labels": {"disk": "hdd"}, "capacity": {"cpu": 100, "disk": 7}},
            {"name": "n3", "state": "up", "capacity": {}}
        ],
        "services": [
            {"name": "db", "move_cost": 2.0, "spread": ["rack"], "labels": {"disk": ["ssd", "hdd"]},
             "blocked_nodes": ["n3"], "at_least": {"rack": 1}, "at_most": {"node": 3}, "partitions": [
                [{"name": "db-0", "role": "primary", "node": "n1", "demand": {"cpu": 60, "disk": 7}},
                 {"name": "db-1", "role": "secondary", "node": "n2", "demand": {"cpu": 60}, "move_cost": 1.5}],
                [{"name": "db-2", "role": "instance"}]]},
            {"name": "api", "move_cost": 1.0, "near": [{"service": "db", "level": "rack"}],
             "apart": [{"service": "idle", "level": "node"}],
             "preferred": [
                {"labels": {"disk": ["ssd", "hdd"], "gpu": ["no"]}, "role": "instance", "weight": 0.25},
                {"labels": {}, "weight": 0.0}],
             "spread_softly": [{"level": "rack", "weight": 0.5}],
             "partitions": [[{"name": "api-0", "role": "instance", "demand": {"cpu": 30}}]]},
            {"name": "idle", "move_cost": 1.0, "partitions": []}
        ],
        "objective": {"failovers": {"fragmentation": 0.05, "levels": ["rack"]}}
    })
}

fn json_of(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).expect("is there")).expect("is JSON")
}

/// A file as a folder, and back.
fn there_and_back(file: &Value) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let [json, tables, back] = ["a.json", "tables", "b.json"].map(|name| folder.path().join(name));
    fs::write(&json, file.to_string()).expect("writes");
    convert(&json, &tables).expect("is a cluster");
    convert(&tables, &back).expect("is a cluster");
    json_of(&back)
}

/// What is read from a file, written and read again.
fn through_cluster(file: &Value) -> [Value; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.json"), file.to_string()).expect("writes");
    let cluster = read(&at("a.json")).expect("is a cluster");
    write(&at("tables"), &cluster).expect("the format has words for it");
    write(&at("b.json"), &cluster).expect("the format has words for it");
    write(&at("c.json"), &read(&at("tables")).expect("is a cluster")).expect("as before");
    ["b.json", "c.json"].map(|name| json_of(&at(name)))
}

#[test]
fn tables_say_what_a_file_says() {
    assert_eq!(there_and_back(&whole()), whole());
    // A group without replicas has no service that it is of.
    let mut file = whole();
    file["services"][2]["partitions"] = json!([[{"name": "idle-0"}]]);
    // A cluster has preferences of groups, which no service need have.
    let api = file["services"][1].as_object_mut().expect("a service");
    api.retain(|member, _| member != "preferred" && member != "spread_softly");
    let [written, again] = through_cluster(&file);
    assert_eq!(written, again);
    // Nodes that services may use are labelled by set: n1 and n2 here.
    assert_eq!(written["services"][0]["labels"], json!({"allowed_0": ["yes"]}));
    assert_eq!(written["nodes"][1]["labels"], json!({"allowed_0": "yes"}));
    assert_eq!(written["services"][0]["partitions"][0][1]["move_cost"], 1.5);
}

#[test]
fn rules_are_refused_with_table_row_and_column() {
    let nodes = |column: &str, values: ArrayRef| ("nodes.parquet", column.to_owned(), values);
    let text = |values: [&str; 3]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
    let whole_numbers = |of: [i64; 3]| -> ArrayRef { Arc::new(Int64Array::from(of.to_vec())) };
    let floats = |of: [f64; 3]| -> ArrayRef { Arc::new(Float64Array::from(of.to_vec())) };
    for ((table, column, values), said) in [
        (
            nodes("capacity.gpu", whole_numbers([1, 2, 3])),
            "row \"n1\", column \"capacity.gpu\": there is no such metric",
        ),
        (
            nodes("capacity.cpu", whole_numbers([1, 2, -3])),
            "row \"n3\", column \"capacity.cpu\": is -3; it must be from 0",
        ),
        (
            nodes("capacity.cpu", floats([1.0, 2.5, 3.0])),
            "row 2, column \"capacity.cpu\": is 2.5; it must be a whole number",
        ),
        (
            nodes("capacity.cpu", text(["1", "2", "3"])),
            "column \"capacity.cpu\": is of type Utf8; it must hold whole numbers",
        ),
        (
            nodes("state", text(["up", "up", "idle"])),
            "row 3, column \"state\": is \"idle\"; it must be up, closed",
        ),
        (nodes("cpu", whole_numbers([1, 2, 3])), "column \"cpu\": the format has no such column"),
        (nodes("label.", text(["", "", ""])), "column \"label.\": the format has no such column"),
        (
            nodes("domain.node", text(["a", "b", "c"])),
            "columns: \"node\" is the level of the nodes",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let mut file = whole();
        file["objective"]["failovers"]["levels"] = json!([]);
        fs::write(at("a.json"), file.to_string()).expect("writes");
        convert(&at("a.json"), &at("tables")).expect("is a cluster");
        let named = (0..3).map(|node| ["n1", "n2", "n3"][node]);
        let arrays = vec![ids(named), values];
        let field =
            |(name, array): (&str, &ArrayRef)| Field::new(name, array.data_type().clone(), true);
        let fields: Vec<Field> = ["name", &column].into_iter().zip(&arrays).map(field).collect();
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::default();
        write_columns(&at("tables").join(table), &schema, properties, &[(); 3], |_| {
            Ok(arrays.clone())
        })
        .expect("writes");
        let error = read(&at("tables")).expect_err("it breaks a rule").to_string();
        let expected = format!("{}: {said}", at("tables").join(table).display());
        assert!(error.starts_with(&expected), "{error}\n{expected}");
    }
}

#[test]
fn members_that_break_a_rule_are_found_in_their_tables() {
    for (pointer, value, said) in [
        (
            "/services/0/partitions/0/1/node",
            json!("n9"),
            "replicas.parquet: row \"db-1\", column \"node\": there is no node",
        ),
        (
            "/services/0/partitions/0/1/name",
            json!("db-0"),
            "replicas.parquet: row \"db-0\", column \"name\": \"db-0\" stands twice",
        ),
        (
            "/services/0/partitions/0/0/demand/cpu",
            json!(-1),
            "replicas.parquet: row \"db-0\", column \"demand.cpu\": is -1",
        ),
        (
            "/services/0/move_cost",
            json!(-1.0),
            "replicas.parquet: row \"db-0\", column \"move_cost\": must be",
        ),
        (
            "/services/1/name",
            json!("db"),
            "services.parquet: row \"db\", column \"name\": \"db\" stands twice",
        ),
        (
            "/services/0/spread/0",
            json!("row"),
            "rules.parquet: row \"db/spread\", column \"key\": no node has",
        ),
        (
            "/services/0/blocked_nodes/0",
            json!("n9"),
            "rules.parquet: row \"db/blocked_node\", column \"value\": there is no node",
        ),
        (
            "/services/1/near/0/level",
            json!("row"),
            "rules.parquet: row \"api/near\", column \"key\": no node has",
        ),
        (
            "/services/1/near/0/service",
            json!("x"),
            "rules.parquet: row \"api/near\", column \"value\": there is no service",
        ),
        (
            "/services/1/preferred/0/weight",
            json!(-1.0),
            "preferences.parquet: row \"api/preferred\", column \"weight\": must be from 0",
        ),
        (
            "/services/1/preferred/0/labels/gpu",
            json!(["yes"]),
            "preferences.parquet: row \"api/preferred\", column \"key\": no node has",
        ),
        (
            "/services/1/spread_softly/0/level",
            json!("row"),
            "preferences.parquet: row \"api/spread_softly\", column \"key\": no node has",
        ),
        (
            "/objective/failovers/fragmentation",
            json!(2.0),
            "cluster.json: objective.failovers.fragmentation: must be",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = whole();
        *file.pointer_mut(pointer).expect("a member") = value;
        let root = serde_json::from_value(file).expect("has the members");
        super::write(folder.path(), root).expect("the writer checks no rule");
        let error = read(folder.path()).expect_err("it breaks a rule").to_string();
        assert!(error.starts_with(&format!("{}/{said}", folder.path().display())), "{error}");
    }
}

#[test]
fn rows_of_a_series_follow_each_other() {
    let minutes = |of: [i64; 3]| -> ArrayRef { Arc::new(Int64Array::from(of.to_vec())) };
    let cpu = |of: [Option<i64>; 3]| -> ArrayRef { Arc::new(Int64Array::from(of.to_vec())) };
    let all = [Some(1), Some(2), Some(3)];
    for (minute, demand, said) in [
        (minutes([40, 40, 50]), cpu(all), None),
        (
            minutes([0, 0, 20]),
            cpu(all),
            Some("row 3, column \"minute\": is 20; it must be 10 after 0"),
        ),
        (
            minutes([0, 0, 10]),
            cpu([Some(1), None, None]),
            Some("row 3, column \"demand.cpu\": has a value in some"),
        ),
        (
            minutes([0, 0, 10]),
            cpu([None, None, Some(1)]),
            Some("row 3, column \"demand.cpu\": has a value in some"),
        ),
        (
            minutes([0, 0, 10]),
            cpu([None, Some(1), None]),
            Some("row \"web/a\", column \"demand\": has no demand"),
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = whole();
        file["history"] = json!({"step_minutes": 10, "series": []});
        let root = serde_json::from_value(file).expect("has the members");
        super::write(folder.path(), root).expect("writes");
        let table = folder.path().join("history.parquet");
        let columns = ["class", "series", "minute", "demand.cpu"];
        let arrays =
            [ids(["web"; 3].into_iter()), ids(["a", "b", "a"].into_iter()), minute, demand];
        let field =
            |(name, array): (&str, &ArrayRef)| Field::new(name, array.data_type().clone(), true);
        let schema = Schema::new(columns.into_iter().zip(&arrays).map(field).collect::<Vec<_>>());
        let properties = WriterProperties::default();
        write_columns(&table, &Arc::new(schema), properties, &[(); 3], |_| Ok(arrays.to_vec()))
            .expect("writes");
        let error = read(folder.path()).err().map(|error| error.to_string());
        let is_as_said = match (&error, said) {
            (Some(error), Some(said)) => error.contains(said),
            (None, None) => true,
            _ => false,
        };
        assert!(is_as_said, "{error:?}, not {said:?}");
    }
}

#[test]
fn preferences_are_refused_with_row_and_column() {
    let none = [None; 4];
    for (preference, [number, key, value, role], weight, said) in [
        ("spread_softly", [None, Some("rack"), None, None], Some(0.5), None),
        ("preferred", [Some("0"), Some("disk"), Some("ssd"), Some("primary")], Some(0.5), None),
        ("preferred", [Some("0"), None, None, None], Some(0.5), None),
        ("likes", none, Some(1.0), Some("\"preference\": is \"likes\"; it must be preferred or")),
        ("spread_softly", none, None, Some("\"weight\": is null")),
        ("spread_softly", none, Some(1.0), Some("\"key\": is null")),
        (
            "spread_softly",
            [None, Some("rack"), Some("r1"), None],
            Some(1.0),
            Some("\"value\": must be null"),
        ),
        ("preferred", none, Some(1.0), Some("\"number\": is null")),
        ("preferred", [Some("0"), Some("disk"), None, None], Some(1.0), Some("\"value\": is null")),
        ("preferred", [Some("0"), None, Some("ssd"), None], Some(1.0), Some("\"key\": is null")),
        (
            "preferred",
            [Some("0"), None, None, Some("boss")],
            Some(1.0),
            Some("\"role\": is \"boss\""),
        ),
    ] {
        let rows = [(number, key, value, role, weight)];
        is_refused(
            preferences(preference, &rows),
            said.map(|said| format!("row 1, column {said}")),
        );
    }
    // Rows of one number are one preference.
    let row = |weight, role| (Some("7"), Some("disk"), Some("hdd"), role, Some(weight));
    for (other, said) in [
        (row(0.5, None), None),
        (row(0.6, None), Some("row 2, column \"weight\": differs from another row")),
        (row(0.5, Some("primary")), Some("row 2, column \"role\": differs from another row")),
    ] {
        let first = (Some("7"), Some("disk"), Some("ssd"), None, Some(0.5));
        is_refused(preferences("preferred", &[first, other]), said.map(str::to_owned));
    }
}

fn is_refused(error: Option<String>, said: Option<String>) {
    match (error, said) {
        (Some(error), Some(said)) => assert!(error.starts_with(&said), "{error}, not {said}"),
        (error, said) => assert_eq!(error, said),
    }
}

/// Number, key, value, role and weight.
type PreferenceCells<'c> =
    (Option<&'c str>, Option<&'c str>, Option<&'c str>, Option<&'c str>, Option<f64>);

/// What is wrong with a table of preferences of the service `api`.
fn preferences(preference: &str, rows: &[PreferenceCells]) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let root = serde_json::from_value(whole()).expect("has the members");
    super::write(folder.path(), root).expect("writes");
    let count = rows.len();
    let numbers = rows.iter().map(|of| of.0.map(|number| number.parse().expect("a number")));
    let numbers: ArrayRef = Arc::new(numbers.collect::<Int64Array>());
    let weights: ArrayRef = Arc::new(rows.iter().map(|of| of.4).collect::<Float64Array>());
    let columns = [
        ("service", ids(std::iter::repeat_n("api", count))),
        ("preference", ids(std::iter::repeat_n(preference, count))),
        ("number", numbers),
        ("key", names(rows.iter().map(|of| of.1))),
        ("value", names(rows.iter().map(|of| of.2))),
        ("role", names(rows.iter().map(|of| of.3))),
        ("weight", weights),
    ];
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays: Vec<ArrayRef> = columns.into_iter().map(|(_, array)| array).collect();
    let table = folder.path().join("preferences.parquet");
    write_columns(&table, &schema, WriterProperties::default(), &vec![(); count], |_| {
        Ok(arrays.clone())
    })
    .expect("writes");
    let error = read(folder.path()).err()?.to_string();
    Some(error.strip_prefix(&format!("{}: ", table.display())).expect("names the table").to_owned())
}

/// A data frame's numbers are floating point where one is missing, and its texts are plain.
#[test]
fn tables_of_pandas_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(
        at("cluster.json"),
        json!({"format": "ras-cluster/1", "name": "c", "metrics": [{"name": "cpu"}]}).to_string(),
    )
    .expect("writes");
    let table = |name: &str, columns: Vec<(&str, ArrayRef)>| {
        let field =
            |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let arrays: Vec<ArrayRef> = columns.into_iter().map(|(_, array)| array).collect();
        let rows = vec![(); arrays[0].len()];
        write_columns(&at(name), &schema, WriterProperties::default(), &rows, |_| {
            Ok(arrays.clone())
        })
        .expect("writes");
    };
    let floats = |of: [f64; 2]| -> ArrayRef { Arc::new(Float64Array::from(of.to_vec())) };
    let text = |of: [&'static str; 2]| ids(of.into_iter());
    let index: ArrayRef = Arc::new(Int64Array::from(vec![4, 7]));
    table(
        "nodes.parquet",
        vec![
            ("name", text(["n1", "n2"])),
            ("capacity.cpu", floats([100.0, f64::NAN])),
            ("__index_level_0__", index),
        ],
    );
    table("services.parquet", vec![("name", text(["a", "b"]))]);
    // The replicas of a service need not stand together.
    table(
        "replicas.parquet",
        vec![
            ("name", ids(["b0", "a0", "b1"].into_iter())),
            ("service", ids(["b", "a", "b"].into_iter())),
            ("partition", Arc::new(Int64Array::from(vec![3, 0, 3]))),
            ("node", names([None, Some("n2"), Some("n1")].into_iter())),
        ],
    );
    let cluster = read(folder.path()).expect("a cluster without rules");
    let capacities: Vec<_> = cluster.nodes.iter().map(|node| node.capacity[0]).collect();
    assert_eq!(capacities, [Some(100), None]);
    let replicas: Vec<&str> = cluster.replicas.iter().map(|of| of.name.as_str()).collect();
    assert_eq!((replicas, cluster.groups.len()), (vec!["a0", "b0", "b1"], 1));
}

/// State, rack, label and capacity.
type NodeDrawn = (usize, Option<u8>, Option<u8>, Option<i64>);
/// Role, node, demand and move cost.
type ReplicaDrawn = (usize, Option<prop::sample::Index>, Option<i64>, Option<f64>);
/// Partitions, move cost, which rules it has, and their number.
type ServiceDrawn = (Vec<Vec<ReplicaDrawn>>, f64, [bool; 8], u32);

/// A small cluster, valid by construction.
fn cluster() -> impl Strategy<Value = Value> {
    let node = (
        0..4_usize,
        prop::option::of(0..3_u8),
        prop::option::of(0..2_u8),
        prop::option::of(0..99_i64),
    );
    let replica = (
        0..3_usize,
        prop::option::of(any::<prop::sample::Index>()),
        prop::option::of(0..99_i64),
        prop::option::of(0.0..9.0),
    );
    let partitions = prop::collection::vec(prop::collection::vec(replica, 1..4), 0..4);
    let service = (partitions, 0.0..9.0, any::<[bool; 8]>(), 0..4_u32);
    let parts = (prop::collection::vec(node, 1..5), prop::collection::vec(service, 0..5));
    parts.prop_map(|(nodes, services)| {
        let mut number = 0;
        let has_rack = nodes.iter().any(|of| of.1.is_some());
        let has_kind = nodes.iter().any(|of| of.2 == Some(0));
        let level = if has_rack { "rack" } else { "node" };
        let node = |(at, (state, rack, label, cpu)): (usize, &NodeDrawn)| {
            let mut node = json!({"name": format!("n{at}"), "state": (["up", "closed", "draining", "down"][*state]), "capacity": {}});
            if let Some(rack) = rack { node["domains"] = json!({"rack": format!("r{rack}")}); }
            if let Some(label) = label { node["labels"] = json!({"kind": format!("k{label}")}); }
            if let Some(cpu) = cpu { node["capacity"]["cpu"] = json!(cpu); }
            node
        };
        let written: Vec<Value> = nodes.iter().enumerate().map(node).collect();
        let count = services.len();
        let service = |(at, (partitions, move_cost, has, limit)): (usize, ServiceDrawn)| {
            let mut replica = |(role, node, cpu, cost): ReplicaDrawn| {
                number += 1;
                let mut it = json!({"name": format!("r{number}"), "role": (["primary", "secondary", "instance"][role])});
                if let Some(node) = node { it["node"] = json!(format!("n{}", node.index(nodes.len()))); }
                if let Some(cpu) = cpu { it["demand"] = json!({"cpu": cpu}); }
                if let Some(cost) = cost { it["move_cost"] = json!(cost); }
                it
            };
            let partitions: Vec<Vec<Value>> = partitions.into_iter().map(|of| of.into_iter().map(&mut replica).collect()).collect();
            let mut it = json!({"name": format!("s{at}"), "move_cost": move_cost, "partitions": partitions});
            let other = json!([{"service": format!("s{}", (at + 1) % count), "level": level}]);
            if has[0] && has_rack { it["spread"] = json!(["rack"]); }
            if has[1] { it["labels"] = json!({"kind": ["k0"]}); }
            if has[2] { it["blocked_nodes"] = json!(["n0"]); }
            if has[3] { it["at_least"] = json!({level: limit}); }
            if has[4] && count > 1 { it["near"] = other.clone(); }
            if has[5] && count > 1 { it["apart"] = other; }
            if has[6] && has_kind {
                it["preferred"] = json!([{"labels": {"kind": ["k0", "k1"]}, "weight": move_cost, "role": "primary"},
                    {"labels": {"kind": ["k0"]}, "weight": 0.5}]);
            }
            if has[7] { it["spread_softly"] = json!([{"level": level, "weight": 0.25}]); }
            it
        };
        let services: Vec<Value> = services.into_iter().enumerate().map(service).collect();
        let mut file = json!({"format": "ras-cluster/1", "name": "c", "metrics": [{"name": "cpu", "transient": true}],
            "nodes": written, "objective": {"failovers": {"fragmentation": 0.5, "levels": [level]}}});
        if !services.is_empty() { file["services"] = json!(services); }
        file
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_cluster_is_the_same_in_both_forms(file in cluster()) {
        prop_assert_eq!(there_and_back(&file), file);
    }

    #[test]
    fn a_cluster_is_written_as_it_is(mut file in cluster()) {
        // A cluster has preferences of groups, which no service need have.
        let services = file.get_mut("services").and_then(Value::as_array_mut);
        for service in services.into_iter().flatten() {
            let members = service.as_object_mut().expect("a service");
            members.retain(|member, _| member != "preferred" && member != "spread_softly");
        }
        // A service without replicas has no group that a rule could be about.
        let services = file["services"].as_array().cloned().unwrap_or_default();
        prop_assume!(services.iter().all(|of| of["partitions"] != json!([])));
        let [written, again] = through_cluster(&file);
        prop_assert_eq!(written, again);
    }
}

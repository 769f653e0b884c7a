//! `ras-cluster/1`: a cluster as one JSON file, with the members that `schema` names, or as a folder of
//! tables.
//!
//! Amounts are whole numbers in the smallest unit of their metric. A service lists its replicas by
//! partition; replicas of a partition never share a node.

use super::ClusterError;
use super::broken::{Broken, broken, not_read};
use super::history::History;
use super::reader::{cluster_of, history_of};
use super::reservation::{ServerNode, nodes_of};
use super::schema::{CLUSTER_FORMAT, Root};
use super::tables;
use super::whole_file::write_whole;
use super::written::members_of;
use placement::Cluster;
use std::fs;
use std::path::Path;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// Reads a cluster: a JSON file, or a folder of tables.
pub fn read(path: &Path) -> Result<Cluster, ClusterError> {
    read_members(path, own_nodes).map(|(_, cluster)| cluster)
}

/// Reads a cluster and the history of demands beside it.
pub fn read_with_history(path: &Path) -> Result<(Cluster, Option<History>), ClusterError> {
    let (root, cluster) = read_members(path, own_nodes)?;
    let history = history_of(&root).map_err(|(at, rule)| member(path, at, rule))?;
    Ok((cluster, history))
}

/// Reads a cluster whose nodes are the servers of a reservation: the file, or folder, has
/// `hardware_types` in place of nodes.
///
/// # Errors
/// As [`read`], and if a server is of a hardware type that the file does not name.
pub fn read_on(path: &Path, servers: &[ServerNode]) -> Result<Cluster, ClusterError> {
    read_members(path, |root| nodes_of(servers, root)).map(|(_, cluster)| cluster)
}

/// Writes a cluster as a folder of tables, or as JSON where `path` ends with `.json`, in place of an
/// earlier one if there is one.
///
/// # Errors
/// If the system refuses, or the format has no words for a rule or the objective: rules of the format
/// are about partitions and whole services.
pub fn write(path: &Path, cluster: &Cluster) -> Result<(), ClusterError> {
    let members = members_of(cluster).map_err(|(at, rule)| member(path, at, rule))?;
    write_members(path, members)
}

/// Writes what one file or folder holds as the other form.
///
/// # Errors
/// As [`read`] and [`write()`].
pub fn convert(from: &Path, to: &Path) -> Result<(), ClusterError> {
    let (root, _) = read_members(from, own_nodes)?;
    write_members(to, root)
}

fn write_members(path: &Path, root: Root) -> Result<(), ClusterError> {
    if path.extension().is_none_or(|extension| extension != "json") {
        return Ok(tables::write(path, root)?);
    }
    write_whole(path, |out| Ok(serde_json::to_writer_pretty(out, &root)?))
}

fn member(file: &Path, at: impl Into<String>, rule: impl Into<String>) -> ClusterError {
    ClusterError::Member { file: file.to_owned(), at: at.into(), rule: rule.into() }
}

/// Reads members and what they say; `nodes` completes the nodes or refuses them.
fn read_members(
    path: &Path,
    nodes: impl FnOnce(&mut Root) -> Result<(), Broken>,
) -> Result<(Root, Cluster), ClusterError> {
    let is_folder = path.is_dir();
    let file = if is_folder { &path.join(tables::CLUSTER_FILE) } else { path };
    let length = fs::metadata(file).map_err(ClusterError::file(file))?.len();
    if length > LARGEST {
        let rule = format!("has {length} bytes; at most {LARGEST} are read");
        return Err(member(file, "the file", rule));
    }
    let text = fs::read(file).map_err(ClusterError::file(file))?;
    let mut root = parse(&text).map_err(|(at, rule)| member(file, at, rule))?;
    if is_folder {
        tables::read(path, &mut root)?;
    }
    match nodes(&mut root).and_then(|()| cluster_of(&root)) {
        Ok(cluster) => Ok((root, cluster)),
        Err((at, rule)) if is_folder => {
            let (table, at) = tables::place_of(&root, &at);
            Err(member(&path.join(table), at, rule))
        }
        Err((at, rule)) => Err(member(file, at, rule)),
    }
}

fn parse(text: &[u8]) -> Result<Root, Broken> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let root: Root =
        serde_path_to_error::deserialize(&mut json).map_err(|error| not_read(&error))?;
    json.end().map_err(|error| ("the file".to_owned(), error.to_string()))?;
    if root.format != CLUSTER_FORMAT {
        return Err(broken(
            "format",
            format!("is {:?}; this reads {CLUSTER_FORMAT:?}", root.format),
        ));
    }
    Ok(root)
}

fn own_nodes(root: &mut Root) -> Result<(), Broken> {
    match root.hardware_types.is_empty() {
        true => Ok(()),
        false => Err(broken("hardware_types", "is for the servers of a reservation; name nodes")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::broken::Broken;
    use super::{cluster_of, own_nodes, parse};
    use placement::{Cluster, Limits, search};
    use serde_json::{Value, json};

    fn whole() -> Value {
        json!({
            "format": "ras-cluster/1",
            "name": "orders",
            "metrics": [{"name": "cpu"}, {"name": "disk", "transient": true}],
            "nodes": [
                {"name": "n1", "domains": {"rack": "r1"}, "labels": {"disk": "ssd"}, "capacity": {"cpu": 100}},
                {"name": "n2", "domains": {"rack": "r1"}, "labels": {"disk": "ssd"}, "capacity": {"cpu": 100}},
                {"name": "n3", "domains": {"rack": "r2"}, "labels": {"disk": "hdd"}, "capacity": {"cpu": 100}},
                {"name": "n4", "labels": {"disk": "ssd"}, "capacity": {"cpu": 100}}
            ],
            "services": [
                {"name": "db", "spread": ["rack"], "labels": {"disk": ["ssd"]}, "partitions": [[
                    {"name": "db-0", "role": "primary", "node": "n1", "demand": {"cpu": 60, "disk": 7}},
                    {"name": "db-1", "role": "secondary", "node": "n2", "demand": {"cpu": 60}}
                ]]},
                {"name": "api", "near": [{"service": "db", "level": "rack"}],
                 "apart": [{"service": "batch", "level": "node"}],
                 "partitions": [[{"name": "api-0", "demand": {"cpu": 30}}]]},
                {"name": "batch", "partitions": [[{"name": "batch-0", "node": "n1", "demand": {"cpu": 5}}]]}
            ]
        })
    }

    fn read(file: &Value) -> Result<Cluster, Broken> {
        let mut root = parse(file.to_string().as_bytes())?;
        own_nodes(&mut root)?;
        cluster_of(&root)
    }

    #[test]
    fn rules_of_a_file_hold_in_the_answer() {
        let cluster = read(&whole()).expect("it is whole");
        let found = search(&cluster, &Limits::rounds(1));
        assert!(found.violations.is_empty(), "{:?}", found.violations);
        let node = |name: &str| {
            let at = cluster.replicas.iter().position(|replica| replica.name == name);
            let node = found.assignment[at.expect("a replica")].expect("a node");
            cluster.nodes[node.ix()].name.as_str()
        };
        // One of the two leaves rack r1 for the only other node with an SSD.
        assert_eq!(found.value.total, 1.0);
        assert!([node("db-0"), node("db-1")].contains(&"n4"));
        assert_ne!(node("api-0"), node("batch-0"));
    }

    #[test]
    fn fewest_nodes_is_an_objective() {
        let mut file = whole();
        file["objective"] = json!({"fewest_nodes": {}});
        let cluster = read(&file).expect("it is whole");
        let found = search(&cluster, &Limits::rounds(10));
        assert!(found.violations.is_empty(), "{:?}", found.violations);
        // Replicas of `db` are in two racks; `batch` may join one of them, `api` is near them.
        assert_eq!(found.value.total, 2.0);
    }

    #[test]
    fn preferences_of_a_file_are_weighed_against_moves() {
        let mut file = whole();
        file["services"][0]["spread"] = json!([]);
        file["services"][0]["spread_softly"] = json!([{"level": "rack", "weight": 0.5}]);
        file["services"][2]["preferred"] = json!([
            {"labels": {"disk": ["hdd"]}, "role": "instance", "weight": 1.5}
        ]);
        file["objective"] = json!({"failovers": {"balance": 0.25}});
        let cluster = read(&file).expect("it is whole");
        let found = search(&cluster, &Limits::rounds(1));
        assert_eq!(found.violations, []);
        // The only node with a disk of the other kind is worth a move, a rack of one's own is not.
        let terms = |name: &str| found.value.terms[name];
        assert_eq!((terms("moves"), terms("preferred"), terms("spread")), (1.0, 0.0, 0.5));
        assert!(terms("balance") > 0.0 && terms("balance") < 0.25);
        file["objective"] = json!({"balance": {}});
        let (at, rule) = read(&file).expect_err("not weighed");
        assert_eq!(at, "services[0]");
        assert!(rule.contains("only objective.failovers"), "{rule}");
    }

    #[test]
    fn amounts_that_add_up_to_too_much_are_refused() {
        let most = 1_000_000_000_000_000_i64;
        let replica = |at: usize| json!([{"name": format!("r{at}"), "demand": {"cpu": most}}]);
        let mut file = whole();
        file["services"][2]["partitions"] = (0..5_000).map(replica).collect();
        let (at, rule) = read(&file).expect_err("too much");
        assert_eq!(at, "metric \"cpu\"");
        assert!(rule.contains("add up to more than"), "{rule}");
    }

    #[test]
    fn broken_files_are_refused_with_member_and_rule() {
        let broken = [
            ("/format", json!("ras-cluster/9"), "format", "this reads \"ras-cluster/1\""),
            ("/nodes/1/name", json!("n1"), "nodes[1].name", "stands twice"),
            ("/nodes/0/capacity/cpu", json!(-1), "nodes[0].capacity.cpu", "must be from 0"),
            ("/nodes/0/capacity/cpu", json!(0.5), "nodes[0].capacity.cpu", "invalid type"),
            ("/services/0/spread/0", json!("row"), "services[0].spread[0]", "no node has a domain"),
            (
                "/services/0/partitions/0/0/node",
                json!("n9"),
                "services[0].partitions[0][0].node",
                "no node",
            ),
            ("/services/0/partitions/0/1/name", json!("db-0"), "replicas[1].name", "stands twice"),
            ("/services/1/near/0/service", json!("x"), "services[1].near[0].service", "no service"),
            (
                "/services/1/near/0/service",
                json!("api"),
                "services[1].near[0].service",
                "near itself",
            ),
            (
                "/services/1/preferred",
                json!([{"labels": {"disk": ["tape"]}, "weight": 1}]),
                "services[1].preferred[0].labels",
                "no node has these labels",
            ),
            (
                "/services/1/preferred",
                json!([{"labels": {"disk": ["hdd"]}, "weight": -1}]),
                "services[1].preferred[0].weight",
                "must be from 0",
            ),
            (
                "/services/0/spread_softly",
                json!([{"level": "row", "weight": 1}]),
                "services[0].spread_softly[0].level",
                "no node has a domain",
            ),
            (
                "/services/0/spread_softly",
                json!([{"level": "rack"}]),
                "services[0].spread_softly[0]",
                "missing field `weight`",
            ),
            ("/services/2/colour", json!(1), "services[2].colour", "unknown field"),
        ];
        for (pointer, value, at, rule) in broken {
            let mut file = whole();
            match file.pointer_mut(pointer) {
                Some(member) => *member = value,
                None => {
                    let (parent, member) = pointer.rsplit_once('/').expect("a path");
                    file.pointer_mut(parent).expect("a member")[member] = value;
                }
            }
            let (found_at, found_rule) = read(&file).expect_err("it breaks a rule");
            assert_eq!(found_at, at);
            assert!(found_rule.contains(rule), "{found_rule}");
        }
    }
}

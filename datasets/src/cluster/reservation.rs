//! The servers of a reservation as nodes.

use super::broken::{Broken, broken};
use super::schema::{NodeOf, Root, StateOf};
use fleet::{RegionSnapshot, ReservationIx, Server};
use std::collections::BTreeMap;

/// The label of a node that names its hardware type.
const HARDWARE_TYPE: &str = "hardware_type";

/// A server of a reservation, as a node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerNode {
    /// The server.
    pub name: String,
    /// Whether it takes replicas.
    pub state: placement::NodeState,
    /// Its hardware type.
    pub hardware_type: String,
    /// Its rack.
    pub rack: String,
    /// Its MSB.
    pub msb: String,
    /// Its datacenter.
    pub datacenter: String,
}

/// The servers that a reservation has now. Unavailable servers are down, and servers that leave the
/// reservation drain.
pub fn servers_of(snapshot: &RegionSnapshot, reservation: ReservationIx) -> Vec<ServerNode> {
    let of = |server: &Server| {
        let (msb, datacenter) = (snapshot.msb_of(server), snapshot.datacenter_of(server));
        let leaves = server.pending.is_some_and(|pending| pending.target != Some(reservation));
        ServerNode {
            name: server.id.to_string(),
            state: match (server.available, leaves) {
                (false, _) => placement::NodeState::Down,
                (true, true) => placement::NodeState::Draining,
                (true, false) => placement::NodeState::Up,
            },
            hardware_type: snapshot.hardware_types[server.hardware_type.ix()].to_string(),
            rack: snapshot.racks[server.rack.ix()].id.to_string(),
            msb: snapshot.msbs[msb.ix()].id.to_string(),
            datacenter: snapshot.datacenters[datacenter.ix()].id.to_string(),
        }
    };
    let own = snapshot.servers.iter().filter(|server| server.current == Some(reservation));
    own.map(of).collect()
}

/// Makes nodes of servers. Their levels are `rack`, `msb` and `datacenter`.
pub fn nodes_of(servers: &[ServerNode], root: &mut Root) -> Result<(), Broken> {
    if !root.nodes.is_empty() {
        return Err(broken(
            "nodes",
            "must be absent: the nodes are the servers of the reservation",
        ));
    }
    if servers.is_empty() {
        return Err(broken("nodes", "the reservation has no server"));
    }
    let mut nodes = Vec::new();
    for server in servers {
        let hardware = &server.hardware_type;
        let capacity = root.hardware_types.get(hardware).ok_or_else(|| {
            let rule = format!("has no {hardware:?}, which server {} is", server.name);
            broken("hardware_types", rule)
        })?;
        nodes.push(NodeOf {
            name: server.name.clone(),
            state: match server.state {
                placement::NodeState::Up => StateOf::Up,
                placement::NodeState::Closed => StateOf::Closed,
                placement::NodeState::Draining => StateOf::Draining,
                placement::NodeState::Down => StateOf::Down,
            },
            domains: BTreeMap::from([
                ("rack".to_owned(), server.rack.clone()),
                ("msb".to_owned(), server.msb.clone()),
                ("datacenter".to_owned(), server.datacenter.clone()),
            ]),
            labels: BTreeMap::from([(HARDWARE_TYPE.to_owned(), hardware.clone())]),
            capacity: capacity.clone(),
        });
    }
    root.nodes = nodes;
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::cluster::{read_on, servers_of};
    use placement::{Limits, NodeState, search};
    use serde_json::json;
    use testkit::rows;

    /// The first reservation has eight servers in three MSBs; the service's two replicas are apart.
    fn file() -> serde_json::Value {
        let replica = |name: &str| json!({"name": name, "demand": {"cpu": 40}});
        json!({
            "format": "ras-cluster/1",
            "name": "web",
            "metrics": [{"name": "cpu"}],
            "hardware_types": {"type": {"cpu": 64}},
            "services": [{
                "name": "db",
                "spread": ["msb"],
                "labels": {"hardware_type": ["type"]},
                "partitions": [[replica("db-0"), replica("db-1")]],
            }],
        })
    }

    #[test]
    fn servers_of_a_reservation_become_nodes() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().join("web.json");
        let mut parts = rows::two_reservations(["web", "batch"], 2.0, 1.0);
        parts.taken_at = rows::noon();
        // s00 is lost, s01 leaves for the other reservation, s08 is not ours.
        parts.unavailability.push(rows::event(1, "server", "s00", "random_failure"));
        parts.servers[1].target_pending = true;
        parts.servers[1].target_reservation = Some("batch".into());
        let snapshot = rows::snapshot(&parts);
        let web = snapshot.reservation("web").expect("the reservation");
        let read = |file: &serde_json::Value| {
            std::fs::write(&name, file.to_string()).expect("writes");
            read_on(&name, &servers_of(&snapshot, web)).map_err(|error| error.to_string())
        };
        let cluster = read(&file()).expect("a whole file");
        let states: Vec<NodeState> = cluster.nodes.iter().map(|node| node.state).collect();
        assert_eq!(states[..3], [NodeState::Down, NodeState::Draining, NodeState::Up]);
        assert_eq!((cluster.nodes.len(), cluster.nodes[2].capacity[0]), (8, Some(64)));
        let levels: Vec<&str> = cluster.levels.iter().map(|level| level.name.as_str()).collect();
        assert_eq!(levels, ["node", "datacenter", "msb", "rack"]);
        let found = search(&cluster, &Limits::rounds(10));
        let msbs: Vec<usize> = (found.assignment.iter().flatten())
            .map(|node| cluster.levels[2].domain_of[node.ix()].ix())
            .collect();
        assert!(found.violations.is_empty() && msbs.len() == 2 && msbs[0] != msbs[1], "{msbs:?}");

        for (pointer, value, said) in [
            ("/hardware_types", json!({}), "hardware_types: has no \"type\", which server s00 is"),
            ("/nodes", json!([{"name": "n", "capacity": {}}]), "nodes: must be absent"),
        ] {
            let mut file = file();
            file[&pointer[1..]] = value;
            let error = read(&file).expect_err("it breaks a rule");
            assert!(error.contains(said), "{error}");
        }
    }
}

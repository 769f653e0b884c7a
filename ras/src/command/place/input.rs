//! The cluster of a file: its own format, a model of the challenge, pods of Kubernetes, or services on the servers of
//! a reservation, or items of bin packing.

use crate::cli::{ClusterInput, ServerOptions};
use crate::client::login::Server;
use crate::command::api::read::servers_of;
use crate::command::explain_result::suggestion;
use crate::mistake::Hinted;
use crate::results::read_snapshot;
use anyhow::{Result, bail};
use api_types::reservations::ServerOfReservation;
use datasets::cluster::{self, ServerNode, kubernetes, roadef, vectorpack};
use placement::{Cluster, NodeState};

/// The cluster, and what of the input it leaves out.
pub(super) fn read(
    options: &ClusterInput,
    server: &ServerOptions,
) -> Result<(Cluster, Vec<String>)> {
    let file = &options.cluster;
    if let Some(assignment) = &options.assignment {
        return Ok((roadef::read(file, assignment)?, Vec::new()));
    }
    if file.extension().is_some_and(|extension| extension == "vbp") {
        return Ok((vectorpack::read(file)?, Vec::new()));
    }
    if !file.is_dir() && !file.to_string_lossy().ends_with(".json") {
        let what = format!("{}: is no .json or .vbp file and no folder", file.display());
        let hint = "a model of the ROADEF/EURO challenge needs --assignment FILE";
        return Err(Hinted::new(what, hint).into());
    }
    match (&options.snapshot, &options.reservation) {
        (Some(folder), Some(name)) => {
            let snapshot = read_snapshot(folder)?;
            let Some(reservation) = snapshot.reservation(name) else {
                bail!("no reservation {name:?}{}", suggestion(&snapshot, name));
            };
            let servers = cluster::servers_of(&snapshot, reservation);
            return Ok((cluster::read_on(file, &servers)?, Vec::new()));
        }
        (None, Some(name)) => {
            let servers = servers_of(name, Server::of(server)?)?;
            let servers = servers.iter().map(node_of).collect::<Result<Vec<_>>>()?;
            return Ok((cluster::read_on(file, &servers)?, Vec::new()));
        }
        // A snapshot requires a reservation.
        (_, None) => {}
    }
    if file.is_file() && kubernetes::is_list(file) {
        let imported = kubernetes::read(file)?;
        return Ok((imported.cluster, imported.notes));
    }
    Ok((cluster::read(file)?, Vec::new()))
}

/// A server as its reservation has it now. One that is on its way to the reservation, or lent to another one, takes
/// nothing yet.
fn node_of(server: &ServerOfReservation) -> Result<ServerNode> {
    Ok(ServerNode {
        name: server.server.to_string(),
        state: match &*server.state {
            "available" | "borrowed" => NodeState::Up,
            "arriving" | "on_loan" => NodeState::Closed,
            "leaving" => NodeState::Draining,
            "in_maintenance" | "unavailable" => NodeState::Down,
            other => bail!("server {}: state {other:?} is not known here", server.server),
        },
        hardware_type: server.hardware_type.to_string(),
        rack: server.rack.to_string(),
        msb: server.msb.to_string(),
        datacenter: server.datacenter.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::{ServerOfReservation, node_of};
    use broker::ServerState;
    use placement::NodeState;

    fn server(name: &str) -> ServerOfReservation {
        ServerOfReservation {
            server: name.into(),
            state: "available".into(),
            bound: true,
            in_use: false,
            datacenter: "dc1".into(),
            msb: "m1".into(),
            rack: "r1".into(),
            hardware_type: "C1".into(),
            rru: 1.0,
            loaned_to: None,
        }
    }

    /// Every state that a region knows is known here, and replicas go to no server but those on which its
    /// allocator may place containers.
    #[test]
    fn replicas_go_to_servers_that_take_containers() {
        for state in ServerState::ALL {
            let server = ServerOfReservation { state: state.as_str().into(), ..server("s1") };
            let node = node_of(&server).expect("the state is known");
            let takes = matches!(state, ServerState::Available | ServerState::Borrowed);
            assert_eq!(node.state == NodeState::Up, takes, "{state:?}");
            // What runs there must leave in time, or is lost.
            let ends = matches!(
                state,
                ServerState::Leaving | ServerState::InMaintenance | ServerState::Unavailable
            );
            assert_eq!(node.state.holds(), !ends, "{state:?}");
        }
        let unknown = ServerOfReservation { state: "asleep".into(), ..server("s2") };
        let error = node_of(&unknown).expect_err("there is no such state").to_string();
        assert!(error.contains("s2") && error.contains("asleep"), "{error}");
    }
}

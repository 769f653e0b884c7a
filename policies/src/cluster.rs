//! The tables of a cluster.

use crate::world::{Decided, Type, Value, World, WorldError, table};
use placement::{Cluster, NodeState, Role};

/// Which replicas are decided: Weave's two models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decides {
    /// Those without a node. The size of the program does not depend on what runs already.
    Pending,
    /// All of them: a global reconfiguration.
    All,
    /// All of them, and each may be left without a node: what runs may be evicted.
    AllOrNone,
}

fn text(of: &str) -> Value {
    Value::Text(of.to_owned())
}

impl World {
    /// The tables of a cluster: `replicas`, whose `node` is decided, `nodes`, `services`, `allowed`,
    /// `capacities`, `demands`, `domains` and `members`. Each replica is on one node, unless it may be left without.
    ///
    /// # Errors
    /// If there is no node.
    pub fn cluster(cluster: &Cluster, decides: Decides) -> Result<World, WorldError> {
        use Type::{Integer, Text};
        let node = |ix: placement::NodeIx| text(&cluster.nodes[ix.ix()].name);
        let (mut nodes, mut capacities, mut domains) = (Vec::new(), Vec::new(), Vec::new());
        for (ix, of) in cluster.nodes.iter().enumerate() {
            let state = match of.state {
                NodeState::Up => "up",
                NodeState::Closed => "closed",
                NodeState::Draining => "draining",
                NodeState::Down => "down",
            };
            nodes.push(vec![text(&of.name), text(state)]);
            for (metric, capacity) in cluster.metrics.iter().zip(&of.capacity) {
                if let Some(capacity) = capacity {
                    let capacity = Value::Integer(*capacity);
                    capacities.push(vec![text(&of.name), text(&metric.name), capacity]);
                }
            }
            for level in &cluster.levels {
                if let Some(domain) = level.domain_of.get(ix) {
                    let domain = text(&level.domains[domain.ix()]);
                    domains.push(vec![text(&of.name), text(&level.name), domain]);
                }
            }
        }
        let (mut services, mut allowed) = (Vec::new(), Vec::new());
        for of in &cluster.services {
            services.push(vec![text(&of.name), Value::Boolean(of.allowed.is_some())]);
            let may = of.allowed.iter().flatten().zip(&cluster.nodes).filter(|(may, _)| **may);
            allowed.extend(may.map(|(_, node)| vec![text(&of.name), text(&node.name)]));
        }
        let (mut replicas, mut demands) = (Vec::new(), Vec::new());
        for of in &cluster.replicas {
            let role = match of.role {
                Role::Primary => "primary",
                Role::Secondary => "secondary",
                Role::Instance => "instance",
            };
            let today = of.node.map_or(Value::Null, node);
            let service = text(&cluster.services[of.service.ix()].name);
            replicas.push(vec![text(&of.name), service, text(role), today.clone(), today]);
            for (metric, demand) in cluster.metrics.iter().zip(&of.demand) {
                demands.push(vec![text(&of.name), text(&metric.name), Value::Integer(*demand)]);
            }
        }
        let members = cluster.groups.iter().flat_map(|group| {
            let member = |replica: &placement::ReplicaIx| {
                vec![text(&group.name), text(&cluster.replicas[replica.ix()].name)]
            };
            group.members.iter().map(member)
        });
        let members = members.collect();
        let open =
            cluster.replicas.iter().map(|of| decides != Decides::Pending || of.node.is_none());
        let open = open.collect();
        let none = (decides == Decides::AllOrNone).then_some(Value::Null);
        let options = cluster.nodes.iter().map(|node| text(&node.name)).chain(none).collect();
        let tables = vec![
            table("nodes", &[("node", Text), ("state", Text)], nodes),
            table(
                "capacities",
                &[("node", Text), ("metric", Text), ("capacity", Integer)],
                capacities,
            ),
            table("domains", &[("node", Text), ("level", Text), ("domain", Text)], domains),
            table("services", &[("service", Text), ("restricted", Type::Boolean)], services),
            table("allowed", &[("service", Text), ("node", Text)], allowed),
            table(
                "replicas",
                &[
                    ("replica", Text),
                    ("service", Text),
                    ("role", Text),
                    ("current_node", Text),
                    ("node", Text),
                ],
                replicas,
            ),
            table("demands", &[("replica", Text), ("metric", Text), ("demand", Integer)], demands),
            table("members", &[("member_of", Text), ("replica", Text)], members),
        ];
        let (table, column) = ("replicas".to_owned(), "node".to_owned());
        World::new(tables, Decided { table, column, options, open })
    }
}

//! Why a replica is where it is: what keeps it from being placed, what would change that, why it moves.
//!
//! | module | what |
//! |---|---|
//! | `obstacle` | what keeps a replica off each node, and the smallest set that keeps it off all |
//! | `relax` | neighbours in the way, and single changes with which it would be placed |
//! | `moved` | why a replica left its node |
//! | `text` | sentences |

mod moved;
mod obstacle;
mod relax;
mod text;

use crate::cluster::{Amount, Assignment, Cluster, NodeIx, ReplicaIx};
use crate::state::State;
use obstacle::{Obstacles, classes, smallest_conflict};
use serde::Serialize;
use std::collections::BTreeMap;

/// Why a replica is where an assignment has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The replica.
    pub replica: String,
    /// Its node today; `None` is new.
    pub today: Option<String>,
    /// Its node of the assignment; `None` is not placed.
    pub node: Option<String>,
    /// What happens to it, and why.
    pub outcome: Outcome,
    /// Other nodes that can take it while the other replicas stay where the assignment has them.
    pub could_go: Vec<String>,
}

/// What happens to a replica.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It stays on its node.
    Stays,
    /// It is new, and placed.
    Placed,
    /// It leaves its node.
    Moved {
        /// Why.
        why: MoveReason,
    },
    /// No node can take it as the others are placed.
    NotPlaced(NotPlaced),
    /// It is not placed although a node can take it: the search ended before.
    Open {
        /// The node.
        node: String,
    },
}

/// What keeps a replica off a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "obstacle", rename_all = "snake_case")]
pub enum Obstacle {
    /// The node is down.
    Down,
    /// The node is closed: it takes no other replicas.
    Closed,
    /// The node is draining.
    Draining,
    /// Its service excludes the node: by a label or a block list.
    Excluded,
    /// The node has too little room.
    Lacks {
        /// What it lacks.
        metric: String,
        /// What the replica needs.
        demand: Amount,
        /// The largest amount that is free on a node with this obstacle.
        free: Amount,
    },
    /// The node's domain has as many replicas of the group as it may.
    PerDomain {
        /// The group.
        group: String,
        /// The level.
        level: String,
        /// The limit.
        most: u32,
    },
    /// The group uses too few domains, and the node adds no domain.
    AtLeast {
        /// The group.
        group: String,
        /// The level.
        level: String,
        /// The number of domains.
        least: u32,
    },
    /// The group uses as many domains as it may, and the node is in another one.
    AtMost {
        /// The group.
        group: String,
        /// The level.
        level: String,
        /// The number of domains.
        most: u32,
    },
    /// A replica of the group would be in a domain without one that it needs.
    Near {
        /// The group.
        group: String,
        /// What it needs.
        to: String,
        /// The level.
        level: String,
    },
    /// The node's domain has replicas of a group that must be apart.
    Apart {
        /// The group.
        from: String,
        /// The level.
        level: String,
    },
}

/// Nodes with one obstacle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeClass {
    /// What keeps the replica off them.
    pub obstacle: Obstacle,
    /// How many there are.
    pub nodes: usize,
}

/// Why no node can take a replica.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotPlaced {
    /// Number of nodes.
    pub nodes: usize,
    /// The smallest set of obstacles of which each node has one. A node counts where it is first.
    pub conflict: Vec<NodeClass>,
    /// The fewest replicas that would have to leave for it, on the node where they are fewest.
    pub in_the_way: Option<InTheWay>,
    /// Single changes, each of which lets it be placed.
    pub relaxations: Vec<Relaxation>,
}

/// Replicas without which a node could take another one. It needs all of them to leave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InTheWay {
    /// The node.
    pub node: String,
    /// The replicas: on the node, or in a domain where rules forbid them.
    pub replicas: Vec<String>,
}

/// A change with which a replica could be placed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Relaxation {
    /// A rule is dropped, or a state or an exclusion ignored.
    Drop {
        /// What no longer holds.
        obstacle: Obstacle,
        /// The first node that could then take the replica.
        node: String,
        /// The number of such nodes.
        nodes: usize,
    },
    /// A node gets more capacity: the least that is enough.
    Raise {
        /// The node.
        node: String,
        /// The metric.
        metric: String,
        /// By how much.
        by: Amount,
    },
    /// The replica needs less: the least that is enough.
    Shrink {
        /// The metric.
        metric: String,
        /// By how much.
        by: Amount,
        /// The node that could then take it.
        node: String,
    },
    /// Another replica moves: the cheapest that is enough.
    Move {
        /// The other replica.
        replica: String,
        /// Its node.
        from: String,
        /// Where it can go.
        to: String,
        /// The node that could then take the replica.
        node: String,
    },
}

/// Why a replica left its node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum MoveReason {
    /// Its staying is forbidden: the node is down or draining, or its service excludes it.
    Forbidden {
        /// Why.
        obstacle: Obstacle,
    },
    /// Its being there breaks a rule or a capacity today.
    Broken {
        /// What.
        obstacles: Vec<Obstacle>,
    },
    /// Others took its place: all of these, no fewer.
    Displaced {
        /// What its staying would break.
        obstacles: Vec<Obstacle>,
        /// The others.
        by: Vec<String>,
    },
    /// Its staying would break something that others' moves have changed.
    Conflict {
        /// What.
        obstacles: Vec<Obstacle>,
    },
    /// It could have stayed, but the value is less without.
    Saves {
        /// By how much.
        value: f64,
        /// By which terms of the objective; less than zero is a cost.
        terms: BTreeMap<&'static str, f64>,
    },
    /// It could have stayed at no more cost: the search ended before it found that.
    Nothing,
}

/// Why a replica is where an assignment has it.
pub fn explain(cluster: &Cluster, assignment: &Assignment, replica: ReplicaIx) -> Explanation {
    let of = &cluster.replicas[replica.ix()];
    let name = |node: NodeIx| cluster.nodes[node.ix()].name.clone();
    let outcome = match (of.node, assignment[replica.ix()]) {
        (Some(today), Some(node)) if today == node => Outcome::Stays,
        (None, Some(_)) => Outcome::Placed,
        (Some(today), Some(_)) => {
            Outcome::Moved { why: moved::why(cluster, assignment, replica.ix(), today) }
        }
        (_, None) => not_placed(cluster, assignment, replica.ix()),
    };
    Explanation {
        replica: of.name.clone(),
        today: of.node.map(name),
        node: assignment[replica.ix()].map(name),
        outcome,
        could_go: could_go(cluster, assignment, replica.ix()),
    }
}

fn could_go(cluster: &Cluster, assignment: &Assignment, replica: usize) -> Vec<String> {
    let mut state = state(cluster, assignment);
    let node = state.take(replica);
    let obstacles = Obstacles::new(&state, replica, node);
    let others = (0..cluster.nodes.len()).map(NodeIx::new).filter(|other| Some(*other) != node);
    let free = others.filter(|other| obstacles.of(&mut state, *other).is_empty());
    free.map(|other| cluster.nodes[other.ix()].name.clone()).collect()
}

fn not_placed(cluster: &Cluster, assignment: &Assignment, replica: usize) -> Outcome {
    let mut state = state(cluster, assignment);
    let obstacles = Obstacles::new(&state, replica, None);
    let by_node = obstacles.by_node(&mut state);
    if let Some(node) = by_node.iter().position(Vec::is_empty) {
        return Outcome::Open { node: cluster.nodes[node].name.clone() };
    }
    let conflict = smallest_conflict(&by_node);
    Outcome::NotPlaced(NotPlaced {
        nodes: by_node.len(),
        conflict: classes(&obstacles, &state, &by_node, &conflict),
        relaxations: relax::relaxations(&obstacles, &mut state, &by_node),
        in_the_way: relax::in_the_way(&obstacles, &mut state, &by_node),
    })
}

/// The state of an assignment.
fn state<'c>(cluster: &'c Cluster, assignment: &Assignment) -> State<'c> {
    let mut state = State::today(cluster);
    for (replica, node) in assignment.iter().enumerate() {
        if state.node_of(replica) != *node {
            state.take(replica);
            if let Some(node) = node {
                state.put(replica, *node);
            }
        }
    }
    state
}

//! Why a move cannot be made.

use super::board::{Board, Leg};
use super::position::{Obstacle, Position};
use super::solve::Solved;
use crate::cluster::{Amount, Cluster};
use serde::Serialize;
use std::fmt;

/// A move of the assignment that no phase makes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stuck {
    /// The replica.
    pub replica: String,
    /// Its node today.
    pub from: Option<String>,
    /// Its node of the assignment.
    pub to: String,
    /// What is in its way after the last phase.
    pub why: Blocker,
    /// Stuck replicas that would have to leave first; empty if the assignment itself is at fault.
    pub waits_for: Vec<String>,
}

/// What is in the way of a move.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "blocker", rename_all = "snake_case")]
pub enum Blocker {
    /// The service excludes the node, or the node takes no replicas.
    Excluded {
        /// The node.
        node: String,
    },
    /// The node is over its capacity, and takes nothing until it no longer is.
    Over {
        /// The node.
        node: String,
    },
    /// The node has too little room while the replicas that leave it are still there.
    Room {
        /// The node.
        node: String,
        /// What it lacks.
        metric: String,
        /// How much.
        lacks: Amount,
    },
    /// The domain would have too many replicas of a group.
    PerDomain {
        /// The group.
        group: String,
        /// The level.
        level: String,
        /// The domain.
        domain: String,
    },
    /// The domain would have replicas of two groups that must be apart.
    Apart {
        /// The replica's group.
        group: String,
        /// The other.
        from: String,
        /// The level.
        level: String,
        /// The domain.
        domain: String,
    },
    /// The group would use too few or too many domains.
    Domains {
        /// The group.
        group: String,
        /// The level.
        level: String,
    },
    /// A replica would be without one that it must be near to.
    Near {
        /// Its group.
        group: String,
        /// What it needs.
        to: String,
        /// The level.
        level: String,
        /// The domain.
        domain: String,
    },
    /// It waits for another move of the same phase.
    Order,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "replica {} cannot go to node {}: {}", self.replica, self.to, self.why)?;
        if !self.waits_for.is_empty() {
            write!(f, ", until it is left by {}", self.waits_for.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocker::Excluded { node } => write!(f, "it may not run on node {node}"),
            Blocker::Over { node } => {
                write!(f, "node {node} is over its capacity and takes nothing")
            }
            Blocker::Room { node, metric, lacks } => {
                write!(f, "node {node} has {lacks} of {metric} too little")
            }
            Blocker::PerDomain { group, level, domain } => {
                write!(f, "{level} {domain} would have too many replicas of {group}")
            }
            Blocker::Apart { group, from, level, domain } => {
                write!(f, "{level} {domain} would have replicas of {group} and of {from}")
            }
            Blocker::Domains { group, level } => {
                write!(f, "{group} would use too few or too many domains of level {level}")
            }
            Blocker::Near { group, to, level, domain } => {
                write!(f, "{group} would be without a replica of {to} in {level} {domain}")
            }
            Blocker::Order => write!(f, "other moves must end before it"),
        }
    }
}

/// The moves of a leg, with their reason.
pub(super) fn stuck<'b>(
    cluster: &'b Cluster,
    leg: &'b Leg,
    why: &'b Blocker,
    waits_for: &'b [String],
) -> impl Iterator<Item = Stuck> + 'b {
    let name = |node: crate::cluster::NodeIx| cluster.nodes[node.ix()].name.clone();
    leg.shifts.iter().map(move |shift| {
        let replica = &cluster.replicas[shift.replica];
        Stuck {
            replica: replica.name.clone(),
            from: replica.node.map(name),
            to: name(shift.to),
            why: why.clone(),
            waits_for: waits_for.to_vec(),
        }
    })
}

/// The reasons of the legs that are in no phase.
pub(super) fn reasons(board: &Board, solved: &Solved) -> Vec<Stuck> {
    let mut position = Position::new(board);
    for phase in &solved.phases {
        for leg in phase {
            // All of them were found to begin.
            let _begun = position.begin(board, *leg);
        }
        position.close(board, phase);
    }
    let mut found = Vec::new();
    for leg in &solved.rest {
        let mut why = position.begin(board, *leg);
        if why.is_ok() {
            why = position.end(board, *leg);
            position.cancel(board, *leg);
        }
        let (why, waits_for) = match why {
            Ok(()) => (Blocker::Order, Vec::new()),
            Err(obstacle) => (blocker(board, obstacle), waits_for(board, solved, *leg, obstacle)),
        };
        found.extend(stuck(board.cluster, &board.legs[*leg], &why, &waits_for));
    }
    found
}

/// Replicas of legs that are in no phase and would leave what is in the way.
fn waits_for(board: &Board, solved: &Solved, leg: usize, obstacle: Obstacle) -> Vec<String> {
    let mut found = Vec::new();
    for other in solved.rest.iter().filter(|other| **other != leg) {
        let effect = &board.effects[*other];
        let leaves = |counter: usize, domain: usize| {
            effect.counters.iter().any(|on| on.counter == counter && on.old == Some(domain))
        };
        let is = match obstacle {
            Obstacle::Over { node } | Obstacle::Room { node, .. } => effect
                .nodes
                .iter()
                .any(|on| on.node == node && on.change.iter().any(|change| *change < 0)),
            Obstacle::Crowded { counter, domain } => leaves(counter, domain),
            Obstacle::Apart { from, domain, .. } => leaves(from, domain),
            Obstacle::Domains { .. } | Obstacle::Near { .. } => false,
        };
        if is {
            let shifts = board.legs[*other].shifts.iter();
            found.extend(shifts.map(|of| board.cluster.replicas[of.replica].name.clone()));
        }
    }
    found
}

fn blocker(board: &Board, obstacle: Obstacle) -> Blocker {
    let cluster = board.cluster;
    let node_name = |node: usize| cluster.nodes[board.nodes[node].node.ix()].name.clone();
    let group = |counter: usize| cluster.groups[board.counters[counter].group.ix()].name.clone();
    let level = |counter: usize| &cluster.levels[board.counters[counter].level.ix()];
    let domain_name = |counter: usize, domain: usize| {
        level(counter).domains[board.counters[counter].domains[domain].ix()].clone()
    };
    match obstacle {
        Obstacle::Over { node } => Blocker::Over { node: node_name(node) },
        Obstacle::Room { node, metric, lacks } => {
            let metric = cluster.metrics[metric].name.clone();
            Blocker::Room { node: node_name(node), metric, lacks }
        }
        Obstacle::Crowded { counter, domain } => Blocker::PerDomain {
            group: group(counter),
            level: level(counter).name.clone(),
            domain: domain_name(counter, domain),
        },
        Obstacle::Apart { counter, from, domain } => Blocker::Apart {
            group: group(counter),
            from: group(from),
            level: level(counter).name.clone(),
            domain: domain_name(counter, domain),
        },
        Obstacle::Domains { counter } => {
            Blocker::Domains { group: group(counter), level: level(counter).name.clone() }
        }
        Obstacle::Near { counter, to, domain } => Blocker::Near {
            group: group(counter),
            to: group(to),
            level: level(counter).name.clone(),
            domain: domain_name(counter, domain),
        },
    }
}

//! Schedules: the moves of an assignment in phases, the fewest that are found. SIL section 5.1.
//!
//! Moves of a phase run at the same time; the next phase starts when all of them have ended. While a
//! replica moves, its demand counts on both nodes (eq. 15), and so does the replica for `PerDomain` and
//! `Apart`. A node that is over its capacity when a phase starts takes nothing (eq. 16). `AtLeast`,
//! `AtMost` and `Near` are about whole groups and hold when a phase ends, so replicas that need each
//! other move in one phase. What is broken may not get worse in any phase.
//!
//! | module | what |
//! |---|---|
//! | `board` | the moves that can be in each other's way, and what each changes |
//! | `position` | the state between two phases, and what a phase may do in it |
//! | `solve` | the fewest phases: iterative deepening, greedy where that takes too long |
//! | `plan` | independent parts, detours, and the result |
//! | `stuck` | why a move cannot be made |

mod board;
mod plan;
mod position;
mod solve;
mod stuck;

use crate::cluster::{Assignment, Cluster, NodeIx, Objective, ReplicaIx};
use crate::order::Ordered;
use serde::Serialize;
pub use stuck::{Blocker, Stuck};

/// The moves of an assignment, in phases.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Which metrics count on both nodes.
    pub overlap: Overlap,
    /// The moves of each phase, in the order of the cluster's replicas.
    pub phases: Vec<Vec<ScheduledMove>>,
    /// No schedule without detours has fewer phases.
    pub bound: usize,
    /// Moves of the assignment that are in no phase, with reasons; empty if the schedule reaches the
    /// assignment.
    pub stuck: Vec<Stuck>,
}

/// Which metrics a moving replica needs on both nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// All: SIL eq. 15.
    EveryMetric,
    /// Those that are `Metric::transient`, as in ROADEF; of the others only the amounts at the end of
    /// a phase count.
    TransientMetrics,
}

impl Overlap {
    /// What the source of the cluster's objective says.
    pub fn of(cluster: &Cluster) -> Overlap {
        match cluster.objective {
            Objective::Reassignment(_) => Overlap::TransientMetrics,
            _ => Overlap::EveryMetric,
        }
    }
}

/// A move of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledMove {
    /// The replica.
    pub replica: ReplicaIx,
    /// Its node before; `None` is new.
    pub from: Option<NodeIx>,
    /// Its node afterwards.
    pub to: NodeIx,
    /// What happens.
    pub kind: MoveKind,
}

/// What a move of a phase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveKind {
    /// The replica goes to its node of the assignment.
    Move,
    /// A new replica is placed.
    New,
    /// The replica was on a node that is down, and is placed again.
    Replace,
    /// Primary and secondary of a partition exchange their nodes: roles change, no data moves.
    Swap,
    /// The replica goes to a node in between, because no schedule without that was found.
    Detour,
}

/// The schedule of an assignment. Replicas that it does not place stay where they are.
pub fn schedule(cluster: &Cluster, assignment: &Assignment) -> Schedule {
    schedule_with(cluster, assignment, Overlap::of(cluster))
}

/// The schedule of an assignment, with a choice of the metrics that count on both nodes. As in a search, the
/// order of the cluster's lists changes nothing.
pub fn schedule_with(cluster: &Cluster, assignment: &Assignment, overlap: Overlap) -> Schedule {
    let ordered = Ordered::new(cluster);
    let mut schedule = plan::plan(&ordered.cluster, &ordered.forth(assignment), overlap);
    let old_replica = ordered.old_replicas();
    for phase in &mut schedule.phases {
        for of in &mut *phase {
            of.replica = ReplicaIx::new(old_replica[of.replica.ix()]);
            of.from = of.from.map(|node| ordered.old_node(node));
            of.to = ordered.old_node(of.to);
        }
        phase.sort_by_key(|of| of.replica);
    }
    schedule
}

//! The default engine: makes the assignment valid with few moves, then improves it.

use crate::anneal::anneal;
use crate::audit::{Violation, audit};
use crate::bound::bound;
use crate::cluster::{Assignment, Cluster, Objective};
use crate::cost::Costs;
use crate::limits::{Limits, Progress};
use crate::mend::mend;
use crate::repack::repack;
use crate::state::State;
use crate::value::{Value, evaluate};

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The node of each replica.
    pub assignment: Assignment,
    /// Its value.
    pub value: Value,
    /// A value that no valid assignment is below.
    pub bound: f64,
    /// Every rule that the assignment breaks; empty if it is valid.
    pub violations: Vec<Violation>,
}

impl Found {
    /// The distance of value and bound as a share of the value.
    pub fn gap(&self) -> f64 {
        let difference = self.value.total - self.bound;
        if difference <= 0.0 { 0.0 } else { difference / self.value.total.abs() }
    }
}

/// Nodes of the search trees of a repair.
const MEND_STEPS: u64 = 20_000;
const REPACK_STEPS: u64 = 200_000;

/// Finds an assignment of little value.
pub fn search(cluster: &Cluster, limits: &Limits) -> Found {
    let bound = bound(cluster);
    let mut state = State::today(cluster);
    make_valid(&mut state, limits);
    let costs = Costs::new(&state);
    (limits.progress)(&Progress { value: costs.total, bound });
    let assignment = match &cluster.objective {
        Objective::Reassignment(_) => anneal(&state, &costs, limits, bound),
        Objective::Failovers(_) => polish(state, costs),
    };
    Found {
        value: evaluate(cluster, &assignment),
        bound,
        violations: audit(cluster, &assignment),
        assignment,
    }
}

/// Mends what is broken with few moves; where that fails, packs nodes from scratch, more and more of them.
fn make_valid(state: &mut State, limits: &Limits) {
    if mend(state, MEND_STEPS) {
        return;
    }
    let mut nodes: Vec<usize> = (0..state.cluster.nodes.len()).collect();
    // The emptiest nodes have the most room to gain.
    let free = |node: usize| -> f64 {
        let usage = state.usage(node).iter().zip(state.capacity(node));
        usage.map(|(used, limit)| 1.0 - *used as f64 / (*limit).max(1) as f64).fold(1.0, f64::min)
    };
    nodes.sort_by(|one, other| free(*other).total_cmp(&free(*one)).then(one.cmp(other)));
    let mut count = 2;
    while limits.share(0) < 1.0 {
        if repack(state, &nodes[..count.min(nodes.len())], REPACK_STEPS) || count >= nodes.len() {
            break;
        }
        count *= 2;
    }
}

/// Moves and swaps as long as one improves the value.
fn polish(mut state: State, mut costs: Costs) -> Assignment {
    let replicas = state.assignment().len();
    let mut improves = true;
    while improves {
        improves = false;
        for replica in 0..replicas {
            // Home is where moved replicas improve most.
            let Some(home) = state.origin(replica) else { continue };
            if state.node_of(replica).is_some_and(|node| node != home)
                && state.allows(replica, home)
            {
                let change = costs.shift(&state, replica, home);
                if change < -1e-9 {
                    costs.apply_shift(&mut state, replica, home, change);
                    improves = true;
                }
            }
        }
    }
    state.assignment().clone()
}

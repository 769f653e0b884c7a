//! The default engine: makes the assignment valid with few moves, then improves it.

use crate::anneal::anneal;
use crate::audit::{Violation, audit};
use crate::bound::bound;
use crate::cluster::{Assignment, Cluster};
use crate::cost::Costs;
use crate::mend::mend;
use crate::objective::{Objective, Value, evaluate};
use crate::repack::repack;
use crate::state::State;
use std::time::Duration;

/// When a search ends, and what it is told of the world. The search reads no clock.
pub struct Limits<'a> {
    /// Chooses the random moves.
    pub seed: u64,
    /// Moves tried by each thread, in thousands. With a limit here and no deadline, a seed gives the
    /// same answer on every machine.
    pub rounds: Option<u64>,
    /// When the search must have returned, on the clock of `elapsed`.
    pub deadline: Option<Duration>,
    /// It ends when the value is within this share of the bound.
    pub gap: f64,
    /// Threads that search, each from a seed of its own.
    pub threads: usize,
    /// Time since the search began.
    pub elapsed: &'a (dyn Fn() -> Duration + Sync),
    /// Whether an early end was requested.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Told of each better value.
    pub progress: &'a (dyn Fn(&Progress) + Sync),
}

impl Limits<'_> {
    /// Ends after some rounds of a thousand moves, whatever the time.
    pub fn rounds(rounds: u64) -> Limits<'static> {
        Limits {
            seed: 0,
            rounds: Some(rounds),
            deadline: None,
            gap: 0.0,
            threads: 1,
            elapsed: &|| Duration::ZERO,
            interrupted: &|| false,
            progress: &|_| {},
        }
    }

    /// The share of the search that is over, from 0 to 1.
    pub(crate) fn share(&self, rounds: u64) -> f64 {
        let of_rounds = self.rounds.map_or(0.0, |all| rounds as f64 / all.max(1) as f64);
        let of_time = self.deadline.map_or(0.0, |deadline| {
            (self.elapsed)().as_secs_f64() / deadline.as_secs_f64().max(1e-9)
        });
        if (self.interrupted)() { 1.0 } else { of_rounds.max(of_time) }
    }
}

/// Where a search stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The best value so far.
    pub value: f64,
    /// The value that no assignment is below.
    pub bound: f64,
}

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

//! The default engine: makes the assignment valid with few moves, then improves it.

use crate::anneal::anneal;
use crate::audit::{Violation, audit};
use crate::bound::bound;
use crate::cluster::{Assignment, Cluster, NodeIx, Objective, ReplicaIx};
use crate::consolidate::consolidate;
use crate::cost::Costs;
use crate::descend::descend;
use crate::eject::place_by_ejection;
use crate::equal_nodes::packed;
use crate::even::even_out;
use crate::limits::{Limits, Progress};
use crate::mend::mend;
use crate::order::Ordered;
use crate::repack::repack;
use crate::repair::{faults, repair};
use crate::state::{State, sizes};
use crate::value::{Value, evaluate};
use std::panic::resume_unwind;
use std::thread;

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
    /// An assignment, and a value that no valid one is below; evaluated and audited.
    pub fn new(cluster: &Cluster, assignment: Assignment, bound: f64) -> Found {
        Found {
            value: evaluate(cluster, &assignment),
            bound,
            violations: audit(cluster, &assignment),
            assignment,
        }
    }

    /// The distance of value and bound as a share of the value; `None` if the assignment breaks a
    /// rule, because the bound is one of valid assignments.
    pub fn gap(&self) -> Option<f64> {
        let difference = self.value.total - self.bound;
        let gap = if difference <= 0.0 { 0.0 } else { difference / self.value.total.abs() };
        self.violations.is_empty().then_some(gap)
    }
}

/// Nodes of the search trees of a repair.
const MEND_STEPS: u64 = 20_000;
/// Placements of replicas that eject others.
const EJECTIONS: u64 = 100_000;
const REPACK_STEPS: u64 = 200_000;

/// Address space for the search trees of a repair, which are as deep as they have replicas to place. Only what is
/// used of it takes memory.
const STACK: usize = 256 << 20;

/// Broken replicas and nodes above which they are mended greedily: looking for the fewest moves would
/// take too long.
const MANY: usize = 100;
/// The share of a search for balance after which what greedy moves have left is not looked at further.
const MEND_SHARE: f64 = 0.3;

/// Finds an assignment of little value. The order of the nodes, domains, services, replicas, groups and
/// rules in the cluster's lists changes nothing, where names are unique and no deadline ends it.
pub fn search(cluster: &Cluster, limits: &Limits) -> Found {
    let ordered = Ordered::new(cluster);
    let found = search_in_order(&ordered.cluster, limits);
    let assignment = ordered.back(&found.assignment);
    // Names of the violations are the same, in the order of the cluster's own lists.
    Found { violations: audit(cluster, &assignment), assignment, ..found }
}

fn search_in_order(cluster: &Cluster, limits: &Limits) -> Found {
    let mut bound = bound(cluster);
    let valid = || {
        let mut state = State::today(cluster);
        thread::scope(|scope| {
            let deep = thread::Builder::new().stack_size(STACK);
            let mended = deep.spawn_scoped(scope, || make_valid(&mut state, limits));
            mended.expect("a thread starts").join().unwrap_or_else(|panic| resume_unwind(panic));
        });
        state
    };
    let with_costs = || {
        let state = valid();
        let costs = Costs::new(&state);
        (limits.progress)(&Progress { value: costs.total, bound });
        (state, costs)
    };
    let assignment = match &cluster.objective {
        Objective::Reassignment(_) => {
            let (state, costs) = with_costs();
            anneal(&state, &costs, limits, bound)
        }
        Objective::Balance(_) => {
            let (state, costs) = with_costs();
            even_out(&state, &costs, limits, bound)
        }
        Objective::Failovers(_) => {
            let (state, costs) = with_costs();
            descend(state, costs, limits, bound)
        }
        Objective::FewestNodes => match packed(cluster, limits) {
            Some((assignment, proved)) => {
                bound = bound.max(proved);
                assignment
            }
            None => emptied(cluster, valid().assignment(), limits),
        },
    };
    Found::new(cluster, assignment, bound)
}

/// Empties nodes of an assignment, one by one.
fn emptied(cluster: &Cluster, assignment: &Assignment, limits: &Limits) -> Assignment {
    let mut now = cluster.clone();
    for (replica, node) in now.replicas.iter_mut().zip(assignment) {
        replica.node = *node;
    }
    let found = consolidate(&now, f64::INFINITY, limits).assignment;
    // What moves a second time may count on other nodes than those of today.
    let is_no_worse = audit(cluster, &found).len() <= audit(cluster, assignment).len();
    if is_no_worse { found } else { assignment.clone() }
}

/// Mends what is broken with few moves; where that fails, packs nodes from scratch, more and more of
/// them; where that fails too, mends what can be mended alone.
fn make_valid(state: &mut State, limits: &Limits) {
    let must_end = || limits.share(0) >= 1.0;
    if faults(state) > MANY {
        let mut costs = Costs::new(state);
        let left = repair(state, &mut costs, &must_end);
        if let Objective::Balance(_) = state.cluster.objective {
            // Most of the time is for the balance.
            if (1..MANY).contains(&left) {
                mend(state, MEND_STEPS, &|| limits.share(0) >= MEND_SHARE);
            }
            return;
        }
        if left == 0 {
            return;
        }
    }
    if mend(state, MEND_STEPS, &must_end) {
        return;
    }
    if let Objective::Failovers(_) = state.cluster.objective {
        // Several nodes that are over at once multiply the paths: one after the other costs few moves.
        let mut greedy = state.clone();
        let mut costs = Costs::new(&greedy);
        if repair(&mut greedy, &mut costs, &must_end) == 0 {
            *state = greedy;
            return;
        }
    }
    let before = state.clone();
    if !state.unplaced.is_empty()
        && place_by_ejection(state, EJECTIONS, &must_end)
        && mend(state, MEND_STEPS, &must_end)
    {
        return;
    }
    *state = before;
    let mut nodes: Vec<usize> = (0..state.cluster.nodes.len()).collect();
    // The emptiest nodes have the most room to gain.
    let free = |node: &usize| state.free(*node);
    nodes.sort_by(|one, other| free(other).total_cmp(&free(one)).then(one.cmp(other)));
    let mut count = 2;
    while !must_end() {
        let some = &nodes[..count.min(nodes.len())];
        // Nodes beside these may still be broken.
        if repack(state, some, REPACK_STEPS, &must_end) && mend(state, MEND_STEPS, &must_end) {
            return;
        }
        if count >= nodes.len() {
            break;
        }
        count *= 2;
    }
    if !must_end() {
        mend_in_part(state);
    }
}

/// Moves replicas that must leave their node, and places new ones, where there is room.
fn mend_in_part(state: &mut State) {
    let sizes = sizes(state);
    let larger = |one: &usize, other: &usize| sizes[*other].total_cmp(&sizes[*one]);
    let roomiest = |state: &State, replica: usize| {
        let nodes = (0..state.cluster.nodes.len()).map(NodeIx::new);
        let allowed = nodes.filter(|node| state.allows(replica, *node));
        allowed.max_by(|one, other| {
            let free = |node: &NodeIx| state.free(node.ix());
            free(one).total_cmp(&free(other)).then(other.cmp(one))
        })
    };
    for node in 0..state.cluster.nodes.len() {
        let mut on: Vec<usize> = state.replicas_on(node).iter().map(|of| *of as usize).collect();
        on.sort_by(larger);
        for replica in on {
            let excluded = !state.cluster.may_run(ReplicaIx::new(replica), NodeIx::new(node));
            if (excluded || state.is_over(node))
                && let Some(to) = roomiest(state, replica)
            {
                state.shift(replica, to);
            }
        }
    }
    let mut open: Vec<usize> = state.unplaced.drain(..).map(|replica| replica as usize).collect();
    // Those that need others beside them come after these.
    open.sort_by(|one, other| {
        let has_needs = |of: &usize| state.tallies.has_needs(*of);
        has_needs(one).cmp(&has_needs(other)).then_with(|| larger(one, other))
    });
    for replica in open {
        match roomiest(state, replica) {
            Some(node) => state.put(replica, node),
            None => state.unplaced.push(u32::try_from(replica).expect("fewer than 2^32")),
        }
    }
}

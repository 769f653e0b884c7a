//! Places replicas that have no node today by ejection: one takes the place of others, which go
//! elsewhere. A replica that was hard to place is ejected less and less (the ejection pool of
//! Nagata and Braysy's search for routes).

use crate::cluster::{NodeIx, ReplicaIx};
use crate::random::Random;
use crate::state::State;

/// Places every replica without a node, unless `steps` placements or the time are not enough. Only
/// replicas that are not on their node of today are ejected. If it fails, the state is unchanged.
pub(crate) fn place_by_ejection(
    state: &mut State,
    steps: u64,
    must_end: &dyn Fn() -> bool,
) -> bool {
    let mut random = Random::new(steps);
    let mut open: Vec<usize> = state.unplaced.iter().map(|of| *of as usize).collect();
    let all = open.clone();
    let mut hardness = vec![1_u64; state.assignment().len()];
    let mut left = steps;
    while let Some(at) = next(state, &open, &mut random) {
        if left == 0 || must_end() {
            for replica in all {
                state.take(replica);
            }
            return false;
        }
        left -= 1;
        let replica = open.swap_remove(at);
        hardness[replica] += 1;
        let best = (0..state.cluster.nodes.len())
            .filter_map(|node| {
                let ejected = in_the_way(state, replica, node, &hardness)?;
                let weight: u64 = ejected.iter().map(|of| hardness[*of]).sum();
                Some((weight, random.bits(), node, ejected))
            })
            .min();
        let Some((_, _, node, ejected)) = best else {
            open.push(replica);
            // One that it needs may find a node with room for both.
            let mut needed = state.tallies.needed(state.cluster, replica);
            needed.retain(|of| {
                state.node_of(*of).is_some_and(|node| state.origin(*of) != Some(node))
            });
            if !needed.is_empty() {
                eject(state, needed[random.below(needed.len())], &mut open);
            }
            continue;
        };
        for other in ejected {
            eject(state, other, &mut open);
        }
        state.put(replica, NodeIx::new(node));
    }
    state.unplaced.clear();
    true
}

/// A random one of the open replicas, of those that need no others if there are any.
fn next(state: &State, open: &[usize], random: &mut Random) -> Option<usize> {
    let first: Vec<usize> =
        (0..open.len()).filter(|at| !state.tallies.has_needs(open[*at])).collect();
    match (first.is_empty(), open.is_empty()) {
        (false, _) => Some(first[random.below(first.len())]),
        (true, false) => Some(random.below(open.len())),
        (true, true) => None,
    }
}

/// The replicas that must leave a node before this one fits there: easy ones first. `None` if they
/// may not leave, or rules forbid the node.
fn in_the_way(
    state: &mut State,
    replica: usize,
    node: usize,
    hardness: &[u64],
) -> Option<Vec<usize>> {
    let to = NodeIx::new(node);
    if !state.cluster.may_run(ReplicaIx::new(replica), to)
        || !state.tallies.allow(state.cluster, replica, None, to)
    {
        return None;
    }
    let mut others: Vec<usize> = state.replicas_on(node).iter().map(|of| *of as usize).collect();
    others.retain(|of| state.origin(*of) != Some(to));
    others.sort_by_key(|of| (hardness[*of], *of));
    let mut ejected = Vec::new();
    for other in others {
        if state.fits(replica, node, None) {
            break;
        }
        state.take(other);
        // What this one needs must stay.
        if state.tallies.allow(state.cluster, replica, None, to) {
            ejected.push(other);
        } else {
            state.put(other, to);
        }
    }
    let fits = state.fits(replica, node, None);
    // One that is smaller than the room may stay after all.
    for at in (0..ejected.len()).rev() {
        state.put(ejected[at], to);
        if fits && state.fits(replica, node, None) {
            ejected.remove(at);
        } else {
            state.take(ejected[at]);
        }
    }
    for other in &ejected {
        state.put(*other, to);
    }
    fits.then_some(ejected)
}

/// Takes a replica off its node, and with it those that need it there.
fn eject(state: &mut State, replica: usize, open: &mut Vec<usize>) {
    if state.take(replica).is_none() {
        return;
    }
    open.push(replica);
    for other in state.tallies.dependents(state.cluster, replica) {
        let Some(node) = state.node_of(other).filter(|node| state.origin(other) != Some(*node))
        else {
            continue;
        };
        if state.tallies.lacks_needed(state.cluster, other, node) {
            eject(state, other, open);
        }
    }
}

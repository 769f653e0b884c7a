//! Simulated annealing over moves and swaps: random valid neighbours, and a temperature that falls
//! with the share of the search that is over.

use crate::cluster::{Assignment, NodeIx, ReplicaIx};
use crate::cost::Costs;
use crate::random::Random;
use crate::search::{Limits, Progress};
use crate::state::State;
use std::sync::Mutex;

/// Moves between two looks at the clock.
const ROUND: u64 = 1_000;
/// Moves that are tried to choose the first temperature.
const SAMPLE: usize = 2_000;
/// The last temperature, of the first.
const COOLING: f64 = 1e-7;

/// The best assignment that the threads find.
pub(crate) fn anneal(state: &State, costs: &Costs, limits: &Limits, bound: f64) -> Assignment {
    let best = Mutex::new((costs.total, state.assignment().clone()));
    std::thread::scope(|scope| {
        for thread in 0..limits.threads.max(1) as u64 {
            let best = &best;
            scope.spawn(move || {
                let seed = limits.seed.wrapping_mul(0x9e37_79b9).wrapping_add(thread);
                walk(state.clone(), costs.clone(), limits, bound, Random::new(seed), best);
            });
        }
    });
    best.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).1
}

/// A step of a walk.
enum Step {
    Shift(usize, NodeIx),
    Swap(usize, usize),
}

fn walk(
    mut state: State,
    mut costs: Costs,
    limits: &Limits,
    bound: f64,
    mut random: Random,
    best: &Mutex<(f64, Assignment)>,
) {
    if state.assignment().is_empty() {
        return;
    }
    let hot = temperature(&state, &costs, &mut random);
    let mut own = (costs.total, state.assignment().clone());
    let (mut rounds, mut improved) = (0, false);
    loop {
        let share = limits.share(rounds);
        let near = own.0 - bound <= limits.gap * own.0.abs();
        if share >= 1.0 || near {
            break;
        }
        let temperature = hot * COOLING.powf(share);
        for _ in 0..ROUND {
            let Some(step) = propose(&state, &mut random) else { continue };
            let change = match step {
                Step::Shift(replica, to) => costs.shift(&state, replica, to),
                Step::Swap(one, other) => costs.swap(&state, one, other),
            };
            if change > 0.0 && random.unit() >= (-change / temperature).exp() {
                continue;
            }
            match step {
                Step::Shift(replica, to) => {
                    if state.tallies.allow(state.cluster, replica, state.node_of(replica), to) {
                        costs.apply_shift(&mut state, replica, to, change);
                    }
                }
                Step::Swap(one, other) => {
                    if swap_is_allowed(&mut state, one, other) {
                        costs.apply_swap(&mut state, one, other, change);
                    }
                }
            }
            if costs.total < own.0 - 1e-9 {
                own.0 = costs.total;
                improved = true;
                // Late in the search each improvement counts; early there are too many to copy.
                if share > 0.5 {
                    own.1.clone_from(state.assignment());
                    improved = false;
                }
            }
        }
        if improved && (costs.total - own.0).abs() < 1e-9 {
            own.1.clone_from(state.assignment());
            improved = false;
        }
        rounds += 1;
        if rounds % 256 == 0 {
            (limits.progress)(&Progress { value: own.0, bound });
        }
    }
    let value = crate::objective::evaluate(state.cluster, &own.1).total;
    let mut best = best.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // Of equal values the smaller assignment, so that the order of threads does not matter.
    if (value, &own.1) < (best.0, &best.1) {
        *best = (value, own.1);
    }
}

/// A random neighbour that has room and may run there; rules between replicas are not looked at.
fn propose(state: &State, random: &mut Random) -> Option<Step> {
    let replica = random.below(state.assignment().len());
    let from = state.node_of(replica)?;
    if random.bits() & 1 == 0 {
        let to = NodeIx::new(random.below(state.cluster.nodes.len()));
        let may = to != from
            && state.fits(replica, to.ix(), None)
            && state.cluster.may_run(ReplicaIx::new(replica), to);
        may.then_some(Step::Shift(replica, to))
    } else {
        let other = random.below(state.assignment().len());
        let to = state.node_of(other)?;
        let may = to != from
            && state.fits(replica, to.ix(), Some(other))
            && state.fits(other, from.ix(), Some(replica))
            && state.cluster.may_run(ReplicaIx::new(replica), to)
            && state.cluster.may_run(ReplicaIx::new(other), from);
        may.then_some(Step::Swap(replica, other))
    }
}

/// Whether the rules allow a swap: one moves, then the other.
fn swap_is_allowed(state: &mut State, one: usize, other: usize) -> bool {
    let (Some(here), Some(there)) = (state.node_of(one), state.node_of(other)) else {
        return false;
    };
    let cluster = state.cluster;
    if !state.tallies.allow(cluster, one, Some(here), there) {
        return false;
    }
    state.tallies.remove(cluster, one, here);
    state.tallies.add(cluster, one, there);
    let allowed = state.tallies.allow(cluster, other, Some(there), here);
    state.tallies.remove(cluster, one, there);
    state.tallies.add(cluster, one, here);
    allowed
}

/// A temperature at which an average step that costs something is often taken.
fn temperature(state: &State, costs: &Costs, random: &mut Random) -> f64 {
    let mut worse = Vec::new();
    for _ in 0..SAMPLE {
        let change = match propose(state, random) {
            Some(Step::Shift(replica, to)) => costs.shift(state, replica, to),
            Some(Step::Swap(one, other)) => costs.swap(state, one, other),
            None => continue,
        };
        if change > 0.0 {
            worse.push(change);
        }
    }
    worse.sort_by(f64::total_cmp);
    worse.get(worse.len() / 2).copied().unwrap_or(1.0)
}

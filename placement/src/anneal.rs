//! Simulated annealing over moves and swaps: random valid neighbours, and a temperature that falls
//! with the share of the search that is over.

use crate::cluster::{Assignment, NodeIx, ReplicaIx};
use crate::cost::Costs;
use crate::limits::{Limits, Progress};
use crate::random::Random;
use crate::state::{State, sizes};
use std::sync::{Mutex, PoisonError};

/// Moves between two looks at the clock.
const ROUND: u64 = 1_000;
/// Rounds between two reports of progress.
const TOLD: u64 = 256;
/// Moves that are tried to learn a typical change.
const SAMPLE: usize = 2_000;
/// Rounds after which the speed of the search is known, and the first temperature chosen.
const MEASURED: u64 = 64;
/// The first temperature where there is time for 1,000 moves of each replica, in typical changes. It
/// rises with the time, up to the limit: more heat than can be cooled slowly is wasted.
const HEAT: f64 = 1.0;
const HEAT_LIMIT: f64 = 10.0;
/// The last temperature, in typical changes.
const COLD: f64 = 1e-6;

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
    best.into_inner().unwrap_or_else(PoisonError::into_inner).1
}

/// One step in this many ejects.
const EJECT: usize = 16;
/// The replica that ejects is the largest of this many.
const LARGEST_OF: usize = 3;
/// Replicas that may be ejected at once, and nodes looked at for each.
const EJECTED: usize = 8;
const TARGETS: usize = 8;

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
    let sizes = sizes(&state);
    let typical = typical_change(&state, &costs, &mut random);
    let mut own = (costs.total, state.assignment().clone());
    let (mut rounds, mut heat) = (0, HEAT / 10.0);
    loop {
        let share = limits.share(rounds);
        let near = own.0 - bound <= limits.gap * own.0.abs();
        if share >= 1.0 || near {
            break;
        }
        if rounds == MEASURED {
            let moves = (MEASURED * ROUND) as f64 / share.max(1e-9) / sizes.len() as f64;
            heat = (HEAT * (moves / 1_000.0).powf(0.75)).clamp(HEAT / 10.0, HEAT_LIMIT);
        }
        let temperature = typical * heat * (COLD / heat).powf(share);
        for _ in 0..ROUND {
            if random.below(EJECT) == 0 {
                eject(&mut state, &mut costs, &sizes, &mut random, temperature);
            } else {
                step(&mut state, &mut costs, &mut random, temperature);
            }
        }
        // Once a round: the cold end of the search is where the best assignment is.
        if costs.total < own.0 - 1e-9 {
            own.0 = costs.total;
            own.1.clone_from(state.assignment());
        }
        rounds += 1;
        if rounds.is_multiple_of(TOLD) {
            (limits.progress)(&Progress { value: own.0, bound });
        }
    }
    let mut best = best.lock().unwrap_or_else(PoisonError::into_inner);
    // Of equal values the smaller assignment, so that the order of threads does not matter.
    if (own.0, &own.1) < (best.0, &best.1) {
        *best = own;
    }
}

/// Whether a change is taken: always if it saves something, else the less likely the more it costs.
fn is_taken(change: f64, temperature: f64, random: &mut Random) -> bool {
    change <= 0.0 || random.unit() < (-change / temperature).exp()
}

/// Makes a random move or swap if it is allowed and taken.
fn step(state: &mut State, costs: &mut Costs, random: &mut Random, temperature: f64) {
    match propose(state, random) {
        Some(Step::Shift(replica, to)) => {
            let change = costs.shift(state, replica, to);
            if is_taken(change, temperature, random)
                && state.tallies.allow(state.cluster, replica, state.node_of(replica), to)
            {
                costs.apply_shift(state, replica, to, change);
            }
        }
        Some(Step::Swap(one, other)) => {
            let change = costs.swap(state, one, other);
            if is_taken(change, temperature, random) && swap_is_allowed(state, one, other) {
                costs.apply_swap(state, one, other, change);
            }
        }
        None => {}
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
pub(crate) fn swap_is_allowed(state: &mut State, one: usize, other: usize) -> bool {
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

/// The median change of the steps that cost something.
fn typical_change(state: &State, costs: &Costs, random: &mut Random) -> f64 {
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

/// Moves a large replica to a node without room, and enough others from there, if all of it can be done
/// and is taken.
fn eject(
    state: &mut State,
    costs: &mut Costs,
    sizes: &[f64],
    random: &mut Random,
    temperature: f64,
) {
    let before = costs.total;
    let mut journal = Vec::new();
    let done = make_room(state, costs, sizes, random, &mut journal).is_some();
    if !done || !is_taken(costs.total - before, temperature, random) {
        undo(state, costs, journal);
    }
}

/// Notes in the journal where each moved replica was before; `None` if there is no room for one.
fn make_room(
    state: &mut State,
    costs: &mut Costs,
    sizes: &[f64],
    random: &mut Random,
    journal: &mut Vec<(usize, NodeIx)>,
) -> Option<()> {
    let replica = (0..LARGEST_OF)
        .map(|_| random.below(sizes.len()))
        .max_by(|one, other| sizes[*one].total_cmp(&sizes[*other]))?;
    let nodes = state.cluster.nodes.len();
    let from = state.node_of(replica)?;
    let to = NodeIx::new(random.below(nodes));
    let demand = state.demand(replica).iter().zip(state.capacity(to.ix()));
    if to == from
        || demand.into_iter().any(|(demand, capacity)| demand > capacity)
        || !state.cluster.may_run(ReplicaIx::new(replica), to)
        || !state.tallies.allow(state.cluster, replica, Some(from), to)
    {
        return None;
    }
    journal.push((replica, from));
    let change = costs.shift(state, replica, to);
    costs.apply_shift(state, replica, to, change);
    while state.is_over(to.ix()) {
        if journal.len() > EJECTED {
            return None;
        }
        let ejected = leaver(state, to, replica, random)?;
        let targets = (0..TARGETS).map(|at| match at {
            0 => from,
            _ => NodeIx::new(random.below(nodes)),
        });
        let allowed = targets.filter(|at| *at != to && state.allows(ejected, *at));
        let priced = allowed.map(|at| (costs.shift(state, ejected, at), at));
        let (change, at) = priced.min_by(|one, other| one.0.total_cmp(&other.0))?;
        journal.push((ejected, to));
        costs.apply_shift(state, ejected, at, change);
    }
    Some(())
}

/// A random replica of a node that needs what the node lacks.
fn leaver(state: &State, node: NodeIx, but: usize, random: &mut Random) -> Option<usize> {
    let mut metrics = 0..state.cluster.metrics.len();
    let metric = metrics.find(|metric| state.lack(node.ix(), *metric) > 0)?;
    let on = state.replicas_on(node.ix());
    (0..TARGETS)
        .map(|_| on[random.below(on.len())] as usize)
        .find(|replica| *replica != but && state.demand(*replica)[metric] > 0)
}

/// Takes moves back.
fn undo(state: &mut State, costs: &mut Costs, journal: Vec<(usize, NodeIx)>) {
    for (replica, from) in journal.into_iter().rev() {
        let change = costs.shift(state, replica, from);
        costs.apply_shift(state, replica, from, change);
    }
}

//! Simulated annealing over moves and swaps: random valid neighbours, and a temperature that falls
//! with the share of the search that is over.

use crate::cluster::{Assignment, NodeIx, ReplicaIx};
use crate::cost::Costs;
use crate::limits::{Limits, Progress};
use crate::neighbours::{is_taken, partner, swap_is_allowed, target};
use crate::overload::Overload;
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
/// The first temperature where there is time for 1,000 moves of each replica or more, in typical changes.
/// With less time it is lower: more heat than can be cooled slowly is wasted.
const HEAT: f64 = 10.0;
/// Those moves of each replica.
const MOVES_OF_HEAT: f64 = 1_000.0;
/// The temperature at which cooling ends, in typical changes: below it next to nothing is accepted that costs
/// something.
const COLD: f64 = 0.01;
/// The share of the search for cooling. In the rest small changes settle: the temperature falls fast, to this one.
const COOLING: f64 = 0.9;
const FROZEN: f64 = 1e-6;

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

/// One step in this many rebuilds nodes. A rebuild takes as long as a hundred other steps.
const REBUILD: usize = 30;
/// Nodes that are rebuilt together, and the most replicas that are taken off each.
const REBUILT_LEAST: usize = 2;
const REBUILT_MOST: usize = 4;
const TAKEN: usize = 8;

/// The share of proposed steps that can be made below which nodes are crowded. Where replicas also hold what they leave while
/// they move, the first part of the search then passes through assignments without room for everything.
const CROWDED: f64 = 0.5;
/// Moves of each replica below which there is no time for that, and those of each pass: one longer pass ends no better
/// than two, which find different assignments.
const MOVES_THROUGH_CROWDS: f64 = 1_000.0;
const MOVES_OF_A_PASS: f64 = 120_000.0;
/// The share of the search at which it ends: with an assignment that has room, or at the latest with the first one.
const CROWDS_END: f64 = 0.6;
const CROWDS_END_AT_LATEST: f64 = 0.8;
/// The temperatures at which it begins and ends, in typical changes.
const CROWDS_HEAT: f64 = 20.0;
const CROWDS_COLD: f64 = 1.0;
/// The price of a lack as large as an average replica until it begins to rise, and where the first part should end, in
/// typical changes; it rises from this share on, until an assignment with room is found.
const PRICES: (f64, f64) = (800.0, 3_000.0);
const PRICES_RISE: f64 = 0.3;

/// A step of a walk.
enum Step {
    Shift(usize, NodeIx),
    Swap(usize, usize),
}

fn walk<'s>(
    state: State<'s>,
    costs: Costs<'s>,
    limits: &Limits,
    bound: f64,
    random: Random,
    best: &Mutex<(f64, Assignment)>,
) {
    if state.assignment().is_empty() {
        return;
    }
    let mut walk = Walk::new(state, costs, limits, bound, random);
    walk.run();
    let own = walk.own;
    let mut best = best.lock().unwrap_or_else(PoisonError::into_inner);
    // Of equal values the smaller assignment, so that the order of threads does not matter.
    if (own.0, &own.1) < (best.0, &best.1) {
        *best = own;
    }
}

/// The search of one thread.
struct Walk<'s, 'l> {
    state: State<'s>,
    costs: Costs<'s>,
    sizes: Vec<f64>,
    /// The best value and assignment so far.
    own: (f64, Assignment),
    /// What nodes lack while it passes through crowds; else nothing, even if a node was over from the start.
    over: Overload,
    random: Random,
    limits: &'l Limits<'l>,
    bound: f64,
    rounds: u64,
    /// Shares of the whole search between which the walk, or one pass of it, takes place.
    window: (f64, f64),
}

impl<'s, 'l> Walk<'s, 'l> {
    fn new(
        state: State<'s>,
        costs: Costs<'s>,
        limits: &'l Limits<'l>,
        bound: f64,
        random: Random,
    ) -> Walk<'s, 'l> {
        Walk {
            sizes: sizes(&state),
            own: (costs.total, state.assignment().clone()),
            over: Overload::none(&state),
            state,
            costs,
            random,
            limits,
            bound,
            rounds: 0,
            window: (0.0, 1.0),
        }
    }

    fn run(&mut self) {
        let first = self.state.clone();
        let (typical, room) = typical_change(&self.state, &self.costs, &mut self.random);
        self.cool(typical, HEAT / 100.0, 0.0, MEASURED);
        let Some(share) = self.share() else { return };
        let moves = (MEASURED * ROUND) as f64 / share.max(1e-9) / self.sizes.len() as f64;
        let has_transit = first.cluster.metrics.iter().any(|metric| metric.transient);
        let is_crowded = room < CROWDED && has_transit && moves >= MOVES_THROUGH_CROWDS;
        // What is over must not get worse, and steps through crowds would let it.
        if !is_crowded || Overload::new(&first).is_over() {
            let heat = (HEAT * (moves / MOVES_OF_HEAT).powf(0.75)).clamp(HEAT / 100.0, HEAT);
            self.cool(typical, heat, 0.0, u64::MAX);
            return;
        }
        let passes = (moves / MOVES_OF_A_PASS).floor().max(1.0);
        let (mut pass, at) = (0.0, |pass: f64| share + (1.0 - share) * pass / passes);
        while pass < passes {
            self.window = (at(pass), at(pass + 1.0));
            // The gap is reached, or an early end was requested.
            if self.share().is_none() {
                break;
            }
            self.state = first.clone();
            self.settle();
            let start = self.through_crowds(typical);
            self.cool(typical, CROWDS_COLD, start, u64::MAX);
            pass += 1.0;
        }
    }

    /// Takes over a state that did not come about step by step.
    fn settle(&mut self) {
        self.costs.reset(&self.state);
        self.over = Overload::new(&self.state);
    }

    /// Walks over assignments with room for everything, and cools from a share of its time on.
    fn cool(&mut self, typical: f64, heat: f64, start: f64, rounds: u64) {
        let end = self.rounds.saturating_add(rounds);
        while let Some(share) = self.share().filter(|_| self.rounds < end) {
            let temperature = typical * cooled(heat, (share - start) / (1.0 - start));
            for _ in 0..ROUND {
                if self.random.below(REBUILD) == 0 {
                    self.rebuild(temperature);
                } else if self.random.below(EJECT) == 0 {
                    self.eject(temperature);
                } else {
                    step(&mut self.state, &mut self.costs, &mut self.random, temperature);
                }
            }
            self.end_round();
        }
    }

    /// The share of the window that is over; `None` when it ends.
    fn share(&self) -> Option<f64> {
        let (from, to) = self.window;
        let share = (self.limits.share(self.rounds) - from) / (to - from);
        let near = self.own.0 - self.bound <= self.limits.gap * self.own.0.abs();
        (share < 1.0 && !near).then_some(share.max(0.0))
    }

    fn end_round(&mut self) {
        // Once a round: the cold end of the search is where the best assignment is.
        self.keep_best();
        self.rounds += 1;
        if self.rounds.is_multiple_of(TOLD) {
            (self.limits.progress)(&Progress { value: self.own.0, bound: self.bound });
        }
    }

    fn keep_best(&mut self) {
        if !self.over.is_over() && self.costs.total < self.own.0 - 1e-9 {
            self.own.0 = self.costs.total;
            self.own.1.clone_from(self.state.assignment());
        }
    }

    /// Walks through assignments without room for everything, at a price that rises, and ends on the best with
    /// room that it found since the price began to rise, or else where it began (strategic oscillation: Glover,
    /// 1977). Returns the share of the search that is over then.
    fn through_crowds(&mut self, typical: f64) -> f64 {
        let mean = self.sizes.iter().sum::<f64>() / self.sizes.len() as f64;
        let unit = typical / mean.max(1e-9);
        let mut best = (f64::INFINITY, self.state.assignment().clone());
        let mut ended_at = 0.0;
        while let Some(share) = self.share() {
            ended_at = share;
            let found = best.0 < f64::INFINITY;
            if (found && share >= CROWDS_END) || share >= CROWDS_END_AT_LATEST {
                break;
            }
            let heat =
                CROWDS_HEAT * (CROWDS_COLD / CROWDS_HEAT).powf((share / CROWDS_END).min(1.0));
            let temperature = typical * heat;
            let risen = ((share - PRICES_RISE) / (CROWDS_END - PRICES_RISE)).max(0.0);
            self.over.price = unit * PRICES.0 * (PRICES.1 / PRICES.0).powf(risen);
            for _ in 0..ROUND {
                if self.random.below(REBUILD) == 0 {
                    self.rebuild(temperature);
                } else {
                    let Walk { state, costs, random, over, .. } = self;
                    over.step(state, costs, random, temperature);
                }
                if risen > 0.0 && !self.over.is_over() && self.costs.total < best.0 {
                    best.0 = self.costs.total;
                    best.1.clone_from(self.state.assignment());
                }
            }
            self.end_round();
        }
        for (replica, to) in best.1.iter().enumerate() {
            if let Some(to) = to.filter(|to| self.state.node_of(replica) != Some(*to)) {
                self.state.shift(replica, to);
            }
        }
        self.settle();
        self.keep_best();
        ended_at
    }
}

/// The temperature after a share of the search, in typical changes.
fn cooled(heat: f64, share: f64) -> f64 {
    if share < COOLING {
        heat * (COLD / heat).powf(share / COOLING)
    } else {
        COLD * (FROZEN / COLD).powf((share - COOLING) / (1.0 - COOLING))
    }
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
        let to = target(state, replica, random);
        let may = to != from
            && state.fits(replica, to.ix(), None)
            && state.cluster.may_run(ReplicaIx::new(replica), to);
        may.then_some(Step::Shift(replica, to))
    } else {
        let other = partner(state, replica, random);
        let to = state.node_of(other)?;
        let may = to != from
            && state.fits(replica, to.ix(), Some(other))
            && state.fits(other, from.ix(), Some(replica))
            && state.cluster.may_run(ReplicaIx::new(replica), to)
            && state.cluster.may_run(ReplicaIx::new(other), from);
        may.then_some(Step::Swap(replica, other))
    }
}

/// The median change of the steps that cost something, and the share of proposed steps that can be made.
fn typical_change(state: &State, costs: &Costs, random: &mut Random) -> (f64, f64) {
    let (mut worse, mut with_room) = (Vec::new(), 0_u32);
    for _ in 0..SAMPLE {
        let change = match propose(state, random) {
            Some(Step::Shift(replica, to)) => costs.shift(state, replica, to),
            Some(Step::Swap(one, other)) => costs.swap(state, one, other),
            None => continue,
        };
        with_room += 1;
        if change > 0.0 {
            worse.push(change);
        }
    }
    worse.sort_by(f64::total_cmp);
    let typical = worse.get(worse.len() / 2).copied().unwrap_or(1.0);
    (typical, f64::from(with_room) / SAMPLE as f64)
}

impl Walk<'_, '_> {
    /// Moves a large replica to a node without room, and enough others from there, if all of it can be done
    /// and is taken.
    fn eject(&mut self, temperature: f64) {
        let Walk { state, costs, sizes, random, .. } = self;
        let before = costs.total;
        let mut journal = Journal::new();
        let done = make_room(state, costs, sizes, random, &mut journal).is_some();
        if !done || !is_taken(costs.total - before, temperature, random) {
            undo(state, costs, journal);
        }
    }
}

/// Moves of a step that a replica ejects or takes along; noted with the node that each one leaves.
type Journal = Vec<(usize, NodeIx)>;

/// Moves a random large replica to a random node, with the replicas that must come along, and ejects
/// others until all nodes have room. `None` if that fails; the journal has what was moved.
fn make_room(
    state: &mut State,
    costs: &mut Costs,
    sizes: &[f64],
    random: &mut Random,
    journal: &mut Journal,
) -> Option<()> {
    let replica = (0..LARGEST_OF)
        .map(|_| random.below(sizes.len()))
        .max_by(|one, other| sizes[*one].total_cmp(&sizes[*other]))?;
    let from = state.node_of(replica)?;
    let to = NodeIx::new(random.below(state.cluster.nodes.len()));
    if to == from {
        return None;
    }
    let alone = state.tallies.allow(state.cluster, replica, Some(from), to);
    go(state, costs, replica, to, journal)?;
    if !alone {
        take_along(state, costs, journal)?;
    }
    let kept = journal.len();
    let mut at = 0;
    while at < kept {
        let node = state.node_of(journal[at].0)?;
        eject_from(state, costs, node, from, random, journal, kept)?;
        at += 1;
    }
    Some(())
}

/// Moves a replica to a node that may run it and could hold it alone.
fn go(
    state: &mut State,
    costs: &mut Costs,
    replica: usize,
    to: NodeIx,
    journal: &mut Journal,
) -> Option<()> {
    let from = state.node_of(replica)?;
    let mut demand = state.demand(replica).iter().zip(state.capacity(to.ix()));
    if journal.len() >= EJECTED
        || demand.any(|(demand, capacity)| demand > capacity)
        || !state.cluster.may_run(ReplicaIx::new(replica), to)
    {
        return None;
    }
    journal.push((replica, from));
    let change = costs.shift(state, replica, to);
    costs.apply_shift(state, replica, to, change);
    Some(())
}

/// Moves the companions of all replicas that have moved, and theirs.
fn take_along(state: &mut State, costs: &mut Costs, journal: &mut Journal) -> Option<()> {
    let mut at = 0;
    while at < journal.len() {
        let (replica, from) = journal[at];
        let to = state.node_of(replica)?;
        let node_of = |of: usize| state.node_of(of);
        let companions = state.tallies.companions(state.cluster, replica, from, to, node_of)?;
        for (companion, node) in companions {
            let has_moved = journal.iter().any(|(of, _)| *of == companion);
            match state.node_of(companion) == Some(node) {
                true => {}
                false if has_moved => return None,
                false => go(state, costs, companion, node, journal)?,
            }
        }
        at += 1;
    }
    Some(())
}

/// Ejects replicas that did not move in this step from a node, until it has room.
fn eject_from(
    state: &mut State,
    costs: &mut Costs,
    node: NodeIx,
    first: NodeIx,
    random: &mut Random,
    journal: &mut Journal,
    kept: usize,
) -> Option<()> {
    while state.is_over(node.ix()) {
        if journal.len() > EJECTED {
            return None;
        }
        let ejected = leaver(state, node, &journal[..kept], random)?;
        let targets = (0..TARGETS).map(|at| match at {
            0 => first,
            _ => NodeIx::new(random.below(state.cluster.nodes.len())),
        });
        let allowed = targets.filter(|at| *at != node && state.allows(ejected, *at));
        let priced = allowed.map(|at| (costs.shift(state, ejected, at), at));
        let (change, at) = priced.min_by(|one, other| one.0.total_cmp(&other.0))?;
        journal.push((ejected, node));
        costs.apply_shift(state, ejected, at, change);
    }
    Some(())
}

/// A random replica of a node that needs what the node lacks.
fn leaver(
    state: &State,
    node: NodeIx,
    but: &[(usize, NodeIx)],
    random: &mut Random,
) -> Option<usize> {
    let mut metrics = 0..state.cluster.metrics.len();
    let metric = metrics.find(|metric| state.lack(node.ix(), *metric) > 0)?;
    let on = state.replicas_on(node.ix());
    (0..TARGETS).map(|_| on[random.below(on.len())] as usize).find(|replica| {
        but.iter().all(|(of, _)| of != replica) && state.demand(*replica)[metric] > 0
    })
}

/// Takes moves back.
fn undo(state: &mut State, costs: &mut Costs, journal: Journal) {
    for (replica, from) in journal.into_iter().rev() {
        let change = costs.shift(state, replica, from);
        costs.apply_shift(state, replica, from, change);
    }
}

impl Walk<'_, '_> {
    /// Takes replicas off a few nodes and places them again, the largest first, each where it costs least,
    /// if all of it can be done and is taken.
    fn rebuild(&mut self, temperature: f64) {
        let Walk { state, costs, over, sizes, random, .. } = self;
        let before = costs.total;
        let nodes = state.cluster.nodes.len();
        let count = REBUILT_LEAST + random.below(REBUILT_MOST - REBUILT_LEAST + 1);
        let mut some: Vec<usize> = (0..count).map(|_| random.below(nodes)).collect();
        some[0] = over.any(random).unwrap_or(some[0]);
        some.sort_unstable();
        some.dedup();
        let mut taken = Journal::new();
        let most = 1 + random.below(TAKEN);
        for node in &some {
            for _ in 0..most {
                let on = state.replicas_on(*node);
                if on.is_empty() {
                    break;
                }
                let replica = on[random.below(on.len())] as usize;
                if let Some(from) = costs.take(state, replica) {
                    taken.push((replica, from));
                }
            }
        }
        let noise: Vec<f64> =
            taken.iter().map(|(of, _)| sizes[*of] * (0.5 + random.unit())).collect();
        let mut order: Vec<usize> = (0..taken.len()).collect();
        order.sort_by(|one, other| noise[*other].total_cmp(&noise[*one]));
        let mut placed = true;
        for at in order {
            let replica = taken[at].0;
            let others = (0..TARGETS).map(|_| random.below(nodes)).collect::<Vec<_>>();
            let home = state.origin(replica).map(NodeIx::ix);
            let best = some
                .iter()
                .copied()
                .chain(home)
                .chain(others)
                .map(NodeIx::new)
                .filter(|node| state.allows(replica, *node))
                .map(|node| (costs.shift(state, replica, node), node))
                .min_by(|one, other| one.0.total_cmp(&other.0));
            let Some((change, node)) = best else {
                placed = false;
                break;
            };
            costs.apply_shift(state, replica, node, change);
        }
        // No node lacks more than before: these were placed where there is room.
        let relieved =
            if over.is_over() && placed { Overload::lacks(state, &some) } else { Vec::new() };
        let change = costs.total - before + over.price * over.change(&relieved);
        let done = placed
            && is_taken(change, temperature, random)
            && taken.iter().all(|(replica, from)| {
                let to = state.node_of(*replica).expect("it was placed");
                let companions =
                    state
                        .tallies
                        .companions(state.cluster, *replica, *from, to, |of| state.node_of(of));
                companions.is_some_and(|found| found.is_empty())
            });
        if done {
            over.update(&relieved);
            return;
        }
        for (replica, _) in &taken {
            costs.take(state, *replica);
        }
        for (replica, from) in taken {
            let change = costs.shift(state, replica, from);
            costs.apply_shift(state, replica, from, change);
        }
    }
}

#[cfg(test)]
mod tests;

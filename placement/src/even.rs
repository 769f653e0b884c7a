//! Evens out the load with few moves: two nodes after the other two, of which the best move or swap of
//! all between them is made.

use crate::cluster::{Assignment, NodeIx, ReplicaIx};
use crate::cost::Costs;
use crate::limits::{Limits, Progress};
use crate::neighbours::swap_is_allowed;
use crate::random::Random;
use crate::state::State;
use std::sync::{Mutex, PoisonError};

/// Pairs of nodes between two looks at the clock.
const ROUND: u64 = 100;
/// `Limits::rounds` counts thousands of moves: the pairs of nodes of such a round.
const PAIRS: u64 = 1_000;
/// Rounds between two reports of progress.
const TOLD: u64 = 64;
/// First and last temperature, in costs of one move.
const HEAT: f64 = 1.0;
const COLD: f64 = 1e-2;
/// By which factor the cost of moves is raised at first, so that those that save most are made first.
const DEAR: f64 = 50.0;
/// One step in this many exchanges who moves.
const EXCHANGE: usize = 4;
/// Steps without a better value after which random moves are made, by pair of nodes; and how many.
const PATIENCE: u64 = 2;
const KICK: usize = 4;
/// Nodes that are compared for a replica that moves in another's place.
const TARGETS: usize = 16;
/// Replicas of a node that are compared at most.
const COMPARED: usize = 64;
/// The least demand that is compared, in standard deviations.
const LEAST: f64 = 0.02;

/// The best assignment that the threads find.
pub(crate) fn even_out(state: &State, costs: &Costs, limits: &Limits, bound: f64) -> Assignment {
    let best = Mutex::new((costs.total, state.assignment().clone()));
    std::thread::scope(|scope| {
        for thread in 0..limits.threads.max(1) as u64 {
            let best = &best;
            scope.spawn(move || {
                let seed = limits.seed.wrapping_mul(0x9e37_79b9).wrapping_add(thread);
                let mut walk = Walk::new(state.clone(), costs.clone(), Random::new(seed));
                let own = walk.run(limits, bound);
                let mut best = best.lock().unwrap_or_else(PoisonError::into_inner);
                // Of equal values the smaller assignment, so that the order of threads does not matter.
                if (own.0, &own.1) < (best.0, &best.1) {
                    *best = own;
                }
            });
        }
    });
    best.into_inner().unwrap_or_else(PoisonError::into_inner).1
}

struct Walk<'c> {
    state: State<'c>,
    costs: Costs<'c>,
    random: Random,
    temperature: f64,
    /// Factor of the cost of moves.
    dear: f64,
    /// What a unit of the sum of squares costs, by metric.
    prices: Vec<f64>,
    /// Replicas of the two nodes that are compared.
    sides: [Side; 2],
}

/// The replicas of one of two nodes that are compared.
#[derive(Default)]
struct Side {
    replicas: Vec<u32>,
    /// Demand by replica and metric.
    demand: Vec<f64>,
    /// What moving each to the other node costs, beside the load.
    cost: Vec<f64>,
}

/// What may be done between two nodes.
enum Step {
    Shift(usize, NodeIx),
    Swap(usize, usize),
}

impl<'c> Walk<'c> {
    fn new(state: State<'c>, costs: Costs<'c>, random: Random) -> Walk<'c> {
        let sides = [Side::default(), Side::default()];
        Walk { state, costs, random, temperature: 0.0, dear: 1.0, prices: Vec::new(), sides }
    }

    fn run(&mut self, limits: &Limits, bound: f64) -> (f64, Assignment) {
        let mut own = (self.costs.total, self.state.assignment().clone());
        let (mut rounds, first) = (0, limits.share(0));
        let nodes = self.state.cluster.nodes.len() as u64;
        let (mut improved, patience) = (0, PATIENCE * nodes * nodes / ROUND);
        while !self.state.assignment().is_empty() && nodes > 0 {
            let share = limits.share(rounds * ROUND / PAIRS);
            if share >= 1.0 || own.0 - bound <= limits.gap * own.0.abs() {
                break;
            }
            // The share that mending took is not part of the walk.
            let share = (share - first) / (1.0 - first);
            let heat = HEAT * (COLD / HEAT).powf(share);
            self.dear = DEAR.powf(1.0 - share);
            for _ in 0..ROUND {
                self.step(heat);
            }
            if self.costs.total < own.0 {
                own.0 = self.costs.total;
                own.1.clone_from(self.state.assignment());
                improved = rounds;
            } else if rounds - improved > patience {
                self.kick(&own.1);
                improved = rounds;
            }
            rounds += 1;
            if rounds.is_multiple_of(TOLD) {
                (limits.progress)(&Progress { value: own.0, bound });
            }
        }
        own
    }

    /// Goes on from the best assignment, with some random moves.
    fn kick(&mut self, best: &Assignment) {
        for (replica, node) in best.iter().enumerate() {
            if let Some(node) = *node
                && self.state.node_of(replica) != Some(node)
            {
                self.shift(replica, node);
            }
        }
        for _ in 0..KICK {
            let replica = self.random.below(best.len());
            let to = NodeIx::new(self.random.below(self.state.cluster.nodes.len()));
            let from = self.state.node_of(replica);
            if from.is_some_and(|from| from != to) && self.state.allows(replica, to) {
                self.shift(replica, to);
            }
        }
    }

    /// Two nodes: where a replica is and its home, or a random one and one that is unlike it.
    fn pick(&mut self) -> Option<[usize; 2]> {
        let replicas = self.state.assignment().len();
        let nodes = self.state.cluster.nodes.len();
        if self.random.below(4) == 0 {
            let replica = self.random.below(replicas);
            let (at, home) = (self.state.node_of(replica)?, self.state.origin(replica)?);
            return (at != home).then_some([at.ix(), home.ix()]);
        }
        let metric = self.random.below(self.prices.len());
        let load = |node: usize| self.state.usage(node)[metric];
        let mut of = [0; 4].map(|_| self.random.below(nodes));
        of.sort_by_key(|node| load(*node));
        let [low, one, other, high] = of;
        let (one, other) = if self.random.bits() & 1 == 0 { (high, low) } else { (other, one) };
        (one != other).then_some([one, other])
    }

    fn step(&mut self, heat: f64) {
        let Some(deviation) = self.costs.deviation() else { return };
        let per_move = deviation.prices(&mut self.prices);
        self.temperature = heat * per_move;
        if self.prices.is_empty() {
            return;
        }
        let per_move = per_move * self.dear;
        // What is taken at most, as the temperature allows.
        let limit = -self.temperature * (1.0 - self.random.unit()).ln();
        if self.random.below(EXCHANGE) == 0 {
            self.exchange(limit);
            return;
        }
        let Some(pair) = self.pick() else { return };
        let Some(step) = self.best_between(pair, per_move, limit) else { return };
        let change = match step {
            Step::Shift(replica, to) => self.costs.shift(&self.state, replica, to),
            Step::Swap(one, other) => self.costs.swap(&self.state, one, other),
        };
        if change <= limit {
            match step {
                Step::Shift(replica, to) => {
                    self.costs.apply_shift(&mut self.state, replica, to, change);
                }
                Step::Swap(one, other) => {
                    self.costs.apply_swap(&mut self.state, one, other, change);
                }
            }
        }
    }

    /// Moves a replica back to its home, after one that is in its way there has moved in its place.
    fn exchange(&mut self, limit: f64) {
        let replica = self.random.below(self.state.assignment().len());
        let (Some(at), Some(home)) = (self.state.node_of(replica), self.state.origin(replica))
        else {
            return;
        };
        if at == home
            || !self.state.cluster.may_run(ReplicaIx::new(replica), home)
            || !self.state.fits(replica, home.ix(), None)
        {
            return;
        }
        let Some((peer, to)) = self.who_leaves(replica, at, home) else { return };
        let Some(from) = self.state.node_of(peer) else { return };
        if !self.state.allows(peer, to) {
            return;
        }
        let before = self.costs.total;
        self.shift(peer, to);
        if self.state.allows(replica, home) {
            self.shift(replica, home);
            if self.costs.total - before <= limit {
                return;
            }
            self.shift(replica, at);
        }
        self.shift(peer, from);
    }

    /// The replica that would have to leave if this one were at home, and the best of some nodes for it.
    fn who_leaves(&mut self, replica: usize, at: NodeIx, home: NodeIx) -> Option<(usize, NodeIx)> {
        let (cluster, nodes) = (self.state.cluster, self.state.cluster.nodes.len());
        let targets = [(); TARGETS].map(|()| NodeIx::new(self.random.below(nodes)));
        self.state.tallies.remove(cluster, replica, at);
        self.state.tallies.add(cluster, replica, home);
        let state = &self.state;
        let node_of = |of| if of == replica { Some(home) } else { state.node_of(of) };
        let in_the_way = state.tallies.to_move(cluster, replica, home, node_of);
        let peer = in_the_way.into_iter().find(|peer| *peer != replica);
        let best = peer.and_then(|peer| {
            let from = state.node_of(peer)?;
            let allowed = targets.into_iter().filter(|to| {
                *to != from
                    && state.allows(peer, *to)
                    && state.tallies.mends(cluster, peer, Some(from), *to)
            });
            let priced = allowed.map(|to| (self.costs.shift(state, peer, to), to));
            let best = priced.min_by(|one, other| one.0.total_cmp(&other.0));
            best.map(|(_, to)| (peer, to))
        });
        self.state.tallies.remove(cluster, replica, home);
        self.state.tallies.add(cluster, replica, at);
        best
    }

    fn shift(&mut self, replica: usize, to: NodeIx) {
        let change = self.costs.shift(&self.state, replica, to);
        self.costs.apply_shift(&mut self.state, replica, to, change);
    }

    /// Lists the replicas of a node that are worth comparing.
    fn list(&mut self, side: usize, [node, other]: [usize; 2], per_move: f64) {
        let on = self.state.replicas_on(node);
        let first = if on.len() > COMPARED { self.random.below(on.len()) } else { 0 };
        let Side { replicas, demand, cost } = &mut self.sides[side];
        replicas.clear();
        demand.clear();
        cost.clear();
        let to = NodeIx::new(other);
        for replica in on[first..].iter().chain(&on[..first]) {
            let position = *replica as usize;
            let of = self.state.demand(position);
            // A price is weight / (2 n deviation): the demand in deviations, but for a factor.
            let amount: f64 =
                of.iter().zip(&self.prices).map(|(demand, price)| *demand as f64 * price).sum();
            let origin = self.state.origin(position);
            let moves = |at: Option<NodeIx>| f64::from(origin.is_some() && at != origin);
            let moved = moves(Some(to)) - moves(self.state.node_of(position));
            if amount * 2.0 * self.state.cluster.nodes.len() as f64 >= LEAST {
                replicas.push(*replica);
                demand.extend(of.iter().map(|demand| *demand as f64));
                cost.push(moved * per_move * self.state.cluster.replicas[position].move_cost);
                if replicas.len() == COMPARED {
                    break;
                }
            }
        }
    }

    /// The best valid move or swap between two nodes that costs at most `limit`, as far as costs are
    /// linear.
    fn best_between(
        &mut self,
        [one, other]: [usize; 2],
        per_move: f64,
        limit: f64,
    ) -> Option<Step> {
        self.list(0, [one, other], per_move);
        self.list(1, [other, one], per_move);
        let metrics = self.prices.len();
        let usage = self.state.usage(one).iter().zip(self.state.usage(other));
        let gap: Vec<f64> = usage.map(|(one, other)| (other - one) as f64).collect();
        let price = |amount: &dyn Fn(usize) -> f64, prices: &[f64]| -> f64 {
            (0..metrics)
                .map(|metric| {
                    let amount = amount(metric);
                    prices[metric] * 2.0 * amount * (amount + gap[metric])
                })
                .sum()
        };
        let [ours, theirs] = std::mem::take(&mut self.sides);
        let (mut least, mut best) = (limit, None);
        for at in 0..ours.replicas.len() {
            let demand = &ours.demand[at * metrics..][..metrics];
            let replica = ours.replicas[at] as usize;
            let cost = ours.cost[at] + price(&|m| demand[m], &self.prices);
            if cost < least && self.state.allows(replica, NodeIx::new(other)) {
                (least, best) = (cost, Some(Step::Shift(replica, NodeIx::new(other))));
            }
            for (with, partner) in theirs.replicas.iter().enumerate() {
                let back = &theirs.demand[with * metrics..][..metrics];
                let cost = ours.cost[at]
                    + theirs.cost[with]
                    + price(&|m| demand[m] - back[m], &self.prices);
                if cost < least && self.may_swap(replica, *partner as usize, one, other) {
                    (least, best) = (cost, Some(Step::Swap(replica, *partner as usize)));
                }
            }
        }
        for (with, partner) in theirs.replicas.iter().enumerate() {
            let back = &theirs.demand[with * metrics..][..metrics];
            let cost = theirs.cost[with] + price(&|m| -back[m], &self.prices);
            if cost < least && self.state.allows(*partner as usize, NodeIx::new(one)) {
                (least, best) = (cost, Some(Step::Shift(*partner as usize, NodeIx::new(one))));
            }
        }
        self.sides = [ours, theirs];
        best
    }

    fn may_swap(&mut self, one: usize, other: usize, here: usize, there: usize) -> bool {
        let cluster = self.state.cluster;
        cluster.may_run(ReplicaIx::new(one), NodeIx::new(there))
            && cluster.may_run(ReplicaIx::new(other), NodeIx::new(here))
            && self.state.fits(one, there, Some(other))
            && self.state.fits(other, here, Some(one))
            && swap_is_allowed(&mut self.state, one, other)
    }
}

//! Consolidation by local search: the most nodes emptied under a budget of moves.
//!
//! Nodes are emptied one by one, the cheapest or the smallest first. The replicas of a node go to a pool,
//! from which they are placed; where no node has room, a replica takes the place of one or two others,
//! which go to the pool. The pool shrinks, and a short memory keeps the search from undoing what it did.
//! The scheme is that of Buljubašić and Vasquez, "Consistent neighborhood search for one-dimensional bin
//! packing and two-dimensional vector packing" (2016); that moves cost, and a budget ends them, is new.

use crate::budgeted::Budgeted;
use crate::cluster::{Amount, Assignment, Cluster, NodeIx};
use crate::emptied::{Consolidated, emptied_bound};
use crate::equal_nodes::packed;
use crate::limits::{Limits, Progress};
use crate::random::Random;

/// Exchanges with the pool that an attempt at a node may make, at first and at most.
const STEPS: u64 = 100;
const MOST_STEPS: u64 = 6_400;
/// Nodes that are looked at for an exchange.
const SAMPLE: usize = 12;
/// Replicas of the pool that are looked at for an exchange.
const POOL: usize = 8;
/// Nodes that are tried before the search gives up on one more.
const TRIES: usize = 6;
/// Exchanges between nodes that are tried before one with the pool.
const BALANCE: usize = 20;
/// Exchanges for which a replica that came from the pool stays: this, and as much again at random.
const MEMORY: u64 = 8;

/// Empties the most nodes that it finds, with moves that cost at most `budget` in all. Nothing is placed
/// on a node that is empty today, and replicas without a node stay without. Nodes that take no replicas
/// (closed, draining) can be emptied as others. A round of `Limits` is a thousand exchanges; it uses one thread and ends
/// early at `emptied_bound`. Progress tells the number of nodes that stay in use.
pub fn consolidate(cluster: &Cluster, budget: f64, limits: &Limits) -> Consolidated {
    let bound = emptied_bound(cluster, budget);
    let today = Search::new(cluster, budget, limits);
    let in_use = today.open.iter().filter(|open| **open).count();
    let mut best = today.clone();
    // From scratch, where the budget may allow it, in half of the time; its steps are a thousandth of an exchange.
    let total: f64 = cluster.replicas.iter().map(|replica| replica.move_cost).sum();
    if budget >= total / 2.0 {
        let half = Limits {
            rounds: limits.rounds.map(|rounds| rounds.saturating_mul(1000)),
            deadline: limits.deadline.map(|deadline| deadline / 2),
            progress: &|_| {},
            ..*limits
        };
        let is_open = |node: &NodeIx| today.open[node.ix()];
        if let Some((assignment, _)) = packed(cluster, &half)
            && assignment.iter().flatten().all(is_open)
        {
            let mut search = today.clone();
            search.adopt(&assignment);
            if search.moves.affords(0.0) && search.is_better(&best) {
                best = search;
            }
        }
    }
    let mut random = Random::new(limits.seed);
    let mut steps = 0;
    for start in 0_u32.. {
        if best.emptied >= bound || limits.share(steps / 1000) >= 1.0 {
            break;
        }
        // Cost counts where the budget is short, size where capacity is.
        let by_cost = match start {
            0 => 1.0,
            1 => 0.0,
            2 => 0.5,
            _ => random.unit(),
        };
        let mut search = if start < 3 { today.clone() } else { best.clone() };
        search.random = random.clone();
        search.steps = steps;
        if start >= 3 {
            search.reopen(1 + start as usize % 3);
        }
        search.empty_nodes(by_cost, (STEPS << (start / 8).min(16)).min(MOST_STEPS), bound);
        (random, steps) = (search.random.clone(), search.steps + 1);
        if search.is_better(&best) {
            best = search;
            (limits.progress)(&Progress {
                value: (in_use - best.emptied) as f64,
                bound: in_use.saturating_sub(bound) as f64,
            });
        }
    }
    Consolidated::new(cluster, best.moves.state.assignment().clone())
}

/// A cluster that is being consolidated.
#[derive(Clone)]
struct Search<'c, 'l> {
    moves: Budgeted<'c>,
    /// Nodes that have replicas today and have not been emptied: those that take replicas.
    open: Vec<bool>,
    /// Nodes that have been emptied.
    emptied: usize,
    /// Size of each replica: its demand as shares of all nodes, the scarcer metrics counting more.
    size: Vec<f64>,
    /// Size of a unit, by metric.
    weight: Vec<f64>,
    /// Demand of an average node in use, by metric: the mix that a node should have room for.
    mix: Vec<f64>,
    /// The step until which each replica stays where it is.
    stays: Vec<u64>,
    random: Random,
    /// Exchanges so far.
    steps: u64,
    limits: &'l Limits<'l>,
}

/// A replica of the pool for one or two of a node.
struct Swap {
    gain: f64,
    /// Position in the pool.
    comes: usize,
    node: usize,
    leaves: [Option<usize>; 2],
}

impl<'c, 'l> Search<'c, 'l> {
    fn new(cluster: &'c Cluster, budget: f64, limits: &'l Limits<'l>) -> Search<'c, 'l> {
        let moves = Budgeted::today(cluster, budget);
        let state = &moves.state;
        let open: Vec<bool> =
            (0..cluster.nodes.len()).map(|node| !state.replicas_on(node).is_empty()).collect();
        let weight: Vec<f64> = (0..cluster.metrics.len())
            .map(|metric| {
                let nodes = (0..open.len()).filter(|node| open[*node]);
                let limits = nodes.filter(|node| state.capacity(*node)[metric] < Amount::MAX);
                let (used, capacity) = limits.fold((0.0, 0.0), |(used, capacity), node| {
                    let limit = state.capacity(node)[metric] as f64;
                    (used + state.usage(node)[metric] as f64, capacity + limit)
                });
                let share = if capacity > 0.0 { used / capacity } else { 0.0 };
                // Twice as scarce counts four times.
                share * share / capacity.max(1.0)
            })
            .collect();
        let nodes = open.iter().filter(|open| **open).count().max(1) as f64;
        let mix = |metric: usize| {
            let nodes_in_use = (0..open.len()).filter(|node| open[*node]);
            nodes_in_use.map(|node| state.usage(node)[metric] as f64).sum::<f64>() / nodes
        };
        let mix = (0..cluster.metrics.len()).map(mix).collect();
        let replicas = state.assignment().len();
        let size = |replica: usize| {
            let demand = state.demand(replica).iter().zip(&weight);
            demand.map(|(demand, weight)| *demand as f64 * weight).sum()
        };
        Search {
            size: (0..replicas).map(size).collect(),
            weight,
            mix,
            stays: vec![0; replicas],
            moves,
            open,
            emptied: 0,
            random: Random::new(0),
            steps: 0,
            limits,
        }
    }

    /// Takes over an assignment that leaves empty nodes empty.
    fn adopt(&mut self, assignment: &Assignment) {
        for (replica, node) in assignment.iter().enumerate() {
            if let Some(node) = node.filter(|_| self.moves.state.node_of(replica).is_some()) {
                self.moves.take(replica);
                self.moves.put(replica, node);
            }
        }
        for node in 0..self.open.len() {
            if self.open[node] && self.moves.state.replicas_on(node).is_empty() {
                self.open[node] = false;
                self.emptied += 1;
            }
        }
    }

    fn is_better(&self, than: &Search) -> bool {
        self.emptied > than.emptied
            || (self.emptied == than.emptied && self.moves.spent < than.moves.spent - 1e-9)
    }

    fn is_over(&self) -> bool {
        self.steps.is_multiple_of(64) && self.limits.share(self.steps / 1000) >= 1.0
    }

    /// Empties nodes until no attempt succeeds. Keys mix cost and size of a node.
    fn empty_nodes(&mut self, by_cost: f64, steps: u64, bound: usize) {
        // What can be placed without exchanges, first.
        for node in self.candidates(by_cost) {
            if self.emptied < bound {
                self.empty(node, Some(0.0), 0);
            }
        }
        while self.emptied < bound {
            let nodes = self.candidates(by_cost);
            // The moves of others that make room cost too: as few as possible at first.
            let attempts = [Some(0.0), Some(0.5), None].into_iter();
            let mut attempts =
                attempts.flat_map(|extra| nodes.iter().take(TRIES).map(move |of| (*of, extra)));
            if !attempts.any(|(node, extra)| self.empty(node, extra, steps)) {
                return;
            }
        }
    }

    /// Nodes that may be emptied, the best first.
    fn candidates(&self, by_cost: f64) -> Vec<usize> {
        let state = &self.moves.state;
        let nodes: Vec<usize> = (0..self.open.len()).filter(|node| self.open[*node]).collect();
        let costs: Vec<f64> = nodes.iter().map(|node| self.moves.leaving_all(*node)).collect();
        let sizes: Vec<f64> = nodes
            .iter()
            .map(|node| state.replicas_on(*node).iter().map(|of| self.size[*of as usize]).sum())
            .collect();
        let mean = |of: &[f64]| (of.iter().sum::<f64>() / of.len().max(1) as f64).max(1e-300);
        let (cost, size) = (mean(&costs), mean(&sizes));
        let mut keyed: Vec<(f64, usize)> = (nodes.iter().zip(costs.iter().zip(&sizes)))
            .filter(|(_, (cost, _))| self.moves.affords(**cost))
            .map(|(node, (of, or))| (by_cost * of / cost + (1.0 - by_cost) * or / size, *node))
            .collect();
        keyed.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        keyed.into_iter().map(|(_, node)| node).collect()
    }

    /// Moves all replicas off a node; where that fails, nothing changes. `extra` limits the cost of other
    /// moves, as a share of the node's own.
    fn empty(&mut self, node: usize, extra: Option<f64>, steps: u64) -> bool {
        let before = self.moves.clone();
        let broken = before.state.tallies.broken();
        let own = self.moves.leaving_all(node);
        let limit = extra.map_or(f64::INFINITY, |extra| self.moves.spent + own * (1.0 + extra));
        self.open[node] = false;
        let mut pool: Vec<usize> =
            self.moves.state.replicas_on(node).iter().map(|of| *of as usize).collect();
        for replica in &pool {
            self.moves.take(*replica);
        }
        // The pool is outside of the rules: what its replicas held up may have fallen.
        if self.moves.affords(0.0)
            && self.settle(&mut pool, limit, steps)
            && self.moves.state.tallies.broken() <= broken
        {
            self.emptied += 1;
            return true;
        }
        self.moves = before;
        self.open[node] = true;
        false
    }

    /// Places the replicas of the pool, with exchanges. Whether all are placed.
    fn settle(&mut self, pool: &mut Vec<usize>, limit: f64, steps: u64) -> bool {
        self.sort(pool);
        pool.retain(|replica| !self.place(*replica));
        for _ in 0..steps {
            self.steps += 1;
            if pool.is_empty() || self.is_over() {
                break;
            }
            for _ in 0..BALANCE {
                if let Some(nodes) = self.balance(limit) {
                    for node in nodes {
                        pool.retain(|replica| !self.place_on(*replica, node));
                    }
                }
            }
            let Some(swap) = self.best_swap(pool, limit) else { continue };
            let comes = pool.remove(swap.comes);
            for leaves in swap.leaves.into_iter().flatten() {
                self.moves.take(leaves);
                pool.push(leaves);
            }
            let node = NodeIx::new(swap.node);
            if !self.moves.state.allows(comes, node) {
                // Rules may forbid what capacity allows.
                for leaves in swap.leaves.into_iter().flatten() {
                    self.moves.put(leaves, node);
                    self.stays[leaves] = self.steps + MEMORY;
                    pool.pop();
                }
                pool.insert(swap.comes, comes);
                continue;
            }
            self.moves.put(comes, node);
            self.stays[comes] = self.steps + MEMORY + self.random.below(MEMORY as usize) as u64;
            self.sort(pool);
            let leaves = swap.leaves;
            pool.retain(|replica| {
                let placed = if leaves.contains(&Some(*replica)) {
                    self.place(*replica)
                } else {
                    self.place_on(*replica, swap.node)
                };
                !placed
            });
        }
        pool.is_empty()
    }

    /// The largest first.
    fn sort(&self, replicas: &mut [usize]) {
        let size = |replica: &usize| self.size[*replica];
        replicas.sort_by(|one, other| size(other).total_cmp(&size(one)).then(one.cmp(other)));
    }

    fn place_on(&mut self, replica: usize, node: usize) -> bool {
        let allowed = self.open[node] && self.moves.state.allows(replica, NodeIx::new(node));
        if allowed {
            self.moves.put(replica, NodeIx::new(node));
        }
        allowed
    }

    /// Places a replica on its node of today or on the open node that it fills best, if one has room.
    fn place(&mut self, replica: usize) -> bool {
        let home = self.moves.state.origin(replica);
        if home.is_some_and(|home| self.place_on(replica, home.ix())) {
            return true;
        }
        let mut best: Option<(f64, usize)> = None;
        for node in 0..self.open.len() {
            if self.open[node] && self.moves.state.allows(replica, NodeIx::new(node)) {
                let left = self.left(node);
                if best.is_none_or(|(least, _)| left < least) {
                    best = Some((left, node));
                }
            }
        }
        best.is_some_and(|(_, node)| self.place_on(replica, node))
    }

    /// Size of the free space on a node.
    fn left(&self, node: usize) -> f64 {
        let state = &self.moves.state;
        let free = state.capacity(node).iter().zip(state.usage(node));
        let sizes = free.zip(&self.weight).map(|((capacity, used), weight)| {
            if *capacity < Amount::MAX { (capacity - used) as f64 * weight } else { 0.0 }
        });
        sizes.sum()
    }

    /// The exchange after which the pool is smallest, on some nodes at random.
    fn best_swap(&mut self, pool: &[usize], limit: f64) -> Option<Swap> {
        let mut best: Option<Swap> = None;
        for _ in 0..SAMPLE {
            let node = self.random.below(self.open.len());
            if !self.open[node] {
                continue;
            }
            let on = self.different(node);
            for (position, first) in on.iter().enumerate() {
                let cost = self.moves.leaving(*first);
                if !self.may_spend(cost, limit) {
                    continue;
                }
                self.consider(pool, node, [Some(*first), None], &mut best);
                for second in &on[position + 1..] {
                    if self.may_spend(cost + self.moves.leaving(*second), limit) {
                        self.consider(pool, node, [Some(*first), Some(*second)], &mut best);
                    }
                }
            }
        }
        best
    }

    fn may_spend(&self, more: f64, limit: f64) -> bool {
        self.moves.affords(more) && self.moves.spent + more <= limit + 1e-9
    }

    /// Keeps the best exchange of a replica of the pool for these of a node.
    fn consider(
        &self,
        pool: &[usize],
        node: usize,
        leaves: [Option<usize>; 2],
        best: &mut Option<Swap>,
    ) {
        let state = &self.moves.state;
        let freed: f64 = leaves.iter().flatten().map(|replica| self.size[*replica]).sum();
        for (comes, replica) in pool.iter().enumerate().take(POOL) {
            let gain = self.size[*replica] - freed;
            // The pool is sorted: those that follow are smaller.
            if best.as_ref().is_some_and(|best| gain <= best.gain) {
                return;
            }
            let fits = state.demand(*replica).iter().enumerate().all(|(metric, demand)| {
                let leaving = leaves.iter().flatten();
                let freed: Amount = leaving.map(|leaves| state.demand(*leaves)[metric]).sum();
                let room = state.capacity(node)[metric].saturating_sub(state.usage(node)[metric]);
                *demand == 0 || *demand <= room.saturating_add(freed)
            });
            if fits {
                *best = Some(Swap { gain, comes, node, leaves });
            }
        }
    }

    /// Moves a random replica to a random node, or exchanges two, if that improves what the nodes have room
    /// for. The two nodes, if so.
    fn balance(&mut self, limit: f64) -> Option<[usize; 2]> {
        let state = &self.moves.state;
        let one = self.random.below(self.size.len());
        let from = state.node_of(one)?.ix();
        let to = self.random.below(self.open.len());
        if from == to || !self.open[from] || !self.open[to] || self.stays[one] > self.steps {
            return None;
        }
        let there = state.replicas_on(to);
        let other = match self.random.below(there.len() + 1) {
            0 => None,
            position => Some(there[position - 1] as usize),
        };
        if other.is_some_and(|other| self.stays[other] > self.steps) {
            return None;
        }
        let before = self.room(from, None, None)? + self.room(to, None, None)?;
        let after = self.room(from, Some(one), other)? + self.room(to, other, Some(one))?;
        if after <= before + 1e-12 {
            return None;
        }
        let cost = self.moves.leaving(one) + other.map_or(0.0, |other| self.moves.leaving(other));
        if !self.may_spend(cost, limit) {
            return None;
        }
        let (at, to_node) = (NodeIx::new(from), NodeIx::new(to));
        self.moves.take(one);
        other.map(|other| self.moves.take(other));
        if self.moves.state.allows(one, to_node) {
            self.moves.put(one, to_node);
            let Some(other) = other else { return Some([from, to]) };
            if self.moves.state.allows(other, at) {
                self.moves.put(other, at);
                return Some([from, to]);
            }
            self.moves.take(one);
        }
        self.moves.put(one, at);
        other.inspect(|other| self.moves.put(*other, to_node));
        None
    }

    /// What a node has room for, once a replica has left and another one has come: the number of average
    /// mixes, squared, because room on one node is worth more than on two. `None`: no room.
    fn room(&self, node: usize, leaves: Option<usize>, comes: Option<usize>) -> Option<f64> {
        let state = &self.moves.state;
        let (mut least, mut sum, mut count) = (f64::INFINITY, 0.0, 0.0);
        for (metric, mix) in self.mix.iter().enumerate() {
            let capacity = state.capacity(node)[metric];
            if capacity == Amount::MAX || *mix <= 0.0 {
                continue;
            }
            let demand = |of: Option<usize>| of.map_or(0, |replica| state.demand(replica)[metric]);
            let free = capacity - state.usage(node)[metric] + demand(leaves) - demand(comes);
            if free < 0 && demand(comes) > 0 {
                return None;
            }
            let room = free as f64 / mix;
            least = least.min(room);
            sum += room;
            count += 1.0;
        }
        // A little for room that only some replicas can use.
        Some(if count > 0.0 {
            least * least.abs() + 0.01 * (sum / count) * (sum / count)
        } else {
            0.0
        })
    }

    /// The replicas of a node that may leave it, one of each demand where no rule is about them.
    fn different(&self, node: usize) -> Vec<usize> {
        let state = &self.moves.state;
        let mut found: Vec<usize> = Vec::new();
        for replica in state.replicas_on(node) {
            let replica = *replica as usize;
            if self.stays[replica] > self.steps {
                continue;
            }
            let same = |other: &usize| {
                state.demand(*other) == state.demand(replica)
                    && state.tallies.is_free(replica)
                    && state.tallies.is_free(*other)
            };
            match found.iter_mut().find(|other| same(other)) {
                // Of equal ones, the cheapest to move.
                Some(other) if self.moves.leaving(replica) < self.moves.leaving(*other) => {
                    *other = replica;
                }
                Some(_) => {}
                None => found.push(replica),
            }
        }
        found
    }

    /// Brings replicas of some emptied nodes home, where there is room.
    fn reopen(&mut self, count: usize) {
        let broken = self.moves.state.tallies.broken();
        for _ in 0..count {
            let node = self.random.below(self.open.len());
            let home = NodeIx::new(node);
            let of_node: Vec<usize> = (0..self.size.len())
                .filter(|replica| {
                    let state = &self.moves.state;
                    state.origin(*replica) == Some(home) && state.node_of(*replica).is_some()
                })
                .collect();
            if self.open[node] || of_node.is_empty() {
                continue;
            }
            self.open[node] = true;
            self.emptied -= 1;
            for replica in of_node {
                self.go_home(replica, home, broken);
            }
        }
    }

    fn go_home(&mut self, replica: usize, home: NodeIx, broken: u64) {
        if let Some(from) = self.moves.take(replica)
            && (!self.place_on(replica, home.ix()) || self.moves.state.tallies.broken() > broken)
        {
            self.moves.take(replica);
            self.moves.put(replica, from);
        }
    }
}

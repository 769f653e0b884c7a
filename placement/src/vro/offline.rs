//! Offline consolidation under a budget of migrations: Eigen section 4.1.2.

use super::choice::{Choice, angle, angle_after};
use super::policy::{Policy, Skewness, Vro};
use crate::budgeted::Budgeted;
use crate::cluster::{Cluster, NodeIx};
use crate::emptied::Consolidated;
use crate::state::sizes;
use std::f64::consts::{FRAC_PI_2, PI};

/// Parameters of the consolidation.
#[derive(Clone, Debug)]
pub struct Offline {
    /// How a migrated replica finds its node. Eigen's columns "Diagonal", "Bottleneck" and "DP" are
    /// `Policy::Vro`; the baselines of table 1 are the other policies.
    pub policy: Policy,
    /// The exchange phase: Eigen's columns with a plus sign have one.
    pub exchange: Option<Exchange>,
}

/// Parameters of the exchange phase, by the names of algorithm 3. The paper has no numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange {
    /// Most repetitions of search and consolidation: N.
    pub iterations: usize,
    /// Where the binary search of the angle begins and ends, in radians: from `theta_min` to `theta_max`.
    pub theta_min: f64,
    /// See `theta_min`.
    pub theta_max: f64,
    /// The search ends when it has the angle this exactly, in radians: epsilon.
    pub epsilon: f64,
}

impl Default for Exchange {
    fn default() -> Exchange {
        Exchange { iterations: 3, theta_min: 0.0, theta_max: FRAC_PI_2, epsilon: PI / 64.0 }
    }
}

impl Offline {
    /// Eigen's consolidation without the exchange phase, by the dot product.
    pub fn without_exchange() -> Offline {
        Offline { exchange: None, ..Offline::new(Skewness::DotProduct) }
    }

    /// Eigen's consolidation with this measure of skewness, with the exchange phase.
    pub fn new(skewness: Skewness) -> Offline {
        Offline { policy: Policy::Vro(Vro::new(skewness)), exchange: Some(Exchange::default()) }
    }
}

/// Empties nodes with moves that cost at most `budget` in all. Nothing is placed on a node that is empty
/// today. Eigen algorithms 1 to 3.
pub fn empty_nodes(cluster: &Cluster, budget: f64, offline: &Offline) -> Consolidated {
    let mut choice = Choice::new(cluster, offline.policy.clone());
    let mut best = Packed {
        in_use: (0..cluster.nodes.len()).map(|_| false).collect(),
        moves: Budgeted::today(cluster, budget),
    };
    for node in 0..cluster.nodes.len() {
        best.in_use[node] = !best.moves.state.replicas_on(node).is_empty();
    }
    match &offline.exchange {
        None => {
            best.migrate(&mut choice);
        }
        Some(exchange) => best = search(best, exchange, &mut choice),
    }
    Consolidated::new(cluster, best.moves.state.assignment().clone())
}

/// Algorithm 3: the binary search of the angle above which nodes exchange replicas.
fn search<'c>(today: Packed<'c>, exchange: &Exchange, choice: &mut Choice) -> Packed<'c> {
    let mut best = today;
    for _ in 0..exchange.iterations {
        let start = best.clone();
        let (mut low, mut high) = (exchange.theta_min, exchange.theta_max);
        while high - low > exchange.epsilon.max(1e-6) {
            let theta = f64::midpoint(low, high);
            let mut trial = start.clone();
            trial.exchange(theta);
            let complete = trial.migrate(choice);
            if trial.moves.affords(0.0) && trial.count() < best.count() {
                best = trial;
            }
            if complete { high = theta } else { low = theta }
        }
        if best.count() == start.count() {
            break;
        }
    }
    best
}

/// A cluster that is being consolidated: M of the algorithms.
#[derive(Clone, Debug)]
struct Packed<'c> {
    moves: Budgeted<'c>,
    /// Nodes that have replicas today and have not been emptied.
    in_use: Vec<bool>,
}

impl Packed<'_> {
    fn count(&self) -> usize {
        self.in_use.iter().filter(|in_use| **in_use).count()
    }

    fn unvisited(&self, visited: &[bool]) -> impl Iterator<Item = usize> {
        (0..visited.len()).filter(move |node| self.in_use[*node] && !visited[*node])
    }

    /// Algorithm 1: empties the node whose replicas cost least, and so on. Whether it ended before the
    /// budget did. The paper does not say in which order the replicas leave a node (the largest first here),
    /// and rolls a node back only where the budget ends. Here, one that cannot be emptied is rolled back too:
    /// its moves would only cost.
    fn migrate(&mut self, choice: &mut Choice) -> bool {
        let sizes = sizes(&self.moves.state);
        let mut visited = vec![false; self.in_use.len()];
        loop {
            let cost = |node: &usize| self.moves.leaving_all(*node);
            let next = self
                .unvisited(&visited)
                .min_by(|one, other| cost(one).total_cmp(&cost(other)).then(one.cmp(other)));
            // Exchanges alone may exceed the budget.
            let Some(node) = next else { return self.moves.affords(0.0) };
            visited[node] = true;
            let on = self.moves.state.replicas_on(node).iter();
            let mut on: Vec<usize> = on.map(|replica| *replica as usize).collect();
            on.sort_by(|one, other| sizes[*other].total_cmp(&sizes[*one]).then(one.cmp(other)));
            let mut moved = Vec::new();
            let mut stays = false;
            for replica in on {
                let in_use = &self.in_use;
                let others = |other: usize| other != node && in_use[other];
                let Some(to) = choice.best(&self.moves.state, replica, others) else {
                    stays = true;
                    break;
                };
                self.moves.take(replica);
                self.moves.put(replica, to);
                moved.push(replica);
                if !self.moves.affords(0.0) {
                    self.return_to(node, moved);
                    return false;
                }
            }
            if stays {
                self.return_to(node, moved);
            } else {
                self.in_use[node] = false;
            }
        }
    }

    fn return_to(&mut self, node: usize, replicas: Vec<usize>) {
        for replica in replicas.into_iter().rev() {
            self.moves.take(replica);
            self.moves.put(replica, NodeIx::new(node));
        }
    }

    /// Algorithm 2: nodes whose free capacity is skewed exchange replicas with others, if both are less
    /// skewed afterwards.
    fn exchange(&mut self, theta: f64) {
        let mut visited = vec![false; self.in_use.len()];
        loop {
            let angle_of = |node: &usize| angle(&self.moves.state, *node);
            let next = self.unvisited(&visited).max_by(|one, other| {
                angle_of(one).total_cmp(&angle_of(other)).then(other.cmp(one))
            });
            let Some(node) = next.filter(|node| angle_of(node) > theta) else { return };
            visited[node] = true;
            while angle(&self.moves.state, node) > theta {
                let Some((one, other)) = self.best_exchange(node) else { break };
                if !self.swap(one, other) {
                    break;
                }
            }
        }
    }

    /// The replica of a node and the one elsewhere whose exchange makes the node least skewed.
    fn best_exchange(&self, node: usize) -> Option<(usize, usize)> {
        let state = &self.moves.state;
        let before = angle(state, node);
        let ours = self.different(node);
        let mut best: Option<(f64, usize, usize)> = None;
        for other_node in 0..self.in_use.len() {
            if other_node == node || !self.in_use[other_node] {
                continue;
            }
            let other_before = angle(state, other_node);
            for theirs in self.different(other_node) {
                for one in &ours {
                    let gain = before - angle_after(state, node, *one, theirs);
                    if gain > best.map_or(1e-9, |(most, ..)| most)
                        && other_before - angle_after(state, other_node, theirs, *one) > 1e-9
                        && self.may_swap(*one, theirs)
                    {
                        best = Some((gain, *one, theirs));
                    }
                }
            }
        }
        best.map(|(_, one, other)| (one, other))
    }

    /// The replicas of a node, one of each demand: equal ones make equal exchanges. Where rules tell
    /// replicas apart, all.
    fn different(&self, node: usize) -> Vec<usize> {
        let state = &self.moves.state;
        let mut of_node: Vec<usize> = Vec::new();
        for replica in state.replicas_on(node) {
            let replica = *replica as usize;
            let same = |other: &usize| {
                state.demand(*other) == state.demand(replica)
                    && state.tallies.is_free(replica)
                    && state.tallies.is_free(*other)
            };
            match of_node.iter_mut().find(|other| same(other)) {
                // Of equal ones, the cheapest to move.
                Some(other) if self.moves.leaving(replica) < self.moves.leaving(*other) => {
                    *other = replica;
                }
                Some(_) => {}
                None => of_node.push(replica),
            }
        }
        of_node
    }

    /// Whether there is room for each of two replicas once the other one has left.
    fn may_swap(&self, one: usize, other: usize) -> bool {
        let state = &self.moves.state;
        let (Some(at), Some(to)) = (state.node_of(one), state.node_of(other)) else {
            return false;
        };
        state.fits(one, to.ix(), Some(other)) && state.fits(other, at.ix(), Some(one))
    }

    /// Exchanges two replicas, if the rules allow it.
    fn swap(&mut self, one: usize, other: usize) -> bool {
        let moves = &mut self.moves;
        let (Some(at), Some(to)) = (moves.state.node_of(one), moves.state.node_of(other)) else {
            return false;
        };
        let broken = moves.state.tallies.broken();
        moves.take(one);
        moves.take(other);
        if moves.state.allows(one, to) {
            moves.put(one, to);
            if moves.state.allows(other, at) {
                moves.put(other, at);
                if moves.state.tallies.broken() <= broken {
                    return true;
                }
                moves.take(other);
            }
            moves.take(one);
        }
        moves.put(one, at);
        moves.put(other, to);
        false
    }
}

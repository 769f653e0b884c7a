//! Improves a valid assignment for failovers, step by step down: where new and moved replicas go, and
//! which replica of a node moves. No step adds to the weight of the moves more than it saves elsewhere.

use crate::cluster::{Amount, Assignment, NodeIx, ReplicaIx};
use crate::cost::Costs;
use crate::limits::{Limits, Progress};
use crate::neighbours::swap_is_allowed;
use crate::soft::SoftCosts;
use crate::state::State;
use crate::tally::Tallies;

/// Smaller changes do not count: sums of fractions are not exact.
const NONE: f64 = 1e-9;

/// What a step is judged by: the change of the value; of equal ones, the load of the fullest node that it
/// touches, so that free choices leave room on all nodes. Since that node was fuller before, no steps go
/// round in circles.
#[derive(Clone, Copy)]
struct Rank {
    change: f64,
    load: f64,
}

impl Rank {
    fn is_better_than(self, other: Rank) -> bool {
        let change = self.change - other.change;
        change < -NONE || (change <= NONE && self.load < other.load - NONE)
    }
}

/// Improves a valid assignment until no step does, or the limits end it.
pub(crate) fn descend(state: State, costs: Costs, limits: &Limits, bound: f64) -> Assignment {
    let mut descent = Descent { state, costs, limits, tried: 0 };
    loop {
        let mut improved = descent.each_free(Descent::better_node);
        improved |= descent.each_free(Descent::other_leaves);
        improved |= descent.each_free(Descent::roles_make_room);
        improved |= descent.swaps();
        improved |= descent.risky_nodes();
        improved |= descent.soft_constraints();
        improved |= descent.empty_nodes();
        let value = descent.costs.total;
        (limits.progress)(&Progress { value, bound });
        let is_near = limits.gap > 0.0 && value - bound <= limits.gap * value.abs();
        if !improved || is_near || descent.must_end() {
            return descent.state.assignment().clone();
        }
    }
}

struct Descent<'s, 'l> {
    state: State<'s>,
    costs: Costs<'s>,
    limits: &'l Limits<'l>,
    /// Steps tried.
    tried: u64,
}

impl Descent<'_, '_> {
    fn must_end(&self) -> bool {
        self.limits.share(self.tried / 1_000) >= 1.0
    }

    /// Replicas that may go anywhere: new ones, and those that have moved.
    fn free(&self) -> Vec<usize> {
        let replicas = 0..self.state.assignment().len();
        let is_free = |replica: &usize| {
            let node = self.state.node_of(*replica);
            node.is_some() && node != self.state.origin(*replica)
        };
        replicas.filter(is_free).collect()
    }

    fn each_free(&mut self, step: impl Fn(&mut Self, usize, NodeIx) -> bool) -> bool {
        let mut improved = false;
        for replica in self.free() {
            if self.must_end() {
                break;
            }
            if let Some(node) = self.state.node_of(replica) {
                improved |= step(self, replica, node);
            }
        }
        improved
    }

    /// Share of its capacity that a node would use, by its fullest metric, after replicas have come and
    /// gone.
    fn load(&self, node: NodeIx, comes: Option<usize>, goes: Option<usize>) -> f64 {
        let metrics = 0..self.state.cluster.metrics.len();
        let demand = |replica: Option<usize>, metric: usize| -> Amount {
            replica.map_or(0, |replica| self.state.demand(replica)[metric])
        };
        let (usage, capacity) = (self.state.usage(node.ix()), self.state.capacity(node.ix()));
        let share = |metric: usize| {
            let used = usage[metric] + demand(comes, metric) - demand(goes, metric);
            used as f64 / capacity[metric].max(1) as f64
        };
        metrics.map(share).fold(0.0, f64::max)
    }

    /// The best node that a replica may move to, if any is better than `least`.
    fn best_node(&mut self, replica: usize, least: Rank, load: f64) -> Option<(Rank, NodeIx)> {
        let mut best: Option<(Rank, NodeIx)> = None;
        let here = self.state.node_of(replica);
        for node in (0..self.state.cluster.nodes.len()).map(NodeIx::new) {
            if Some(node) == here || !self.state.allows(replica, node) {
                continue;
            }
            self.tried += 1;
            let rank = Rank {
                change: self.costs.shift(&self.state, replica, node),
                load: self.load(node, Some(replica), None).max(load),
            };
            if rank.is_better_than(best.map_or(least, |(rank, _)| rank)) {
                best = Some((rank, node));
            }
        }
        best
    }

    fn shift(&mut self, replica: usize, to: NodeIx, change: f64) {
        self.costs.apply_shift(&mut self.state, replica, to, change);
    }

    /// A new or moved replica goes where the value is least: its node of today is one choice.
    fn better_node(&mut self, replica: usize, here: NodeIx) -> bool {
        let least = Rank { change: 0.0, load: self.load(here, None, None) };
        let left = self.load(here, None, Some(replica));
        let Some((rank, node)) = self.best_node(replica, least, left) else { return false };
        self.shift(replica, node, rank.change);
        true
    }

    /// A moved replica goes home, and another one leaves that node instead.
    fn other_leaves(&mut self, replica: usize, here: NodeIx) -> bool {
        let Some(home) = self.state.origin(replica) else { return false };
        if !self.state.cluster.may_run(ReplicaIx::new(replica), home)
            || !self.state.tallies.allow(self.state.cluster, replica, Some(here), home)
        {
            return false;
        }
        let others = self.state.replicas_on(home.ix()).iter().map(|other| *other as usize);
        let others = others.filter(|other| self.state.fits(replica, home.ix(), Some(*other)));
        // Once it is back, at least one of the others must leave: the lists of nodes change meanwhile.
        let others: Vec<usize> = others.collect();
        let now = self.load(here, None, None).max(self.load(home, None, None));
        let back = self.costs.shift(&self.state, replica, home);
        self.shift(replica, home, back);
        let left = self.load(here, None, None);
        let mut best: Option<(Rank, usize, NodeIx)> = None;
        for other in others {
            let load = self.load(home, None, Some(other)).max(left);
            let least = best.map_or(Rank { change: -back, load: now }, |(rank, ..)| rank);
            if let Some((rank, node)) = self.best_node(other, least, load) {
                best = Some((rank, other, node));
            }
        }
        if let Some((rank, other, node)) = best {
            self.shift(other, node, rank.change);
            return true;
        }
        let forth = self.costs.shift(&self.state, replica, here);
        self.shift(replica, here, forth);
        false
    }

    /// A moved replica goes home, where a primary and a secondary exchange their roles instead.
    fn roles_make_room(&mut self, replica: usize, here: NodeIx) -> bool {
        let Some(home) = self.state.origin(replica) else { return false };
        if self.costs.roles().is_none()
            || !self.state.cluster.may_run(ReplicaIx::new(replica), home)
            || !self.state.tallies.allow(self.state.cluster, replica, Some(here), home)
        {
            return false;
        }
        let back = self.costs.shift(&self.state, replica, home);
        self.shift(replica, home, back);
        let mut best: Option<(f64, usize, usize)> = None;
        for one in self.state.replicas_on(home.ix()).to_vec() {
            let least = best.map_or(-back, |(change, ..)| change);
            if let Some((change, other)) = self.best_partner(one as usize, least) {
                best = Some((change, one as usize, other));
            }
        }
        if let Some((change, one, other)) = best {
            self.costs.apply_swap(&mut self.state, one, other, change);
            return true;
        }
        let forth = self.costs.shift(&self.state, replica, here);
        self.shift(replica, here, forth);
        false
    }

    /// The best exchange of roles of a replica that changes the value by less than `least`, if any.
    fn best_partner(&mut self, one: usize, least: f64) -> Option<(f64, usize)> {
        let partners: Vec<usize> = self.costs.roles()?.of(one).map(|(other, _)| other).collect();
        let mut best: Option<(f64, usize)> = None;
        for other in partners {
            self.tried += 1;
            if self.fit_swapped(one, other) && self.relieves(one, other) {
                let change = self.costs.swap(&self.state, one, other);
                if change < best.map_or(least, |(change, _)| change) - NONE
                    && self.roles_are_allowed(one, other)
                {
                    best = Some((change, other));
                }
            }
        }
        best
    }

    /// Whether the node of a replica, which may be over its capacity, has room once another one is there
    /// instead. A replica without demand fits everywhere.
    fn relieves(&self, one: usize, other: usize) -> bool {
        let Some(here) = self.state.node_of(one) else { return false };
        let (leaves, comes) = (self.state.demand(one), self.state.demand(other));
        let node = self.state.usage(here.ix()).iter().zip(self.state.capacity(here.ix()));
        let mut metrics = node.zip(leaves.iter().zip(comes));
        metrics.all(|((used, capacity), (leaves, comes))| used - leaves + comes <= *capacity)
    }

    /// Whether no rule is broken about two of a partition, or those that need them, once they are on each
    /// other's node. Neither could go there first: replicas of a partition do not share a node.
    fn roles_are_allowed(&mut self, one: usize, other: usize) -> bool {
        let (Some(here), Some(there)) = (self.state.node_of(one), self.state.node_of(other)) else {
            return false;
        };
        let cluster = self.state.cluster;
        let exchange = |tallies: &mut Tallies, here: NodeIx, there: NodeIx| {
            for (replica, from, to) in [(one, here, there), (other, there, here)] {
                tallies.remove(cluster, replica, from);
                tallies.add(cluster, replica, to);
            }
        };
        exchange(&mut self.state.tallies, here, there);
        let state = &self.state;
        let node_of = |replica: usize| match replica {
            of if of == one => Some(there),
            of if of == other => Some(here),
            _ => state.node_of(replica),
        };
        let mut touched = vec![one, other];
        touched.extend([one, other].iter().flat_map(|of| state.tallies.dependents(cluster, *of)));
        let holds = |of: usize| {
            let at = node_of(of);
            at.is_none_or(|at| state.tallies.to_move(cluster, of, at, node_of).is_empty())
        };
        let allowed = touched.into_iter().all(holds);
        exchange(&mut self.state.tallies, there, here);
        allowed
    }

    /// Whether two replicas may run on each other's node, and fit there.
    fn fit_swapped(&self, one: usize, other: usize) -> bool {
        let (Some(here), Some(there)) = (self.state.node_of(one), self.state.node_of(other)) else {
            return false;
        };
        let cluster = self.state.cluster;
        here != there
            && cluster.may_run(ReplicaIx::new(one), there)
            && cluster.may_run(ReplicaIx::new(other), here)
            && self.state.fits(one, there.ix(), Some(other))
            && self.state.fits(other, here.ix(), Some(one))
    }

    /// New and moved replicas exchange their nodes.
    fn swaps(&mut self) -> bool {
        let free = self.free();
        let mut improved = false;
        for (at, one) in free.iter().enumerate() {
            if self.must_end() {
                break;
            }
            for other in &free[at + 1..] {
                improved |= self.swap(*one, *other);
            }
        }
        improved
    }

    fn swap(&mut self, one: usize, other: usize) -> bool {
        let (Some(here), Some(there)) = (self.state.node_of(one), self.state.node_of(other)) else {
            return false;
        };
        self.tried += 1;
        if !self.fit_swapped(one, other) {
            return false;
        }
        let now = self.load(here, None, None).max(self.load(there, None, None));
        let (of_here, of_there) =
            (self.load(here, Some(other), Some(one)), self.load(there, Some(one), Some(other)));
        let change = self.costs.swap(&self.state, one, other);
        let rank = Rank { change, load: of_here.max(of_there) };
        if !rank.is_better_than(Rank { change: 0.0, load: now })
            || !swap_is_allowed(&mut self.state, one, other)
        {
            return false;
        }
        self.costs.apply_swap(&mut self.state, one, other, change);
        true
    }

    /// Replicas move, exchange roles or change places with others if what should hold is worth more.
    fn soft_constraints(&mut self) -> bool {
        if self.costs.soft().is_none() {
            return false;
        }
        let mut improved = false;
        let lowest = self.lowest_loads();
        for replica in 0..self.state.assignment().len() {
            if self.must_end() {
                break;
            }
            let home = self.state.origin(replica);
            let leaves = home.is_some() && self.state.node_of(replica) == home;
            let cost = if leaves { self.state.cluster.replicas[replica].move_cost } else { 0.0 };
            let soft = self.costs.soft();
            let saved = soft.map_or(0.0, |of| of.most_saved(&self.state, replica, &lowest));
            if saved <= NONE {
                continue;
            }
            let roles = self.best_partner(replica, 0.0);
            let least =
                Rank { change: roles.map_or(0.0, |(change, _)| change), load: f64::NEG_INFINITY };
            let node = (saved > cost).then(|| self.best_node(replica, least, 0.0)).flatten();
            if let Some((rank, node)) = node {
                self.shift(replica, node, rank.change);
                improved = true;
            } else if let Some((change, other)) = roles {
                self.costs.apply_swap(&mut self.state, replica, other, change);
                improved = true;
            } else if saved > cost {
                improved |=
                    (0..self.state.assignment().len()).any(|other| self.swap(replica, other));
            }
        }
        improved
    }

    /// Nodes are emptied where that is worth more than the moves, those that cost least first.
    fn empty_nodes(&mut self) -> bool {
        let weight = self.costs.soft().map_or(0.0, SoftCosts::of_node);
        if weight == 0.0 {
            return false;
        }
        // What the moves cost, less what preferences may save besides.
        let lowest = self.lowest_loads();
        let leaving = |replica: &u32| {
            let replica = *replica as usize;
            let is_home = self.state.node_of(replica) == self.state.origin(replica);
            let cost = if is_home { self.state.cluster.replicas[replica].move_cost } else { 0.0 };
            let soft = self.costs.soft();
            cost - soft.map_or(0.0, |of| of.most_saved(&self.state, replica, &lowest))
        };
        let cost = |node: usize| self.state.replicas_on(node).iter().map(leaving).sum::<f64>();
        let nodes = 0..self.state.cluster.nodes.len();
        let in_use = nodes.filter(|node| !self.state.replicas_on(*node).is_empty());
        let mut costs: Vec<(f64, usize)> = in_use.map(|node| (cost(node), node)).collect();
        costs.retain(|(cost, _)| *cost < weight);
        costs.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let mut improved = false;
        for (_, node) in costs {
            if self.must_end() {
                break;
            }
            improved |= self.empty(NodeIx::new(node));
        }
        improved
    }

    /// Moves all replicas of a node to the fullest of the nodes where they cost least. If the value is not less
    /// then, all return.
    fn empty(&mut self, node: NodeIx) -> bool {
        let before = self.costs.total;
        let mut replicas: Vec<usize> =
            self.state.replicas_on(node.ix()).iter().map(|replica| *replica as usize).collect();
        let size = |replica: &usize| {
            let demand = self.state.demand(*replica).iter().zip(self.state.capacity(node.ix()));
            demand.map(|(demand, of)| *demand as f64 / (*of).max(1) as f64).fold(0.0, f64::max)
        };
        replicas.sort_by(|one, other| size(other).total_cmp(&size(one)).then(one.cmp(other)));
        let mut moved = Vec::new();
        for replica in &replicas {
            let mut best: Option<(Rank, NodeIx)> = None;
            for to in (0..self.state.cluster.nodes.len()).map(NodeIx::new) {
                if to != node && self.state.allows(*replica, to) {
                    self.tried += 1;
                    let change = self.costs.shift(&self.state, *replica, to);
                    let rank = Rank { change, load: -self.load(to, Some(*replica), None) };
                    if best.is_none_or(|(least, _)| rank.is_better_than(least)) {
                        best = Some((rank, to));
                    }
                }
            }
            let Some((rank, to)) = best else { break };
            self.shift(*replica, to, rank.change);
            moved.push(*replica);
        }
        if moved.len() == replicas.len() && self.costs.total < before - NONE {
            return true;
        }
        for replica in moved.into_iter().rev() {
            let back = self.costs.shift(&self.state, replica, node);
            self.shift(replica, node, back);
        }
        false
    }

    /// The lowest load of the nodes that hold replicas, by metric.
    fn lowest_loads(&self) -> Vec<Amount> {
        let nodes = self.state.cluster.nodes.iter().enumerate();
        let holding = nodes.filter(|(_, node)| node.state.holds()).map(|(position, _)| position);
        let lowest = |metric| holding.clone().map(|node| self.state.usage(node)[metric]).min();
        let metrics = 0..self.state.cluster.metrics.len();
        metrics.map(|metric| lowest(metric).unwrap_or(0)).collect()
    }

    /// Replicas at home move if the failovers that this saves in future weigh more than the move.
    fn risky_nodes(&mut self) -> bool {
        let mut improved = false;
        for node in 0..self.state.cluster.nodes.len() {
            let risk = self.costs.future_of_node(node);
            if risk == 0.0 || self.must_end() {
                continue;
            }
            for replica in self.state.replicas_on(node).to_vec() {
                let replica = replica as usize;
                // What a replica at home costs by its move, it must save on this node.
                if self.state.cluster.replicas[replica].move_cost >= risk {
                    continue;
                }
                let least = Rank { change: 0.0, load: f64::NEG_INFINITY };
                if let Some((rank, node)) = self.best_node(replica, least, 0.0) {
                    self.shift(replica, node, rank.change);
                    improved = true;
                }
            }
        }
        improved
    }
}

//! Violations of capacity in future, as sums that a move changes on two nodes.

use crate::cluster::{Amount, Futures, NodeIx};
use crate::state::State;

/// Demands in future by node, and what they cost.
#[derive(Clone, Debug)]
pub(crate) struct FutureCosts<'a> {
    futures: &'a Futures,
    /// Amounts of a node: samples times times times metrics.
    width: usize,
    /// Sums of the replicas on a node: `width` for each.
    sums: Vec<Amount>,
    /// Cost of each node.
    of_node: Vec<f64>,
}

/// A replica that is put onto a node or leaves it.
type Change = (usize, Amount);

impl<'a> FutureCosts<'a> {
    /// Of a cluster without replicas on its nodes, until `reset`.
    pub(crate) fn new(futures: &'a Futures, nodes: usize) -> FutureCosts<'a> {
        let width = futures.demand.first().map_or(0, |demand| demand.len());
        FutureCosts { futures, width, sums: vec![0; nodes * width], of_node: vec![0.0; nodes] }
    }

    /// Computes everything from the state.
    pub(crate) fn reset(&mut self, state: &State) {
        self.sums.fill(0);
        for replica in 0..state.assignment().len() {
            if let Some(node) = state.node_of(replica) {
                self.add(node, (replica, 1));
            }
        }
        for node in 0..self.of_node.len() {
            self.of_node[node] = self.cost(state, node, &[]);
        }
    }

    /// Cost of all nodes.
    pub(crate) fn total(&self) -> f64 {
        self.of_node.iter().sum()
    }

    /// Cost of a node.
    pub(crate) fn of_node(&self, node: usize) -> f64 {
        self.of_node[node]
    }

    /// What a move of a replica, or two, would change: the replica, its node, its new one.
    pub(crate) fn change(
        &self,
        state: &State,
        shifts: impl Iterator<Item = (usize, Option<NodeIx>, NodeIx)> + Clone,
    ) -> f64 {
        let mut nodes = [None; 4];
        let touched = shifts.clone().flat_map(|(_, from, to)| [Some(to), from]).flatten();
        for (slot, node) in nodes.iter_mut().zip(touched) {
            *slot = Some(node);
        }
        let mut change = 0.0;
        for (at, node) in nodes.iter().enumerate() {
            let Some(node) = node.filter(|node| !nodes[..at].contains(&Some(*node))) else {
                continue;
            };
            let mut changes: [Change; 2] = [(0, 0); 2];
            let mut count = 0;
            for (slot, (replica, from, to)) in changes.iter_mut().zip(shifts.clone()) {
                let comes = Amount::from(to == node) - Amount::from(from == Some(node));
                *slot = (replica, comes);
                count += 1;
            }
            change += self.cost(state, node.ix(), &changes[..count]) - self.of_node[node.ix()];
        }
        change
    }

    /// Counts moves that the state has made.
    pub(crate) fn update(
        &mut self,
        state: &State,
        shifts: impl Iterator<Item = (usize, Option<NodeIx>, NodeIx)> + Clone,
    ) {
        for (replica, from, to) in shifts.clone() {
            self.add(to, (replica, 1));
            if let Some(from) = from {
                self.add(from, (replica, -1));
            }
        }
        for (_, from, to) in shifts {
            for node in [Some(to), from].into_iter().flatten() {
                self.of_node[node.ix()] = self.cost(state, node.ix(), &[]);
            }
        }
    }

    fn add(&mut self, node: NodeIx, (replica, sign): Change) {
        let sums = &mut self.sums[node.ix() * self.width..(node.ix() + 1) * self.width];
        for (sum, amount) in sums.iter_mut().zip(self.futures.demand[replica].iter()) {
            *sum += sign * amount;
        }
    }

    /// Cost of a node after changes.
    fn cost(&self, state: &State, node: usize, changes: &[Change]) -> f64 {
        let capacity = state.capacity(node);
        let sums = &self.sums[node * self.width..(node + 1) * self.width];
        let of_sample = self.width / self.futures.samples.max(1);
        if of_sample == 0 {
            return 0.0;
        }
        let exceeds = |sample: &usize| {
            let first = sample * of_sample;
            // Whole times at once: the metrics of one stand side by side.
            let times = (first..first + of_sample).step_by(capacity.len().max(1));
            times.into_iter().any(|time| {
                capacity.iter().enumerate().any(|(metric, capacity)| {
                    let at = time + metric;
                    let mut sum = sums[at];
                    for (replica, sign) in changes {
                        sum += sign * self.futures.demand[*replica][at];
                    }
                    sum > *capacity
                })
            })
        };
        let violated = (0..self.futures.samples).filter(exceeds).count();
        if violated == 0 {
            return 0.0;
        }
        let lightest = self.lightest(state, node, changes);
        self.futures.weight * lightest * violated as f64 / self.futures.samples as f64
    }

    /// The least move cost of the replicas on a node after changes; nothing if it is empty.
    fn lightest(&self, state: &State, node: usize, changes: &[Change]) -> f64 {
        let change = |replica: usize| -> Amount {
            changes.iter().filter(|(of, _)| *of == replica).map(|(_, sign)| sign).sum()
        };
        let stays = state.replicas_on(node).iter().map(|replica| *replica as usize);
        let stays = stays.filter(|replica| change(*replica) >= 0);
        let comes = changes.iter().filter(|(_, sign)| *sign > 0).map(|(replica, _)| *replica);
        let weight = |replica: usize| state.cluster.replicas[replica].move_cost;
        let least = stays.chain(comes).map(weight).fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { 0.0 }
    }
}

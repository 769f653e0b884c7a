//! The standard deviation of the load of nodes, as sums that a move changes in two places.

use crate::cluster::{Amount, Evenness, NodeIx};
use crate::state::State;
use crate::value::{EVEN, STEADY};

/// Sums over the nodes that hold replicas. They are whole numbers, so that moves back restore every bit.
#[derive(Clone, Debug)]
pub(crate) struct Deviation {
    weights: Vec<f64>,
    /// Weight of the cost of moves, by what it is compared with.
    per_move: f64,
    holds: Vec<bool>,
    count: f64,
    /// Loads are counted from here, by metric: near the average, so that squares stay small.
    base: Vec<Amount>,
    /// Sum of the loads and of their squares, by metric.
    sums: Vec<(i128, i128)>,
    /// Cost of the moves.
    pub(crate) moved: f64,
}

/// An amount that one node loses and another one gets.
#[derive(Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) from: Option<NodeIx>,
    pub(crate) to: NodeIx,
}

impl Deviation {
    pub(crate) fn new(of: &Evenness, state: &State) -> Deviation {
        let cluster = state.cluster;
        let holds: Vec<bool> = cluster.nodes.iter().map(|node| node.state.holds()).collect();
        let count = holds.iter().filter(|holds| **holds).count();
        let all: f64 = of.weights.iter().sum();
        let share = |weight: &f64| if all > 0.0 { weight / all } else { 0.0 };
        let mut deviation = Deviation {
            weights: of.weights.iter().map(share).collect(),
            per_move: of.moves / (cluster.replicas.len() as f64 + STEADY),
            count: count.max(1) as f64,
            base: vec![0; of.weights.len()],
            sums: vec![(0, 0); of.weights.len()],
            holds,
            moved: 0.0,
        };
        deviation.reset(state);
        deviation
    }

    /// Computes the sums from the state.
    pub(crate) fn reset(&mut self, state: &State) {
        let nodes: Vec<usize> = (0..self.holds.len()).filter(|node| self.holds[*node]).collect();
        for metric in 0..self.sums.len() {
            let load = |node: &usize| i128::from(state.usage(*node)[metric]);
            let total: i128 = nodes.iter().map(load).sum();
            let base = total / nodes.len().max(1) as i128;
            self.base[metric] = Amount::try_from(base).unwrap_or(Amount::MAX);
            let mut sums = (0, 0);
            for node in &nodes {
                let load = load(node) - base;
                sums = (sums.0 + load, sums.1 + load * load);
            }
            self.sums[metric] = sums;
        }
        let replicas = state.cluster.replicas.iter().enumerate();
        let moved = replicas
            .filter(|(position, of)| of.node.is_some() && of.node != state.node_of(*position));
        // An empty sum is -0.
        self.moved = moved.fold(0.0, |sum, (_, of)| sum + of.move_cost);
    }

    /// The sums of a metric after a transfer.
    fn after(
        &self,
        state: &State,
        metric: usize,
        Transfer { from, to }: Transfer,
        amount: Amount,
    ) -> (i128, i128) {
        let (mut sum, mut squares) = self.sums[metric];
        let amount = i128::from(amount);
        let load = |node: NodeIx| i128::from(state.usage(node.ix())[metric] - self.base[metric]);
        if self.holds[to.ix()] {
            sum += amount;
            squares += amount * (2 * load(to) + amount);
        }
        if let Some(from) = from.filter(|from| self.holds[from.ix()]) {
            sum -= amount;
            squares -= amount * (2 * load(from) - amount);
        }
        (sum, squares)
    }

    fn of(&self, (sum, squares): (i128, i128)) -> f64 {
        let mean = sum as f64 / self.count;
        (squares as f64 / self.count - mean * mean).max(0.0).sqrt()
    }

    fn with_moves(&self, deviation: f64, moved: f64) -> f64 {
        (deviation + EVEN) * (1.0 + self.per_move * moved)
    }

    /// The value.
    pub(crate) fn value(&self) -> f64 {
        self.with_moves(self.average(), self.moved)
    }

    /// The average of the deviations.
    pub(crate) fn average(&self) -> f64 {
        let metrics = self.weights.iter().zip(&self.sums);
        metrics.map(|(weight, sums)| weight * self.of(*sums)).sum()
    }

    /// The average of the deviations after a transfer of these amounts.
    pub(crate) fn average_after(
        &self,
        state: &State,
        transfer: Transfer,
        amount: impl Fn(usize) -> Amount,
    ) -> f64 {
        let metrics = self.weights.iter().enumerate();
        metrics
            .map(|(metric, weight)| {
                weight * self.of(self.after(state, metric, transfer, amount(metric)))
            })
            .sum()
    }

    /// What the value rises by, as far as it is linear: by metric for a unit of the sum of squares, and
    /// for a unit of the cost of moves.
    pub(crate) fn prices(&self, of_metric: &mut Vec<f64>) -> f64 {
        of_metric.clear();
        let with_moves = 1.0 + self.per_move * self.moved;
        let mut deviation = EVEN;
        for (weight, sums) in self.weights.iter().zip(&self.sums) {
            let of = self.of(*sums);
            deviation += weight * of;
            of_metric.push(with_moves * weight / (2.0 * self.count * of.max(EVEN)));
        }
        deviation * self.per_move
    }

    /// The value after a transfer of these amounts, with another cost of moves.
    pub(crate) fn value_after(
        &self,
        state: &State,
        transfer: Transfer,
        amount: impl Fn(usize) -> Amount,
        moved: f64,
    ) -> f64 {
        self.with_moves(self.average_after(state, transfer, amount), moved)
    }

    /// The most by which the average falls if a replica leaves its node for one with these loads.
    pub(crate) fn most_saved(
        &self,
        state: &State,
        (replica, node): (usize, NodeIx),
        lowest: &[Amount],
    ) -> f64 {
        let demand = state.demand(replica);
        let of_metric = |(metric, weight): (usize, &f64)| {
            let (sum, squares) = self.sums[metric];
            let amount = i128::from(demand[metric]);
            let gap = i128::from(lowest[metric]) - i128::from(state.usage(node.ix())[metric]);
            let change = (2 * amount * (gap + amount)).min(0);
            weight * (self.of((sum, squares)) - self.of((sum, squares + change)))
        };
        self.weights.iter().enumerate().map(of_metric).sum()
    }

    /// Makes a transfer, before the state does.
    pub(crate) fn apply(
        &mut self,
        state: &State,
        transfer: Transfer,
        amount: impl Fn(usize) -> Amount,
        moved: f64,
    ) {
        for metric in 0..self.sums.len() {
            self.sums[metric] = self.after(state, metric, transfer, amount(metric));
        }
        self.moved = moved;
    }
}

//! The standard deviation of the load of nodes, as sums that a move changes in two places.

use crate::cluster::{Amount, Evenness, NodeIx, NodeState};
use crate::state::State;
use crate::value::{EVEN, STEADY};

/// Sums over the nodes that are up. They are whole numbers, so that moves back restore every bit.
#[derive(Clone, Debug)]
pub(crate) struct Deviation {
    weights: Vec<f64>,
    /// Weight of the cost of moves, by what it is compared with.
    per_move: f64,
    is_up: Vec<bool>,
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
        let is_up: Vec<bool> =
            cluster.nodes.iter().map(|node| node.state == NodeState::Up).collect();
        let up = is_up.iter().filter(|is_up| **is_up).count();
        let all: f64 = of.weights.iter().sum();
        let share = |weight: &f64| if all > 0.0 { weight / all } else { 0.0 };
        let mut deviation = Deviation {
            weights: of.weights.iter().map(share).collect(),
            per_move: of.moves / (cluster.replicas.len() as f64 + STEADY),
            count: up.max(1) as f64,
            base: vec![0; of.weights.len()],
            sums: vec![(0, 0); of.weights.len()],
            is_up,
            moved: 0.0,
        };
        deviation.reset(state);
        deviation
    }

    /// Computes the sums from the state.
    pub(crate) fn reset(&mut self, state: &State) {
        let up: Vec<usize> = (0..self.is_up.len()).filter(|node| self.is_up[*node]).collect();
        for metric in 0..self.sums.len() {
            let load = |node: &usize| i128::from(state.usage(*node)[metric]);
            let total: i128 = up.iter().map(load).sum();
            let base = total / up.len().max(1) as i128;
            self.base[metric] = Amount::try_from(base).unwrap_or(Amount::MAX);
            let mut sums = (0, 0);
            for node in &up {
                let load = load(node) - base;
                sums = (sums.0 + load, sums.1 + load * load);
            }
            self.sums[metric] = sums;
        }
        let replicas = state.cluster.replicas.iter().enumerate();
        let moved = replicas
            .filter(|(position, of)| of.node.is_some() && of.node != state.node_of(*position));
        self.moved = moved.map(|(_, of)| of.move_cost).sum();
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
        if self.is_up[to.ix()] {
            sum += amount;
            squares += amount * (2 * load(to) + amount);
        }
        if let Some(from) = from.filter(|from| self.is_up[from.ix()]) {
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
        let metrics = self.weights.iter().zip(&self.sums);
        let deviation = metrics.map(|(weight, sums)| weight * self.of(*sums)).sum();
        self.with_moves(deviation, self.moved)
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
        let metrics = self.weights.iter().enumerate();
        let deviation = metrics
            .map(|(metric, weight)| {
                weight * self.of(self.after(state, metric, transfer, amount(metric)))
            })
            .sum();
        self.with_moves(deviation, moved)
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

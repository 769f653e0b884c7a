//! An assignment, and what has been spent on moves.

use crate::cluster::{Cluster, NodeIx};
use crate::state::State;

/// A state that knows the cost of the replicas that are not on their nodes of today. A replica that
/// moves twice costs once, and one that returns costs nothing.
#[derive(Clone, Debug)]
pub(crate) struct Budgeted<'c> {
    pub(crate) state: State<'c>,
    pub(crate) spent: f64,
    budget: f64,
}

impl<'c> Budgeted<'c> {
    /// The assignment of today: nothing is spent.
    pub(crate) fn today(cluster: &'c Cluster, budget: f64) -> Budgeted<'c> {
        Budgeted { state: State::today(cluster), spent: 0.0, budget }
    }

    /// Cost of a replica's leaving its node: nothing if it has moved already.
    pub(crate) fn leaving(&self, replica: usize) -> f64 {
        let home = self.state.origin(replica);
        if home.is_some() && home == self.state.node_of(replica) {
            self.state.cluster.replicas[replica].move_cost
        } else {
            0.0
        }
    }

    /// Cost of the replicas of a node that have not moved.
    pub(crate) fn leaving_all(&self, node: usize) -> f64 {
        self.state.replicas_on(node).iter().map(|replica| self.leaving(*replica as usize)).sum()
    }

    pub(crate) fn take(&mut self, replica: usize) -> Option<NodeIx> {
        self.spent += self.leaving(replica);
        self.state.take(replica)
    }

    pub(crate) fn put(&mut self, replica: usize, node: NodeIx) {
        self.state.put(replica, node);
        self.spent -= self.leaving(replica);
    }

    /// Whether this much more may be spent. Sums of fractions may differ from the budget in the last digits.
    pub(crate) fn affords(&self, more: f64) -> bool {
        self.spent + more <= self.budget + 1e-9 * self.budget.abs().max(1.0)
    }
}

//! Online placement: one replica at a time.

use super::choice::Choice;
use super::policy::Policy;
use crate::cluster::{Assignment, Cluster, NodeIx, ReplicaIx};
use crate::state::State;

/// Places replicas one by one, as they arrive, and never moves one. A decision looks at each node once
/// and allocates nothing.
///
/// ```
/// use placement::vro::{Placer, Policy, Skewness, Vro};
/// use placement::{Cluster, NodeIx, ReplicaIx};
///
/// let cluster = Cluster::builder("two nodes")
///     .metric("cpu", false)
///     .metric("memory", false)
///     .node("n1", [Some(100), Some(100)])
///     .node("n2", [Some(100), Some(100)])
///     .replica("a", Some("n1"), [10, 60])
///     .replica("b", Some("n2"), [60, 10])
///     .replica("new", None, [10, 40])
///     .build();
/// let policy = Policy::Vro(Vro::new(Skewness::Diagonal));
/// let mut placer = Placer::new(&cluster, policy);
/// assert_eq!(placer.place(ReplicaIx::new(2)), Some(NodeIx::new(1)));
/// ```
#[derive(Clone, Debug)]
pub struct Placer<'c> {
    state: State<'c>,
    choice: Choice,
}

impl<'c> Placer<'c> {
    /// A placer that starts from the assignment of today.
    pub fn new(cluster: &'c Cluster, policy: Policy) -> Placer<'c> {
        Placer { state: State::today(cluster), choice: Choice::new(cluster, policy) }
    }

    /// Places a replica that has no node. `None`: no node has room. A replica that has a node keeps it.
    pub fn place(&mut self, replica: ReplicaIx) -> Option<NodeIx> {
        let (state, replica) = (&self.state, replica.ix());
        if let Some(node) = state.node_of(replica) {
            return Some(node);
        }
        let in_use = |node: usize| !state.replicas_on(node).is_empty();
        let node = if self.choice.policy.opens_last() {
            let node = self.choice.best(state, replica, in_use);
            node.or_else(|| self.choice.best(state, replica, |node| !in_use(node)))
        } else {
            self.choice.best(state, replica, |_| true)
        }?;
        self.state.put(replica, node);
        Some(node)
    }

    /// Takes a replica that has ended off its node. On its node of today it goes on counting in transient
    /// metrics, as one that moves does.
    pub fn remove(&mut self, replica: ReplicaIx) -> Option<NodeIx> {
        self.state.take(replica.ix())
    }

    /// The node of each replica.
    pub fn assignment(&self) -> &Assignment {
        self.state.assignment()
    }
}

/// Places the new replicas of a cluster one by one, in its order, and those of nodes that are draining or
/// down. All others stay, also where they break a rule; a replica for which no node has room is not placed.
pub fn place_new(cluster: &Cluster, policy: Policy) -> Assignment {
    let mut placer = Placer::new(cluster, policy);
    let is_new =
        |node: Option<NodeIx>| !node.is_some_and(|node| cluster.nodes[node.ix()].state.holds());
    let new: Vec<ReplicaIx> = (0..cluster.replicas.len())
        .map(ReplicaIx::new)
        .filter(|replica| is_new(cluster.replicas[replica.ix()].node))
        .collect();
    for replica in &new {
        placer.remove(*replica);
    }
    for replica in new {
        placer.place(replica);
    }
    placer.state.assignment().clone()
}

//! What nodes lack, and the steps of a walk that may pass through assignments without room for everything.

use crate::cluster::ReplicaIx;
use crate::cost::Costs;
use crate::neighbours::{is_taken, partner, swap_is_allowed, target};
use crate::random::Random;
use crate::state::State;

/// One step in this many begins on a node that lacks something.
const RELIEF: usize = 10;

/// What each node lacks, in shares of an average node, and what that costs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Overload {
    of_node: Vec<f64>,
    /// Nodes that lack something.
    count: usize,
    /// Cost of a lack as large as an average node.
    pub(crate) price: f64,
}

impl Overload {
    pub(crate) fn new(state: &State) -> Overload {
        let nodes = 0..state.cluster.nodes.len();
        let of_node: Vec<f64> = nodes.map(|node| state.lack_after(node, None, None)).collect();
        let count = of_node.iter().filter(|lack| **lack > 0.0).count();
        Overload { of_node, count, price: 0.0 }
    }

    /// Counts nothing.
    pub(crate) fn none(state: &State) -> Overload {
        Overload { of_node: vec![0.0; state.cluster.nodes.len()], count: 0, price: 0.0 }
    }

    /// Whether any node lacks something.
    pub(crate) fn is_over(&self) -> bool {
        self.count > 0
    }

    /// A random node that lacks something.
    pub(crate) fn any(&self, random: &mut Random) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let nth = random.below(self.count);
        let over = self.of_node.iter().enumerate().filter(|(_, lack)| **lack > 0.0);
        over.map(|(node, _)| node).nth(nth)
    }

    /// What some nodes lack in a state.
    pub(crate) fn lacks(state: &State, nodes: &[usize]) -> Vec<(usize, f64)> {
        nodes.iter().map(|node| (*node, state.lack_after(*node, None, None))).collect()
    }

    /// By how much more some nodes lack than before.
    pub(crate) fn change(&self, lacks: &[(usize, f64)]) -> f64 {
        lacks.iter().map(|(node, lack)| lack - self.of_node[*node]).sum()
    }

    pub(crate) fn update(&mut self, lacks: &[(usize, f64)]) {
        for (node, lack) in lacks {
            let before = std::mem::replace(&mut self.of_node[*node], *lack);
            self.count += usize::from(*lack > 0.0);
            self.count -= usize::from(before > 0.0);
        }
    }

    /// A random replica; now and then one of a node that lacks something.
    fn replica(&self, state: &State, random: &mut Random) -> usize {
        if self.count > 0
            && random.below(RELIEF) == 0
            && let Some(node) = self.any(random)
            && let on = state.replicas_on(node)
            && !on.is_empty()
        {
            return on[random.below(on.len())] as usize;
        }
        random.below(state.assignment().len())
    }

    /// Makes a random move or swap, whether there is room or not, if rules allow it and it is taken at the price.
    pub(crate) fn step(
        &mut self,
        state: &mut State,
        costs: &mut Costs,
        random: &mut Random,
        temperature: f64,
    ) {
        let replica = self.replica(state, random);
        let Some(from) = state.node_of(replica) else { return };
        let other = (random.bits() & 1 == 1).then(|| partner(state, replica, random));
        let to = match other {
            None => Some(target(state, replica, random)),
            Some(other) => state.node_of(other),
        };
        let may_run = |replica, node| state.cluster.may_run(ReplicaIx::new(replica), node);
        let Some(to) = to.filter(|to| *to != from && may_run(replica, *to)) else { return };
        if other.is_some_and(|other| !may_run(other, from)) {
            return;
        }
        let lacks = [
            (from.ix(), state.lack_after(from.ix(), other, Some(replica))),
            (to.ix(), state.lack_after(to.ix(), Some(replica), other)),
        ];
        let change = match other {
            None => costs.shift(state, replica, to),
            Some(other) => costs.swap(state, replica, other),
        };
        if !is_taken(change + self.price * self.change(&lacks), temperature, random) {
            return;
        }
        match other {
            None if state.tallies.allow(state.cluster, replica, Some(from), to) => {
                costs.apply_shift(state, replica, to, change);
            }
            Some(other) if swap_is_allowed(state, replica, other) => {
                costs.apply_swap(state, replica, other, change);
            }
            _ => return,
        }
        self.update(&lacks);
    }
}

#[cfg(test)]
mod tests {
    use super::Overload;
    use crate::audit::{Violation, audit};
    use crate::cluster::{Cluster, Objective, Reassignment};
    use crate::cost::Costs;
    use crate::random::Random;
    use crate::state::State;

    #[test]
    fn steps_know_what_nodes_lack() {
        let mut builder = Cluster::builder("crowd").metric("a", false).metric("b", true);
        for node in 0..5 {
            builder = builder.node(&format!("n{node}"), [Some(40), Some(70)]);
        }
        for replica in 0..24_i64 {
            let node = format!("n{}", replica % 5);
            let demand = [1 + replica * 7 % 11, 1 + replica * 5 % 13];
            builder = builder.replica(&format!("r{replica}"), Some(&node), demand);
        }
        let objective = Reassignment {
            load: vec![1.0, 1.0],
            safety: vec![vec![20, 20]; 5],
            balance: Vec::new(),
            replica_moves: 1.0,
            service_moves: 0.0,
            node_moves: 0.0,
            between: vec![vec![0; 5]; 5],
        };
        let cluster = builder.objective(Objective::Reassignment(objective)).build();
        let mut state = State::today(&cluster);
        let mut costs = Costs::new(&state);
        let mut random = Random::new(7);
        let (mut over, mut with, mut without) = (Overload::new(&state), 0, 0);
        over.price = 20.0;
        for _ in 0..20_000 {
            over.step(&mut state, &mut costs, &mut random, 4.0);
            assert_eq!(over, Overload { price: over.price, ..Overload::new(&state) });
            let broken = audit(&cluster, state.assignment());
            let lacks = |of: &Violation| matches!(of, Violation::Capacity { .. });
            assert_eq!(over.is_over(), broken.iter().any(lacks), "{broken:?}");
            *(if over.is_over() { &mut with } else { &mut without }) += 1;
        }
        assert!(with > 1_000 && without > 1_000, "{with} with, {without} without a lack");
    }
}

//! An assignment with its sums, kept up to date move by move.

use crate::cluster::{Amount, Assignment, Cluster, NodeIx, NodeState, ReplicaIx};
use crate::tally::Tallies;

/// An assignment and what follows from it.
#[derive(Clone, Debug)]
pub(crate) struct State<'a> {
    pub(crate) cluster: &'a Cluster,
    metrics: usize,
    /// Whether a moved replica counts on its old node too, by metric.
    transient: Vec<bool>,
    demand: Vec<Amount>,
    capacity: Vec<Amount>,
    origin: Vec<Option<NodeIx>>,
    at: Assignment,
    /// Demand of the replicas on a node, by metric.
    usage: Vec<Amount>,
    /// What counts against the capacity. Of a transient metric, a replica counts on its node of
    /// today for good, wherever it is, and on another one while it is there.
    held: Vec<Amount>,
    /// Replicas by node, and the place of each replica in its node's list.
    on: Vec<Vec<u32>>,
    slot: Vec<u32>,
    pub(crate) tallies: Tallies,
    pub(crate) unplaced: Vec<u32>,
}

impl<'a> State<'a> {
    /// The assignment of today; replicas of nodes that are down have no node.
    pub(crate) fn today(cluster: &'a Cluster) -> State<'a> {
        let metrics = cluster.metrics.len();
        let demand = cluster.replicas.iter().flat_map(|replica| replica.demand.iter().copied());
        let capacity = cluster
            .nodes
            .iter()
            .flat_map(|node| node.capacity.iter().map(|capacity| capacity.unwrap_or(Amount::MAX)));
        let origin: Assignment = cluster.today();
        let transient: Vec<bool> = cluster.metrics.iter().map(|metric| metric.transient).collect();
        let mut state = State {
            cluster,
            metrics,
            transient,
            demand: demand.collect(),
            capacity: capacity.collect(),
            at: vec![None; origin.len()],
            usage: vec![0; cluster.nodes.len() * metrics],
            held: vec![0; cluster.nodes.len() * metrics],
            on: vec![Vec::new(); cluster.nodes.len()],
            slot: vec![0; origin.len()],
            tallies: Tallies::new(cluster),
            unplaced: Vec::new(),
            origin,
        };
        for replica in 0..state.at.len() {
            match state.origin[replica] {
                Some(node) if cluster.nodes[node.ix()].state != NodeState::Down => {
                    for metric in 0..metrics {
                        if state.transient[metric] {
                            state.held[node.ix() * metrics + metric] +=
                                state.demand[replica * metrics + metric];
                        }
                    }
                    state.put(replica, node);
                }
                _ => state.unplaced.push(u32::try_from(replica).expect("fewer than 2^32")),
            }
        }
        state
    }

    pub(crate) fn assignment(&self) -> &Assignment {
        &self.at
    }

    pub(crate) fn node_of(&self, replica: usize) -> Option<NodeIx> {
        self.at[replica]
    }

    pub(crate) fn origin(&self, replica: usize) -> Option<NodeIx> {
        self.origin[replica]
    }

    pub(crate) fn replicas_on(&self, node: usize) -> &[u32] {
        &self.on[node]
    }

    pub(crate) fn demand(&self, replica: usize) -> &[Amount] {
        &self.demand[replica * self.metrics..(replica + 1) * self.metrics]
    }

    pub(crate) fn usage(&self, node: usize) -> &[Amount] {
        &self.usage[node * self.metrics..(node + 1) * self.metrics]
    }

    pub(crate) fn capacity(&self, node: usize) -> &[Amount] {
        &self.capacity[node * self.metrics..(node + 1) * self.metrics]
    }

    pub(crate) fn held(&self, node: usize) -> &[Amount] {
        &self.held[node * self.metrics..(node + 1) * self.metrics]
    }

    /// Whether a node has room for a replica that is not on it, once `without` has left it.
    pub(crate) fn fits(&self, replica: usize, node: usize, without: Option<usize>) -> bool {
        let (held, capacity, demand) = (self.held(node), self.capacity(node), self.demand(replica));
        // A replica that returns is still counted here.
        let returns = self.origin[replica].is_some_and(|origin| origin.ix() == node);
        let stays = without.is_some_and(|other| self.origin[other].is_some_and(|o| o.ix() == node));
        (0..self.metrics).all(|metric| {
            let counted = self.transient[metric];
            let add = if returns && counted { 0 } else { demand[metric] };
            let left = match without {
                Some(other) if !(stays && counted) => self.demand(other)[metric],
                _ => 0,
            };
            add == 0 || held[metric] - left + add <= capacity[metric]
        })
    }

    /// Whether a node holds nothing, not even for replicas that have left it.
    pub(crate) fn is_empty(&self, node: usize) -> bool {
        self.on[node].is_empty() && self.held(node).iter().all(|held| *held == 0)
    }

    /// The share of its capacity that is free on a node, by its scarcest metric.
    pub(crate) fn free(&self, node: usize) -> f64 {
        let usage = self.usage(node).iter().zip(self.capacity(node));
        let share = |(used, limit): (&Amount, &Amount)| 1.0 - *used as f64 / (*limit).max(1) as f64;
        usage.map(share).fold(1.0, f64::min)
    }

    /// Demand above capacity on a node, in shares of the capacity.
    pub(crate) fn excess(&self, node: usize) -> f64 {
        let over = self.held(node).iter().zip(self.capacity(node));
        over.filter(|(held, capacity)| held > capacity)
            .map(|(held, capacity)| (held - capacity) as f64 / (*capacity).max(1) as f64)
            .sum()
    }

    /// Places a replica that has no node.
    pub(crate) fn put(&mut self, replica: usize, node: NodeIx) {
        let to = node.ix();
        let returns = self.origin[replica] == Some(node);
        for metric in 0..self.metrics {
            let demand = self.demand[replica * self.metrics + metric];
            self.usage[to * self.metrics + metric] += demand;
            if !(self.transient[metric] && returns) {
                self.held[to * self.metrics + metric] += demand;
            }
        }
        self.slot[replica] = u32::try_from(self.on[to].len()).expect("fewer than 2^32");
        self.on[to].push(u32::try_from(replica).expect("fewer than 2^32"));
        self.at[replica] = Some(node);
        self.tallies.add(self.cluster, replica, node);
    }

    /// Takes a replica off its node.
    pub(crate) fn take(&mut self, replica: usize) -> Option<NodeIx> {
        let node = self.at[replica].take()?;
        let from = node.ix();
        let leaves = self.origin[replica] == Some(node);
        for metric in 0..self.metrics {
            let demand = self.demand[replica * self.metrics + metric];
            self.usage[from * self.metrics + metric] -= demand;
            if !(self.transient[metric] && leaves) {
                self.held[from * self.metrics + metric] -= demand;
            }
        }
        let slot = self.slot[replica] as usize;
        self.on[from].swap_remove(slot);
        if let Some(moved) = self.on[from].get(slot) {
            self.slot[*moved as usize] = u32::try_from(slot).expect("fewer than 2^32");
        }
        self.tallies.remove(self.cluster, replica, node);
        Some(node)
    }

    /// Moves a replica.
    pub(crate) fn shift(&mut self, replica: usize, to: NodeIx) {
        self.take(replica);
        self.put(replica, to);
    }

    /// Whether a replica may run on a node: the node takes it, the rules allow it, and there is room.
    pub(crate) fn allows(&self, replica: usize, to: NodeIx) -> bool {
        self.cluster.may_run(ReplicaIx::new(replica), to)
            && self.fits(replica, to.ix(), None)
            && self.tallies.allow(self.cluster, replica, self.at[replica], to)
    }
}

/// Capacity of an average node by metric, of those that have a limit.
fn mean_capacity(cluster: &Cluster) -> Vec<f64> {
    let mean = |metric: usize| {
        let limits = cluster.nodes.iter().filter_map(|node| node.capacity[metric]);
        let (sum, count) = limits.fold((0.0, 0_u32), |(sum, n), c| (sum + c as f64, n + 1));
        if count == 0 { f64::INFINITY } else { (sum / f64::from(count)).max(1.0) }
    };
    (0..cluster.metrics.len()).map(mean).collect()
}

/// The largest share of an average node that each replica needs.
pub(crate) fn sizes(state: &State) -> Vec<f64> {
    let mean = mean_capacity(state.cluster);
    let size = |replica: usize| {
        let shares = state.demand(replica).iter().zip(&mean);
        shares.map(|(demand, mean)| *demand as f64 / mean).fold(0.0, f64::max)
    };
    (0..state.assignment().len()).map(size).collect()
}

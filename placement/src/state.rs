//! An assignment with its sums, kept up to date move by move.

use crate::cluster::{
    Amount, Assignment, Cluster, Failovers, GroupIx, NodeIx, NodeState, Objective, ReplicaIx, Swaps,
};
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
    /// What may count on a node while replicas move: its capacity, or the demand of today where that is
    /// more, so that an overloaded node takes nothing and its replicas can leave.
    transit: Vec<Amount>,
    origin: Vec<Option<NodeIx>>,
    at: Assignment,
    /// Demand of the replicas on a node, by metric.
    usage: Vec<Amount>,
    /// What counts while replicas move. Of a transient metric, a replica counts on its node of
    /// today for good, wherever it is, and on another one while it is there.
    held: Vec<Amount>,
    /// Replicas by node, and the place of each replica in its node's list.
    on: Vec<Vec<u32>>,
    slot: Vec<u32>,
    /// Capacity of an average node by metric: the unit of sizes.
    mean: Vec<f64>,
    pub(crate) tallies: Tallies,
    pub(crate) unplaced: Vec<u32>,
}

/// The cluster of a state that is at rest, while its own changes.
static NO_CLUSTER: Cluster = Cluster {
    name: String::new(),
    metrics: Vec::new(),
    levels: Vec::new(),
    nodes: Vec::new(),
    services: Vec::new(),
    replicas: Vec::new(),
    groups: Vec::new(),
    rules: Vec::new(),
    objective: Objective::Failovers(Failovers {
        fragmentation: 0.0,
        levels: Vec::new(),
        futures: None,
        swaps: Swaps { cost: 0.0, partitions: Vec::new() },
        soft: Vec::new(),
    }),
};

/// A replica that moves.
#[derive(Clone, Copy)]
pub(crate) struct Shift {
    pub(crate) replica: usize,
    pub(crate) from: Option<NodeIx>,
    pub(crate) to: NodeIx,
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
            transit: Vec::new(),
            at: vec![None; origin.len()],
            usage: vec![0; cluster.nodes.len() * metrics],
            held: vec![0; cluster.nodes.len() * metrics],
            on: vec![Vec::new(); cluster.nodes.len()],
            slot: vec![0; origin.len()],
            mean: mean_capacity(cluster),
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
        let today = state.capacity.iter().zip(&state.held);
        state.transit = today.map(|(capacity, held)| *capacity.max(held)).collect();
        state
    }

    /// A state of nothing.
    pub(crate) fn nothing() -> State<'static> {
        State::today(&NO_CLUSTER)
    }

    /// The state without its cluster, which may change until the two are joined again.
    pub(crate) fn without_cluster(self) -> State<'static> {
        State {
            cluster: &NO_CLUSTER,
            metrics: self.metrics,
            transient: self.transient,
            demand: self.demand,
            capacity: self.capacity,
            transit: self.transit,
            origin: self.origin,
            at: self.at,
            usage: self.usage,
            held: self.held,
            on: self.on,
            slot: self.slot,
            mean: self.mean,
            tallies: self.tallies,
            unplaced: self.unplaced,
        }
    }

    /// Adds the last replica of the cluster, without a node.
    pub(crate) fn add_last(&mut self, groups: &[GroupIx]) {
        let replica = &self.cluster.replicas[self.at.len()];
        self.unplaced.push(u32::try_from(self.at.len()).expect("fewer than 2^32"));
        self.demand.extend(&replica.demand);
        self.origin.push(replica.node);
        self.at.push(None);
        self.slot.push(0);
        self.tallies.add_last(groups);
    }

    /// Changes what a replica needs. Nothing is moving.
    pub(crate) fn set_demand(&mut self, replica: usize, demand: &[Amount]) {
        for (metric, new) in demand.iter().enumerate() {
            let old = std::mem::replace(&mut self.demand[replica * self.metrics + metric], *new);
            if let Some(node) = self.at[replica] {
                self.usage[node.ix() * self.metrics + metric] += new - old;
            }
        }
        if let Some(node) = self.at[replica] {
            self.settle(node.ix());
        }
    }

    /// Makes a replica's node the one of today.
    pub(crate) fn stay(&mut self, replica: usize) {
        let old = std::mem::replace(&mut self.origin[replica], self.at[replica]);
        for node in [old, self.at[replica]].into_iter().flatten() {
            self.settle(node.ix());
        }
    }

    /// Counts nothing as moving from or to a node.
    pub(crate) fn settle(&mut self, node: usize) {
        for at in node * self.metrics..(node + 1) * self.metrics {
            self.held[at] = self.usage[at];
            let today = if self.transient[at % self.metrics] { self.held[at] } else { 0 };
            self.transit[at] = self.capacity[at].max(today);
        }
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
        let (usage, capacity) = (self.usage(node), self.capacity(node));
        let (held, transit) = (self.held(node), self.transit(node));
        let demand = self.demand(replica);
        let is_home = |of: usize| self.is_home(of, node);
        (0..self.metrics).all(|metric| {
            let left = without.map_or(0, |other| self.demand(other)[metric]);
            let fits = usage[metric] - left + demand[metric] <= capacity[metric];
            // What is at home counts in transit for good: it neither comes nor goes.
            let passes = !self.transient[metric] || is_home(replica) || {
                let left = if without.is_some_and(is_home) { 0 } else { left };
                held[metric] - left + demand[metric] <= transit[metric]
            };
            demand[metric] == 0 || (fits && passes)
        })
    }

    fn transit(&self, node: usize) -> &[Amount] {
        &self.transit[node * self.metrics..(node + 1) * self.metrics]
    }

    /// How much a node lacks of a metric: of its capacity, or while replicas move.
    pub(crate) fn lack(&self, node: usize, metric: usize) -> Amount {
        self.excess(node, metric, 0, 0).max(0)
    }

    /// By how much a node would exceed its capacity, or what may count while replicas move, with so much more used and
    /// held; below zero if there is room.
    fn excess(&self, node: usize, metric: usize, used: Amount, held: Amount) -> Amount {
        let at = node * self.metrics + metric;
        let of_usage = self.usage[at] + used - self.capacity[at];
        of_usage.max(self.held[at] + held - self.transit[at])
    }

    /// What a node lacks once replicas have come and gone, in shares of an average node, summed over the metrics.
    pub(crate) fn lack_after(&self, node: usize, comes: Option<usize>, goes: Option<usize>) -> f64 {
        let demand = |of: Option<usize>| of.map(|of| (self.demand(of), self.is_home(of, node)));
        let (comes, goes) = (demand(comes), demand(goes));
        let mut lack = 0.0;
        for metric in 0..self.metrics {
            // What is at home counts in transit for good: it neither comes nor goes.
            let counts = |of: Option<(&[Amount], bool)>| match of {
                None => (0, 0),
                Some((demand, true)) if self.transient[metric] => (demand[metric], 0),
                Some((demand, _)) => (demand[metric], demand[metric]),
            };
            let (come, arrive) = counts(comes);
            let (go, leave) = counts(goes);
            let excess = self.excess(node, metric, come - go, arrive - leave);
            if excess > 0 {
                lack += excess as f64 / self.mean[metric];
            }
        }
        lack
    }

    fn is_home(&self, replica: usize, node: usize) -> bool {
        self.origin[replica].is_some_and(|origin| origin.ix() == node)
    }

    /// Whether a node holds nothing, not even for replicas that have left it.
    pub(crate) fn is_empty(&self, node: usize) -> bool {
        self.on[node].is_empty() && self.held(node).iter().all(|held| *held == 0)
    }

    /// The largest share of an average node that a replica needs.
    pub(crate) fn size(&self, replica: usize) -> f64 {
        let shares = self.demand(replica).iter().zip(&self.mean);
        shares.map(|(demand, mean)| *demand as f64 / mean).fold(0.0, f64::max)
    }

    /// The share of its capacity that is free on a node, by its scarcest metric.
    pub(crate) fn free(&self, node: usize) -> f64 {
        let usage = self.usage(node).iter().zip(self.capacity(node));
        let share = |(used, limit): (&Amount, &Amount)| 1.0 - *used as f64 / (*limit).max(1) as f64;
        usage.map(share).fold(1.0, f64::min)
    }

    /// Whether a node lacks something.
    pub(crate) fn is_over(&self, node: usize) -> bool {
        (0..self.metrics).any(|metric| self.lack(node, metric) > 0)
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
    (0..state.assignment().len()).map(|replica| state.size(replica)).collect()
}

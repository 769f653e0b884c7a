//! A cluster: nodes, services, and the replicas that run on the nodes.

use std::sync::Arc;

/// A demand or a capacity, in the smallest unit of its metric: milli-cores, bytes, requests.
pub type Amount = i64;

macro_rules! index {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The index of a position. Panics beyond 2^32 - 1, which formats refuse.
            pub fn new(position: usize) -> $name {
                $name(u32::try_from(position).expect("fewer than 2^32 of a kind"))
            }

            /// The position in the cluster's list.
            pub const fn ix(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

index!(
    /// A node, by its position in `Cluster::nodes`.
    NodeIx,
    /// A metric, by its position in `Cluster::metrics`.
    MetricIx,
    /// A level of domains, by its position in `Cluster::levels`.
    LevelIx,
    /// A domain, by its position in `Level::domains`.
    DomainIx,
    /// A service, by its position in `Cluster::services`.
    ServiceIx,
    /// A replica, by its position in `Cluster::replicas`.
    ReplicaIx,
    /// A group of replicas, by its position in `Cluster::groups`.
    GroupIx,
);

impl LevelIx {
    /// The level whose domains are the nodes themselves: every cluster has it first.
    pub const NODE: LevelIx = LevelIx(0);
}

/// A cluster at one instant.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// What nodes have and replicas need.
    pub metrics: Vec<Metric>,
    /// Partitions of the nodes into domains; the first one is `LevelIx::NODE`.
    pub levels: Vec<Level>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The services.
    pub services: Vec<Service>,
    /// The replicas of all services.
    pub replicas: Vec<Replica>,
    /// The groups that rules are about.
    pub groups: Vec<Group>,
    /// What must hold beside the capacity of nodes.
    pub rules: Vec<Rule>,
    /// What is minimized.
    pub objective: Objective,
}

/// Something that nodes have and replicas need: processors, memory, a number of connections.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// Whether a replica that moves needs it on its old node and on its new one at the same time.
    pub transient: bool,
}

/// A partition of the nodes: fault domains, racks, datacenters. A node that has no domain at a
/// level is a domain of its own there.
#[derive(Clone, Debug)]
pub struct Level {
    /// Its name.
    pub name: String,
    /// Names of its domains.
    pub domains: Vec<String>,
    /// The domain of each node.
    pub domain_of: Vec<DomainIx>,
}

/// Whether a node takes replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It runs replicas and takes new ones.
    Up,
    /// It keeps its replicas and takes no other ones.
    Closed,
    /// Its replicas must leave it.
    Draining,
    /// It is lost. Its replicas must be placed elsewhere, and need nothing on it while they move.
    Down,
}

impl NodeState {
    /// Whether replicas may be on it in a valid assignment.
    pub fn holds(self) -> bool {
        matches!(self, NodeState::Up | NodeState::Closed)
    }
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Whether it takes replicas.
    pub state: NodeState,
    /// Its capacity by metric; `None` is without limit.
    pub capacity: Vec<Option<Amount>>,
}

/// A service.
#[derive(Clone, Debug)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// The nodes that may run it, by position; `None` is all.
    pub allowed: Option<Vec<bool>>,
}

/// What a replica does for its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Takes the writes of its partition.
    Primary,
    /// Follows the primary.
    Secondary,
    /// One of the equal instances of a stateless service.
    Instance,
}

/// A replica.
#[derive(Clone, Debug)]
pub struct Replica {
    /// Its name, unique in the cluster.
    pub name: String,
    /// Its service.
    pub service: ServiceIx,
    /// Its role.
    pub role: Role,
    /// Its node today; `None` is new.
    pub node: Option<NodeIx>,
    /// Its demand by metric.
    pub demand: Vec<Amount>,
    /// Cost of a move to another node: the weight of a failover.
    pub move_cost: f64,
}

/// A set of replicas that rules are about: a partition, a service, all that carry a label.
#[derive(Clone, Debug)]
pub struct Group {
    /// What messages call it.
    pub name: String,
    /// Its members.
    pub members: Vec<ReplicaIx>,
}

/// A hard constraint on where the members of groups are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// At most `most` members in any domain of the level. With 1 and `LevelIx::NODE`: no two
    /// replicas of a partition on a node. SIL eq. 3 and 4.
    PerDomain {
        /// The members that count.
        group: GroupIx,
        /// Where they are counted.
        level: LevelIx,
        /// The limit.
        most: u32,
    },
    /// The members use at least `least` domains of the level: ROADEF's spread, and scale-out.
    AtLeast {
        /// The members that count.
        group: GroupIx,
        /// Where they are counted.
        level: LevelIx,
        /// The number of domains.
        least: u32,
    },
    /// The members use at most `most` domains of the level: scale-out of SIL appendix A.
    AtMost {
        /// The members that count.
        group: GroupIx,
        /// Where they are counted.
        level: LevelIx,
        /// The number of domains.
        most: u32,
    },
    /// Each member has a member of `to` in its domain: affinity, and ROADEF's dependency.
    Near {
        /// The members that depend.
        group: GroupIx,
        /// The members that they need.
        to: GroupIx,
        /// How near.
        level: LevelIx,
    },
    /// No member is in a domain with a member of `from`: anti-affinity.
    Apart {
        /// The one side.
        group: GroupIx,
        /// The other side.
        from: GroupIx,
        /// How far.
        level: LevelIx,
    },
}

/// What is minimized.
#[derive(Clone, Debug)]
pub enum Objective {
    /// Expected failovers.
    Failovers(Failovers),
    /// Costs of load, balance and moves: the ROADEF/EURO challenge of 2012.
    Reassignment(Reassignment),
    /// Even load with few moves: the energy of Service Fabric's balancer.
    Balance(Evenness),
    /// Nodes with a replica; moves are free. Vector bin packing, where nodes are equal.
    FewestNodes,
}

/// Even load with few moves: (D + 0.001) (1 + `moves` M / (R + 1000)), in the unit of the metrics.
/// D is the average over metrics of the standard deviation of the load of the nodes that are up, M
/// the cost of the moves, R the number of replicas. With `moves` = 1, R + 1000 times this is the
/// energy of Service Fabric's balancer (SIL section 2.1).
#[derive(Clone, Debug)]
pub struct Evenness {
    /// Weight of each metric in the average. Metrics of different units need different weights.
    pub weights: Vec<f64>,
    /// Weight of the cost of moves; 0 ignores it.
    pub moves: f64,
    /// Demands in future: the whole is multiplied with one and the violations to expect (PLB+PrV of
    /// SIL section 7.2).
    pub futures: Option<Futures>,
}

impl Evenness {
    /// All metrics alike, and moves at their cost.
    pub fn of(metrics: usize) -> Evenness {
        Evenness { weights: vec![1.0; metrics], moves: 1.0, futures: None }
    }
}

/// Failovers now, and those to expect because of fragmentation and of demands in future. SIL eq. 5' to
/// 14'.
#[derive(Clone, Debug, Default)]
pub struct Failovers {
    /// Weight of failovers because of fragmentation, in failovers: SIL's w_f.
    pub fragmentation: f64,
    /// The levels into each domain of which a replica as large as a node must fit.
    pub levels: Vec<LevelIx>,
    /// Demands in future, if failovers because of them count.
    pub futures: Option<Futures>,
    /// What it costs when replicas of a partition exchange their roles.
    pub swaps: Swaps,
    /// What should hold, and the failovers that it is worth.
    pub soft: Vec<Soft>,
}

/// What should hold but need not: preferred locations of SIL appendix A, spread and balance of Service
/// Fabric. Weights are in failovers.
#[derive(Clone, Debug)]
pub enum Soft {
    /// Each member on another node than these costs the weight.
    Preferred {
        /// The members that count.
        group: GroupIx,
        /// The preferred nodes, by position.
        nodes: Vec<bool>,
        /// Cost of a replica.
        weight: f64,
    },
    /// Each member above `most` in a domain of the level costs the weight.
    Spread {
        /// The members that count.
        group: GroupIx,
        /// Where they are counted.
        level: LevelIx,
        /// The even share of a domain.
        most: u32,
        /// Cost of a replica.
        weight: f64,
    },
    /// The weight times the average over metrics of the standard deviation of the load of the nodes that
    /// hold replicas, in shares of the capacity of an average one. Metrics without a limit do not count.
    Balance {
        /// Cost of a deviation of a whole node.
        weight: f64,
    },
    /// Each node with a replica costs the weight: a mixture of failovers and `Objective::FewestNodes`.
    Nodes {
        /// Cost of a node in use.
        weight: f64,
    },
}

/// A primary and a secondary of a partition exchange their nodes of today: they exchange roles, no data
/// moves, and only the primary fails over. Such a swap costs neither of the two moves. SIL section 5,
/// below eq. 5, counts a swap as soon as a secondary is on the primary's old node; here the primary must
/// be on the secondary's, because its move to a third node is a failover of its own.
#[derive(Clone, Debug, Default)]
pub struct Swaps {
    /// Cost of a swap as a share of the move cost of its primary; with 1 it is one failover.
    pub cost: f64,
    /// The partitions whose roles may be exchanged: groups of which no two members share a node.
    pub partitions: Vec<GroupIx>,
}

/// Demands that replicas may have in future: samples of a Monte Carlo simulation, each of which has a
/// demand at some points in time. SIL eq. 13'.
#[derive(Clone, Debug)]
pub struct Futures {
    /// Weight of failovers because of violations in future, in failovers: SIL's w_c.
    pub weight: f64,
    /// Number of samples: SIL's |L|. At least one.
    pub samples: usize,
    /// Demand of each replica, in the order of `Cluster::replicas`: by sample, then time, then metric,
    /// of equal length for all.
    pub demand: Vec<Arc<[Amount]>>,
}

/// Costs of the machine reassignment problem.
#[derive(Clone, Debug)]
pub struct Reassignment {
    /// Cost of a unit above the safety capacity, by metric.
    pub load: Vec<f64>,
    /// Safety capacity by node and metric.
    pub safety: Vec<Vec<Amount>>,
    /// Pairs of metrics whose free amounts should be balanced.
    pub balance: Vec<Balance>,
    /// Weight of the move costs of replicas.
    pub replica_moves: f64,
    /// Weight of the largest number of moved replicas of a service.
    pub service_moves: f64,
    /// Weight of the cost between old and new node.
    pub node_moves: f64,
    /// Cost of a move by old node and new node.
    pub between: Vec<Vec<u32>>,
}

/// Free amount of `second` should be at least `target` times that of `first`, on each node.
#[derive(Clone, Copy, Debug)]
pub struct Balance {
    /// The metric that sets the need.
    pub first: MetricIx,
    /// The metric that must be free.
    pub second: MetricIx,
    /// How much of it.
    pub target: Amount,
    /// Cost of a missing unit.
    pub weight: f64,
}

/// The node of each replica; `None` is not placed.
pub type Assignment = Vec<Option<NodeIx>>;

impl Cluster {
    /// The assignment of today.
    pub fn today(&self) -> Assignment {
        self.replicas.iter().map(|replica| replica.node).collect()
    }

    /// Whether a replica may run on a node: the node takes or keeps it, and the service allows it.
    pub fn may_run(&self, replica: ReplicaIx, node: NodeIx) -> bool {
        let replica = &self.replicas[replica.ix()];
        let service = &self.services[replica.service.ix()];
        let takes = match self.nodes[node.ix()].state {
            NodeState::Up => true,
            NodeState::Closed => replica.node == Some(node),
            NodeState::Draining | NodeState::Down => false,
        };
        takes && service.allowed.as_ref().is_none_or(|allowed| allowed[node.ix()])
    }

    /// The pairs of primary and secondary that may exchange their roles, with the cost of doing so.
    pub(crate) fn role_pairs<'c>(
        &'c self,
        swaps: &'c Swaps,
    ) -> impl Iterator<Item = (ReplicaIx, ReplicaIx, f64)> + 'c {
        swaps.partitions.iter().flat_map(move |group| {
            let members = &self.groups[group.ix()].members;
            let of_role =
                move |role| members.iter().filter(move |at| self.replicas[at.ix()].role == role);
            of_role(Role::Primary).flat_map(move |primary| {
                let of = &self.replicas[primary.ix()];
                let others = of_role(Role::Secondary).filter(move |secondary| {
                    let other = self.replicas[secondary.ix()].node;
                    of.node.is_some() && other.is_some() && other != of.node
                });
                others.map(move |secondary| (*primary, *secondary, swaps.cost * of.move_cost))
            })
        })
    }

    /// Capacity of the average of the nodes that hold replicas, by metric; `None` without a limit.
    pub(crate) fn average_capacity(&self) -> Vec<Option<f64>> {
        let average = |metric: usize| {
            let holding = self.nodes.iter().filter(|node| node.state.holds());
            let limits: Vec<f64> =
                holding.filter_map(|node| node.capacity[metric]).map(|of| of as f64).collect();
            let average = limits.iter().sum::<f64>() / limits.len() as f64;
            (average > 0.0).then_some(average)
        };
        (0..self.metrics.len()).map(average).collect()
    }

    /// The domain of a node.
    pub fn domain(&self, level: LevelIx, node: NodeIx) -> DomainIx {
        self.levels[level.ix()].domain_of[node.ix()]
    }
}

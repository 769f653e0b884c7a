//! Small random clusters, which tests compare with all that is possible in them.

use placement::{Assignment, Builder, Cluster, GroupIx, LevelIx, NodeIx, NodeState, Rule};
use proptest::prelude::*;
use std::ops::{Range, RangeInclusive};

/// The states that numbers of a small cluster mean.
pub const STATES: [NodeState; 4] =
    [NodeState::Up, NodeState::Draining, NodeState::Down, NodeState::Closed];
/// A node that is down.
pub const DOWN: u8 = 2;

/// The node of each replica.
pub type Places = Vec<Option<usize>>;

/// A cluster with two metrics and one level besides the nodes.
#[derive(Clone, Debug)]
pub struct Small {
    /// Of both metrics.
    pub capacities: Vec<(i64, i64)>,
    /// Positions in `STATES`.
    pub states: Vec<u8>,
    /// The domain of each node.
    pub domains: Vec<usize>,
    /// Each has a service of its own.
    pub replicas: Vec<SmallReplica>,
    pub rules: Vec<SmallRule>,
    /// Whether the second metric is transient.
    pub transient: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct SmallReplica {
    /// Its node of today.
    pub today: Option<usize>,
    /// Its node of an assignment.
    pub to: Option<usize>,
    /// Demand of the first metric.
    pub a: i64,
    /// Demand of the second metric.
    pub b: i64,
    pub move_cost: u8,
    /// Nodes that may run it, as bits.
    pub allowed: u8,
}

#[derive(Clone, Copy, Debug)]
pub struct SmallRule {
    /// 0 `PerDomain`, 1 `AtLeast`, 2 `AtMost`, 3 `Near`, 4 `Apart`.
    pub kind: u8,
    /// The first group's members as bits.
    pub one: u8,
    /// The other group's members as bits.
    pub other: u8,
    /// Whether its level is that of nodes.
    pub of_nodes: bool,
    pub number: usize,
}

/// What small clusters are drawn from.
#[derive(Clone, Debug)]
pub struct Shape {
    pub nodes: RangeInclusive<usize>,
    pub capacity: [Range<i64>; 2],
    /// How many of `STATES` occur.
    pub states: u8,
    pub domains: usize,
    pub replicas: usize,
    pub demand: [Range<i64>; 2],
    /// Share of replicas with a node today, and of those with a node of the assignment.
    pub placed: [f64; 2],
    /// Whether services exclude nodes.
    pub excludes: bool,
    pub rules: usize,
}

/// Small clusters of a shape.
pub fn small(shape: Shape) -> impl Strategy<Value = Small> {
    shape.nodes.clone().prop_flat_map(move |nodes| {
        let [a, b] = shape.demand.clone();
        let allowed = if shape.excludes { 1 } else { 0 };
        let node = |share: f64| {
            (0..nodes, 0.0..1.0).prop_map(move |(node, draw)| (draw < share).then_some(node))
        };
        let replica = (
            node(shape.placed[0]),
            node(shape.placed[1]),
            a,
            b,
            1..4_u8,
            prop_oneof![3 => Just(0xff_u8), allowed => any::<u8>()],
        );
        let replica = replica.prop_map(|(today, to, a, b, move_cost, allowed)| SmallReplica {
            today,
            to,
            a,
            b,
            move_cost,
            allowed,
        });
        let rule = (0..5_u8, any::<u8>(), any::<u8>(), any::<bool>(), 1..3_usize);
        let rule = rule.prop_map(|(kind, one, other, of_nodes, number)| SmallRule {
            kind,
            one,
            other,
            of_nodes,
            number,
        });
        let [a, b] = shape.capacity.clone();
        let states = prop_oneof![7 => Just(0), 2 => 1..shape.states];
        (
            prop::collection::vec((a, b), nodes),
            prop::collection::vec(states, nodes),
            prop::collection::vec(0..shape.domains, nodes),
            prop::collection::vec(replica, 1..=shape.replicas),
            prop::collection::vec(rule, 0..=shape.rules),
            any::<bool>(),
        )
            .prop_map(|(capacities, states, domains, replicas, rules, transient)| Small {
                capacities,
                states,
                domains,
                replicas,
                rules,
                transient,
            })
    })
}

impl Small {
    /// The cluster, with nodes `n0`, `n1`, ... and replicas `r0`, `r1`, ...
    pub fn builder(&self) -> Builder {
        let mut builder = Cluster::builder("small").metric("a", false).metric("b", self.transient);
        for (node, (a, b)) in self.capacities.iter().enumerate() {
            builder = builder.node(&format!("n{node}"), [Some(*a), Some(*b)]);
        }
        let domains: Vec<String> = self.domains.iter().map(|domain| format!("d{domain}")).collect();
        builder = builder.level("domain", domains.iter().map(String::as_str));
        for (position, replica) in self.replicas.iter().enumerate() {
            let node = replica.today.map(|node| format!("n{node}"));
            let demand = [replica.a, replica.b];
            builder = builder.replica(&format!("r{position}"), node.as_deref(), demand);
        }
        let members = |bits: u8| (0..self.replicas.len()).filter(move |r| has(bits, *r));
        for (at, rule) in self.rules.iter().enumerate() {
            builder = builder.group("one", members(rule.one)).group("other", members(rule.other));
            let (group, to) = (GroupIx::new(2 * at), GroupIx::new(2 * at + 1));
            let level = if rule.of_nodes { LevelIx::NODE } else { LevelIx::new(1) };
            let number = u32::try_from(rule.number).expect("small");
            builder = builder.rule(match rule.kind {
                0 => Rule::PerDomain { group, level, most: number },
                1 => Rule::AtLeast { group, level, least: number },
                2 => Rule::AtMost { group, level, most: number },
                3 => Rule::Near { group, to, level },
                _ => Rule::Apart { group, from: to, level },
            });
        }
        builder.with(|cluster| {
            for (node, state) in cluster.nodes.iter_mut().zip(&self.states) {
                node.state = STATES[*state as usize];
            }
            for (position, replica) in self.replicas.iter().enumerate() {
                cluster.replicas[position].move_cost = f64::from(replica.move_cost);
                let allowed = (0..self.capacities.len()).map(|node| has(replica.allowed, node));
                cluster.services[position].allowed = Some(allowed.collect());
            }
        })
    }

    /// The nodes of the assignment.
    pub fn assignment(&self) -> Assignment {
        self.replicas.iter().map(|replica| replica.to.map(NodeIx::new)).collect()
    }

    /// The nodes today; replicas of nodes that are down are lost.
    pub fn start(&self) -> Places {
        let is_there = |node: &usize| self.states[*node] != DOWN;
        self.replicas.iter().map(|replica| replica.today.filter(is_there)).collect()
    }

    /// A number for the node's domain of a rule's level.
    pub fn domain(&self, rule: &SmallRule, node: usize) -> usize {
        if rule.of_nodes { node } else { 100 + self.domains[node] }
    }
}

/// Whether a set has a bit.
pub fn has(bits: u8, position: usize) -> bool {
    bits >> position & 1 == 1
}

/// Nodes `n1`, `n2`, ... with one metric.
pub fn nodes(count: usize, metric: &str, capacity: i64) -> Builder {
    let builder = Cluster::builder("nodes").metric(metric, false);
    (1..=count).fold(builder, |builder, node| builder.node(&format!("n{node}"), [Some(capacity)]))
}

/// An assignment by the numbers of `nodes`.
pub fn to(nodes: &[usize]) -> Assignment {
    nodes.iter().map(|node| Some(NodeIx::new(node - 1))).collect()
}

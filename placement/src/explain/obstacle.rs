//! What keeps a replica off each node, and the smallest set of obstacles that keeps it off all.

use super::{NodeClass, Obstacle};
use crate::cluster::{Amount, DomainIx, GroupIx, LevelIx, NodeIx, NodeState, Rule};
use crate::state::State;
use std::collections::{BTreeMap, BTreeSet};

/// An obstacle, in the order in which they are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Down,
    Closed,
    Draining,
    Excluded,
    /// The metric.
    Lacks(usize),
    /// The position of the rule.
    Rule(usize),
}

/// Members of a group by domain, without the replica.
struct Members {
    by_domain: BTreeMap<DomainIx, u32>,
    /// Whether the replica is a member.
    is_member: bool,
}

impl Members {
    fn of(&self, domain: DomainIx) -> u32 {
        self.by_domain.get(&domain).copied().unwrap_or(0)
    }

    /// Domains with a member, if the replica is in one.
    fn used(&self, with: DomainIx) -> usize {
        self.by_domain.len() + usize::from(self.of(with) == 0)
    }
}

/// The rules about a replica, in a state without it.
pub(super) struct Obstacles {
    pub(super) replica: usize,
    /// Where the replica is instead: rules that its leaving breaks are obstacles too.
    instead: Option<NodeIx>,
    rules: Vec<(usize, Rule)>,
    members: BTreeMap<(GroupIx, LevelIx), Members>,
}

impl Obstacles {
    /// The state may have the replica or not.
    pub(super) fn new(state: &State, replica: usize, instead: Option<NodeIx>) -> Obstacles {
        let cluster = state.cluster;
        let is_member = |group: GroupIx| {
            let members = &cluster.groups[group.ix()].members;
            members.iter().any(|member| member.ix() == replica)
        };
        let mut found = Obstacles { replica, instead, rules: Vec::new(), members: BTreeMap::new() };
        for (position, rule) in cluster.rules.iter().enumerate() {
            let (group, other, level) = match *rule {
                Rule::PerDomain { group, level, .. }
                | Rule::AtLeast { group, level, .. }
                | Rule::AtMost { group, level, .. } => (group, None, level),
                Rule::Near { group, to: other, level }
                | Rule::Apart { group, from: other, level } => (group, Some(other), level),
            };
            if !is_member(group) && !other.is_some_and(is_member) {
                continue;
            }
            found.rules.push((position, *rule));
            for group in [Some(group), other].into_iter().flatten() {
                found.members.entry((group, level)).or_insert_with(|| {
                    let mut by_domain = BTreeMap::new();
                    for member in &cluster.groups[group.ix()].members {
                        let node = state.node_of(member.ix()).filter(|_| member.ix() != replica);
                        if let Some(node) = node {
                            *by_domain.entry(cluster.domain(level, node)).or_default() += 1;
                        }
                    }
                    Members { by_domain, is_member: is_member(group) }
                });
            }
        }
        found
    }

    /// The obstacles of each node, in order. The state does not have the replica.
    pub(super) fn by_node(&self, state: &mut State) -> Vec<Vec<Kind>> {
        (0..state.cluster.nodes.len()).map(|node| self.of(state, NodeIx::new(node))).collect()
    }

    /// The obstacles of a node. The state does not have the replica.
    pub(super) fn of(&self, state: &mut State, node: NodeIx) -> Vec<Kind> {
        let cluster = state.cluster;
        let mut found = Vec::new();
        match cluster.nodes[node.ix()].state {
            NodeState::Up => {}
            NodeState::Closed if cluster.replicas[self.replica].node == Some(node) => {}
            NodeState::Closed => found.push(Kind::Closed),
            NodeState::Draining => found.push(Kind::Draining),
            NodeState::Down => found.push(Kind::Down),
        }
        let service = &cluster.services[cluster.replicas[self.replica].service.ix()];
        if service.allowed.as_ref().is_some_and(|allowed| !allowed[node.ix()]) {
            found.push(Kind::Excluded);
        }
        let lacks = self.lacks(state, node).into_iter().enumerate();
        found.extend(lacks.filter(|(_, lack)| *lack > 0).map(|(metric, _)| Kind::Lacks(metric)));
        let broken = self.rules.iter().filter(|(_, rule)| self.breaks(state, rule, node));
        found.extend(broken.map(|(position, _)| Kind::Rule(*position)));
        found
    }

    /// What a node lacks for the replica, by metric: for good, or while replicas move.
    pub(super) fn lacks(&self, state: &mut State, node: NodeIx) -> Vec<Amount> {
        state.put(self.replica, node);
        let demand = state.demand(self.replica).iter().enumerate();
        let lacks = demand.map(|(metric, demand)| match demand {
            0 => 0,
            _ => state.lack(node.ix(), metric),
        });
        let lacks = lacks.collect();
        state.take(self.replica);
        lacks
    }

    fn breaks(&self, state: &State, rule: &Rule, node: NodeIx) -> bool {
        let cluster = state.cluster;
        let members = |group: GroupIx, level: LevelIx| &self.members[&(group, level)];
        let instead = |level| self.instead.map(|node| cluster.domain(level, node));
        match *rule {
            Rule::PerDomain { group, level, most } => {
                members(group, level).of(cluster.domain(level, node)) >= most
            }
            Rule::AtLeast { group, level, least } => {
                let of = members(group, level);
                let now = instead(level).map_or(0, |domain| of.used(domain));
                of.used(cluster.domain(level, node)) < now.min(least as usize)
            }
            Rule::AtMost { group, level, most } => {
                let (of, domain) = (members(group, level), cluster.domain(level, node));
                of.of(domain) == 0 && of.used(domain) > most as usize
            }
            Rule::Near { group, to, level } => {
                let (of, needed) = (members(group, level), members(to, level));
                let domain = cluster.domain(level, node);
                let is_without = of.is_member && !needed.is_member && needed.of(domain) == 0;
                // Those that it is near to now would be without it.
                let leaves = instead(level).is_some_and(|now| {
                    needed.is_member && now != domain && of.of(now) > 0 && needed.of(now) == 0
                });
                is_without || leaves
            }
            Rule::Apart { group, from, level } => {
                let (of, others) = (members(group, level), members(from, level));
                let domain = cluster.domain(level, node);
                (of.is_member && (others.is_member || others.of(domain) > 0))
                    || (others.is_member && of.of(domain) > 0)
            }
        }
    }

    /// Whether the replica is a member of a group that a rule about it names.
    pub(super) fn is_member(&self, group: GroupIx, level: LevelIx) -> bool {
        self.members[&(group, level)].is_member
    }

    /// An obstacle with its names; `nodes` are those that have it.
    pub(super) fn named(
        &self,
        state: &State,
        kind: Kind,
        nodes: impl Iterator<Item = usize>,
    ) -> Obstacle {
        let cluster = state.cluster;
        let group_name = |group: GroupIx| cluster.groups[group.ix()].name.clone();
        let level_name = |level: LevelIx| cluster.levels[level.ix()].name.clone();
        match kind {
            Kind::Down => Obstacle::Down,
            Kind::Closed => Obstacle::Closed,
            Kind::Draining => Obstacle::Draining,
            Kind::Excluded => Obstacle::Excluded,
            Kind::Lacks(metric) => {
                let free = |node: usize| {
                    state.capacity(node)[metric].saturating_sub(state.usage(node)[metric]).max(0)
                };
                Obstacle::Lacks {
                    metric: cluster.metrics[metric].name.clone(),
                    demand: state.demand(self.replica)[metric],
                    free: nodes.map(free).max().unwrap_or(0),
                }
            }
            Kind::Rule(position) => match cluster.rules[position] {
                Rule::PerDomain { group, level, most } => {
                    Obstacle::PerDomain { group: group_name(group), level: level_name(level), most }
                }
                Rule::AtLeast { group, level, least } => {
                    Obstacle::AtLeast { group: group_name(group), level: level_name(level), least }
                }
                Rule::AtMost { group, level, most } => {
                    Obstacle::AtMost { group: group_name(group), level: level_name(level), most }
                }
                Rule::Near { group, to, level } => Obstacle::Near {
                    group: group_name(group),
                    to: group_name(to),
                    level: level_name(level),
                },
                Rule::Apart { group, from, level } => {
                    let other = if self.is_member(group, level) { from } else { group };
                    Obstacle::Apart { from: group_name(other), level: level_name(level) }
                }
            },
        }
    }

    /// The obstacles of one node with their names.
    pub(super) fn named_all(&self, state: &State, node: usize, kinds: &[Kind]) -> Vec<Obstacle> {
        kinds.iter().map(|kind| self.named(state, *kind, [node].into_iter())).collect()
    }
}

/// Sets that the search for the smallest conflict looks at.
const LOOKS: u64 = 1_000_000;

/// The smallest set of obstacles of which each node has one: a hitting set. It is found by trying the
/// obstacles of a node that has none yet, with one obstacle more each round.
pub(super) fn smallest_conflict(by_node: &[Vec<Kind>]) -> Vec<Kind> {
    let classes: BTreeSet<&Vec<Kind>> = by_node.iter().collect();
    // A node with few obstacles leaves few choices.
    let mut classes: Vec<&Vec<Kind>> = classes.into_iter().collect();
    classes.sort_by_key(|kinds| kinds.len());
    let all: BTreeSet<Kind> = by_node.iter().flatten().copied().collect();
    let mut looks = LOOKS;
    for size in 0..all.len() {
        let mut chosen = Vec::new();
        if hits(&classes, &mut chosen, size, &mut looks) {
            chosen.sort_unstable();
            return chosen;
        }
    }
    // All obstacles are a conflict. Without time for the smallest, drop what can be dropped.
    let mut chosen: Vec<Kind> = all.into_iter().collect();
    for kind in chosen.clone().into_iter().rev() {
        let without = |kinds: &&Vec<Kind>| kinds.iter().any(|k| *k != kind && chosen.contains(k));
        if classes.iter().all(without) {
            chosen.retain(|chosen| *chosen != kind);
        }
    }
    chosen
}

fn hits(classes: &[&Vec<Kind>], chosen: &mut Vec<Kind>, left: usize, looks: &mut u64) -> bool {
    let is_open = |kinds: &&&Vec<Kind>| !kinds.iter().any(|kind| chosen.contains(kind));
    let Some(open) = classes.iter().find(is_open) else { return true };
    if left == 0 || *looks == 0 {
        return false;
    }
    *looks -= 1;
    for kind in open.iter() {
        chosen.push(*kind);
        if hits(classes, chosen, left - 1, looks) {
            return true;
        }
        chosen.pop();
    }
    false
}

/// The nodes of each obstacle of a conflict: each node counts where it is first.
pub(super) fn classes(
    obstacles: &Obstacles,
    state: &State,
    by_node: &[Vec<Kind>],
    conflict: &[Kind],
) -> Vec<NodeClass> {
    let first = |kinds: &Vec<Kind>| conflict.iter().position(|kind| kinds.contains(kind));
    let firsts: Vec<Option<usize>> = by_node.iter().map(first).collect();
    let class = |(at, kind): (usize, &Kind)| {
        let nodes: Vec<usize> =
            (0..firsts.len()).filter(|node| firsts[*node] == Some(at)).collect();
        let count = nodes.len();
        NodeClass { obstacle: obstacles.named(state, *kind, nodes.into_iter()), nodes: count }
    };
    conflict.iter().enumerate().map(class).collect()
}

//! Neighbours in the way, and single changes with which a replica would be placed.

use super::obstacle::{Kind, Obstacles};
use super::{InTheWay, Relaxation};
use crate::cluster::{Amount, NodeIx, Rule};
use crate::state::State;
use std::collections::BTreeMap;

/// Nodes that are looked at for neighbours that would move.
const LOOKS: u64 = 2_000_000;

/// Single changes, each of which lets the replica be placed.
pub(super) fn relaxations(
    obstacles: &Obstacles,
    state: &mut State,
    by_node: &[Vec<Kind>],
) -> Vec<Relaxation> {
    let cluster = state.cluster;
    let name = |node: usize| cluster.nodes[node].name.clone();
    // Nodes with a single obstacle, by obstacle.
    let mut single: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
    for (node, kinds) in by_node.iter().enumerate() {
        if let [kind] = kinds[..] {
            single.entry(kind).or_default().push(node);
        }
    }
    let mut found = Vec::new();
    for (kind, nodes) in single {
        let Kind::Lacks(metric) = kind else {
            let obstacle = obstacles.named(state, kind, nodes.iter().copied());
            found.push(Relaxation::Drop { obstacle, node: name(nodes[0]), nodes: nodes.len() });
            continue;
        };
        let lack = |node: usize, state: &mut State| -> Amount {
            obstacles.lacks(state, NodeIx::new(node))[metric]
        };
        let least = nodes.into_iter().map(|node| (lack(node, state), node)).min();
        let Some((by, node)) = least else { continue };
        let metric_name = || cluster.metrics[metric].name.clone();
        found.push(Relaxation::Raise { node: name(node), metric: metric_name(), by });
        if by <= state.demand(obstacles.replica)[metric] {
            found.push(Relaxation::Shrink { metric: metric_name(), by, node: name(node) });
        }
    }
    found.extend(neighbour(obstacles, state, by_node));
    found
}

/// Whether all obstacles of a node are other replicas.
fn are_replicas(obstacles: &Obstacles, state: &State, kinds: &[Kind]) -> bool {
    kinds.iter().all(|kind| match kind {
        Kind::Lacks(_) => true,
        Kind::Rule(rule) => match state.cluster.rules[*rule] {
            Rule::PerDomain { .. } => true,
            // A member of both groups is in its own way.
            Rule::Apart { group, from, level } => {
                !(obstacles.is_member(group, level) && obstacles.is_member(from, level))
            }
            Rule::AtLeast { .. } | Rule::AtMost { .. } | Rule::Near { .. } => false,
        },
        Kind::Down | Kind::Draining | Kind::Closed | Kind::Excluded => false,
    })
}

/// Replicas that can be in the way on a node: on it, or members that its rules count.
fn candidates(obstacles: &Obstacles, state: &State, node: usize, kinds: &[Kind]) -> Vec<usize> {
    let cluster = state.cluster;
    let mut found: Vec<usize> = Vec::new();
    if kinds.iter().any(|kind| matches!(kind, Kind::Lacks(_))) {
        found.extend(state.replicas_on(node).iter().map(|replica| *replica as usize));
    }
    for kind in kinds {
        let Kind::Rule(rule) = kind else { continue };
        let (groups, level) = match cluster.rules[*rule] {
            Rule::PerDomain { group, level, .. } => (vec![group], level),
            Rule::Apart { group, from, level } => {
                let mut groups = Vec::new();
                if obstacles.is_member(group, level) {
                    groups.push(from);
                }
                if obstacles.is_member(from, level) {
                    groups.push(group);
                }
                (groups, level)
            }
            _ => continue,
        };
        let domain = cluster.domain(level, NodeIx::new(node));
        let members = groups.iter().flat_map(|group| &cluster.groups[group.ix()].members);
        let there = members.map(|member| member.ix()).filter(|member| {
            state.node_of(*member).is_some_and(|at| cluster.domain(level, at) == domain)
        });
        found.extend(there);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The cheapest neighbour that can move elsewhere and whose move is enough.
fn neighbour(
    obstacles: &Obstacles,
    state: &mut State,
    by_node: &[Vec<Kind>],
) -> Option<Relaxation> {
    let (cluster, replica) = (state.cluster, obstacles.replica);
    let mut movable: Vec<(f64, usize, usize)> = Vec::new();
    for (node, kinds) in by_node.iter().enumerate() {
        if !are_replicas(obstacles, state, kinds) {
            continue;
        }
        for other in candidates(obstacles, state, node, kinds) {
            let Some(at) = state.take(other) else { continue };
            if state.allows(replica, NodeIx::new(node)) {
                movable.push((cluster.replicas[other].move_cost, node, other));
            }
            state.put(other, at);
        }
    }
    movable.sort_by(|one, other| {
        one.0.total_cmp(&other.0).then((one.1, one.2).cmp(&(other.1, other.2)))
    });
    let mut looks = LOOKS;
    for (_, node, other) in movable {
        let Some(from) = state.node_of(other) else { continue };
        for to in (0..cluster.nodes.len()).map(NodeIx::new).filter(|to| *to != from) {
            looks = looks.checked_sub(1)?;
            if !state.allows(other, to) {
                continue;
            }
            state.shift(other, to);
            let enough = state.allows(replica, NodeIx::new(node));
            state.shift(other, from);
            if enough {
                let name = |node: NodeIx| cluster.nodes[node.ix()].name.clone();
                return Some(Relaxation::Move {
                    replica: cluster.replicas[other].name.clone(),
                    from: name(from),
                    to: name(to),
                    node: cluster.nodes[node].name.clone(),
                });
            }
        }
    }
    None
}

/// The fewest replicas without which a node could take the replica, over all nodes; of equal numbers the
/// cheapest. On each node no replica of them can be spared; a smaller set of others may exist there.
pub(super) fn in_the_way(
    obstacles: &Obstacles,
    state: &mut State,
    by_node: &[Vec<Kind>],
) -> Option<InTheWay> {
    let cluster = state.cluster;
    let mut best: Option<(usize, f64, usize, Vec<usize>)> = None;
    for (node, kinds) in by_node.iter().enumerate() {
        if !are_replicas(obstacles, state, kinds) {
            continue;
        }
        let Some(others) = minimal(obstacles, state, node, kinds) else { continue };
        let cost: f64 = others.iter().map(|other| cluster.replicas[*other].move_cost).sum();
        let better = best.as_ref().is_none_or(|(count, of, ..)| {
            others.len() < *count || (others.len() == *count && cost < *of)
        });
        if better {
            best = Some((others.len(), cost, node, others));
        }
    }
    best.map(|(_, _, node, others)| InTheWay {
        node: cluster.nodes[node].name.clone(),
        replicas: others.into_iter().map(|other| cluster.replicas[other].name.clone()).collect(),
    })
}

/// Replicas that must leave for the replica: all that could are removed, and all that need not return,
/// small ones first, so that few large ones stay away. `None` if even that is not enough.
fn minimal(
    obstacles: &Obstacles,
    state: &mut State,
    node: usize,
    kinds: &[Kind],
) -> Option<Vec<usize>> {
    let (replica, to) = (obstacles.replica, NodeIx::new(node));
    let lacking: Vec<usize> = kinds
        .iter()
        .filter_map(|kind| if let Kind::Lacks(metric) = kind { Some(*metric) } else { None })
        .collect();
    let mut others = candidates(obstacles, state, node, kinds);
    let relieves = |other: &usize, state: &State| -> Amount {
        let on = state.node_of(*other) == Some(to);
        let sum = lacking.iter().map(|metric| state.demand(*other)[*metric]);
        if on { sum.fold(0, Amount::saturating_add) } else { 0 }
    };
    others.sort_by_key(|other| (relieves(other, state), *other));
    let homes: Vec<(usize, NodeIx)> =
        others.iter().filter_map(|other| state.take(*other).map(|home| (*other, home))).collect();
    let is_enough = state.allows(replica, to);
    let mut away = homes;
    // One that returned may make room for another one: a rule counts the domains that are in use.
    let mut returns = true;
    while returns {
        let before = away.len();
        away.retain(|(other, home)| {
            state.put(*other, *home);
            let must_leave = is_enough && !state.allows(replica, to);
            if must_leave {
                state.take(*other);
            }
            must_leave
        });
        returns = away.len() < before;
    }
    for (other, home) in &away {
        state.put(*other, *home);
    }
    let mut found: Vec<usize> = away.into_iter().map(|(other, _)| other).collect();
    found.sort_unstable();
    is_enough.then_some(found)
}

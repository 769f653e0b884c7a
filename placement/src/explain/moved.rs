//! Why a replica left its node.

use super::obstacle::{Kind, Obstacles};
use super::{MoveReason, state};
use crate::cluster::{Assignment, Cluster, NodeIx, Rule};
use crate::state::State;
use crate::value::evaluate;
use std::collections::BTreeMap;

/// Why a replica is no longer on its node of today.
pub(super) fn why(
    cluster: &Cluster,
    assignment: &Assignment,
    replica: usize,
    home: NodeIx,
) -> MoveReason {
    let mut before = State::today(cluster);
    before.take(replica);
    let then = Obstacles::new(&before, replica, None);
    let kinds = then.of(&mut before, home);
    let forbids =
        |kind: &&Kind| matches!(kind, Kind::Down | Kind::Draining | Kind::Closed | Kind::Excluded);
    if let Some(kind) = kinds.iter().find(forbids) {
        let obstacle = then.named(&before, *kind, [home.ix()].into_iter());
        return MoveReason::Forbidden { obstacle };
    }
    if !kinds.is_empty() {
        return MoveReason::Broken { obstacles: then.named_all(&before, home.ix(), &kinds) };
    }
    let mut after = state(cluster, assignment);
    let now = Obstacles::new(&after, replica, assignment[replica]);
    after.take(replica);
    let kinds = now.of(&mut after, home);
    if kinds.is_empty() {
        return saves(cluster, assignment, replica, home);
    }
    let obstacles = now.named_all(&after, home.ix(), &kinds);
    let comers = comers(&after, replica, home, &kinds);
    // All that came are removed, and all that need not return.
    let homes: Vec<(usize, NodeIx)> =
        comers.iter().filter_map(|comer| after.take(*comer).map(|at| (*comer, at))).collect();
    let stays = |state: &mut State| {
        Obstacles::new(state, replica, assignment[replica]).of(state, home).is_empty()
    };
    if !stays(&mut after) {
        return MoveReason::Conflict { obstacles };
    }
    let mut by = Vec::new();
    for (comer, at) in homes {
        after.put(comer, at);
        if !stays(&mut after) {
            after.take(comer);
            by.push(cluster.replicas[comer].name.clone());
        }
    }
    MoveReason::Displaced { obstacles, by }
}

/// Replicas that are new on the node, or in a domain where a rule counts them.
fn comers(state: &State, replica: usize, home: NodeIx, kinds: &[Kind]) -> Vec<usize> {
    let cluster = state.cluster;
    let came = |other: &usize| *other != replica && state.origin(*other) != state.node_of(*other);
    let mut found: Vec<usize> = Vec::new();
    if kinds.iter().any(|kind| matches!(kind, Kind::Lacks(_))) {
        found.extend(state.replicas_on(home.ix()).iter().map(|other| *other as usize));
    }
    for kind in kinds {
        let Kind::Rule(rule) = kind else { continue };
        let (groups, level) = match cluster.rules[*rule] {
            Rule::PerDomain { group, level, .. } | Rule::AtMost { group, level, .. } => {
                (vec![group], level)
            }
            Rule::Apart { group, from, level } => (vec![group, from], level),
            Rule::AtLeast { .. } | Rule::Near { .. } => continue,
        };
        let anywhere = matches!(cluster.rules[*rule], Rule::AtMost { .. });
        let members = groups.iter().flat_map(|group| &cluster.groups[group.ix()].members);
        let there = members.map(|member| member.ix()).filter(|member| {
            state.node_of(*member).is_some_and(|at| {
                anywhere || cluster.domain(level, at) == cluster.domain(level, home)
            })
        });
        found.extend(there);
    }
    found.retain(came);
    found.sort_unstable();
    found.dedup();
    found
}

/// What the move saves of the objective.
fn saves(cluster: &Cluster, assignment: &Assignment, replica: usize, home: NodeIx) -> MoveReason {
    let mut stays = assignment.clone();
    stays[replica] = Some(home);
    let (with, without) = (evaluate(cluster, assignment), evaluate(cluster, &stays));
    let value = without.total - with.total;
    if value <= 1e-9 {
        return MoveReason::Nothing;
    }
    let mut terms = BTreeMap::new();
    for (name, of_stay) in &without.terms {
        let saved = of_stay - with.terms.get(name).copied().unwrap_or(0.0);
        if saved != 0.0 {
            terms.insert(*name, saved);
        }
    }
    MoveReason::Saves { value, terms }
}

//! Affinities and spread of pods as rules and preferences.

use super::objects::{Node, PodAffinityTerm, TopologySpread};
use super::pod::Listed;
use super::scheduling::{avoids, matches, selects};
use crate::cluster::broken::Broken;
use placement::{Cluster, Failovers, Group, GroupIx, LevelIx, Objective, ReplicaIx, Rule, Soft};
use std::collections::{BTreeMap, BTreeSet};

/// Cost of a preference of weight 100, in moves: new pods follow it, and no running pod moves for one alone.
const WEIGHT_100: f64 = 0.5;

/// Groups by their members, each made once.
#[derive(Default)]
struct Groups(BTreeMap<Vec<usize>, GroupIx>);

impl Groups {
    fn of(&mut self, cluster: &mut Cluster, name: &str, members: Vec<usize>) -> GroupIx {
        *self.0.entry(members).or_insert_with_key(|members| {
            let members = members.iter().copied().map(ReplicaIx::new).collect();
            cluster.groups.push(Group { name: name.to_owned(), members });
            GroupIx::new(cluster.groups.len() - 1)
        })
    }
}

/// Adds the rules of pods that are alike; each set names positions in `pods`, which are those of the
/// replicas.
pub fn read(
    pods: &[&Listed],
    alike: &[Vec<usize>],
    nodes: &[Node],
    cluster: &mut Cluster,
    notes: &mut Vec<String>,
) -> Result<(), Broken> {
    let mut groups = Groups::default();
    let mut unread = BTreeSet::new();
    let mut soft = Vec::new();
    for own in alike {
        let first = pods[own[0]];
        let spec = &first.pod.spec;
        let name = first.controller();
        let affinity = &spec.affinity;
        if !affinity.pod_affinity.preferred.is_empty() {
            unread.insert("preferred affinities between pods are not read");
        }
        for preferred in preferred_nodes(first, nodes)? {
            let group = groups.of(cluster, &name, own.clone());
            soft.push(Soft::Preferred { group, nodes: preferred.nodes, weight: preferred.weight });
        }
        for preferred in &affinity.pod_anti_affinity.preferred {
            let term = &preferred.pod_affinity_term;
            let (inside, others) = split(own, &matched(first, term, pods, &mut unread)?);
            if inside.len() > 1 {
                let level = level_of(cluster, &term.topology_key);
                let group = groups.of(cluster, &name, inside);
                let weight = cost(preferred.weight);
                soft.push(Soft::Spread { group, level, most: 1, weight });
            }
            if !others.is_empty() {
                unread.insert("preferred anti-affinities to pods of others are not read");
            }
        }
        for term in &affinity.pod_anti_affinity.required {
            let matched = matched(first, term, pods, &mut unread)?;
            let level = level_of(cluster, &term.topology_key);
            let (inside, others) = split(own, &matched);
            if inside.len() > 1 {
                let group = groups.of(cluster, &name, inside);
                cluster.rules.push(Rule::PerDomain { group, level, most: 1 });
            }
            if !others.is_empty() {
                let group = groups.of(cluster, &name, own.clone());
                let from = groups.of(cluster, &format!("selected by {name}"), others);
                cluster.rules.push(Rule::Apart { group, from, level });
            }
        }
        for term in &affinity.pod_affinity.required {
            let matched = matched(first, term, pods, &mut unread)?;
            let level = level_of(cluster, &term.topology_key);
            let (inside, others) = split(own, &matched);
            let group = groups.of(cluster, &name, own.clone());
            if !others.is_empty() {
                let to = groups.of(cluster, &format!("selected by {name}"), others);
                cluster.rules.push(Rule::Near { group, to, level });
            } else if inside.is_empty() {
                unread.insert("required affinities to pods that do not exist are not read");
            } else {
                cluster.rules.push(Rule::AtMost { group, level, most: 1 });
            }
        }
        for spread in &spec.topology_spread_constraints {
            unread.insert(
                "topology spread is read as the most pods of a domain that its skew allows",
            );
            let same = |of: &&Listed| of.pod.metadata.namespace == first.pod.metadata.namespace;
            let mut selected = Vec::new();
            for (position, of) in pods.iter().enumerate().filter(|(_, of)| same(of)) {
                let rule = |rule| first.broken("spec.topologySpreadConstraints", rule);
                if selects(spread.label_selector.as_ref(), &of.pod.metadata.labels).map_err(rule)? {
                    selected.push(position);
                }
            }
            if selected.len() > 1 {
                let level = level_of(cluster, &spread.topology_key);
                let most = most(cluster, spread, level, selected.len());
                let group = groups.of(cluster, &name, selected);
                if spread.when_unsatisfiable == "DoNotSchedule" {
                    cluster.rules.push(Rule::PerDomain { group, level, most });
                } else {
                    soft.push(Soft::Spread { group, level, most, weight: WEIGHT_100 });
                }
            }
        }
    }
    if !soft.is_empty() {
        unread.insert(
            "preferences count: one of weight 100 costs half a move for each pod that misses it",
        );
        cluster.objective = Objective::Failovers(Failovers { soft, ..Failovers::default() });
    }
    notes.extend(unread.into_iter().map(str::to_owned));
    Ok(())
}

/// Nodes that pods should be on.
struct Preferred {
    nodes: Vec<bool>,
    /// Cost of a pod elsewhere, in moves.
    weight: f64,
}

/// The nodes of each preferred affinity, and those without a taint that is to be avoided.
fn preferred_nodes(of: &Listed, nodes: &[Node]) -> Result<Vec<Preferred>, Broken> {
    let spec = &of.pod.spec;
    let mut all = Vec::new();
    for term in &spec.affinity.node_affinity.preferred {
        let meets = nodes.iter().map(|node| matches(&term.preference, node));
        let meets = meets.collect::<Result<_, _>>();
        let meets = meets.map_err(|rule| of.broken("spec.affinity", rule))?;
        all.push(Preferred { nodes: meets, weight: cost(term.weight) });
    }
    let untainted: Vec<bool> = nodes.iter().map(|node| !avoids(spec, node)).collect();
    all.push(Preferred { nodes: untainted, weight: WEIGHT_100 });
    // Where all nodes are alike there is nothing to prefer.
    all.retain(|of| of.nodes.contains(&true) && of.nodes.contains(&false));
    Ok(all)
}

/// Cost of a preference, in moves.
fn cost(weight: u8) -> f64 {
    f64::from(weight.min(100)) / 100.0 * WEIGHT_100
}

/// The most pods that a domain can have where the numbers of no two domains differ by more than the skew.
fn most(cluster: &Cluster, spread: &TopologySpread, level: LevelIx, pods: usize) -> u32 {
    let domains = cluster.levels[level.ix()].domains.len().max(1);
    let most = (pods + spread.max_skew as usize * (domains - 1)) / domains;
    u32::try_from(most.max(1)).unwrap_or(u32::MAX)
}

/// The pods of a set that are selected, and the other selected ones.
fn split(own: &[usize], matched: &[usize]) -> (Vec<usize>, Vec<usize>) {
    matched.iter().partition(|position| own.binary_search(position).is_ok())
}

/// Positions of the pods that a term selects.
fn matched(
    of: &Listed,
    term: &PodAffinityTerm,
    pods: &[&Listed],
    unread: &mut BTreeSet<&'static str>,
) -> Result<Vec<usize>, Broken> {
    let every = term.namespace_selector.is_some();
    if term.namespace_selector.as_ref().is_some_and(|selector| {
        !selector.match_labels.is_empty() || !selector.match_expressions.is_empty()
    }) {
        unread.insert("selectors of namespaces are read as every namespace");
    }
    let own = [of.pod.metadata.namespace.clone()];
    let listed = if term.namespaces.is_empty() { &own[..] } else { &term.namespaces[..] };
    let mut matched = Vec::new();
    for (position, other) in pods.iter().enumerate() {
        let metadata = &other.pod.metadata;
        let rule = |rule| of.broken("spec.affinity", rule);
        if (every || listed.contains(&metadata.namespace))
            && selects(term.label_selector.as_ref(), &metadata.labels).map_err(rule)?
        {
            matched.push(position);
        }
    }
    Ok(matched)
}

/// The level of a topology key.
fn level_of(cluster: &Cluster, key: &str) -> LevelIx {
    let named = cluster.levels.iter().skip(1).position(|level| level.name == key);
    named.map_or(LevelIx::NODE, |position| LevelIx::new(position + 1))
}

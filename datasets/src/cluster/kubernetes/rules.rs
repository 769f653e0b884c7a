//! Affinities and spread of pods as rules.

use super::objects::{PodAffinityTerm, TopologySpread};
use super::pod::Listed;
use super::scheduling::selects;
use crate::cluster::broken::Broken;
use placement::{Cluster, Group, GroupIx, LevelIx, ReplicaIx, Rule};
use std::collections::{BTreeMap, BTreeSet};

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
    cluster: &mut Cluster,
    notes: &mut Vec<String>,
) -> Result<(), Broken> {
    let mut groups = Groups::default();
    let mut unread = BTreeSet::new();
    for own in alike {
        let first = pods[own[0]];
        let spec = &first.pod.spec;
        let name = first.controller();
        let affinity = &spec.affinity;
        if !affinity.pod_affinity.preferred.is_empty()
            || !affinity.pod_anti_affinity.preferred.is_empty()
            || !affinity.node_affinity.preferred.is_empty()
        {
            unread.insert("preferred affinities are not read");
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
            if spread.when_unsatisfiable != "DoNotSchedule" {
                unread.insert("soft topology spread is not read");
                continue;
            }
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
                cluster.rules.push(Rule::PerDomain { group, level, most });
            }
        }
    }
    notes.extend(unread.into_iter().map(str::to_owned));
    Ok(())
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

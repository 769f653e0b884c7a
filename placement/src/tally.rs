//! Members of groups by domain, and what the rules say of a move.

use crate::cluster::{Cluster, DomainIx, GroupIx, LevelIx, NodeIx, Rule};
use std::collections::BTreeMap;

/// Members of a group by domain of a level. Small groups are lists, large ones arrays.
#[derive(Clone, Debug)]
enum Counts {
    List(Vec<(DomainIx, u32)>),
    Array(Vec<u32>),
}

/// Above this number of members a group's counts are an array over all domains.
const LIST: usize = 16;

impl Counts {
    fn new(members: usize, domains: usize) -> Counts {
        if members <= LIST { Counts::List(Vec::new()) } else { Counts::Array(vec![0; domains]) }
    }

    fn of(&self, domain: DomainIx) -> u32 {
        match self {
            Counts::List(list) => {
                list.iter().find(|(at, _)| *at == domain).map_or(0, |(_, count)| *count)
            }
            Counts::Array(array) => array[domain.ix()],
        }
    }

    fn add(&mut self, domain: DomainIx) {
        match self {
            Counts::List(list) => match list.iter_mut().find(|(at, _)| *at == domain) {
                Some((_, count)) => *count += 1,
                None => list.push((domain, 1)),
            },
            Counts::Array(array) => array[domain.ix()] += 1,
        }
    }

    /// Domains with a member, and their members.
    fn used(&self) -> Vec<(DomainIx, u32)> {
        match self {
            Counts::List(list) => list.clone(),
            Counts::Array(array) => {
                let all = array.iter().enumerate().filter(|(_, count)| **count > 0);
                all.map(|(domain, count)| (DomainIx::new(domain), *count)).collect()
            }
        }
    }

    fn remove(&mut self, domain: DomainIx) {
        match self {
            Counts::List(list) => {
                let at = list.iter().position(|(at, _)| *at == domain).expect("it was counted");
                list[at].1 -= 1;
                if list[at].1 == 0 {
                    list.swap_remove(at);
                }
            }
            Counts::Array(array) => array[domain.ix()] -= 1,
        }
    }
}

/// The members of a group by domain of a level, with the rules that read them.
#[derive(Clone, Debug)]
struct Tally {
    group: GroupIx,
    level: LevelIx,
    counts: Counts,
    /// Domains with a member.
    used: u32,
    /// Members that a domain may have.
    per_domain: u32,
    /// Domains that must have a member, and that may.
    at_least: u32,
    at_most: u32,
    /// Tallies that must have a member where this one has one.
    needs: Vec<usize>,
    /// Tallies that need a member of this one where they have one.
    needed_by: Vec<usize>,
    /// Tallies that must have no member where this one has one.
    apart: Vec<usize>,
}

/// What keeps a replica from a node: members of a tally, those in one domain or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Obstacle {
    tally: usize,
    domain: Option<DomainIx>,
}

/// The tallies of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Tallies {
    tallies: Vec<Tally>,
    /// Tallies that count a replica: `of[starts[r]..starts[r + 1]]`.
    of: Vec<u32>,
    starts: Vec<u32>,
}

impl Tallies {
    /// Tallies without a member, for the rules of a cluster.
    pub(crate) fn new(cluster: &Cluster) -> Tallies {
        let mut tallies: Vec<Tally> = Vec::new();
        let mut known: BTreeMap<(GroupIx, LevelIx), usize> = BTreeMap::new();
        let mut tally = |tallies: &mut Vec<Tally>, group: GroupIx, level: LevelIx| {
            *known.entry((group, level)).or_insert_with(|| {
                let members = cluster.groups[group.ix()].members.len();
                tallies.push(Tally {
                    group,
                    level,
                    counts: Counts::new(members, cluster.levels[level.ix()].domains.len()),
                    used: 0,
                    per_domain: u32::MAX,
                    at_least: 0,
                    at_most: u32::MAX,
                    needs: Vec::new(),
                    needed_by: Vec::new(),
                    apart: Vec::new(),
                });
                tallies.len() - 1
            })
        };
        for rule in &cluster.rules {
            match *rule {
                Rule::PerDomain { group, level, most } => {
                    let at = tally(&mut tallies, group, level);
                    tallies[at].per_domain = tallies[at].per_domain.min(most);
                }
                Rule::AtLeast { group, level, least } => {
                    let at = tally(&mut tallies, group, level);
                    tallies[at].at_least = tallies[at].at_least.max(least);
                }
                Rule::AtMost { group, level, most } => {
                    let at = tally(&mut tallies, group, level);
                    tallies[at].at_most = tallies[at].at_most.min(most);
                }
                Rule::Near { group, to, level } => {
                    let (at, to) =
                        (tally(&mut tallies, group, level), tally(&mut tallies, to, level));
                    tallies[at].needs.push(to);
                    tallies[to].needed_by.push(at);
                }
                Rule::Apart { group, from, level } => {
                    let (at, from) =
                        (tally(&mut tallies, group, level), tally(&mut tallies, from, level));
                    tallies[at].apart.push(from);
                    tallies[from].apart.push(at);
                }
            }
        }
        let mut of_replica: Vec<Vec<u32>> = vec![Vec::new(); cluster.replicas.len()];
        for (at, tally) in (0..).zip(&tallies) {
            for member in &cluster.groups[tally.group.ix()].members {
                of_replica[member.ix()].push(at);
            }
        }
        let mut starts = vec![0];
        let mut of = Vec::new();
        for list in of_replica {
            of.extend(list);
            starts.push(u32::try_from(of.len()).expect("fewer than 2^32 memberships"));
        }
        Tallies { tallies, of, starts }
    }

    fn of(&self, replica: usize) -> std::ops::Range<usize> {
        self.starts[replica] as usize..self.starts[replica + 1] as usize
    }

    /// Adds a replica, a member of these groups, after all others.
    pub(crate) fn add_last(&mut self, groups: &[GroupIx]) {
        let read = (0..).zip(&self.tallies).filter(|(_, tally)| groups.contains(&tally.group));
        self.of.extend(read.map(|(at, _)| at));
        self.starts.push(u32::try_from(self.of.len()).expect("fewer than 2^32 memberships"));
    }

    /// The replicas about which a rule may be broken once this one has left its node.
    pub(crate) fn dependents(&self, cluster: &Cluster, replica: usize) -> Vec<usize> {
        let mut found = Vec::new();
        for at in self.of(replica) {
            let tally = &self.tallies[self.of[at] as usize];
            let same = (tally.at_least > 0).then_some(tally.group);
            let others = tally.needed_by.iter().map(|of| self.tallies[*of].group);
            for group in same.into_iter().chain(others) {
                let members = cluster.groups[group.ix()].members.iter();
                found.extend(members.map(|member| member.ix()));
            }
        }
        found
    }

    /// Counts a replica on a node.
    pub(crate) fn add(&mut self, cluster: &Cluster, replica: usize, node: NodeIx) {
        for at in self.of(replica) {
            let tally = &mut self.tallies[self.of[at] as usize];
            let domain = cluster.domain(tally.level, node);
            tally.used += u32::from(tally.counts.of(domain) == 0);
            tally.counts.add(domain);
        }
    }

    /// Counts a replica on a node no longer.
    pub(crate) fn remove(&mut self, cluster: &Cluster, replica: usize, node: NodeIx) {
        for at in self.of(replica) {
            let tally = &mut self.tallies[self.of[at] as usize];
            let domain = cluster.domain(tally.level, node);
            tally.counts.remove(domain);
            tally.used -= u32::from(tally.counts.of(domain) == 0);
        }
    }

    /// Whether a replica may move, or be placed if it has no node: no rule that holds is broken, and
    /// none that is broken gets worse.
    pub(crate) fn allow(
        &self,
        cluster: &Cluster,
        replica: usize,
        from: Option<NodeIx>,
        to: NodeIx,
    ) -> bool {
        self.of(replica).all(|at| {
            let tally = &self.tallies[self.of[at] as usize];
            let new = cluster.domain(tally.level, to);
            let old = from.map(|from| cluster.domain(tally.level, from));
            if old == Some(new) {
                return true;
            }
            let there = tally.counts.of(new);
            let leaves = old.filter(|old| tally.counts.of(*old) == 1);
            let used = tally.used + u32::from(there == 0) - u32::from(leaves.is_some());
            there < tally.per_domain
                && (used >= tally.at_least || used >= tally.used)
                && (used <= tally.at_most || used <= tally.used)
                && tally
                    .needs
                    .iter()
                    .all(|of| self.tallies[*of].counts.of(new) > 0 || self.counts(*of, replica))
                && tally.apart.iter().all(|of| self.tallies[*of].counts.of(new) == 0)
                && leaves.is_none_or(|old| {
                    tally.needed_by.iter().all(|of| {
                        let there = self.tallies[*of].counts.of(old);
                        there == 0 || (there == 1 && self.counts(*of, replica))
                    })
                })
        })
    }

    /// The replicas that must move too, now that one has moved, and where to: those that it needs or
    /// that need it come along, and one that it may not be with takes its place. `None`: other rules
    /// are broken.
    pub(crate) fn companions(
        &self,
        cluster: &Cluster,
        replica: usize,
        from: NodeIx,
        to: NodeIx,
        node_of: impl Fn(usize) -> Option<NodeIx>,
    ) -> Option<Vec<(usize, NodeIx)>> {
        let mut found = Vec::new();
        for at in self.of(replica) {
            let tally = &self.tallies[self.of[at] as usize];
            let old = cluster.domain(tally.level, from);
            let new = cluster.domain(tally.level, to);
            if old == new {
                continue;
            }
            let there = |of: &Tally, domain: DomainIx| {
                let members = cluster.groups[of.group.ix()].members.iter().map(|of| of.ix());
                let is_there = |of: &usize| {
                    *of != replica
                        && node_of(*of)
                            .is_some_and(|node| cluster.domain(tally.level, node) == domain)
                };
                members.filter(is_there).collect::<Vec<usize>>()
            };
            if tally.counts.of(new) > tally.per_domain {
                found.extend(there(tally, new).first().map(|other| (*other, from)));
            }
            for needed in tally.needs.iter().map(|of| &self.tallies[*of]) {
                if needed.counts.of(new) == 0 {
                    found.push((*there(needed, old).first()?, to));
                }
            }
            if tally.counts.of(old) == 0 {
                for dependent in tally.needed_by.iter().map(|of| &self.tallies[*of]) {
                    if dependent.counts.of(old) > 0 {
                        found.extend(there(dependent, old).into_iter().map(|of| (of, to)));
                    }
                }
            }
            if tally.used < tally.at_least
                || tally.used > tally.at_most
                || tally.apart.iter().any(|of| self.tallies[*of].counts.of(new) > 0)
            {
                return None;
            }
        }
        Some(found)
    }

    /// Whether a tally counts a replica: then the replica meets the need of it itself.
    fn counts(&self, tally: usize, replica: usize) -> bool {
        self.of[self.of(replica)].iter().any(|of| *of as usize == tally)
    }

    /// Members by domain, of all tallies, in an order that no move changes.
    #[cfg(test)]
    pub(crate) fn all_counts(&self) -> Vec<(u32, BTreeMap<usize, u32>)> {
        let of = |tally: &Tally| match &tally.counts {
            Counts::List(list) => list.iter().map(|(at, count)| (at.ix(), *count)).collect(),
            Counts::Array(array) => array.iter().copied().enumerate().collect(),
        };
        self.tallies.iter().map(|tally| (tally.used, of(tally))).collect()
    }

    /// Whether a move that `allow` allows mends what is broken about a replica, or a part of it: it does
    /// not stay in a domain where a rule about it is broken.
    pub(crate) fn mends(
        &self,
        cluster: &Cluster,
        replica: usize,
        from: Option<NodeIx>,
        to: NodeIx,
    ) -> bool {
        self.of(replica).all(|at| {
            let tally = &self.tallies[self.of[at] as usize];
            let new = cluster.domain(tally.level, to);
            let old = from.map(|from| cluster.domain(tally.level, from));
            let stays = old == Some(new);
            let (there, is_last) = (tally.counts.of(new), old.map(|old| tally.counts.of(old) == 1));
            let comes = u32::from(!stays && there == 0);
            let used = tally.used + comes - u32::from(!stays && is_last == Some(true));
            (!stays || there <= tally.per_domain)
                && (used >= tally.at_least || used > tally.used)
                && (used <= tally.at_most || used < tally.used)
                && (!stays || tally.needs.iter().all(|of| self.tallies[*of].counts.of(new) > 0))
                && (!stays || tally.apart.iter().all(|of| self.tallies[*of].counts.of(new) == 0))
        })
    }

    /// Whether a replica may only be near others.
    pub(crate) fn has_needs(&self, replica: usize) -> bool {
        self.of(replica).any(|at| !self.tallies[self.of[at] as usize].needs.is_empty())
    }

    /// The replicas that a replica may have to be near.
    pub(crate) fn needed(&self, cluster: &Cluster, replica: usize) -> Vec<usize> {
        let tallies = self.of(replica).map(|at| &self.tallies[self.of[at] as usize]);
        let groups = tallies.flat_map(|tally| &tally.needs).map(|of| self.tallies[*of].group);
        let members = groups.flat_map(|group| &cluster.groups[group.ix()].members);
        members.map(|member| member.ix()).collect()
    }

    /// Whether a replica on a node has none there of those that it must be near.
    pub(crate) fn lacks_needed(&self, cluster: &Cluster, replica: usize, node: NodeIx) -> bool {
        self.of(replica).any(|at| {
            let tally = &self.tallies[self.of[at] as usize];
            let domain = cluster.domain(tally.level, node);
            tally.needs.iter().any(|of| self.tallies[*of].counts.of(domain) == 0)
        })
    }

    /// By how much the rules are broken in all: members too many, domains too many or too few, and domains
    /// that lack a member or have one too near.
    pub(crate) fn broken(&self) -> u64 {
        let of_tally = |tally: &Tally| -> u64 {
            let limits = tally.at_least.saturating_sub(tally.used)
                + tally.used.saturating_sub(tally.at_most);
            let of_domain = |(domain, count): (DomainIx, u32)| {
                let lacks = |of: &&usize| self.tallies[**of].counts.of(domain) == 0;
                let meets = |of: &&usize| self.tallies[**of].counts.of(domain) > 0;
                u64::from(count.saturating_sub(tally.per_domain))
                    + tally.needs.iter().filter(lacks).count() as u64
                    + tally.apart.iter().filter(meets).count() as u64
            };
            let domains = tally.counts.used().into_iter().map(of_domain);
            u64::from(limits) + domains.sum::<u64>()
        };
        self.tallies.iter().map(of_tally).sum()
    }

    /// Whether no rule is about a replica.
    pub(crate) fn is_free(&self, replica: usize) -> bool {
        self.of(replica).is_empty()
    }

    /// The first obstacle to placing a replica without a node on this one.
    pub(crate) fn obstacle(
        &self,
        cluster: &Cluster,
        replica: usize,
        to: NodeIx,
    ) -> Option<Obstacle> {
        self.of[self.of(replica)].iter().find_map(|of| {
            let at = *of as usize;
            let tally = &self.tallies[at];
            let domain = cluster.domain(tally.level, to);
            let count = tally.counts.of(domain);
            let is_absent = |of: &&usize| {
                self.tallies[**of].counts.of(domain) == 0 && !self.counts(**of, replica)
            };
            let is_present = |of: &&usize| self.tallies[**of].counts.of(domain) > 0;
            if count >= tally.per_domain {
                Some(Obstacle { tally: at, domain: Some(domain) })
            } else if count == 0 && tally.used >= tally.at_most {
                Some(Obstacle { tally: at, domain: None })
            } else if let Some(needed) = tally.needs.iter().find(is_absent) {
                Some(Obstacle { tally: *needed, domain: None })
            } else {
                let from = tally.apart.iter().find(is_present)?;
                Some(Obstacle { tally: *from, domain: Some(domain) })
            }
        })
    }

    /// The replicas of which one must move, or be placed, before an obstacle is gone.
    pub(crate) fn in_the_way(
        &self,
        cluster: &Cluster,
        obstacle: Obstacle,
        node_of: impl Fn(usize) -> Option<NodeIx>,
    ) -> Vec<usize> {
        let tally = &self.tallies[obstacle.tally];
        let members = cluster.groups[tally.group.ix()].members.iter().map(|member| member.ix());
        let counts = |member: &usize| {
            obstacle.domain.is_none_or(|domain| {
                node_of(*member).is_some_and(|node| cluster.domain(tally.level, node) == domain)
            })
        };
        members.filter(counts).collect()
    }

    /// The replicas of which one must move because a rule about this one, on its node, is broken;
    /// empty if none is.
    pub(crate) fn to_move(
        &self,
        cluster: &Cluster,
        replica: usize,
        node: NodeIx,
        node_of: impl Fn(usize) -> Option<NodeIx>,
    ) -> Vec<usize> {
        for at in self.of(replica) {
            let tally = &self.tallies[self.of[at] as usize];
            let domain = cluster.domain(tally.level, node);
            let members = |tally: &Tally, is: &dyn Fn(DomainIx) -> bool| -> Vec<usize> {
                let members = cluster.groups[tally.group.ix()].members.iter();
                let members = members.map(|member| member.ix());
                let there = |member: &usize| {
                    node_of(*member).is_some_and(|node| is(cluster.domain(tally.level, node)))
                };
                members.filter(there).collect()
            };
            if tally.counts.of(domain) > tally.per_domain {
                return members(tally, &|at| at == domain);
            }
            if tally.used < tally.at_least {
                // While members have no node the list may be empty; another rule may still be broken.
                let found = members(tally, &|at| tally.counts.of(at) > 1);
                if !found.is_empty() {
                    return found;
                }
            }
            if tally.used > tally.at_most {
                return members(tally, &|_| true);
            }
            for needed in &tally.needs {
                let needed = &self.tallies[*needed];
                if needed.counts.of(domain) == 0 {
                    let mut found = members(needed, &|_| true);
                    found.insert(0, replica);
                    return found;
                }
            }
            for from in &tally.apart {
                let from = &self.tallies[*from];
                if from.counts.of(domain) > 0 {
                    let mut found = members(tally, &|at| at == domain);
                    found.extend(members(from, &|at| at == domain));
                    return found;
                }
            }
        }
        Vec::new()
    }
}

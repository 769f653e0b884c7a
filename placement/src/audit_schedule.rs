//! Checks a schedule phase by phase, from scratch and by code that the scheduler does not use.

use crate::cluster::{
    Amount, Assignment, Cluster, DomainIx, GroupIx, LevelIx, NodeIx, NodeState, ReplicaIx, Role,
    Rule,
};
use crate::schedule::{MoveKind, Overlap, Schedule, ScheduledMove};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is wrong with a schedule. Phases count from 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "flaw", rename_all = "snake_case")]
pub enum ScheduleFlaw {
    /// A move does not start where its replica is, or its kind is not what happens.
    WrongMove {
        /// The phase.
        phase: usize,
        /// The replica.
        replica: String,
    },
    /// A replica goes to a node that may not run it.
    Excluded {
        /// The phase.
        phase: usize,
        /// The replica.
        replica: String,
        /// The node.
        node: String,
    },
    /// Something is put onto a node that is over its capacity.
    OntoOverloaded {
        /// The phase.
        phase: usize,
        /// The node.
        node: String,
    },
    /// The demand on a node exceeds its capacity, or gets worse.
    Capacity {
        /// The phase.
        phase: usize,
        /// The node.
        node: String,
        /// The metric.
        metric: String,
        /// What is needed, of moving replicas on both nodes.
        demand: Amount,
        /// What the node has.
        capacity: Amount,
    },
    /// A rule is broken, or more so than before.
    Rule {
        /// The phase.
        phase: usize,
        /// The rule's group.
        group: String,
        /// The level.
        level: String,
    },
    /// The phases do not end at the assignment.
    Unreached {
        /// The replica.
        replica: String,
    },
}

impl fmt::Display for ScheduleFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleFlaw::WrongMove { phase, replica } => {
                write!(f, "phase {phase}: the move of replica {replica} does not match its place")
            }
            ScheduleFlaw::Excluded { phase, replica, node } => {
                write!(f, "phase {phase}: replica {replica} may not run on node {node}")
            }
            ScheduleFlaw::OntoOverloaded { phase, node } => {
                write!(f, "phase {phase}: node {node} is over its capacity and takes a replica")
            }
            ScheduleFlaw::Capacity { phase, node, metric, demand, capacity } => {
                write!(f, "phase {phase}: node {node}: {metric} {demand} of {capacity}")
            }
            ScheduleFlaw::Rule { phase, group, level } => {
                write!(f, "phase {phase}: a rule about {group} at level {level} is broken")
            }
            ScheduleFlaw::Unreached { replica } => {
                write!(f, "replica {replica} does not reach its node")
            }
        }
    }
}

/// What is wrong with a schedule of an assignment; empty if each phase can be done and the last one ends
/// at the assignment. Replicas in `Schedule::stuck` need not reach their nodes.
pub fn audit_schedule(
    cluster: &Cluster,
    assignment: &Assignment,
    schedule: &Schedule,
) -> Vec<ScheduleFlaw> {
    assert_eq!(assignment.len(), cluster.replicas.len(), "one node for each replica");
    let mut found = Vec::new();
    let mut at: Assignment = cluster.today();
    for node in &mut at {
        *node = node.filter(|node| cluster.nodes[node.ix()].state != NodeState::Down);
    }
    for (phase, moves) in (1..).zip(&schedule.phases) {
        let of_replica = moves.iter().map(|of| (of.replica, of)).collect();
        let overlap = schedule.overlap;
        let check = Check { cluster, phase, moves, of_replica, before: &at, overlap };
        check.moves(&mut found);
        let mut after = at.clone();
        for of in moves {
            after[of.replica.ix()] = Some(of.to);
        }
        check.capacity(&after, &mut found);
        for rule in cluster.rules.iter().filter(|rule| check.concerns(rule)) {
            check.rule(rule, &after, &mut found);
        }
        at = after;
    }
    let stuck: BTreeSet<&str> = schedule.stuck.iter().map(|of| of.replica.as_str()).collect();
    for (position, replica) in cluster.replicas.iter().enumerate() {
        let reached = match assignment[position] {
            Some(to) => at[position] == Some(to) || replica.node == Some(to),
            None => true,
        };
        if !reached && !stuck.contains(replica.name.as_str()) {
            found.push(ScheduleFlaw::Unreached { replica: replica.name.clone() });
        }
    }
    found
}

/// A phase and what it starts from.
struct Check<'c> {
    cluster: &'c Cluster,
    phase: usize,
    moves: &'c [ScheduledMove],
    of_replica: BTreeMap<ReplicaIx, &'c ScheduledMove>,
    before: &'c Assignment,
    overlap: Overlap,
}

impl Check<'_> {
    /// The other half of a swap of roles.
    fn partner(&self, of: &ScheduledMove) -> Option<&ScheduledMove> {
        if of.kind != MoveKind::Swap {
            return None;
        }
        let is_back = |other: &&ScheduledMove| {
            let back = other.from == Some(of.to) && of.from == Some(other.to);
            back && other.kind == MoveKind::Swap
        };
        let partner = self.moves.iter().find(is_back)?;
        let roles = [of, partner].map(|of| self.cluster.replicas[of.replica.ix()].role);
        let services = [of, partner].map(|of| self.cluster.replicas[of.replica.ix()].service);
        let are = roles.contains(&Role::Primary) && roles.contains(&Role::Secondary);
        (are && services[0] == services[1]).then_some(partner)
    }

    fn moves(&self, found: &mut Vec<ScheduleFlaw>) {
        let phase = self.phase;
        let mut moved = BTreeSet::new();
        for of in self.moves {
            let replica = &self.cluster.replicas[of.replica.ix()];
            let name = || replica.name.clone();
            let here = self.before[of.replica.ix()];
            let kind_holds = match of.kind {
                MoveKind::Move | MoveKind::Detour => here.is_some() && here == of.from,
                MoveKind::New => here.is_none() && of.from.is_none() && replica.node.is_none(),
                MoveKind::Replace => here.is_none() && of.from.is_some() && of.from == replica.node,
                MoveKind::Swap => here == of.from && self.partner(of).is_some(),
            };
            if !kind_holds || here == Some(of.to) || !moved.insert(of.replica) {
                found.push(ScheduleFlaw::WrongMove { phase, replica: name() });
            }
            let service = &self.cluster.services[replica.service.ix()];
            let node = &self.cluster.nodes[of.to.ix()];
            let allowed = service.allowed.as_ref().is_none_or(|allowed| allowed[of.to.ix()]);
            if node.state != NodeState::Up || !allowed {
                let node = node.name.clone();
                found.push(ScheduleFlaw::Excluded { phase, replica: name(), node });
            }
        }
    }

    fn usage(&self, of: &Assignment) -> Vec<Vec<Amount>> {
        let mut usage = vec![vec![0; self.cluster.metrics.len()]; self.cluster.nodes.len()];
        for (replica, node) in self.cluster.replicas.iter().zip(of) {
            if let Some(node) = node {
                for (sum, demand) in usage[node.ix()].iter_mut().zip(&replica.demand) {
                    *sum += demand;
                }
            }
        }
        usage
    }

    fn capacity(&self, after: &Assignment, found: &mut Vec<ScheduleFlaw>) {
        let (cluster, phase) = (self.cluster, self.phase);
        let (before, after) = (self.usage(self.before), self.usage(after));
        let mut running = before.clone();
        let mut takes = vec![false; cluster.nodes.len()];
        for of in self.moves {
            let demand = &cluster.replicas[of.replica.ix()].demand;
            let partner = self.partner(of).map(|of| &cluster.replicas[of.replica.ix()].demand);
            takes[of.to.ix()] |= partner.is_none();
            for (metric, demand) in demand.iter().enumerate() {
                // A swap of roles needs room for what the new role needs more than the old one.
                let more = partner.map_or(*demand, |partner| (demand - partner[metric]).max(0));
                running[of.to.ix()][metric] += more;
                takes[of.to.ix()] |= more > 0;
            }
        }
        for (position, node) in cluster.nodes.iter().enumerate() {
            let limits = || node.capacity.iter().enumerate().filter_map(|(m, c)| c.map(|c| (m, c)));
            if takes[position] && limits().any(|(metric, c)| before[position][metric] > c) {
                found.push(ScheduleFlaw::OntoOverloaded { phase, node: node.name.clone() });
            }
            for (metric, capacity) in limits() {
                let of_metric = &cluster.metrics[metric];
                let overlaps = of_metric.transient || self.overlap == Overlap::EveryMetric;
                let while_running = running[position][metric];
                let is_short = takes[position] && overlaps && while_running > capacity;
                let after = after[position][metric];
                if is_short || after > capacity.max(before[position][metric]) {
                    found.push(ScheduleFlaw::Capacity {
                        phase,
                        node: node.name.clone(),
                        metric: of_metric.name.clone(),
                        demand: if is_short { while_running } else { after },
                        capacity,
                    });
                }
            }
        }
    }

    fn domain(&self, level: LevelIx, node: NodeIx) -> DomainIx {
        self.cluster.levels[level.ix()].domain_of[node.ix()]
    }

    /// Members by domain.
    fn members(
        &self,
        group: GroupIx,
        level: LevelIx,
        of: &Assignment,
    ) -> BTreeMap<DomainIx, BTreeSet<ReplicaIx>> {
        let mut members: BTreeMap<DomainIx, BTreeSet<ReplicaIx>> = BTreeMap::new();
        for member in &self.cluster.groups[group.ix()].members {
            if let Some(node) = of[member.ix()] {
                members.entry(self.domain(level, node)).or_default().insert(*member);
            }
        }
        members
    }

    /// Members by domain while the phase runs, with those that move in both; and the domains that get one.
    fn while_running(
        &self,
        group: GroupIx,
        level: LevelIx,
    ) -> (BTreeMap<DomainIx, BTreeSet<ReplicaIx>>, BTreeSet<DomainIx>) {
        let mut members = self.members(group, level, self.before);
        let mut gets = BTreeSet::new();
        let all = &self.cluster.groups[group.ix()].members;
        for of in all.iter().filter_map(|member| self.of_replica.get(member)) {
            // A swap within the group leaves it where it is.
            if self.partner(of).is_some_and(|partner| all.contains(&partner.replica)) {
                continue;
            }
            let domain = self.domain(level, of.to);
            if members.entry(domain).or_default().insert(of.replica) {
                gets.insert(domain);
            }
        }
        (members, gets)
    }

    /// Whether the phase moves a member of a group that a rule is about: no other rule can get worse.
    fn concerns(&self, rule: &Rule) -> bool {
        let (group, other) = match *rule {
            Rule::PerDomain { group, .. }
            | Rule::AtLeast { group, .. }
            | Rule::AtMost { group, .. } => (group, group),
            Rule::Near { group, to: other, .. } | Rule::Apart { group, from: other, .. } => {
                (group, other)
            }
        };
        let moves = |of: GroupIx| {
            let mut members = self.cluster.groups[of.ix()].members.iter();
            members.any(|member| self.of_replica.contains_key(member))
        };
        moves(group) || moves(other)
    }

    fn rule(&self, rule: &Rule, after: &Assignment, found: &mut Vec<ScheduleFlaw>) {
        let (group, level, holds) = match *rule {
            Rule::PerDomain { group, level, most } => {
                let (members, gets) = self.while_running(group, level);
                let holds = gets.iter().all(|domain| members[domain].len() <= most as usize);
                (group, level, holds)
            }
            Rule::Apart { group, from, level } => {
                let (ours, ours_get) = self.while_running(group, level);
                let (theirs, theirs_get) = self.while_running(from, level);
                let has = |of: &BTreeMap<DomainIx, BTreeSet<ReplicaIx>>, domain: &DomainIx| {
                    of.get(domain).is_some_and(|members| !members.is_empty())
                };
                let mut gets = ours_get.union(&theirs_get);
                (group, level, !gets.any(|domain| has(&ours, domain) && has(&theirs, domain)))
            }
            Rule::AtLeast { group, level, least } => {
                let before = self.members(group, level, self.before).len();
                let after = self.members(group, level, after).len();
                (group, level, after >= before.min(least as usize))
            }
            Rule::AtMost { group, level, most } => {
                let before = self.members(group, level, self.before).len();
                let after = self.members(group, level, after).len();
                (group, level, after <= before.max(most as usize))
            }
            Rule::Near { group, to, level } => {
                let had = self.members(group, level, self.before);
                let had_need = self.members(to, level, self.before);
                let has = self.members(group, level, after);
                let has_need = self.members(to, level, after);
                let (_, gets) = self.while_running(group, level);
                let mut lacking = has.keys().filter(|domain| !has_need.contains_key(domain));
                let holds = lacking.all(|domain| {
                    had.contains_key(domain)
                        && !had_need.contains_key(domain)
                        && !gets.contains(domain)
                });
                (group, level, holds)
            }
        };
        if !holds {
            found.push(ScheduleFlaw::Rule {
                phase: self.phase,
                group: self.cluster.groups[group.ix()].name.clone(),
                level: self.cluster.levels[level.ix()].name.clone(),
            });
        }
    }
}

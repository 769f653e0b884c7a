//! The moves that can be in each other's way, and what each of them changes.

use super::Overlap;
use crate::cluster::{Amount, Cluster, DomainIx, GroupIx, LevelIx, NodeIx, Rule};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A replica that goes to another node. `from` is a node that holds it: lost and new replicas have none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shift {
    pub(super) replica: usize,
    pub(super) from: Option<NodeIx>,
    pub(super) to: NodeIx,
}

/// What is done at once: a move, or two replicas that exchange their roles.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    pub(super) shifts: Vec<Shift>,
    /// Whether it ends on a node in between; the leg after it in the list goes on from there.
    pub(super) detour: bool,
}

/// What a leg does to a node.
#[derive(Clone, Debug)]
pub(super) struct OnNode {
    /// Position in `Board::nodes`.
    pub(super) node: usize,
    /// What counts while the leg runs beside what is there, by metric.
    pub(super) extra: Vec<Amount>,
    /// By how much the demand changes when it ends.
    pub(super) change: Vec<Amount>,
    /// Whether something is put onto the node.
    pub(super) puts: bool,
}

/// A member of a counted group that goes from one domain to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnCounter {
    pub(super) counter: usize,
    /// Positions in `Counter::domains`.
    pub(super) old: Option<usize>,
    pub(super) new: usize,
}

/// What a leg does.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    pub(super) nodes: Vec<OnNode>,
    pub(super) counters: Vec<OnCounter>,
    /// The leg that must have ended in an earlier phase.
    pub(super) after: Option<usize>,
}

/// The members of a group by domain of a level, with the rules that read them.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    pub(super) group: GroupIx,
    pub(super) level: LevelIx,
    /// The domains that legs touch, the same for all counters of a level.
    pub(super) domains: Rc<[DomainIx]>,
    pub(super) per_domain: u32,
    pub(super) at_least: u32,
    pub(super) at_most: u32,
    /// Counters that must have a member where this one has one, and the reverse.
    pub(super) needs: Vec<usize>,
    pub(super) needed_by: Vec<usize>,
    /// Counters that must have no member where this one has one.
    pub(super) apart: Vec<usize>,
    /// Members by domain before the first phase, and domains with a member.
    pub(super) members: Vec<u32>,
    pub(super) used: u32,
}

/// A node that legs touch.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) node: NodeIx,
    /// `Amount::MAX` is without limit.
    pub(super) capacity: Vec<Amount>,
    /// Demand before the first phase.
    pub(super) usage: Vec<Amount>,
}

/// Legs with everything that they touch.
#[derive(Clone, Debug)]
pub(super) struct Board<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) legs: Vec<Leg>,
    pub(super) effects: Vec<Effect>,
    pub(super) nodes: Vec<Place>,
    pub(super) counters: Vec<Counter>,
    /// Whether a metric counts on both nodes.
    pub(super) overlaps: Vec<bool>,
}

/// What legs of all parts need to know of the cluster before the first phase.
pub(super) struct Start<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) overlap: Overlap,
    /// The node that holds each replica.
    pub(super) at: Vec<Option<NodeIx>>,
    /// Demand by node and metric.
    pub(super) usage: Vec<Vec<Amount>>,
    /// Groups that rules are about, by replica.
    groups: Vec<Vec<GroupIx>>,
    /// Positions of the rules about a group.
    rules: BTreeMap<GroupIx, Vec<usize>>,
    /// Members of groups by domain, of those that a board asked for: many boards are made from one start.
    members: RefCell<BTreeMap<(GroupIx, LevelIx), Rc<Members>>>,
}

/// Domains where a group has members, with their number.
type Members = [(DomainIx, u32)];

fn groups_of(rule: &Rule) -> Vec<GroupIx> {
    match *rule {
        Rule::PerDomain { group, .. }
        | Rule::AtLeast { group, .. }
        | Rule::AtMost { group, .. } => vec![group],
        Rule::Near { group, to: other, .. } | Rule::Apart { group, from: other, .. } => {
            vec![group, other]
        }
    }
}

impl<'a> Start<'a> {
    pub(super) fn new(cluster: &'a Cluster, overlap: Overlap, at: Vec<Option<NodeIx>>) -> Self {
        let mut usage = vec![vec![0; cluster.metrics.len()]; cluster.nodes.len()];
        for (replica, node) in cluster.replicas.iter().zip(&at) {
            let Some(node) = node else { continue };
            for (used, demand) in usage[node.ix()].iter_mut().zip(&replica.demand) {
                *used += demand;
            }
        }
        let mut rules: BTreeMap<GroupIx, Vec<usize>> = BTreeMap::new();
        for (position, rule) in cluster.rules.iter().enumerate() {
            for group in groups_of(rule) {
                rules.entry(group).or_default().push(position);
            }
        }
        let mut groups = vec![Vec::new(); cluster.replicas.len()];
        for group in rules.keys() {
            for member in &cluster.groups[group.ix()].members {
                groups[member.ix()].push(*group);
            }
        }
        Start { cluster, overlap, at, usage, groups, rules, members: RefCell::default() }
    }

    pub(super) fn groups_of(&self, replica: usize) -> &[GroupIx] {
        &self.groups[replica]
    }

    /// Whether no two members of a group may share a node.
    pub(super) fn is_one_per_node(&self, of: GroupIx) -> bool {
        let rules = self.rules.get(&of).into_iter().flatten().map(|rule| self.cluster.rules[*rule]);
        let one = Rule::PerDomain { group: of, level: LevelIx::NODE, most: 1 };
        rules.into_iter().any(|rule| rule == one)
    }

    /// Groups that a rule about this one names.
    pub(super) fn neighbours(&self, group: GroupIx) -> impl Iterator<Item = GroupIx> {
        let rules = self.rules.get(&group).into_iter().flatten();
        rules.flat_map(|rule| groups_of(&self.cluster.rules[*rule]))
    }

    /// The board of some legs, which no other leg can be in the way of.
    pub(super) fn board(&self, legs: &[Leg]) -> Board<'a> {
        let cluster = self.cluster;
        let shifts = || legs.iter().flat_map(|leg| &leg.shifts);
        let touched: BTreeSet<NodeIx> =
            shifts().flat_map(|shift| [Some(shift.to), shift.from]).flatten().collect();
        let nodes = touched.iter().map(|node| Place {
            node: *node,
            capacity: (cluster.nodes[node.ix()].capacity.iter())
                .map(|limit| limit.unwrap_or(Amount::MAX))
                .collect(),
            usage: self.usage[node.ix()].clone(),
        });
        let mut board = Board {
            cluster,
            legs: legs.to_vec(),
            effects: Vec::new(),
            nodes: nodes.collect(),
            counters: Vec::new(),
            overlaps: (cluster.metrics.iter())
                .map(|metric| metric.transient || self.overlap == Overlap::EveryMetric)
                .collect(),
        };
        self.count(&mut board, &touched, shifts().map(|shift| shift.replica));
        let mut by_group: BTreeMap<GroupIx, Vec<usize>> = BTreeMap::new();
        for (at, counter) in board.counters.iter().enumerate() {
            by_group.entry(counter.group).or_default().push(at);
        }
        let effects = legs.iter().enumerate().map(|(at, leg)| {
            let goes_on = at.checked_sub(1).filter(|before| legs[*before].detour);
            self.effect(&board, &by_group, leg, goes_on)
        });
        board.effects = effects.collect();
        board
    }

    /// Adds the counters that the rules about some replicas read.
    fn count(
        &self,
        board: &mut Board,
        touched: &BTreeSet<NodeIx>,
        replicas: impl Iterator<Item = usize>,
    ) {
        let groups: BTreeSet<GroupIx> =
            replicas.flat_map(|replica| self.groups[replica].iter().copied()).collect();
        let rules: BTreeSet<usize> =
            groups.iter().flat_map(|group| &self.rules[group]).copied().collect();
        let mut known = BTreeMap::new();
        let mut domains: BTreeMap<LevelIx, Rc<[DomainIx]>> = BTreeMap::new();
        for rule in rules {
            let mut counter = |group, level| {
                *known.entry((group, level)).or_insert_with(|| {
                    let domains = domains.entry(level).or_insert_with(|| {
                        let of = touched.iter().map(|node| self.cluster.domain(level, *node));
                        of.collect::<BTreeSet<_>>().into_iter().collect()
                    });
                    board.counters.push(self.counter(group, level, domains));
                    board.counters.len() - 1
                })
            };
            match self.cluster.rules[rule] {
                Rule::PerDomain { group, level, most } => {
                    let of = counter(group, level);
                    let limit = &mut board.counters[of].per_domain;
                    *limit = most.min(*limit);
                }
                Rule::AtLeast { group, level, least } => {
                    let of = counter(group, level);
                    let limit = &mut board.counters[of].at_least;
                    *limit = least.max(*limit);
                }
                Rule::AtMost { group, level, most } => {
                    let of = counter(group, level);
                    let limit = &mut board.counters[of].at_most;
                    *limit = most.min(*limit);
                }
                Rule::Near { group, to, level } => {
                    let (of, to) = (counter(group, level), counter(to, level));
                    board.counters[of].needs.push(to);
                    board.counters[to].needed_by.push(of);
                }
                Rule::Apart { group, from, level } => {
                    let (of, from) = (counter(group, level), counter(from, level));
                    board.counters[of].apart.push(from);
                    board.counters[from].apart.push(of);
                }
            }
        }
    }

    /// Members of a group by domain, where there are some.
    fn members(&self, group: GroupIx, level: LevelIx) -> Rc<Members> {
        let count = || {
            let mut members: BTreeMap<DomainIx, u32> = BTreeMap::new();
            for member in &self.cluster.groups[group.ix()].members {
                if let Some(node) = self.at[member.ix()] {
                    *members.entry(self.cluster.domain(level, node)).or_default() += 1;
                }
            }
            members.into_iter().collect()
        };
        Rc::clone(self.members.borrow_mut().entry((group, level)).or_insert_with(count))
    }

    fn counter(&self, group: GroupIx, level: LevelIx, domains: &Rc<[DomainIx]>) -> Counter {
        let found = self.members(group, level);
        let mut members = vec![0; domains.len()];
        for (domain, count) in found.iter() {
            if let Ok(at) = domains.binary_search(domain) {
                members[at] = *count;
            }
        }
        Counter {
            group,
            level,
            per_domain: u32::MAX,
            at_least: 0,
            at_most: u32::MAX,
            needs: Vec::new(),
            needed_by: Vec::new(),
            apart: Vec::new(),
            used: u32::try_from(found.len()).unwrap_or(u32::MAX),
            members,
            domains: Rc::clone(domains),
        }
    }

    fn effect(
        &self,
        board: &Board,
        by_group: &BTreeMap<GroupIx, Vec<usize>>,
        leg: &Leg,
        after: Option<usize>,
    ) -> Effect {
        let metrics = self.cluster.metrics.len();
        let mut nodes: BTreeMap<usize, OnNode> = BTreeMap::new();
        let mut counters = Vec::new();
        for shift in &leg.shifts {
            let demand = &self.cluster.replicas[shift.replica].demand;
            let here = Some((shift.to, 1)).into_iter().chain(shift.from.map(|from| (from, -1)));
            for (node, sign) in here {
                let node = board.nodes.partition_point(|place| place.node < node);
                let on = nodes.entry(node).or_insert_with(|| OnNode {
                    node,
                    extra: vec![0; metrics],
                    change: vec![0; metrics],
                    puts: false,
                });
                on.puts |= sign > 0;
                for (change, demand) in on.change.iter_mut().zip(demand) {
                    *change += sign * demand;
                }
            }
            for group in &self.groups[shift.replica] {
                // Two members that exchange their nodes change nothing for their group.
                let members = |of: &Shift| self.groups[of.replica].contains(group);
                if leg.shifts.len() > 1 && leg.shifts.iter().all(members) {
                    continue;
                }
                for counter in by_group.get(group).into_iter().flatten() {
                    let of = &board.counters[*counter];
                    let slot = |node| {
                        let domain = self.cluster.domain(of.level, node);
                        of.domains.partition_point(|at| *at < domain)
                    };
                    let (old, new) = (shift.from.map(slot), slot(shift.to));
                    if old != Some(new) {
                        counters.push(OnCounter { counter: *counter, old, new });
                    }
                }
            }
        }
        // Of a swap only what the node gets more than it loses counts; a node that gets no more of
        // anything is not put upon.
        for on in nodes.values_mut() {
            on.extra = on.change.iter().map(|change| (*change).max(0)).collect();
            on.puts &= leg.shifts.len() == 1 || on.extra.iter().any(|extra| *extra > 0);
        }
        Effect { nodes: nodes.into_values().collect(), counters, after }
    }
}

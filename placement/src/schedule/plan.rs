//! Independent parts, detours, and the result.

use super::board::{Leg, Shift, Start};
use super::solve::{Solved, solve};
use super::stuck::{Blocker, Stuck, reasons, stuck};
use super::{MoveKind, Overlap, Schedule, ScheduledMove};
use crate::cluster::{Assignment, Cluster, GroupIx, NodeIx, NodeState, ReplicaIx, Role};
use std::collections::{BTreeMap, BTreeSet};

/// Phases that the exact search looks at: for a part, for all, and for each detour that is tried.
const STEPS: u64 = 20_000;
const ALL_STEPS: u64 = 400_000;
const DETOUR_STEPS: u64 = 300;
/// Legs of a part whose detours are chosen together. Of a larger part what can be done is done first.
const SMALL: usize = 24;
/// Detours that are tried for a part, and how many of them at once.
const TRIES: usize = 400;
const DETOURS: usize = 3;
/// Legs in all tries of a part that is not small, and in all of all parts.
const LARGE_WORK: usize = 20_000;
const ALL_WORK: usize = 1_000_000;
/// Nodes in between that are tried for a move.
const BETWEEN: usize = 24;

/// Moves that no other move can be in the way of, with what they can do.
struct Part {
    legs: Vec<Leg>,
    solved: Solved,
    bound: usize,
}

/// What is left of the work that a plan may take.
struct Work {
    steps: u64,
    legs: usize,
}

pub(super) fn plan(cluster: &Cluster, assignment: &Assignment, overlap: Overlap) -> Schedule {
    let today = cluster.replicas.iter();
    let is_lost = |node: &NodeIx| cluster.nodes[node.ix()].state == NodeState::Down;
    let at = today.map(|replica| replica.node.filter(|node| !is_lost(node))).collect();
    let mut start = Start::new(cluster, overlap, at);
    let mut schedule = Schedule { overlap, phases: Vec::new(), bound: 0, stuck: Vec::new() };
    let mut legs = legs(&start, assignment, &mut schedule.stuck);
    let mut work = Work { steps: ALL_STEPS, legs: ALL_WORK };
    let mut is_first = true;
    // Large parts are done as far as they can be, then what is left of them starts from there.
    while !legs.is_empty() {
        let parts = round(&start, legs, &mut work);
        let before = schedule.phases.len();
        for part in &parts {
            for (at, phase) in part.solved.phases.iter().enumerate() {
                if schedule.phases.len() == before + at {
                    schedule.phases.push(Vec::new());
                }
                let moves = phase.iter().flat_map(|leg| moves(&start, &part.legs[*leg]));
                schedule.phases[before + at].extend(moves);
            }
            if is_first {
                schedule.bound = schedule.bound.max(part.bound);
            }
        }
        is_first = false;
        let goes_on = |part: &&Part| {
            !part.solved.rest.is_empty()
                && !part.solved.phases.is_empty()
                && part.legs.len() > SMALL
        };
        let (open, stuck): (Vec<&Part>, Vec<&Part>) = parts.iter().partition(goes_on);
        for part in stuck.into_iter().filter(|part| !part.solved.rest.is_empty()) {
            schedule.stuck.extend(reasons(&start.board(&part.legs), &part.solved));
        }
        let mut at = std::mem::take(&mut start.at);
        for of in schedule.phases[before..].iter().flatten() {
            at[of.replica.ix()] = Some(of.to);
        }
        legs = open.into_iter().flat_map(|part| left(part, &at)).collect();
        start = Start::new(cluster, overlap, at);
    }
    schedule.stuck.sort_by(|one, other| one.replica.cmp(&other.replica));
    schedule
}

/// Solves the independent parts of some legs, with detours where that takes some.
fn round(start: &Start, legs: Vec<Leg>, work: &mut Work) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for legs in parts_of(start, legs) {
        let solved = solve(&start.board(&legs), STEPS.min(work.steps));
        work.steps -= solved.steps;
        parts.push(Part { bound: solved.bound, legs, solved });
    }
    for part in 0..parts.len() {
        let Part { legs, solved, .. } = &parts[part];
        // A large part goes on from where it is stuck, if it has done something.
        if !solved.rest.is_empty() && (legs.len() <= SMALL || solved.phases.is_empty()) {
            detour(start, &mut parts, part, work);
        }
    }
    parts
}

/// What a part has not done, from where its replicas are then.
fn left<'p>(part: &'p Part, at: &'p [Option<NodeIx>]) -> impl Iterator<Item = Leg> + 'p {
    let rest = part.solved.rest.iter().map(|leg| &part.legs[*leg]);
    rest.filter(|leg| !leg.detour).map(|leg| Leg {
        shifts: leg.shifts.iter().map(|of| Shift { from: at[of.replica], ..*of }).collect(),
        detour: false,
    })
}

fn moves<'s>(start: &'s Start, leg: &'s Leg) -> impl Iterator<Item = ScheduledMove> + 's {
    leg.shifts.iter().map(|shift| {
        let today = start.cluster.replicas[shift.replica].node;
        let kind = match shift.from {
            _ if leg.shifts.len() > 1 => MoveKind::Swap,
            _ if leg.detour => MoveKind::Detour,
            Some(_) => MoveKind::Move,
            None if today.is_some() => MoveKind::Replace,
            None => MoveKind::New,
        };
        ScheduledMove {
            replica: ReplicaIx::new(shift.replica),
            from: shift.from.or(today),
            to: shift.to,
            kind,
        }
    })
}

/// The moves of an assignment, and swaps of roles; moves to nodes that may not run the replica are stuck.
fn legs(start: &Start, assignment: &Assignment, excluded: &mut Vec<Stuck>) -> Vec<Leg> {
    let cluster = start.cluster;
    let mut legs: Vec<Leg> = Vec::new();
    let mut swapped: BTreeSet<usize> = BTreeSet::new();
    let moves = |replica: usize| {
        let to = assignment[replica].filter(|to| cluster.replicas[replica].node != Some(*to))?;
        Some(Shift { replica, from: start.at[replica], to })
    };
    for shift in (0..cluster.replicas.len()).filter_map(moves) {
        let leg = Leg { shifts: vec![shift], detour: false };
        if !cluster.may_run(ReplicaIx::new(shift.replica), shift.to) {
            let node = cluster.nodes[shift.to.ix()].name.clone();
            excluded.extend(stuck(cluster, &leg, &Blocker::Excluded { node }, &[]));
            continue;
        }
        let partner = partner(start, shift.replica, |other| {
            let back =
                moves(other).filter(|back| cluster.may_run(ReplicaIx::new(other), back.to))?;
            (back.from == Some(shift.to) && Some(back.to) == shift.from).then_some(back)
        });
        match partner {
            Some(back) => {
                swapped.extend([shift.replica, back.replica]);
                legs.push(Leg { shifts: vec![shift, back], detour: false });
            }
            None => legs.push(leg),
        }
    }
    legs.retain(|leg| leg.shifts.len() > 1 || !swapped.contains(&leg.shifts[0].replica));
    legs
}

/// The secondary of a primary's partition that goes where the primary is, and the reverse.
fn partner(
    start: &Start,
    primary: usize,
    exchanges: impl Fn(usize) -> Option<Shift>,
) -> Option<Shift> {
    let replicas = &start.cluster.replicas;
    if replicas[primary].role != Role::Primary {
        return None;
    }
    let members = |group: &GroupIx| &start.cluster.groups[group.ix()].members;
    // A partition: replicas of one service that never share a node, with one primary.
    let is_partition = |group: &&GroupIx| {
        let of = members(group).iter().map(|member| &replicas[member.ix()]);
        start.is_one_per_node(**group)
            && of.clone().all(|of| of.service == replicas[primary].service)
            && of.filter(|of| of.role == Role::Primary).count() == 1
    };
    let groups = start.groups_of(primary).iter().filter(is_partition);
    let partition = groups.min_by_key(|group| members(group).len())?;
    let others = members(partition).iter().map(|member| member.ix());
    let mut secondaries = others.filter(|other| replicas[*other].role == Role::Secondary);
    secondaries.find_map(exchanges)
}

/// Legs by part: legs that share a node, or a group that a rule is about, are in one.
fn parts_of(start: &Start, legs: Vec<Leg>) -> Vec<Vec<Leg>> {
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Shared {
        Node(NodeIx),
        Group(GroupIx),
    }
    let mut parent: Vec<usize> = (0..legs.len()).collect();
    fn root(parent: &mut [usize], mut at: usize) -> usize {
        while parent[at] != at {
            parent[at] = parent[parent[at]];
            at = parent[at];
        }
        at
    }
    let mut first: BTreeMap<Shared, usize> = BTreeMap::new();
    for (position, leg) in legs.iter().enumerate() {
        for shift in &leg.shifts {
            let nodes = [Some(shift.to), shift.from].into_iter().flatten().map(Shared::Node);
            let groups = start.groups_of(shift.replica).iter();
            let groups = groups.flat_map(|group| start.neighbours(*group)).map(Shared::Group);
            for shared in nodes.chain(groups) {
                let other = *first.entry(shared).or_insert(position);
                let (one, other) = (root(&mut parent, position), root(&mut parent, other));
                parent[one.max(other)] = one.min(other);
            }
        }
    }
    let mut parts: BTreeMap<usize, Vec<Leg>> = BTreeMap::new();
    for (position, leg) in legs.into_iter().enumerate() {
        parts.entry(root(&mut parent, position)).or_default().push(leg);
    }
    parts.into_values().collect()
}

/// A replica that goes over a node in between.
#[derive(Clone, Copy)]
struct Detour {
    leg: usize,
    over: NodeIx,
    /// The part whose legs touch that node, if it is another one.
    part: Option<usize>,
}

/// Looks for the fewest detours with which all legs of a part can be made, and of these for the fewest
/// phases. For a part that is not small, that most of its legs can be made is enough.
fn detour(start: &Start, parts: &mut [Part], part: usize, work: &mut Work) {
    let options = options(start, parts, part);
    let legs = parts[part].legs.len();
    let is_small = legs <= SMALL;
    let most = if is_small { TRIES } else { (LARGE_WORK / legs).max(1) };
    let left = most.min(work.legs / legs.max(1));
    let best = None;
    let mut tries = Tries { start, parts, part, options: &options, left, best, is_small };
    for count in 1..=if is_small { DETOURS } else { 1 } {
        tries.choose(0, &mut Vec::new(), count);
        if tries.best.is_some() {
            break;
        }
    }
    work.legs -= (left - tries.left) * legs;
    if let Some((detours, mut found)) = tries.best {
        for other in detours.iter().filter_map(|detour| detour.part) {
            parts[other].legs.clear();
            parts[other].solved.phases.clear();
        }
        found.bound = parts[part].bound;
        parts[part] = found;
    }
}

/// Sets of detours, tried one after another.
struct Tries<'s, 'c> {
    start: &'s Start<'c>,
    parts: &'s [Part],
    part: usize,
    options: &'s [Detour],
    left: usize,
    best: Option<(Vec<Detour>, Part)>,
    is_small: bool,
}

impl Tries<'_, '_> {
    /// Tries `count` of the options from `first` on beside those that are chosen.
    fn choose(&mut self, first: usize, chosen: &mut Vec<Detour>, count: usize) {
        if count == 0 {
            self.left = self.left.saturating_sub(1);
            self.attempt(chosen);
            return;
        }
        for (at, option) in self.options.iter().enumerate().skip(first) {
            if self.left == 0 {
                return;
            }
            if chosen.iter().all(|detour| detour.leg != option.leg) {
                chosen.push(*option);
                self.choose(at + 1, chosen, count - 1);
                chosen.pop();
            }
        }
    }

    fn attempt(&mut self, detours: &[Detour]) {
        let legs = detoured(self.parts, self.part, detours);
        let solved = solve(&self.start.board(&legs), DETOUR_STEPS);
        let worth = |of: &Solved| (of.rest.len(), of.phases.len());
        // The leg of the detour alone is no progress.
        let now = self.parts[self.part].solved.rest.len();
        let helps = solved.rest.is_empty() || (!self.is_small && solved.rest.len() < now);
        let best = self.best.as_ref().map(|(_, best)| worth(&best.solved));
        if helps && best.is_none_or(|best| worth(&solved) < best) {
            self.best = Some((detours.to_vec(), Part { legs, solved, bound: 0 }));
        }
    }
}

/// The legs of a part with detours, and those of the parts that these touch.
fn detoured(parts: &[Part], part: usize, detours: &[Detour]) -> Vec<Leg> {
    let mut legs = Vec::new();
    for (at, leg) in parts[part].legs.iter().enumerate() {
        match detours.iter().find(|detour| detour.leg == at) {
            Some(Detour { over, .. }) => {
                let Shift { replica, from, to } = leg.shifts[0];
                let there = Shift { replica, from, to: *over };
                let on = Shift { replica, from: Some(*over), to };
                legs.push(Leg { shifts: vec![there], detour: true });
                legs.push(Leg { shifts: vec![on], detour: false });
            }
            None => legs.push(leg.clone()),
        }
    }
    let others: BTreeSet<usize> = detours.iter().filter_map(|detour| detour.part).collect();
    legs.extend(others.iter().flat_map(|other| parts[*other].legs.iter().cloned()));
    legs
}

/// Detours of a part's legs, of stuck ones first; nodes that no other part touches first.
fn options(start: &Start, parts: &[Part], part: usize) -> Vec<Detour> {
    let cluster = start.cluster;
    let mut touched: BTreeMap<NodeIx, usize> = BTreeMap::new();
    for (of, legs) in parts.iter().map(|part| &part.legs).enumerate() {
        for shift in legs.iter().flat_map(|leg| &leg.shifts) {
            touched.extend([Some(shift.to), shift.from].into_iter().flatten().map(|at| (at, of)));
        }
    }
    let Part { legs, solved, .. } = &parts[part];
    let is_small = |of: usize| parts[of].legs.len() <= SMALL;
    let is_stuck = |leg: &usize| solved.rest.binary_search(leg).is_ok();
    let (rest, others): (Vec<usize>, Vec<usize>) = (0..legs.len()).partition(is_stuck);
    let mut found = Vec::new();
    for leg in rest.into_iter().chain(others) {
        let shift = legs[leg].shifts[0];
        if legs[leg].shifts.len() > 1 || legs[leg].detour || shift.from.is_none() {
            continue;
        }
        let demand = &cluster.replicas[shift.replica].demand;
        let mut nodes: Vec<(u8, NodeIx)> = Vec::new();
        for node in (0..cluster.nodes.len()).map(NodeIx::new) {
            let capacity = cluster.nodes[node.ix()].capacity.iter();
            let fits_beside = |used: &[i64]| {
                let sums = used.iter().zip(demand).map(|(used, demand)| used + demand);
                sums.zip(capacity.clone()).all(|(sum, limit)| limit.is_none_or(|c| sum <= c))
            };
            let rank = match touched.get(&node) {
                None if fits_beside(&start.usage[node.ix()]) => 0,
                Some(of) if *of == part => 1,
                Some(of) if is_small(*of) && parts[*of].solved.rest.is_empty() => 2,
                _ => continue,
            };
            let may = cluster.may_run(ReplicaIx::new(shift.replica), node);
            if may
                && Some(node) != shift.from
                && node != shift.to
                && fits_beside(&vec![0; demand.len()])
            {
                nodes.push((rank, node));
            }
        }
        nodes.sort_unstable();
        let own = |node: &NodeIx| touched.get(node).copied().filter(|of| *of != part);
        let nodes = nodes.into_iter().take(BETWEEN);
        found.extend(nodes.map(|(_, over)| Detour { leg, over, part: own(&over) }));
    }
    found
}

//! Schedules of small random clusters against all orders of their moves, with the rules of a phase
//! written here once more, and scenarios.

use crate::common::{self, Places, Small, has, to};
use placement::{
    Blocker, Builder, Cluster, GroupIx, LevelIx, MoveKind, NodeIx, NodeState, Overlap, Role, Rule,
    Schedule, ServiceIx, audit_schedule, schedule, schedule_with,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

fn small() -> impl Strategy<Value = Small> {
    common::small(common::Shape {
        nodes: 2..=4,
        capacity: [5..13, 4..12],
        states: 3,
        domains: 2,
        replicas: 6,
        demand: [0..6, 0..4],
        placed: [0.85, 1.0],
        excludes: false,
        rules: 2,
    })
}

fn overlap() -> impl Strategy<Value = Overlap> {
    prop_oneof![4 => Just(Overlap::EveryMetric), 1 => Just(Overlap::TransientMetrics)]
}

/// Whether a phase may lead from one state to another.
fn may_follow(of: &Small, overlap: Overlap, before: &Places, after: &Places) -> bool {
    let moved: Vec<usize> = (0..before.len()).filter(|r| before[*r] != after[*r]).collect();
    if moved.iter().any(|r| of.states[after[*r].expect("it goes somewhere")] != 0) {
        return false;
    }
    for node in 0..of.capacities.len() {
        let sum = |at: &Places, second: bool| -> i64 {
            let on = (0..at.len()).filter(|r| at[*r] == Some(node));
            on.map(|r| if second { of.replicas[r].b } else { of.replicas[r].a }).sum()
        };
        let (cap_a, cap_b) = of.capacities[node];
        let arrive: Vec<usize> =
            moved.iter().copied().filter(|r| after[*r] == Some(node)).collect();
        if arrive.is_empty() {
            continue;
        }
        let (a, b) = (sum(before, false), sum(before, true));
        if a > cap_a || b > cap_b {
            return false;
        }
        let more_a: i64 = arrive.iter().map(|r| of.replicas[*r].a).sum();
        let more_b: i64 = arrive.iter().map(|r| of.replicas[*r].b).sum();
        let every = overlap == Overlap::EveryMetric;
        let fits = |both: bool, most: i64, second: bool, cap: i64| {
            if both { most <= cap } else { sum(after, second) <= cap }
        };
        if !fits(every, a + more_a, false, cap_a)
            || !fits(every || of.transient, b + more_b, true, cap_b)
        {
            return false;
        }
    }
    of.rules.iter().all(|rule| {
        let domain = |node: usize| of.domain(rule, node);
        let at = |places: &Places, r: usize| places[r].map(domain);
        let group = |bits: u8| (0..before.len()).filter(move |r| has(bits, *r));
        // A moving member is in both domains.
        let both = |bits: u8, d: usize| {
            group(bits).filter(|r| at(before, *r) == Some(d) || at(after, *r) == Some(d)).count()
        };
        let count = |places: &Places, bits: u8, d: usize| {
            group(bits).filter(|r| at(places, *r) == Some(d)).count()
        };
        let gets = |bits: u8, d: usize| {
            group(bits).any(|r| at(after, r) == Some(d) && at(before, r) != Some(d))
        };
        let all: BTreeSet<usize> = (0..of.domains.len()).map(domain).collect();
        let used =
            |places: &Places| all.iter().filter(|d| count(places, rule.one, **d) > 0).count();
        match rule.kind {
            0 => all.iter().all(|d| !gets(rule.one, *d) || both(rule.one, *d) <= rule.number),
            1 => used(after) >= used(before).min(rule.number),
            2 => used(after) <= used(before).max(rule.number),
            3 => all.iter().all(|d| {
                let fine = count(after, rule.one, *d) == 0 || count(after, rule.other, *d) > 0;
                let as_before = count(before, rule.one, *d) > 0
                    && count(before, rule.other, *d) == 0
                    && !gets(rule.one, *d);
                fine || as_before
            }),
            _ => all.iter().all(|d| {
                let changes = gets(rule.one, *d) || gets(rule.other, *d);
                !changes || both(rule.one, *d) == 0 || both(rule.other, *d) == 0
            }),
        }
    })
}

/// The fewest phases over all orders of the direct moves.
fn fewest(of: &Small, overlap: Overlap) -> Option<usize> {
    let start = of.start();
    let moves: Vec<usize> =
        (0..start.len()).filter(|r| of.replicas[*r].today != of.replicas[*r].to).collect();
    let places = |done: usize| {
        let mut places = start.clone();
        for (bit, replica) in moves.iter().enumerate() {
            if done >> bit & 1 == 1 {
                places[*replica] = of.replicas[*replica].to;
            }
        }
        places
    };
    let all = (1 << moves.len()) - 1;
    let mut phases = BTreeMap::from([(0_usize, 0_usize)]);
    let mut open = VecDeque::from([0]);
    while let Some(done) = open.pop_front() {
        if done == all {
            return Some(phases[&done]);
        }
        for next in (0..=all).filter(|next| next & done == done && *next != done) {
            if !phases.contains_key(&next) && may_follow(of, overlap, &places(done), &places(next))
            {
                phases.insert(next, phases[&done] + 1);
                open.push_back(next);
            }
        }
    }
    None
}

/// The fewest stops in between with which all moves can be made, one for each replica, at most `most`.
fn fewest_stops(of: &Small, overlap: Overlap, most: usize) -> Option<usize> {
    let start = of.start();
    let nodes = of.capacities.len();
    let moves: Vec<usize> =
        (0..start.len()).filter(|r| of.replicas[*r].today != of.replicas[*r].to).collect();
    let goal: Places = (0..start.len())
        .map(|r| if moves.contains(&r) { of.replicas[r].to } else { start[r] })
        .collect();
    (1..=most).find(|limit| {
        let first = (start.clone(), vec![false; start.len()]);
        let mut known = BTreeSet::from([first.clone()]);
        let mut open = vec![first];
        while let Some((at, stopped)) = open.pop() {
            if at == goal {
                return true;
            }
            // Each replica stays, goes to its end, or to a stop: all combinations.
            let mut nexts = vec![(at.clone(), stopped.clone())];
            for r in &moves {
                let mut more = Vec::new();
                for (places, stops) in &nexts {
                    if at[*r] == goal[*r] {
                        continue;
                    }
                    let mut there = places.clone();
                    there[*r] = goal[*r];
                    more.push((there, stops.clone()));
                    let count = stops.iter().filter(|stop| **stop).count();
                    if at[*r].is_some() && !stops[*r] && count < *limit {
                        for node in
                            (0..nodes).filter(|n| Some(*n) != goal[*r] && Some(*n) != at[*r])
                        {
                            let (mut there, mut stops) = (places.clone(), stops.clone());
                            (there[*r], stops[*r]) = (Some(node), true);
                            more.push((there, stops));
                        }
                    }
                }
                nexts.extend(more);
            }
            for next in nexts {
                if next.0 != at && !known.contains(&next) && may_follow(of, overlap, &at, &next.0) {
                    known.insert(next.clone());
                    open.push(next);
                }
            }
        }
        false
    })
}

fn kinds(schedule: &Schedule, kind: MoveKind) -> usize {
    schedule.phases.iter().flatten().filter(|of| of.kind == kind).count()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn schedules_have_the_fewest_phases_of_all_orders(of in small(), overlap in overlap()) {
        let (cluster, to) = (of.builder().build(), of.assignment());
        let made = schedule_with(&cluster, &to, overlap);
        let flaws = audit_schedule(&cluster, &to, &made);
        prop_assert!(flaws.is_empty(), "{:?} {:?}", flaws, made);
        let detours = kinds(&made, MoveKind::Detour);
        match fewest(&of, overlap) {
            Some(phases) => {
                prop_assert!(made.stuck.is_empty() && detours == 0, "{:?}", made);
                prop_assert_eq!(made.phases.len(), phases, "{:?}", made);
                prop_assert_eq!(made.bound, phases);
            }
            None => prop_assert!(!made.stuck.is_empty() || detours > 0, "{:?}", made),
        }
    }

    #[test]
    fn each_state_between_phases_is_reached_by_a_valid_phase(of in small(), overlap in overlap()) {
        let (cluster, to) = (of.builder().build(), of.assignment());
        let made = schedule_with(&cluster, &to, overlap);
        let mut at = of.start();
        for phase in &made.phases {
            let mut next = at.clone();
            for step in phase {
                next[step.replica.ix()] = Some(step.to.ix());
            }
            prop_assert!(may_follow(&of, overlap, &at, &next), "{:?} {:?} {:?}", at, next, made);
            at = next;
        }
        for (position, replica) in cluster.replicas.iter().enumerate() {
            let is_stuck = made.stuck.iter().any(|stuck| stuck.replica == replica.name);
            let there = at[position] == to[position].map(NodeIx::ix) || replica.node == to[position];
            prop_assert!(there != is_stuck, "{:?}", made);
        }
    }

    #[test]
    fn detours_are_as_few_as_can_be(of in small(), overlap in overlap()) {
        if of.replicas.len() > 5 || fewest(&of, overlap).is_some() {
            return Ok(());
        }
        let (cluster, to) = (of.builder().build(), of.assignment());
        let made = schedule_with(&cluster, &to, overlap);
        match fewest_stops(&of, overlap, 3) {
            Some(stops) => {
                prop_assert!(made.stuck.is_empty(), "{} {:?}", stops, made);
                prop_assert_eq!(kinds(&made, MoveKind::Detour), stops);
            }
            None => prop_assert!(!made.stuck.is_empty(), "{:?}", made),
        }
    }

    /// The audit is not satisfied with a schedule that lacks a move, or whose phases are in another order.
    #[test]
    fn audit_finds_what_brute_force_forbids(of in small(), overlap in overlap(), seed in any::<u16>()) {
        let (cluster, to) = (of.builder().build(), of.assignment());
        let mut made = schedule_with(&cluster, &to, overlap);
        if made.phases.len() < 2 || !made.stuck.is_empty() {
            return Ok(());
        }
        let count = made.phases.len();
        let (one, other) = (seed as usize % count, (seed as usize / count) % count);
        made.phases.swap(one, other);
        let mut at = of.start();
        let mut fine = true;
        for phase in &made.phases {
            let mut next = at.clone();
            for step in phase {
                let lost = step.from.is_some_and(|from| of.states[from.ix()] == 2);
                fine &= next[step.replica.ix()] == step.from.map(NodeIx::ix).filter(|_| !lost);
                next[step.replica.ix()] = Some(step.to.ix());
            }
            fine &= may_follow(&of, overlap, &at, &next);
            at = next;
        }
        let flaws = audit_schedule(&cluster, &to, &made);
        prop_assert_eq!(flaws.is_empty(), fine, "{:?} {:?}", flaws, made);
    }
}

fn nodes(count: usize) -> Builder {
    common::nodes(count, "r", 100)
}

/// The replicas of each phase by name, with the nodes that they go to.
fn text(cluster: &Cluster, of: &Schedule) -> Vec<String> {
    let step = |step: &placement::ScheduledMove| {
        let replica = &cluster.replicas[step.replica.ix()].name;
        format!("{replica} to {}", cluster.nodes[step.to.ix()].name)
    };
    of.phases.iter().map(|phase| phase.iter().map(step).collect::<Vec<_>>().join(", ")).collect()
}

/// The example of SIL section 5.1: every node has replicas of 30 %, and one of 80 % is to be placed.
#[test]
fn room_is_made_in_a_phase_before_the_large_replica_is_placed() {
    let cluster = nodes(3)
        .replica("a", Some("n1"), [30])
        .replica("b", Some("n2"), [30])
        .replica("c", Some("n3"), [30])
        .replica("large", None, [80])
        .build();
    let to = to(&[2, 2, 3, 1]);
    let made = schedule(&cluster, &to);
    assert_eq!(text(&cluster, &made), ["a to n2", "large to n1"]);
    assert_eq!((made.bound, audit_schedule(&cluster, &to, &made)), (2, Vec::new()));
}

/// Each waits for the one before it: as many phases as moves.
#[test]
fn a_chain_needs_a_phase_for_each_move() {
    let mut builder = nodes(9);
    for node in 1..9 {
        builder = builder.replica(&format!("r{node}"), Some(&format!("n{node}")), [60]);
    }
    let cluster = builder.build();
    let to = to(&[2, 3, 4, 5, 6, 7, 8, 9]);
    let made = schedule(&cluster, &to);
    assert_eq!((made.phases.len(), made.bound), (8, 8));
    assert_eq!(text(&cluster, &made)[0], "r8 to n9");
}

/// Two large replicas exchange nodes: one goes over a third node, or both are stuck.
#[test]
fn a_circle_is_broken_by_a_detour_or_named() {
    let two = nodes(2).replica("a", Some("n1"), [60]).replica("b", Some("n2"), [60]).build();
    let made = schedule(&two, &to(&[2, 1]));
    assert_eq!(made.phases.len(), 0);
    let said: Vec<String> = made.stuck.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "replica a cannot go to node n2: node n2 has 20 of r too little, until it is left by b",
            "replica b cannot go to node n1: node n1 has 20 of r too little, until it is left by a",
        ]
    );
    let three = nodes(3).replica("a", Some("n1"), [60]).replica("b", Some("n2"), [60]).build();
    let made = schedule(&three, &to(&[2, 1]));
    assert_eq!(text(&three, &made), ["a to n3", "b to n1", "a to n2"]);
    assert_eq!(kinds(&made, MoveKind::Detour), 1);
}

/// In the challenge of 2012 only transient metrics count on both nodes: an exchange is one phase.
#[test]
fn metrics_that_are_not_transient_can_be_exchanged_at_once() {
    let cluster = nodes(2).replica("a", Some("n1"), [60]).replica("b", Some("n2"), [60]).build();
    let made = schedule_with(&cluster, &to(&[2, 1]), Overlap::TransientMetrics);
    assert_eq!(text(&cluster, &made), ["a to n2, b to n1"]);
}

/// Primary and secondary exchange their nodes at once: their roles change, and no rule is in the way.
#[test]
fn a_swap_of_roles_is_one_move() {
    let partition = |roles: [Role; 2]| {
        nodes(2)
            .replica("p", Some("n1"), [90])
            .replica("s", Some("n2"), [40])
            .group("db/0", [0, 1])
            .rule(Rule::PerDomain { group: GroupIx::new(0), level: LevelIx::NODE, most: 1 })
            .with(|cluster| {
                for (replica, role) in cluster.replicas.iter_mut().zip(roles) {
                    (replica.role, replica.service) = (role, ServiceIx::new(0));
                }
            })
            .build()
    };
    let cluster = partition([Role::Primary, Role::Secondary]);
    let made = schedule(&cluster, &to(&[2, 1]));
    assert_eq!((made.phases.len(), kinds(&made, MoveKind::Swap)), (1, 2));
    assert_eq!(audit_schedule(&cluster, &to(&[2, 1]), &made), []);
    // Two secondaries have no roles to exchange.
    let cluster = partition([Role::Secondary, Role::Secondary]);
    assert_eq!(schedule(&cluster, &to(&[2, 1])).stuck.len(), 2);
}

/// Affinity: what must be together moves together. Neither could go alone.
#[test]
fn replicas_that_need_each_other_move_in_one_phase() {
    let (group, to_group) = (GroupIx::new(0), GroupIx::new(1));
    let cluster = nodes(2)
        .replica("child", Some("n1"), [30])
        .replica("parent", Some("n1"), [30])
        .group("child", [0])
        .group("parent", [1])
        .rule(Rule::Near { group, to: to_group, level: LevelIx::NODE })
        .build();
    let made = schedule(&cluster, &to(&[2, 2]));
    assert_eq!(text(&cluster, &made), ["child to n2, parent to n2"]);
}

/// Replicas of a lost node hold nothing there, and an overloaded node takes nothing before it is mended.
#[test]
fn lost_replicas_are_placed_and_overloaded_nodes_take_nothing() {
    let cluster = nodes(3)
        .replica("lost", Some("n1"), [50])
        .replica("a", Some("n2"), [70])
        .replica("b", Some("n2"), [40])
        .with(|cluster| cluster.nodes[0].state = NodeState::Down)
        .build();
    let to = to(&[2, 3, 2]);
    let made = schedule(&cluster, &to);
    assert_eq!(text(&cluster, &made), ["a to n3", "lost to n2"]);
    assert_eq!(kinds(&made, MoveKind::Replace), 1);
    assert_eq!(audit_schedule(&cluster, &to, &made), []);
}

/// A move to a node that may not run the replica is never made.
#[test]
fn moves_to_excluded_nodes_are_stuck() {
    let cluster = nodes(2)
        .replica("a", Some("n1"), [10])
        .with(|cluster| cluster.nodes[1].state = NodeState::Draining)
        .build();
    let made = schedule(&cluster, &to(&[2]));
    assert_eq!(made.stuck[0].why, Blocker::Excluded { node: "n2".to_owned() });
}

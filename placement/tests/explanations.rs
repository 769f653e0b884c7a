//! Explanations of small random clusters against obstacles that are worked out here once more, each change
//! made and tried, and scenarios as sentences.

use crate::common::{self, Places, Small, has, to};
use placement::{
    Assignment, Builder, Cluster, Explanation, Failovers, GroupIx, LevelIx, MoveReason, NodeIx,
    NodeState, NotPlaced, Objective, Outcome, Relaxation, ReplicaIx, Rule, audit, evaluate,
    explain,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn small() -> impl Strategy<Value = Small> {
    let shape = common::Shape {
        nodes: 2..=5,
        capacity: [3..9, 2..8],
        states: 3,
        domains: 3,
        replicas: 8,
        demand: [0..6, 0..4],
        placed: [0.7, 0.7],
        excludes: true,
        rules: 3,
    };
    common::small(shape).prop_map(|small| Small { transient: false, ..small })
}

fn cluster(of: &Small) -> Cluster {
    let levels = vec![LevelIx::new(1)];
    of.builder()
        .objective(Objective::Failovers(Failovers {
            fragmentation: 0.5,
            levels,
            ..Failovers::default()
        }))
        .build()
}

fn places(of: &Assignment) -> Places {
    of.iter().map(|node| node.map(NodeIx::ix)).collect()
}

/// Numbers of the constraints that keep a new replica off a node: 0 to 2 states and exclusion, 3 and 4
/// the metrics, then the rules.
fn obstacles(of: &Small, at: &Places, replica: usize, node: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    match of.states[node] {
        1 => found.insert(0),
        2 => found.insert(1),
        _ => false,
    };
    if !has(of.replicas[replica].allowed, node) {
        found.insert(2);
    }
    let on = || (0..at.len()).filter(|r| *r != replica && at[*r] == Some(node));
    let (a, b) = (of.replicas[replica].a, of.replicas[replica].b);
    if a > 0 && on().map(|r| of.replicas[r].a).sum::<i64>() + a > of.capacities[node].0 {
        found.insert(3);
    }
    if b > 0 && on().map(|r| of.replicas[r].b).sum::<i64>() + b > of.capacities[node].1 {
        found.insert(4);
    }
    for (position, rule) in of.rules.iter().enumerate() {
        let others = |bits: u8| -> Vec<usize> {
            let members = (0..at.len()).filter(|r| *r != replica && has(bits, *r));
            members.filter_map(|r| at[r].map(|node| of.domain(rule, node))).collect()
        };
        let here = of.domain(rule, node);
        let (ours, theirs) = (others(rule.one), others(rule.other));
        let (in_one, in_other) = (has(rule.one, replica), has(rule.other, replica));
        let breaks = match rule.kind {
            0 => in_one && ours.iter().filter(|d| **d == here).count() >= rule.number,
            1 => false,
            2 => {
                let used: BTreeSet<usize> = ours.iter().copied().collect();
                in_one && !used.contains(&here) && used.len() + 1 > rule.number
            }
            3 => in_one && !in_other && !theirs.contains(&here),
            _ => {
                (in_one && (in_other || theirs.contains(&here)))
                    || (in_other && ours.contains(&here))
            }
        };
        if breaks {
            found.insert(5 + position);
        }
    }
    found
}

fn by_node(of: &Small, at: &Places, replica: usize) -> Vec<BTreeSet<usize>> {
    (0..of.capacities.len()).map(|node| obstacles(of, at, replica, node)).collect()
}

/// The least number of constraints that keep the replica off all nodes, over all sets.
fn smallest(by_node: &[BTreeSet<usize>]) -> usize {
    let sets = (0_u32..1 << 8).filter(|set| {
        by_node.iter().all(|obstacles| obstacles.iter().any(|of| set >> of & 1 == 1))
    });
    sets.map(|set| set.count_ones() as usize).min().expect("each node has an obstacle")
}

fn of(cluster: &Cluster, assignment: &Assignment, replica: usize) -> Explanation {
    explain(cluster, assignment, ReplicaIx::new(replica))
}

fn node(cluster: &Cluster, name: &str) -> usize {
    cluster.nodes.iter().position(|node| node.name == name).expect("a node of this name")
}

fn replica(cluster: &Cluster, name: &str) -> usize {
    cluster.replicas.iter().position(|replica| replica.name == name).expect("a replica")
}

/// Makes the change of a relaxation: a replica can then be placed on the node, and not with less of it.
fn try_change(
    small: &Small,
    assignment: &Assignment,
    explained: usize,
    change: &Relaxation,
) -> Result<(), TestCaseError> {
    let whole = cluster(small);
    let mut at = places(assignment);
    let mut changed = small.clone();
    match change {
        Relaxation::Drop { obstacle, node: name, nodes } => {
            let found = obstacles(small, &at, explained, node(&whole, name));
            prop_assert_eq!(found.len(), 1, "{:?}", obstacle);
            let same = by_node(small, &at, explained).into_iter().filter(|of| *of == found);
            prop_assert_eq!(same.count(), *nodes);
        }
        Relaxation::Raise { node: name, metric, by } => {
            let to = node(&whole, name);
            let mut raise = |by: i64| {
                let capacity = &mut changed.capacities[to];
                if metric == "a" {
                    capacity.0 += by
                } else {
                    capacity.1 += by
                }
                obstacles(&changed, &at, explained, to).is_empty()
            };
            prop_assert!(!raise(by - 1) && raise(1));
        }
        Relaxation::Shrink { node: name, metric, by } => {
            let to = node(&whole, name);
            let mut shrink = |by: i64| {
                let of = &mut changed.replicas[explained];
                let demand = if metric == "a" { &mut of.a } else { &mut of.b };
                *demand -= by;
                prop_assert!(*demand >= 0);
                Ok(obstacles(&changed, &at, explained, to).is_empty())
            };
            prop_assert!(!shrink(by - 1)? && shrink(1)?);
        }
        Relaxation::Move { replica: name, to, node: name_of_node, .. } => {
            let (other, to) = (replica(&whole, name), node(&whole, to));
            at[other] = Some(to);
            let here = node(&whole, name_of_node);
            prop_assert!(obstacles(small, &at, explained, here).is_empty());
            at[explained] = Some(here);
            // The other one breaks no rule there that it does not break already. One that must be apart from
            // itself breaks that rule wherever it is.
            let is_apart_from_itself = |rule: &common::SmallRule| {
                rule.kind == 4 && has(rule.one, other) && has(rule.other, other)
            };
            if !small.rules.iter().any(is_apart_from_itself) {
                let after: Assignment = at.iter().map(|node| node.map(NodeIx::new)).collect();
                let (before, after) = (audit(&whole, assignment), audit(&whole, &after));
                prop_assert!(after.len() < before.len(), "{:?} {:?} {:?}", change, before, after);
            }
        }
    }
    Ok(())
}

fn check_not_placed(
    small: &Small,
    assignment: &Assignment,
    explained: usize,
    why: &NotPlaced,
) -> Result<(), TestCaseError> {
    let whole = cluster(small);
    let at = places(assignment);
    let by_node = by_node(small, &at, explained);
    prop_assert!(by_node.iter().all(|obstacles| !obstacles.is_empty()));
    prop_assert_eq!(why.conflict.len(), smallest(&by_node), "{:?} {:?}", why, by_node);
    prop_assert_eq!(why.conflict.iter().map(|class| class.nodes).sum::<usize>(), why.nodes);
    for change in &why.relaxations {
        try_change(small, assignment, explained, change)?;
    }
    if let Some(way) = &why.in_the_way {
        let here = node(&whole, &way.node);
        let is_free = |but: Option<&String>| {
            let mut at = at.clone();
            for name in way.replicas.iter().filter(|name| Some(*name) != but) {
                at[replica(&whole, name)] = None;
            }
            obstacles(small, &at, explained, here).is_empty()
        };
        prop_assert!(is_free(None), "{:?}", way);
        prop_assert!(way.replicas.iter().all(|name| !is_free(Some(name))), "{:?}", way);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn replicas_that_are_not_placed_have_the_smallest_conflict_and_changes_that_work(small in small()) {
        let (whole, assignment) = (cluster(&small), small.assignment());
        for (position, node) in assignment.iter().enumerate() {
            if node.is_some() {
                continue;
            }
            match of(&whole, &assignment, position).outcome {
                Outcome::NotPlaced(why) => check_not_placed(&small, &assignment, position, &why)?,
                Outcome::Open { node: name } => {
                    let here = self::node(&whole, &name);
                    prop_assert!(obstacles(&small, &places(&assignment), position, here).is_empty());
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn replicas_can_go_where_nothing_gets_worse(small in small()) {
        let (whole, assignment) = (cluster(&small), small.assignment());
        let at = places(&assignment);
        let broken = |assignment: &Assignment| audit(&whole, assignment).len();
        for (position, node) in assignment.iter().enumerate() {
            let could_go = of(&whole, &assignment, position).could_go;
            for other in (0..small.capacities.len()).filter(|other| Some(*other) != at[position]) {
                let can = could_go.contains(&whole.nodes[other].name);
                let free = obstacles(&small, &at, position, other).is_empty();
                if node.is_none() {
                    prop_assert_eq!(can, free, "{} {}", position, other);
                }
                prop_assert!(free || !can, "{} {}", position, other);
                let mut moved = assignment.clone();
                moved[position] = Some(NodeIx::new(other));
                prop_assert!(!can || broken(&moved) <= broken(&assignment), "{} {}", position, other);
            }
        }
    }

    #[test]
    fn moves_have_a_reason_that_holds(small in small()) {
        let (whole, assignment) = (cluster(&small), small.assignment());
        let today = small.start();
        for (position, node) in assignment.iter().enumerate() {
            let (Some(home), Some(node)) = (small.replicas[position].today, node) else { continue };
            if home == node.ix() {
                continue;
            }
            let Outcome::Moved { why } = of(&whole, &assignment, position).outcome else {
                return Err(TestCaseError::fail("it moves"));
            };
            let then = obstacles(&small, &today, position, home);
            let is_forbidden = then.iter().any(|of| *of < 3);
            prop_assert_eq!(matches!(why, MoveReason::Forbidden { .. }), is_forbidden);
            let is_broken = !is_forbidden && !then.is_empty();
            prop_assert_eq!(matches!(why, MoveReason::Broken { .. }), is_broken);
            let mut stays = assignment.clone();
            stays[position] = Some(NodeIx::new(home));
            match why {
                MoveReason::Displaced { by, .. } => {
                    let mut at = places(&assignment);
                    prop_assert!(!by.is_empty());
                    for name in &by {
                        at[replica(&whole, name)] = None;
                    }
                    prop_assert!(obstacles(&small, &at, position, home).is_empty());
                }
                MoveReason::Saves { value, terms } => {
                    let saved = evaluate(&whole, &stays).total - evaluate(&whole, &assignment).total;
                    prop_assert!((saved - value).abs() < 1e-9 && value > 0.0);
                    prop_assert!((terms.values().sum::<f64>() - value).abs() < 1e-9);
                }
                MoveReason::Nothing => {
                    let saved = evaluate(&whole, &stays).total - evaluate(&whole, &assignment).total;
                    prop_assert!(saved <= 1e-9);
                    prop_assert!(obstacles(&small, &places(&assignment), position, home).is_empty());
                }
                _ => {}
            }
        }
    }
}

fn nodes(count: usize, memory: i64) -> Builder {
    common::nodes(count, "memory", memory)
}

/// The sentence about a replica, without the nodes where it could be.
fn said(cluster: &Cluster, assignment: &Assignment, replica: usize) -> String {
    let text = of(cluster, assignment, replica).to_string();
    text.lines().next().expect("a line").to_owned()
}

/// 40 nodes: 12 are down, 20 are too full, 8 have a replica of the partition.
#[test]
fn sentence_names_each_node_once() {
    let mut builder = nodes(40, 64);
    for node in 13..=32 {
        let demand = if node == 20 { 34 } else { 40 };
        builder = builder.replica(&format!("full{node}"), Some(&format!("n{node}")), [demand]);
    }
    for node in 33..=40 {
        builder = builder.replica(&format!("db-{node}"), Some(&format!("n{node}")), [0]);
    }
    let cluster = builder
        .replica("db-new", None, [64])
        .group("db/0", 20..29)
        .rule(Rule::PerDomain { group: GroupIx::new(0), level: LevelIx::NODE, most: 1 })
        .with(|cluster| {
            cluster.nodes[..12].iter_mut().for_each(|node| node.state = NodeState::Down);
        })
        .build();
    let text = of(&cluster, &cluster.today(), 28).to_string();
    assert_eq!(
        text,
        "replica db-new is not placed: of 40 nodes 12 are down, 20 lack memory (largest free 30 of 64) \
         and 8 have a replica of db/0\n\
         in the way on node n13: full13\n\
         it could be placed\n  \
         on node n1 or 11 others, if the node were up\n  \
         on node n20, if the node had 34 more of memory\n  \
         on node n20, if the replica needed 34 less of memory\n  \
         on node n33 or 7 others, if this did not hold: only one replica of db/0 may be on a node\n  \
         on node n13, if replica full13 moved from node n13 to node n33"
    );
}

#[test]
fn moves_are_explained_by_what_came_or_what_is_saved() {
    let cluster = nodes(3, 100)
        .replica("a", Some("n1"), [60])
        .replica("large", None, [90])
        .replica("b", Some("n2"), [10])
        .build();
    let displaced = said(&cluster, &to(&[3, 1, 2]), 0);
    assert_eq!(
        displaced,
        "replica a moves from node n1 to node n3: large took its place: it needs 60 of memory, and the \
         others leave 10"
    );
    assert_eq!(
        said(&cluster, &to(&[3, 2, 3]), 0),
        "replica a moves from node n1 to node n3: no reason: it could stay, and the search ended before \
         it returned"
    );
    assert_eq!(said(&cluster, &to(&[3, 1, 2]), 1), "replica large is new, and placed on node n1");
    let level = vec![LevelIx::new(1)];
    let costs = Failovers { fragmentation: 1.0, levels: level, ..Failovers::default() };
    let cluster = nodes(3, 100)
        .level("domain", ["x", "y", "y"])
        .replica("a", Some("n1"), [60])
        .replica("b", Some("n1"), [10])
        .replica("c", Some("n2"), [10])
        .objective(Objective::Failovers(costs))
        .with(|cluster| {
            cluster.replicas[0].move_cost = 0.25;
            cluster.replicas[1].move_cost = 1.0;
        })
        .build();
    let mut cheap = cluster.clone();
    // Without its own cost the move empties a node of its domain.
    cheap.replicas[0].move_cost = 0.0;
    assert_eq!(
        said(&cheap, &to(&[2, 1, 2]), 0),
        "replica a moves from node n1 to node n2: no reason: it could stay, and the search ended before \
         it returned"
    );
    cheap.objective = Objective::Failovers(Failovers {
        fragmentation: 4.0,
        levels: vec![LevelIx::new(1)],
        ..Failovers::default()
    });
    cheap.replicas[0].move_cost = 0.25;
    // Domain x has one node, so its weight counts: 0.25 less of it is worth 4 / 2 of that.
    assert_eq!(
        said(&cheap, &to(&[2, 1, 2]), 0),
        "replica a moves from node n1 to node n2: that saves 0.25: 0.5 less for fragmentation and 0.25 \
         more for moves"
    );
}

#[test]
fn nodes_that_can_take_a_replica_are_named() {
    let cluster = nodes(9, 100)
        .replica("a", Some("n1"), [60])
        .replica("b", Some("n2"), [60])
        .replica("new", None, [10])
        .replica("large", Some("n3"), [100])
        .build();
    let today = cluster.today();
    let text = |replica| of(&cluster, &today, replica).to_string();
    assert_eq!(
        text(0),
        "replica a stays on node n1\nnodes that can also take it: n4, n5, n6, n7, n8 and 1 more"
    );
    assert_eq!(
        text(2),
        "replica new is not placed although a node can take it\n\
         nodes that can take it: n1, n2, n4, n5, n6 and 3 more"
    );
    let full = nodes(1, 100).replica("a", Some("n1"), [60]).build();
    let text = of(&full, &full.today(), 0).to_string();
    assert_eq!(text, "replica a stays on node n1\nno other node can take it");
}

#[test]
fn forbidden_and_broken_places_are_named() {
    let cluster = nodes(3, 100)
        .replica("a", Some("n1"), [60])
        .replica("b", Some("n2"), [60])
        .replica("c", Some("n2"), [60])
        .with(|cluster| cluster.nodes[0].state = NodeState::Draining)
        .build();
    let to = to(&[3, 2, 3]);
    assert_eq!(
        said(&cluster, &to, 0),
        "replica a moves from node n1 to node n3: the node is draining"
    );
    assert_eq!(
        said(&cluster, &to, 2),
        "replica c moves from node n2 to node n3: its place today breaks a rule: it needs 60 of memory, \
         and the others leave 40"
    );
}

//! The examples of *Solver-In-The-Loop Cluster Resource Management*, section 2.2.

use placement::{
    Builder, Cluster, Found, LevelIx, Limits, NodeIx, NodeState, Rule, Violation, audit_schedule,
    schedule, search,
};
use std::time::Duration;

/// Nodes n1, n2, ... of 100.
fn nodes(name: &str, count: usize, transient: bool) -> Builder {
    let builder = Cluster::builder(name).metric("r", transient);
    (1..=count).fold(builder, |builder, node| builder.node(&format!("n{node}"), [Some(100)]))
}

/// The moves of each phase of an answer's schedule.
fn phases(cluster: &Cluster, found: &Found) -> Vec<String> {
    let made = schedule(cluster, &found.assignment);
    assert_eq!(audit_schedule(cluster, &found.assignment, &made), []);
    assert_eq!(made.phases.len(), made.bound);
    let name = |node: NodeIx| cluster.nodes[node.ix()].name.as_str();
    let step = |step: &placement::ScheduledMove| {
        let replica = &cluster.replicas[step.replica.ix()].name;
        format!("{replica} from {} to {}", step.from.map_or("new", name), name(step.to))
    };
    made.phases.iter().map(|phase| phase.iter().map(step).collect::<Vec<_>>().join(", ")).collect()
}

/// Figures 5 to 7: node 5 must lose a third of its load, and no other node has more than a third free. Weights
/// are demands. Moving two yellow replicas costs 66; a small one that makes room for the red one, 39.
#[test]
fn room_is_made_for_one_replica_instead_of_moving_two() {
    let mut builder = nodes("SIL figure 5", 10, false);
    let mut weights = Vec::new();
    let mut add = |builder: Builder, name: &str, node: &str, demand: i64| {
        weights.push(demand as f64);
        builder.replica(name, Some(node), [demand])
    };
    for (at, demand) in [33, 33, 33, 35].into_iter().enumerate() {
        builder = add(builder, &format!("five{at}"), "n5", demand);
    }
    // 33 are free on nodes 2 and 4, 32 and a movable 4 on node 3, little elsewhere.
    for (node, demands) in [
        ("n1", &[95][..]),
        ("n2", &[67]),
        ("n3", &[64, 4]),
        ("n4", &[67]),
        ("n6", &[96]),
        ("n7", &[90]),
        ("n8", &[95]),
        ("n9", &[95]),
        ("n10", &[95]),
    ] {
        for (at, demand) in demands.iter().enumerate() {
            builder = add(builder, &format!("{node}-{at}"), node, *demand);
        }
    }
    let cluster = builder
        .with(|cluster| {
            for (replica, weight) in cluster.replicas.iter_mut().zip(&weights) {
                replica.move_cost = *weight;
            }
        })
        .build();
    let found = search(&cluster, &Limits::rounds(1));
    assert!(found.violations.is_empty(), "{:?}", found.violations);
    assert_eq!(found.value.total, 39.0);
    // Figure 7: the small one leaves node 3 first.
    let small = phases(&cluster, &found);
    assert_eq!(small.len(), 2, "{small:?}");
    assert!(small[0].starts_with("n3-1 from n3"), "{small:?}");
    assert_eq!(small[1], "five3 from n5 to n3");
}

/// Figures 2 to 4: a greedy repair moves four small replicas, two moves are enough.
#[test]
fn two_moves_are_enough_where_greed_takes_four() {
    let mut builder = nodes("SIL figure 2", 10, false);
    // Node 5 is at 140. Only its large replica frees enough, and no node has room for it before the
    // small one on node 2 leaves.
    let loads = [
        ("n5", &[20, 20, 20, 20, 60][..]),
        ("n1", &[45, 45]),
        ("n2", &[40, 10]),
        ("n3", &[45, 45]),
        ("n4", &[40, 41]),
        ("n6", &[45, 45]),
        ("n7", &[80]),
        ("n8", &[80]),
        ("n9", &[80]),
        ("n10", &[80]),
    ];
    for (node, demands) in loads {
        for (at, demand) in demands.iter().enumerate() {
            builder = builder.replica(&format!("{node}-{at}"), Some(node), [*demand]);
        }
    }
    let cluster = builder.build();
    let found = search(&cluster, &Limits::rounds(1));
    assert!(found.violations.is_empty(), "{:?}", found.violations);
    assert_eq!(found.value.total, 2.0);
    // Figure 4: a node loses a small replica, then takes the large one of node 5.
    let phases = phases(&cluster, &found);
    assert_eq!(phases.len(), 2, "{phases:?}");
    let room = phases[1].strip_prefix("n5-4 from n5 to ").expect("the large one goes last");
    assert!(phases[0].contains(&format!("from {room} to")), "{phases:?}");
}

/// A replica needs a transient metric on both nodes while it moves; an overloaded node can lose
/// replicas all the same, and takes none.
#[test]
fn overloaded_node_is_mended_in_a_transient_metric() {
    let cluster = nodes("transient", 2, true)
        .replica("a", Some("n1"), [60])
        .replica("b", Some("n1"), [60])
        .replica("new", None, [30])
        .build();
    let found = search(&cluster, &Limits::rounds(1));
    assert_eq!(found.violations, []);
    assert_eq!(found.value.total, 1.0);
    assert_eq!(
        found.assignment[2],
        Some(NodeIx::new(1)),
        "nothing is put onto the overloaded node"
    );
}

/// A search whose deadline has passed returns today's assignment, and says what is broken.
#[test]
fn search_after_its_deadline_returns_today() {
    let cluster = nodes("late", 2, false)
        .replica("a", Some("n1"), [80])
        .replica("b", Some("n1"), [80])
        .build();
    let limits = Limits {
        deadline: Some(Duration::from_secs(1)),
        elapsed: &|| Duration::from_secs(2),
        ..Limits::rounds(u64::MAX)
    };
    let found = search(&cluster, &limits);
    assert_eq!(found.assignment, cluster.today());
    assert_eq!(found.violations.len(), 1);
}

/// One replica that fits nowhere does not keep the others from being placed.
#[test]
fn what_fits_is_placed_beside_what_does_not() {
    let cluster = nodes("too large", 2, false)
        .replica("giant", None, [150])
        .replica("a", None, [80])
        .replica("b", Some("n1"), [80])
        .build();
    let found = search(&cluster, &Limits::rounds(1));
    assert_eq!(found.violations, [Violation::Unplaced { replica: "giant".to_owned() }]);
}

/// All replicas of a drained node move, one by one within the rules, and nothing else does.
#[test]
fn drained_node_among_many_is_left_by_its_replicas_alone() {
    let mut builder = nodes("drain", 40, false);
    let domains: Vec<String> = (0..40).map(|node| format!("d{}", node % 10)).collect();
    builder = builder.level("domain", domains.iter().map(String::as_str));
    for partition in 0..80 {
        for replica in 0..4 {
            let node = format!("n{}", (partition + 11 * replica) % 40 + 1);
            builder = builder.replica(&format!("{partition}-{replica}"), Some(&node), [9]);
        }
        builder = builder.group(&format!("{partition}"), 4 * partition..4 * partition + 4);
        let group = builder.last_group();
        for level in [LevelIx::NODE, LevelIx::new(1)] {
            builder = builder.rule(Rule::PerDomain { group, level, most: 1 });
        }
    }
    let cluster = builder.with(|cluster| cluster.nodes[0].state = NodeState::Draining).build();
    let found = search(&cluster, &Limits::rounds(1));
    assert_eq!(found.violations, []);
    assert_eq!((found.value.total, found.bound), (8.0, 8.0));
}

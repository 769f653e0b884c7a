//! Even load with few moves: what `search` and `annealing` reach, and how many moves they make.

use placement::{
    Cluster, Evenness, GroupIx, LevelIx, Limits, Objective, Rule, ServiceFabric, annealing, audit,
    bound, evaluate, search,
};

/// Replicas of demand 1 to 10 on the first of ten nodes.
fn crowded(replicas: usize) -> Cluster {
    let mut builder = Cluster::builder("crowded").metric("load", false);
    for node in 0..10 {
        builder = builder.node(&format!("n{node}"), [None]);
    }
    for (replica, demand) in (0..replicas).zip((1..=10).cycle()) {
        builder = builder.replica(&format!("r{replica}"), Some("n0"), [demand]);
    }
    builder.objective(Objective::Balance(Evenness::of(1))).build()
}

fn moves(cluster: &Cluster, found: &placement::Found) -> usize {
    cluster.today().iter().zip(&found.assignment).filter(|(from, to)| from != to).count()
}

/// At most 30 % of the replicas, at most `most_moves`, less those that were made lately.
#[test]
fn annealing_improves_as_far_as_its_throttle_lets_it() {
    let cluster = crowded(100);
    let start = evaluate(&cluster, &cluster.today()).total;
    let run = |most_moves, moved_lately| {
        let settings = ServiceFabric { most_moves, moved_lately, ..ServiceFabric::default() };
        annealing(&cluster, &settings, &Limits::rounds(200))
    };
    for (most_moves, moved_lately, allowed) in [(1_000, 0, 30), (12, 0, 12), (12, 5, 7)] {
        let found = run(most_moves, moved_lately);
        assert!(found.value.total < start, "{}", found.value.total);
        // Each move from the crowded node helps.
        assert_eq!(moves(&cluster, &found), allowed);
    }
    assert_eq!(run(12, 12).assignment, cluster.today());
}

/// One replica must move before the new one has a node. None moves for one that fits nowhere.
#[test]
fn annealing_moves_replicas_only_where_that_places_a_new_one() {
    let settings = ServiceFabric { most_moves: 0, ..ServiceFabric::default() };
    for (demand, placed) in [(80, true), (150, false)] {
        let cluster = Cluster::builder("room")
            .metric("load", false)
            .node("n1", [Some(100)])
            .node("n2", [Some(100)])
            .replica("a", Some("n1"), [40])
            .replica("b", Some("n2"), [40])
            .replica("new", None, [demand])
            .build();
        let found = annealing(&cluster, &settings, &Limits::rounds(2));
        assert_eq!(found.violations.is_empty(), placed);
        assert_eq!(found.value.terms["moves"], f64::from(u8::from(placed)));
    }
}

#[test]
fn search_ends_lower_than_annealing_without_a_throttle() {
    let cluster = crowded(100);
    let settings =
        ServiceFabric { largest_share: 1.0, most_moves: u64::MAX, ..ServiceFabric::default() };
    let theirs = annealing(&cluster, &settings, &Limits::rounds(200));
    let ours = search(&cluster, &Limits::rounds(200));
    assert!(ours.value.total < theirs.value.total);
    assert!(ours.value.total >= ours.bound);
}

/// Without nodes, replicas or metrics there is nothing to do, and nothing to fear.
#[test]
fn empty_clusters_have_answers() {
    let balance = Objective::Balance(Evenness::of(1));
    let no_nodes = Cluster::builder("no nodes").metric("load", false).replica("a", None, [1]);
    let no_replicas = Cluster::builder("no replicas").metric("load", false).node("n", [Some(1)]);
    let no_metrics = Cluster::builder("no metrics").node("n", []).replica("a", None, []);
    for (builder, unplaced) in [(no_nodes, 1), (no_replicas, 0), (no_metrics, 0)] {
        let mut cluster = builder.objective(balance.clone()).build();
        if cluster.metrics.is_empty() {
            cluster.objective = Objective::Balance(Evenness::of(0));
        }
        for found in [
            search(&cluster, &Limits::rounds(1)),
            annealing(&cluster, &ServiceFabric::default(), &Limits::rounds(1)),
        ] {
            assert_eq!(found.violations.len(), unplaced);
            assert!(found.value.total >= found.bound);
        }
    }
}

/// Where replicas are larger than the average load, the bound is what they leave: loads of 10, 6 and 2.
#[test]
fn bound_of_large_replicas_is_reached() {
    let mut builder = Cluster::builder("lumps").metric("load", false);
    for node in ["a", "b", "c"] {
        builder = builder.node(node, [None]);
    }
    for (name, demand) in [("r", 10), ("s", 6), ("t", 1), ("u", 1)] {
        builder = builder.replica(name, Some("a"), [demand]);
    }
    let evenness = Evenness { weights: vec![1.0], moves: 0.0, futures: None };
    let cluster = builder.objective(Objective::Balance(evenness)).build();
    // Mean 6: squares 16, 0 and 16.
    let least = (32.0_f64 / 3.0).sqrt() + 0.001;
    assert!((bound(&cluster) - least).abs() < 1e-9);
    let found = search(&cluster, &Limits::rounds(10));
    assert!((found.value.total - least).abs() < 1e-9, "{}", found.value.total);
    assert_eq!(found.gap(), Some(0.0));
}

/// 120 partitions whose three replicas share a domain, and half of whose services exclude the node of
/// the first: two of three must move, and no more.
#[test]
fn hundreds_of_broken_rules_are_mended_with_few_moves() {
    let mut builder = Cluster::builder("broken").metric("load", false);
    for node in 0..40 {
        builder = builder.node(&format!("n{node}"), [Some(100)]);
    }
    let domains: Vec<String> = (0..40).map(|node| format!("d{}", node / 10)).collect();
    builder = builder.level("domain", domains.iter().map(String::as_str));
    for partition in 0..120 {
        for replica in 0..3 {
            let node = partition % 4 * 10 + (partition + replica) % 10;
            let name = format!("p{partition}/{replica}");
            let demand = [1 + i64::try_from((partition * 7 + replica * 5) % 9).expect("small")];
            builder = builder.replica(&name, Some(&format!("n{node}")), demand);
        }
        let first = 3 * partition;
        builder = builder.group(&format!("p{partition}"), first..first + 3);
        for level in [LevelIx::NODE, LevelIx::new(1)] {
            let group = GroupIx::new(partition);
            builder = builder.rule(Rule::PerDomain { group, level, most: 1 });
        }
    }
    let cluster = builder
        .objective(Objective::Balance(Evenness {
            weights: vec![1.0],
            moves: 1_000.0,
            futures: None,
        }))
        .with(|cluster| {
            for replica in (0..cluster.replicas.len()).step_by(6) {
                let home = cluster.replicas[replica].node;
                let allowed = (0..40).map(|node| home.is_none_or(|home| home.ix() != node));
                cluster.services[replica].allowed = Some(allowed.collect());
            }
        })
        .build();
    assert!(audit(&cluster, &cluster.today()).len() > 100);
    let found = search(&cluster, &Limits::rounds(5));
    assert_eq!(found.violations, []);
    assert_eq!(moves(&cluster, &found), 240);
    let theirs = annealing(&cluster, &ServiceFabric::default(), &Limits::rounds(5));
    assert_eq!(theirs.violations, []);
    assert!(theirs.value.total > found.value.total);
}

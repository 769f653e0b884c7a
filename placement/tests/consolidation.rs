//! Consolidation against all assignments of small clusters: nothing exceeds the budget or the bound, every
//! answer passes the audit, and the search finds the most nodes that can be emptied in nearly all of a fixed
//! sample.

use placement::vro::{Norm, Offline, Policy, Skewness, Vro, empty_nodes};
use placement::{
    Amount, Assignment, Cluster, Consolidated, LevelIx, Limits, NodeIx, NodeState, Rule, audit,
    consolidate, emptied_bound,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

#[derive(Clone, Debug)]
struct Small {
    /// Spare capacity by metric, and the state, of each node.
    nodes: Vec<(Amount, Amount, NodeState)>,
    /// Node, demands and move cost of each replica.
    replicas: Vec<(usize, Amount, Amount, u32)>,
    /// Whether the first replicas of the first two nodes may not share a node.
    rule: bool,
    budget: u32,
}

fn small() -> impl Strategy<Value = Small> {
    let state = prop_oneof![4 => Just(NodeState::Up), 1 => Just(NodeState::Closed), 1 => Just(NodeState::Down)];
    (
        prop::collection::vec((0..12_i64, 0..12_i64, state), 2..=4),
        prop::collection::vec((0..4_usize, 0..7_i64, 0..7_i64, 1..4_u32), 1..=6),
        any::<bool>(),
        0..15_u32,
    )
        .prop_map(|(nodes, replicas, rule, budget)| Small { nodes, replicas, rule, budget })
}

fn cluster(of: &Small) -> Cluster {
    let nodes = of.nodes.len();
    let mut builder = Cluster::builder("small").metric("a", false).metric("b", false);
    for (node, (a, b, _)) in of.nodes.iter().enumerate() {
        let here = of.replicas.iter().filter(|replica| replica.0 % nodes == node);
        let used = here.fold((*a, *b), |(a, b), replica| (a + replica.1, b + replica.2));
        builder = builder.node(&format!("n{node}"), [Some(used.0), Some(used.1)]);
    }
    for (position, (node, a, b, _)) in of.replicas.iter().enumerate() {
        // A replica of a node that is down would be lost.
        let node = (0..nodes).map(|more| (node + more) % nodes);
        let node = node.clone().find(|node| of.nodes[*node].2 != NodeState::Down);
        let name = node.map(|node| format!("n{node}"));
        builder = builder.replica(&format!("r{position}"), name.as_deref(), [*a, *b]);
    }
    let group: Vec<usize> = (0..of.replicas.len().min(2)).collect();
    builder = builder.group("apart", group);
    if of.rule {
        let (group, level) = (builder.last_group(), LevelIx::NODE);
        builder = builder.rule(Rule::PerDomain { group, level, most: 1 });
    }
    let change = |cluster: &mut Cluster| {
        for (node, (.., state)) in cluster.nodes.iter_mut().zip(&of.nodes) {
            node.state = *state;
        }
        for (replica, (.., cost)) in cluster.replicas.iter_mut().zip(&of.replicas) {
            replica.move_cost = f64::from(*cost);
        }
    };
    builder.with(change).build()
}

/// The most nodes that a valid assignment empties within the budget, using none that is empty today.
fn most(cluster: &Cluster, budget: f64) -> usize {
    let today = cluster.today();
    let used: Vec<NodeIx> = (0..cluster.nodes.len())
        .map(NodeIx::new)
        .filter(|node| today.contains(&Some(*node)))
        .collect();
    let mut assignment: Assignment = today.clone();
    let mut best = 0;
    let count = used.len().pow(u32::try_from(today.len()).expect("few"));
    for mut number in 0..count {
        for node in &mut assignment {
            *node = Some(used[number % used.len()]);
            number /= used.len();
        }
        let found = Consolidated::new(cluster, assignment.clone());
        if found.violations.is_empty() && found.cost <= budget {
            best = best.max(found.emptied.len());
        }
    }
    best
}

fn policies() -> Vec<Policy> {
    let skewness = [Skewness::Diagonal, Skewness::Bottleneck, Skewness::DotProduct];
    let mut policies: Vec<Policy> =
        skewness.into_iter().map(|of| Policy::Vro(Vro::new(of))).collect();
    policies.extend([
        Policy::FirstFit,
        Policy::BestFit(Norm::L1),
        Policy::MostAllocated,
        Policy::requested_to_capacity_ratio(),
    ]);
    policies
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn nothing_exceeds_budget_or_bound(of in small()) {
        let (cluster, budget) = (cluster(&of), f64::from(of.budget));
        let valid = audit(&cluster, &cluster.today()).is_empty();
        prop_assume!(valid);
        let most = most(&cluster, budget);
        prop_assert!(most <= emptied_bound(&cluster, budget));
        let found = consolidate(&cluster, budget, &Limits::rounds(3));
        prop_assert_eq!(&found.violations, &[]);
        prop_assert!(found.cost <= budget);
        prop_assert!(found.emptied.len() <= most);
        for policy in policies() {
            for exchange in [None, Offline::new(Skewness::Diagonal).exchange] {
                let offline = Offline { policy: policy.clone(), exchange };
                let found = empty_nodes(&cluster, budget, &offline);
                prop_assert_eq!(&found.violations, &[]);
                prop_assert!(found.cost <= budget && found.emptied.len() <= most);
            }
        }
    }
}

/// Of the same 400 random clusters, in how many the search empties the most nodes.
#[test]
fn search_empties_the_most_nodes_of_nearly_all_clusters() {
    let mut runner = TestRunner::deterministic();
    let (mut solved, mut best) = (0, 0);
    for _ in 0..400 {
        let of = small().new_tree(&mut runner).expect("it is not filtered").current();
        let (cluster, budget) = (cluster(&of), f64::from(of.budget));
        if !audit(&cluster, &cluster.today()).is_empty() {
            continue;
        }
        solved += 1;
        let found = consolidate(&cluster, budget, &Limits::rounds(3));
        best += usize::from(found.emptied.len() == most(&cluster, budget));
    }
    assert!(solved > 200 && best * 100 >= solved * 99, "{best} of {solved}");
}

/// Three nodes that are half full: two replicas move onto the node of a third.
fn three() -> Cluster {
    let mut builder = Cluster::builder("three").metric("cpu", false);
    for node in ["n1", "n2", "n3"] {
        builder = builder.node(node, [Some(12)]);
    }
    for (name, node) in [("a", "n1"), ("b", "n1"), ("c", "n2"), ("d", "n2"), ("e", "n3")] {
        builder = builder.replica(name, Some(node), [3]);
    }
    builder.build()
}

#[test]
fn a_closed_node_can_be_emptied_but_takes_nothing() {
    let close = |nodes: &[usize]| {
        let mut cluster = three();
        nodes.iter().for_each(|node| cluster.nodes[*node].state = NodeState::Closed);
        cluster
    };
    // Of 15 in all, 12 fit onto one node.
    for (closed, emptied) in [(&[][..], 1), (&[0][..], 1), (&[0, 1][..], 1), (&[0, 1, 2][..], 0)] {
        let cluster = close(closed);
        let found = consolidate(&cluster, 10.0, &Limits::rounds(3));
        assert_eq!((found.emptied.len(), &found.violations), (emptied, &Vec::new()), "{closed:?}");
    }
    assert_eq!(emptied_bound(&close(&[0, 1, 2]), 10.0), 0);
}

#[test]
fn a_seed_gives_one_answer() {
    let answer = || consolidate(&three(), 3.0, &Limits { seed: 7, ..Limits::rounds(5) }).assignment;
    assert_eq!(answer(), answer());
}

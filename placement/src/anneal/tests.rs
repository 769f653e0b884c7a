use super::{CROWDED, CROWDS_END, CROWDS_END_AT_LATEST, Walk, typical_change};
use crate::audit::audit;
use crate::cluster::{Cluster, Objective, Reassignment};
use crate::cost::Costs;
use crate::limits::Limits;
use crate::overload::Overload;
use crate::random::Random;
use crate::search::search;
use crate::state::State;
use crate::value::evaluate;

fn objective(nodes: usize, safety: i64) -> Objective {
    Objective::Reassignment(Reassignment {
        load: vec![1.0, 1.0],
        safety: vec![vec![safety; 2]; nodes],
        balance: Vec::new(),
        replica_moves: 0.01,
        service_moves: 0.0,
        node_moves: 0.0,
        between: vec![vec![0; nodes]; nodes],
    })
}

/// Six nodes with room for three and four units more; the second metric is transient.
fn crowded() -> Cluster {
    let demand = |replica: i64| [3 + replica * 7 % 11, 4 + replica * 5 % 13];
    let mut builder = Cluster::builder("crowd").metric("a", false).metric("b", true);
    for node in 0..6 {
        let on = || (node..24).step_by(6).map(demand);
        let a: i64 = on().map(|of| of[0]).sum();
        let b: i64 = on().map(|of| of[1]).sum();
        builder = builder.node(&format!("n{node}"), [Some(a + 3), Some(b + 4)]);
    }
    for replica in 0..24_i64 {
        let node = format!("n{}", replica % 6);
        builder = builder.replica(&format!("r{replica}"), Some(&node), demand(replica));
    }
    builder.objective(objective(6, 36)).build()
}

#[test]
fn a_walk_through_crowds_ends_valid_lower_and_the_same() {
    let cluster = crowded();
    let state = State::today(&cluster);
    assert!((0..6).all(|node| !state.is_over(node)));
    let costs = Costs::new(&state);
    let (_, room) = typical_change(&state, &costs, &mut Random::new(1));
    assert!(room < CROWDED, "{room}");
    let today = evaluate(&cluster, &cluster.today()).total;
    let found = search(&cluster, &Limits::rounds(400));
    assert!(found.violations.is_empty(), "{:?}", found.violations);
    assert!(found.value.total < today, "{} of {today}", found.value.total);
    assert!(found.value.total >= found.bound);
    assert_eq!(search(&cluster, &Limits::rounds(400)).assignment, found.assignment);
}

#[test]
fn passing_through_crowds_alone_ends_lower_and_with_room() {
    let cluster = crowded();
    let state = State::today(&cluster);
    let costs = Costs::new(&state);
    let today = costs.total;
    let limits = Limits::rounds(400);
    let mut walk = Walk::new(state, costs, &limits, 0.0, Random::new(3));
    let ended_at = walk.through_crowds(1.0);
    assert!((CROWDS_END..CROWDS_END_AT_LATEST).contains(&ended_at), "{ended_at}");
    assert!(audit(&cluster, walk.state.assignment()).is_empty());
    let value = evaluate(&cluster, walk.state.assignment()).total;
    assert!((walk.costs.total - value).abs() < 1e-6, "{} is {value}", walk.costs.total);
    assert!(value < today && walk.own.0 <= value, "{value} of {today}");
}

#[test]
fn rebuilds_know_what_nodes_lack_and_relieve_them_at_a_price() {
    let cluster = crowded();
    // Rebuilds until all nodes have room, of twenty crowded states.
    let rebuilds = |price: f64| {
        let until_room = |seed: u64| {
            let state = State::today(&cluster);
            let costs = Costs::new(&state);
            let limits = Limits::rounds(1);
            let mut walk = Walk::new(state, costs, &limits, 0.0, Random::new(seed));
            for _ in 0..100 {
                let Walk { state, costs, random, over, .. } = &mut walk;
                over.step(state, costs, random, 1e9);
            }
            walk.over.price = price;
            let mut count = 0;
            while walk.over.is_over() && count < 5_000 {
                walk.rebuild(1e-9);
                count += 1;
                let mut fresh = Overload::new(&walk.state);
                fresh.price = price;
                assert_eq!(walk.over, fresh);
            }
            count
        };
        (1..=20).map(until_room).sum::<u32>()
    };
    let (at_a_price, free) = (rebuilds(1e9), rebuilds(0.0));
    assert!(at_a_price < free, "{at_a_price} rebuilds at a price, {free} without");
}

#[test]
fn a_node_that_cannot_be_relieved_does_not_keep_others_from_better_ones() {
    let mut builder = Cluster::builder("over").metric("a", false).metric("b", true);
    for node in 0..4 {
        builder = builder.node(&format!("n{node}"), [Some(40), Some(40)]);
    }
    // Fits on no node, not even on its own.
    builder = builder.replica("large", Some("n0"), [50, 50]);
    for replica in 0..8 {
        builder = builder.replica(&format!("r{replica}"), Some("n1"), [5, 0]);
    }
    let cluster = builder.objective(objective(4, 20)).build();
    let today = evaluate(&cluster, &cluster.today()).total;
    let found = search(&cluster, &Limits::rounds(200));
    // Of 20 that are above the safety capacity of n1, none has to be.
    assert!((today - found.value.total - 20.0).abs() < 1.0, "{} of {today}", found.value.total);
}

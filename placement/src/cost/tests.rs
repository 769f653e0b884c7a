use super::Costs;
use crate::cluster::{
    Balance, Cluster, Evenness, Failovers, Futures, GroupIx, LevelIx, MetricIx, NodeIx, NodeState,
    Objective, Reassignment, Role, ServiceIx, Soft, Swaps,
};
use crate::random::Random;
use crate::state::State;
use crate::value::evaluate;

/// Five nodes in two domains, 24 replicas of eight services, whole costs.
fn cluster(objective: Objective) -> Cluster {
    let mut builder = Cluster::builder("sums").metric("a", false).metric("b", true);
    for node in 0..5 {
        builder = builder.node(&format!("n{node}"), [Some(60 + node), Some(70)]);
    }
    builder = builder.level("domain", ["x", "x", "y", "y", "y"]);
    for replica in 0..24_i64 {
        let node = (replica != 7).then(|| format!("n{}", replica % 5));
        let demand = [1 + replica * 7 % 11, 1 + replica * 5 % 13];
        builder = builder.replica(&format!("r{replica}"), node.as_deref(), demand);
    }
    let regroup = |cluster: &mut Cluster| {
        for (position, replica) in cluster.replicas.iter_mut().enumerate() {
            replica.service = ServiceIx::new(position % 8);
            replica.move_cost = 1.0 + (position % 3) as f64;
            replica.role = if position % 3 == 0 { Role::Primary } else { Role::Secondary };
        }
    };
    for partition in 0..8 {
        builder = builder.group("partition", 3 * partition..3 * partition + 3);
    }
    builder = builder.group("even", (0..24).step_by(2));
    builder.objective(objective).with(regroup).build()
}

/// Three samples of two times, about as large as the nodes' capacity.
fn futures() -> Futures {
    let of_replica = |replica: i64| (0..12).map(move |at| (replica * 7 + at * 5) % 27).collect();
    Futures { weight: 0.25, samples: 3, demand: (0..24).map(of_replica).collect() }
}

fn objectives() -> [Objective; 7] {
    [
        Objective::Failovers(Failovers {
            soft: vec![
                Soft::Preferred {
                    group: GroupIx::new(0),
                    nodes: vec![true, false, false, true, false],
                    weight: 0.7,
                },
                Soft::Spread {
                    group: GroupIx::new(1),
                    level: LevelIx::new(1),
                    most: 1,
                    weight: 1.3,
                },
                Soft::Spread { group: GroupIx::new(8), level: LevelIx::NODE, most: 3, weight: 0.2 },
                Soft::Balance { weight: 5.0 },
                Soft::Nodes { weight: 0.9 },
            ],
            ..Failovers::default()
        }),
        Objective::Failovers(Failovers {
            swaps: Swaps { cost: 0.75, partitions: (0..8).map(GroupIx::new).collect() },
            ..Failovers::default()
        }),
        Objective::Failovers(Failovers {
            fragmentation: 0.5,
            levels: vec![LevelIx::NODE, LevelIx::new(1)],
            ..Failovers::default()
        }),
        Objective::Failovers(Failovers { futures: Some(futures()), ..Failovers::default() }),
        Objective::Reassignment(Reassignment {
            load: vec![3.0, 5.0],
            safety: vec![vec![20, 25]; 5],
            balance: vec![Balance {
                first: MetricIx::new(0),
                second: MetricIx::new(1),
                target: 2,
                weight: 7.0,
            }],
            replica_moves: 2.0,
            service_moves: 11.0,
            node_moves: 1.0,
            between: (0..5).map(|from| (0..5).map(|to| from * to % 4).collect()).collect(),
        }),
        Objective::Balance(Evenness { weights: vec![2.0, 1.0], moves: 3.0, futures: None }),
        Objective::Balance(Evenness { futures: Some(futures()), ..Evenness::of(2) }),
    ]
}

/// Load of a node that is lost or draining does not count, and a replica of a lost node has moved.
#[test]
fn deviation_adds_up_with_nodes_that_are_not_up() {
    let mut cluster = cluster(Objective::Balance(Evenness::of(2)));
    cluster.nodes[0].state = NodeState::Down;
    cluster.nodes[1].state = NodeState::Draining;
    let mut state = State::today(&cluster);
    let mut costs = Costs::new(&state);
    let mut random = Random::new(5);
    for _ in 0..2_000 {
        let (replica, to) = (random.below(24), NodeIx::new(1 + random.below(4)));
        if state.node_of(replica) != Some(to) {
            let change = costs.shift(&state, replica, to);
            costs.apply_shift(&mut state, replica, to, change);
            let value = evaluate(&cluster, state.assignment()).total;
            assert!((costs.total - value).abs() < 1e-9, "{} is {value}", costs.total);
        }
    }
}

/// The sums of the deviation are whole numbers.
#[test]
fn deviation_is_the_same_to_the_bit_after_moves_back() {
    let mut cluster = cluster(Objective::Balance(Evenness::of(2)));
    for (at, replica) in (0..).zip(&mut cluster.replicas) {
        replica.demand = vec![999_999_999_999 - at, 1_000_000_007 * at];
    }
    let mut state = State::today(&cluster);
    state.put(7, NodeIx::new(2));
    let mut costs = Costs::new(&state);
    let before = costs.total;
    let mut random = Random::new(4);
    let mut journal = Vec::new();
    for _ in 0..1_000 {
        let (replica, to) = (random.below(24), NodeIx::new(random.below(5)));
        let from = state.node_of(replica).expect("all have a node");
        if from != to {
            journal.push((replica, from));
            let change = costs.shift(&state, replica, to);
            costs.apply_shift(&mut state, replica, to, change);
        }
    }
    assert!((costs.total - before).abs() > 1.0);
    for (replica, from) in journal.into_iter().rev() {
        let change = costs.shift(&state, replica, from);
        costs.apply_shift(&mut state, replica, from, change);
    }
    assert_eq!(costs.total.to_bits(), before.to_bits());
}

#[test]
fn changes_add_up_to_the_value_from_scratch_and_moves_back_restore_it() {
    for objective in objectives() {
        let cluster = cluster(objective);
        let mut state = State::today(&cluster);
        state.put(7, NodeIx::new(2));
        let mut costs = Costs::new(&state);
        let mut random = Random::new(3);
        for _ in 0..4_000 {
            let (one, other) = (random.below(24), random.below(24));
            let before = costs.total;
            let from = state.node_of(one).expect("all have a node");
            if random.bits() & 1 == 0 {
                let to = NodeIx::new(random.below(5));
                if to == from {
                    continue;
                }
                let change = costs.shift(&state, one, to);
                costs.apply_shift(&mut state, one, to, change);
                let value = evaluate(&cluster, state.assignment()).total;
                assert!((costs.total - value).abs() < 1e-9, "{} is {value}", costs.total);
                let back = costs.shift(&state, one, from);
                assert!((costs.total + back - before).abs() < 1e-9);
            } else if state.node_of(other) != Some(from) {
                let change = costs.swap(&state, one, other);
                costs.apply_swap(&mut state, one, other, change);
                let value = evaluate(&cluster, state.assignment()).total;
                assert!((costs.total - value).abs() < 1e-9, "{} is {value}", costs.total);
            }
        }
    }
}

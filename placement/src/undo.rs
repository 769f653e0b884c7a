//! Moves and their ways back restore every sum to the bit.

use crate::cluster::{
    Amount, Balance, Cluster, Failovers, GroupIx, LevelIx, MetricIx, NodeIx, Objective,
    Reassignment, Role, Rule, ServiceIx, Soft, Swaps,
};
use crate::cost::Costs;
use crate::state::State;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Small {
    /// Node of today, demands, move cost, service.
    replicas: Vec<(usize, Amount, Amount, f64, usize)>,
    domains: Vec<usize>,
    fragmentation: f64,
    failovers: bool,
    /// Group as bits, kind, level.
    rules: Vec<(u32, u8, bool)>,
}

const NODES: usize = 6;

fn small() -> impl Strategy<Value = Small> {
    // Costs that are no sums of powers of two, far apart in size.
    let cost = prop_oneof![0.0..1.0_f64, Just(0.1), Just(1.0 / 3.0), 1.0..40.0_f64, Just(1e6)];
    let replica = (0..NODES, 0..50_i64, 0..50_i64, cost, 0..5_usize);
    (
        prop::collection::vec(replica, 2..=30),
        prop::collection::vec(0..3_usize, NODES),
        0.0..1.0_f64,
        any::<bool>(),
        prop::collection::vec((any::<u32>(), 0..5_u8, any::<bool>()), 0..4),
    )
        .prop_map(|(replicas, domains, fragmentation, failovers, rules)| Small {
            replicas,
            domains,
            fragmentation,
            failovers,
            rules,
        })
}

fn cluster(of: &Small) -> Cluster {
    let mut builder = Cluster::builder("undo").metric("a", false).metric("b", true);
    for node in 0..NODES {
        builder = builder.node(&format!("n{node}"), [Some(100), Some(120)]);
    }
    let domains: Vec<String> = of.domains.iter().map(|domain| format!("d{domain}")).collect();
    builder = builder.level("domain", domains.iter().map(String::as_str));
    for (position, (node, a, b, ..)) in of.replicas.iter().enumerate() {
        builder = builder.replica(&format!("r{position}"), Some(&format!("n{node}")), [*a, *b]);
    }
    for (at, (bits, kind, level)) in of.rules.iter().enumerate() {
        let members = (0..of.replicas.len()).filter(|r| bits >> (r % 32) & 1 == 1);
        builder = builder.group("group", members).group("first", [0]);
        let (group, other) = (GroupIx::new(2 * at), GroupIx::new(2 * at + 1));
        let level = if *level { LevelIx::NODE } else { LevelIx::new(1) };
        builder = builder.rule(match kind {
            0 => Rule::PerDomain { group, level, most: 2 },
            1 => Rule::AtLeast { group, level, least: 2 },
            2 => Rule::AtMost { group, level, most: 2 },
            3 => Rule::Near { group, to: other, level },
            _ => Rule::Apart { group, from: other, level },
        });
    }
    let objective = if of.failovers {
        let levels = vec![LevelIx::NODE, LevelIx::new(1)];
        // The groups of the rules overlap: more may be swapped than in a valid assignment.
        let partitions = (0..2 * of.rules.len()).map(GroupIx::new).collect();
        let swaps = Swaps { cost: of.fragmentation, partitions };
        let group = |at: usize| GroupIx::new(2 * at);
        let of_rules = of.rules.iter().enumerate();
        let mut soft: Vec<Soft> = of_rules
            .map(|(at, (bits, kind, level))| match level {
                true => Soft::Preferred {
                    group: group(at),
                    nodes: (0..NODES).map(|node| bits >> node & 1 == 1).collect(),
                    weight: 0.1 + of.fragmentation,
                },
                false => Soft::Spread {
                    group: group(at),
                    level: LevelIx::new(1),
                    most: u32::from(*kind),
                    weight: of.fragmentation / 3.0,
                },
            })
            .collect();
        soft.push(Soft::Balance { weight: 7.0 * of.fragmentation });
        soft.push(Soft::Nodes { weight: 3.0 * of.fragmentation });
        Objective::Failovers(Failovers {
            fragmentation: of.fragmentation,
            levels,
            swaps,
            soft,
            ..Failovers::default()
        })
    } else {
        Objective::Reassignment(Reassignment {
            load: vec![3.0, 10.0],
            safety: vec![vec![40, 50]; NODES],
            balance: vec![Balance {
                first: MetricIx::new(0),
                second: MetricIx::new(1),
                target: 2,
                weight: 7.0,
            }],
            replica_moves: 2.0,
            service_moves: 11.0,
            node_moves: 1.0,
            between: (0..6).map(|from| (0..6).map(|to| from * to % 4).collect()).collect(),
        })
    };
    let change = |cluster: &mut Cluster| {
        for (replica, (.., cost, service)) in cluster.replicas.iter_mut().zip(&of.replicas) {
            // The costs of the challenge are whole numbers.
            replica.move_cost = if of.failovers { *cost } else { cost.round() };
            replica.service = ServiceIx::new(*service);
            replica.role = if *service == 0 { Role::Primary } else { Role::Secondary };
        }
        cluster.services.resize_with(5.max(of.replicas.len()), || crate::cluster::Service {
            name: String::new(),
            allowed: None,
        });
    };
    builder.objective(objective).with(change).build()
}

type Sums =
    (Vec<Vec<Amount>>, Vec<Vec<Amount>>, Vec<Vec<u32>>, Vec<(u32, BTreeMap<usize, u32>)>, String);

/// Every sum. The text of a number is that of its bits.
fn sums(state: &State, costs: &Costs) -> Sums {
    let nodes = || 0..NODES;
    let mut on: Vec<Vec<u32>> = nodes().map(|node| state.replicas_on(node).to_vec()).collect();
    on.iter_mut().for_each(|on| on.sort_unstable());
    (
        nodes().map(|node| state.usage(node).to_vec()).collect(),
        nodes().map(|node| state.held(node).to_vec()).collect(),
        on,
        state.tallies.all_counts(),
        format!("{costs:?}"),
    )
}

enum Done {
    Shift(usize, NodeIx),
    Swap(usize, usize),
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn ways_back_restore_every_sum_to_the_bit(
        of in small(),
        steps in prop::collection::vec((any::<usize>(), any::<usize>(), any::<bool>()), 1..40),
    ) {
        let cluster = cluster(&of);
        let mut state = State::today(&cluster);
        let mut costs = Costs::new(&state);
        let before = sums(&state, &costs);
        let mut journal = Vec::new();
        for (one, other, is_swap) in steps {
            let one = one % of.replicas.len();
            let from = state.node_of(one).expect("it is placed");
            if is_swap {
                let other = other % of.replicas.len();
                if state.node_of(other) == Some(from) {
                    continue;
                }
                let change = costs.swap(&state, one, other);
                costs.apply_swap(&mut state, one, other, change);
                journal.push((Done::Swap(one, other), sums(&state, &costs)));
            } else {
                let to = NodeIx::new(other % NODES);
                if to == from {
                    continue;
                }
                let change = costs.shift(&state, one, to);
                costs.apply_shift(&mut state, one, to, change);
                journal.push((Done::Shift(one, from), sums(&state, &costs)));
            }
        }
        while let Some((done, after)) = journal.pop() {
            prop_assert_eq!(&sums(&state, &costs), &after);
            match done {
                Done::Shift(replica, from) => {
                    let change = costs.shift(&state, replica, from);
                    costs.apply_shift(&mut state, replica, from, change);
                }
                Done::Swap(one, other) => {
                    let change = costs.swap(&state, one, other);
                    costs.apply_swap(&mut state, one, other, change);
                }
            }
        }
        prop_assert_eq!(sums(&state, &costs), before);
        // The sums are those of the state, however it was reached.
        prop_assert_eq!(format!("{:?}", costs), format!("{:?}", Costs::new(&state)));
    }
}

//! The order in which a cluster's lists are written changes nothing that the search finds.

use placement::{
    Balance, Cluster, DomainIx, Failovers, GroupIx, LevelIx, Limits, MetricIx, NodeIx, NodeState,
    Objective, Reassignment, ReplicaIx, Role, Rule, ServiceIx, Soft, Swaps, bound, schedule,
    search,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Small {
    capacities: Vec<(i64, i64)>,
    states: Vec<u8>,
    domains: Vec<u8>,
    /// Node of today, two demands, move cost, allowed nodes as bits.
    replicas: Vec<(Option<usize>, i64, i64, f64, u8)>,
    /// Kind, group as bits, other group as bits, level, number.
    rules: Vec<(u8, u16, u16, bool, u32)>,
    fragmentation: f64,
    failovers: bool,
    /// Where each list starts and in which steps it is read.
    shuffles: [usize; 5],
}

fn small() -> impl Strategy<Value = Small> {
    (2..=5_usize).prop_flat_map(|nodes| {
        let replica = (
            prop::option::weighted(0.8, 0..nodes),
            0..6_i64,
            0..6_i64,
            prop_oneof![Just(1.0), Just(0.1), Just(2.7)],
            prop_oneof![3 => Just(0xff_u8), 1 => any::<u8>()],
        );
        let rule = (0..5_u8, any::<u16>(), any::<u16>(), any::<bool>(), 1..3_u32);
        (
            prop::collection::vec((6..16_i64, 6..16_i64), nodes),
            prop::collection::vec(prop_oneof![6 => Just(0_u8), 1 => Just(1), 1 => Just(2)], nodes),
            prop::collection::vec(0..3_u8, nodes),
            prop::collection::vec(replica, 1..=12),
            prop::collection::vec(rule, 0..=3),
            0.0..1.0_f64,
            any::<bool>(),
            any::<[usize; 5]>(),
        )
            .prop_map(
                |(
                    capacities,
                    states,
                    domains,
                    replicas,
                    rules,
                    fragmentation,
                    failovers,
                    shuffles,
                )| {
                    Small {
                        capacities,
                        states,
                        domains,
                        replicas,
                        rules,
                        fragmentation,
                        failovers,
                        shuffles,
                    }
                },
            )
    })
}

/// Positions 0 to n - 1 in an order that a number chooses: the Fisher-Yates shuffle.
fn shuffled(n: usize, mut by: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        order.swap(last, by % (last + 1));
        by /= last + 1;
    }
    order
}

/// The cluster, with its lists in these orders: nodes, replicas, services, groups, rules.
fn cluster(of: &Small, orders: [Vec<usize>; 5]) -> Cluster {
    let [nodes, replicas, services, groups, rules] = orders;
    let position = |order: &[usize], at: usize| {
        order.iter().position(|old| *old == at).expect("a permutation")
    };
    let mut builder = Cluster::builder("permuted").metric("a", false).metric("b", true);
    for node in &nodes {
        let (a, b) = of.capacities[*node];
        builder = builder.node(&format!("n{node}"), [Some(a), Some(b)]);
    }
    let domains: Vec<String> = nodes.iter().map(|node| format!("d{}", of.domains[*node])).collect();
    builder = builder.level("domain", domains.iter().map(String::as_str));
    for replica in &replicas {
        let (node, a, b, ..) = of.replicas[*replica];
        let node = node.map(|node| format!("n{node}"));
        builder = builder.replica(&format!("r{replica}"), node.as_deref(), [a, b]);
    }
    let change = |cluster: &mut Cluster| {
        for (node, old) in cluster.nodes.iter_mut().zip(&nodes) {
            node.state =
                [NodeState::Up, NodeState::Draining, NodeState::Down][of.states[*old] as usize];
        }
        for (service, old) in cluster.services.iter_mut().zip(&services) {
            service.name = format!("s{old}");
            let allowed = of.replicas[*old].4;
            service.allowed = Some(nodes.iter().map(|node| allowed >> node & 1 == 1).collect());
        }
        for (replica, old) in cluster.replicas.iter_mut().zip(&replicas) {
            replica.service = ServiceIx::new(position(&services, *old));
            replica.move_cost = of.replicas[*old].3;
            replica.role = if old % 3 == 0 { Role::Primary } else { Role::Secondary };
        }
        let members = |bits: u16| {
            let members = (0..of.replicas.len()).filter(move |r| bits >> r & 1 == 1);
            members.map(|member| ReplicaIx::new(position(&replicas, member))).collect()
        };
        for old in &groups {
            let (_, one, other, ..) = of.rules[old / 2];
            cluster.groups.push(placement::Group {
                name: format!("g{old}"),
                members: members(if old % 2 == 0 { one } else { other }),
            });
        }
        for old in &rules {
            let (kind, _, _, level, number) = of.rules[*old];
            let group = GroupIx::new(position(&groups, 2 * old));
            let to = GroupIx::new(position(&groups, 2 * old + 1));
            let level = if level { LevelIx::NODE } else { LevelIx::new(1) };
            cluster.rules.push(match kind {
                0 => Rule::PerDomain { group, level, most: number },
                1 => Rule::AtLeast { group, level, least: number },
                2 => Rule::AtMost { group, level, most: number },
                3 => Rule::Near { group, to, level },
                _ => Rule::Apart { group, from: to, level },
            });
        }
        cluster.objective = if of.failovers {
            let levels = vec![LevelIx::new(1)];
            let of_rules = rules.iter().map(|old| (old, of.rules[*old]));
            let mut soft: Vec<Soft> = of_rules
                .map(|(old, (_, one, other, level, most))| {
                    let group = |at: usize| GroupIx::new(position(&groups, at));
                    match level {
                        true => Soft::Preferred {
                            group: group(2 * old),
                            nodes: nodes.iter().map(|node| other >> node & 1 == 1).collect(),
                            weight: f64::from(one % 16) / 3.0,
                        },
                        false => {
                            let (group, level) = (group(2 * old + 1), LevelIx::new(1));
                            Soft::Spread { group, level, most, weight: 0.3 }
                        }
                    }
                })
                .collect();
            soft.push(Soft::Balance { weight: 3.0 * of.fragmentation });
            soft.push(Soft::Nodes { weight: of.fragmentation });
            // Members of a group may be on one node here, so that more than one pair is exchanged.
            let partitions = (0..groups.len()).map(GroupIx::new).collect();
            let swaps = Swaps { cost: 0.5, partitions };
            Objective::Failovers(Failovers {
                fragmentation: of.fragmentation,
                levels,
                swaps,
                soft,
                ..Failovers::default()
            })
        } else {
            let pair = Balance {
                first: MetricIx::new(0),
                second: MetricIx::new(1),
                target: 2,
                weight: 7.0,
            };
            Objective::Reassignment(Reassignment {
                load: vec![3.0, 10.0],
                safety: nodes.iter().map(|node| vec![3 + *node as i64, 4]).collect(),
                balance: vec![pair],
                replica_moves: 1.0,
                service_moves: 10.0,
                node_moves: 1.0,
                between: nodes
                    .iter()
                    .map(|from| nodes.iter().map(|to| ((from * 3 + to) % 5) as u32).collect())
                    .collect(),
            })
        };
    };
    builder.with(change).build()
}

/// What depends on names alone.
fn named(cluster: &Cluster, at: &[Option<NodeIx>]) -> Vec<(String, Option<String>)> {
    let node = |node: NodeIx| cluster.nodes[node.ix()].name.clone();
    let placed = cluster.replicas.iter().zip(at);
    let mut named: Vec<_> = placed.map(|(of, at)| (of.name.clone(), at.map(node))).collect();
    named.sort();
    named
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn order_of_the_lists_changes_nothing(of in small()) {
        let sizes = [
            of.capacities.len(),
            of.replicas.len(),
            of.replicas.len(),
            2 * of.rules.len(),
            of.rules.len(),
        ];
        let plain = cluster(&of, sizes.map(|n| (0..n).collect()));
        let mut at = 0;
        let permuted = cluster(&of, sizes.map(|n| {
            at += 1;
            shuffled(n, of.shuffles[at - 1])
        }));
        let (one, other) = (search(&plain, &Limits::rounds(2)), search(&permuted, &Limits::rounds(2)));
        prop_assert_eq!(named(&plain, &one.assignment), named(&permuted, &other.assignment));
        prop_assert_eq!(one.value.total.to_bits(), other.value.total.to_bits());
        prop_assert_eq!(one.bound.to_bits(), other.bound.to_bits());
        let sorted = |found: &placement::Found| {
            let mut texts: Vec<String> = found.violations.iter().map(ToString::to_string).collect();
            texts.sort();
            texts
        };
        prop_assert_eq!(sorted(&one), sorted(&other));
        // Alone, the bound adds numbers in the order of the lists.
        prop_assert!((bound(&plain) - bound(&permuted)).abs() <= 1e-9 * (1.0 + one.bound.abs()));
        let phases = schedule(&plain, &one.assignment).phases.len();
        prop_assert_eq!(phases, schedule(&permuted, &other.assignment).phases.len());
    }
}

#[test]
fn domains_of_a_level_may_be_listed_in_any_order() {
    let domains = |first: &str, second: &str, of: [usize; 3]| {
        let base = Cluster::builder("domains")
            .metric("a", false)
            .node("n1", [Some(10)])
            .node("n2", [Some(10)])
            .node("n3", [Some(10)])
            .level("rack", ["x", "x", "y"])
            .replica("r1", Some("n1"), [5])
            .replica("r2", Some("n2"), [5])
            .group("service", [0, 1])
            .rule(Rule::AtLeast { group: GroupIx::new(0), level: LevelIx::new(1), least: 2 })
            .build();
        let mut base = base;
        base.levels[1].domains = vec![first.to_owned(), second.to_owned()];
        base.levels[1].domain_of = of.map(DomainIx::new).to_vec();
        base
    };
    let one = search(&domains("x", "y", [0, 0, 1]), &Limits::rounds(1));
    let other = search(&domains("y", "x", [1, 1, 0]), &Limits::rounds(1));
    assert_eq!((one.assignment, one.value), (other.assignment, other.value));
}

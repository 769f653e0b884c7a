//! The search against every assignment of small random clusters, whose rules are checked here once
//! more, apart from the audit.

mod common;

use common::{DOWN, Small, has};
use placement::{
    Assignment, Cluster, Failovers, LevelIx, Limits, NodeIx, Objective, audit, bound, evaluate,
    search,
};
use proptest::prelude::*;

fn small() -> impl Strategy<Value = Small> {
    common::small(common::Shape {
        nodes: 2..=3,
        capacity: [4..12, 4..12],
        states: 4,
        domains: 2,
        replicas: 6,
        demand: [0..6, 0..6],
        placed: [0.7, 0.0],
        excludes: true,
        rules: 2,
    })
}

fn cluster(of: &Small, fragmentation: bool) -> Cluster {
    let fragmentation = if fragmentation { 0.05 } else { 0.0 };
    let levels = vec![LevelIx::new(1)];
    of.builder().objective(Objective::Failovers(Failovers { fragmentation, levels })).build()
}

/// The rules, from the description alone.
fn is_valid(of: &Small, at: &[usize]) -> bool {
    let placed = at.iter().zip(&of.replicas).all(|(node, replica)| {
        let takes = match of.states[*node] {
            0 => true,
            3 => replica.today == Some(*node),
            _ => false,
        };
        takes && has(replica.allowed, *node)
    });
    let fits = (0..of.capacities.len()).all(|node| {
        let lost = of.states[node] == DOWN;
        let (mut a, mut b, mut b_today, mut b_leaving) = (0, 0, 0, 0);
        for (now, replica) in at.iter().zip(&of.replicas) {
            if *now == node {
                a += replica.a;
                b += replica.b;
            }
            if replica.today == Some(node) {
                b_today += replica.b;
                if *now != node && !lost && of.transient {
                    b_leaving += replica.b;
                }
            }
        }
        // A node that is over its capacity today may stay so until its replicas have left.
        let (cap_a, cap_b) = of.capacities[node];
        let passes = b + b_leaving <= cap_b || (!lost && b + b_leaving <= b_today);
        a <= cap_a && b <= cap_b && passes
    });
    placed
        && fits
        && of.rules.iter().all(|rule| {
            let domains = |bits: u8| -> Vec<usize> {
                let members = (0..at.len()).filter(|r| has(bits, *r));
                members.map(|r| of.domain(rule, at[r])).collect()
            };
            let distinct = |mut of: Vec<usize>| {
                of.sort_unstable();
                of.dedup();
                of.len()
            };
            let (ours, others) = (domains(rule.one), domains(rule.other));
            match rule.kind {
                0 => ours.iter().all(|d| ours.iter().filter(|e| *e == d).count() <= rule.number),
                1 => distinct(ours) >= rule.number,
                2 => distinct(ours) <= rule.number,
                3 => ours.iter().all(|d| others.contains(d)),
                _ => ours.iter().all(|d| !others.contains(d)),
            }
        })
}

fn all(of: &Small) -> Vec<Vec<usize>> {
    let (nodes, replicas) = (of.capacities.len(), of.replicas.len());
    let count = nodes.pow(u32::try_from(replicas).expect("few"));
    let digits = |mut number: usize| {
        let digit = |_| {
            let digit = number % nodes;
            number /= nodes;
            digit
        };
        (0..replicas).map(digit).collect()
    };
    (0..count).map(digits).collect()
}

fn assignment(at: &[usize]) -> Assignment {
    at.iter().map(|node| Some(NodeIx::new(*node))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn audit_agrees_with_the_rules_on_every_assignment(of in small(), fragmentation in any::<bool>()) {
        let cluster = cluster(&of, fragmentation);
        for at in all(&of) {
            let found = audit(&cluster, &assignment(&at));
            prop_assert_eq!(found.is_empty(), is_valid(&of, &at), "{:?}: {:?}", at, found);
        }
    }

    #[test]
    fn no_valid_assignment_is_below_the_bound(of in small(), fragmentation in any::<bool>()) {
        let cluster = cluster(&of, fragmentation);
        let bound = bound(&cluster);
        for at in all(&of).into_iter().filter(|at| is_valid(&of, at)) {
            let value = evaluate(&cluster, &assignment(&at)).total;
            prop_assert!(value >= bound - 1e-9, "{:?}: {} below {}", at, value, bound);
        }
    }

    #[test]
    fn what_the_search_calls_valid_is_valid_and_whole(of in small(), fragmentation in any::<bool>()) {
        let cluster = cluster(&of, fragmentation);
        let found = search(&cluster, &Limits::rounds(1));
        if found.violations.is_empty() {
            let at: Vec<usize> =
                found.assignment.iter().map(|node| node.expect("it is placed").ix()).collect();
            prop_assert!(is_valid(&of, &at), "{:?}", at);
            prop_assert!(found.value.total >= found.bound - 1e-9);
        }
    }

    #[test]
    fn search_finds_the_least_weight_of_moves_and_whether_there_is_an_answer(of in small()) {
        let cluster = cluster(&of, false);
        let values = all(&of).into_iter().filter(|at| is_valid(&of, at));
        let best = values
            .map(|at| evaluate(&cluster, &assignment(&at)).total)
            .min_by(f64::total_cmp);
        let found = search(&cluster, &Limits::rounds(1));
        match best {
            Some(best) => {
                prop_assert!(found.violations.is_empty(), "{:?}", found.violations);
                prop_assert_eq!(found.value.total, best);
            }
            None => prop_assert!(!found.violations.is_empty()),
        }
    }
}

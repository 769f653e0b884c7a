//! The search against every assignment of small random clusters, whose rules are checked here once
//! more, apart from the audit.

use crate::common::{self, DOWN, Small, has};
use placement::{
    Assignment, Cluster, Evenness, Failovers, LevelIx, Limits, NodeIx, Objective, ServiceFabric,
    annealing, audit, bound, evaluate, search,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

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
    of.builder()
        .objective(Objective::Failovers(Failovers {
            fragmentation,
            levels,
            ..Failovers::default()
        }))
        .build()
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

/// (Average standard deviation + 0.001) (1 + moves / (replicas + 1000)), from the description alone: the
/// first metric weighs twice as much as the second.
fn energy(of: &Small, at: &[usize], weight: f64) -> f64 {
    // Draining and lost nodes hold nothing.
    let holds = |node: &usize| matches!(of.states[*node], 0 | 3);
    let nodes: Vec<usize> = (0..of.capacities.len()).filter(holds).collect();
    let deviation = |demand: &dyn Fn(usize) -> i64| {
        let load = |node: &usize| -> f64 {
            (0..at.len()).filter(|r| at[*r] == *node).map(|r| demand(r) as f64).sum()
        };
        let loads: Vec<f64> = nodes.iter().map(load).collect();
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        let squares: f64 = loads.iter().map(|load| (load - mean) * (load - mean)).sum();
        (squares / loads.len() as f64).sqrt()
    };
    let average = (2.0 * deviation(&|r| of.replicas[r].a) + deviation(&|r| of.replicas[r].b)) / 3.0;
    let moved = of
        .replicas
        .iter()
        .zip(at)
        .filter(|(replica, now)| replica.today.is_some_and(|today| today != **now));
    let cost: f64 = moved.map(|(replica, _)| f64::from(replica.move_cost)).sum();
    (average + 0.001) * (1.0 + weight * cost / (at.len() as f64 + 1_000.0))
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
    fn no_valid_assignment_is_below_the_bound_of_balance(of in small(), moves in 0..4_u8) {
        let mut cluster = cluster(&of, false);
        let weights = vec![1.0, 0.5];
        cluster.objective = Objective::Balance(Evenness { weights, moves: f64::from(moves), futures: None });
        let bound = bound(&cluster);
        for at in all(&of).into_iter().filter(|at| is_valid(&of, at)) {
            let value = energy(&of, &at, f64::from(moves));
            let found = evaluate(&cluster, &assignment(&at)).total;
            prop_assert!((found - value).abs() < 1e-9, "{:?}: {} is {}", at, found, value);
            prop_assert!(value >= bound - 1e-9, "{:?}: {} below {}", at, value, bound);
        }
    }

    #[test]
    fn annealing_keeps_what_holds_and_its_throttle(mut of in small(), most in 0..3_u64, share in 0..3_u8) {
        // Replicas of lost nodes break one rule today and another one without a node.
        of.states.iter_mut().for_each(|state| *state %= 2);
        let mut cluster = cluster(&of, false);
        cluster.objective = Objective::Balance(Evenness { weights: vec![1.0, 0.5], moves: 0.0, futures: None });
        let settings = ServiceFabric {
            most_moves: most,
            largest_share: f64::from(share) / 3.0,
            ..ServiceFabric::default()
        };
        let found = annealing(&cluster, &settings, &Limits::rounds(2));
        let today = cluster.today();
        let before = audit(&cluster, &today);
        // A broken rule about a replica of both its groups can be broken in another domain.
        let no_worse = found.violations.len() <= before.len() || !of.rules.is_empty();
        prop_assert!(no_worse, "{:?}", found.violations);
        if before.is_empty() {
            // Nothing is new or broken: the moves are those of balancing.
            let moved = today.iter().zip(&found.assignment).filter(|(from, to)| from != to).count();
            let of_share = today.len() * usize::from(share) / 3;
            prop_assert!(moved <= of_share.min(usize::try_from(most).expect("small")), "{}", moved);
            let value = evaluate(&cluster, &today).total;
            prop_assert!(found.value.total <= value + 1e-9);
            prop_assert_eq!(&found.violations, &[]);
        }
        let again = annealing(&cluster, &settings, &Limits::rounds(2));
        prop_assert_eq!(found.assignment, again.assignment);
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

/// Of the same 400 random clusters with room, how many end at the best of all assignments.
#[test]
fn with_room_most_balances_are_the_best_of_all_assignments() {
    let mut runner = TestRunner::deterministic();
    let (mut solved, mut best_found, mut worst) = (0, 0, 1.0_f64);
    for _ in 0..400 {
        let mut of = small().new_tree(&mut runner).expect("it is not filtered").current();
        of.rules.clear();
        of.capacities.fill((100, 100));
        let mut cluster = cluster(&of, false);
        cluster.objective =
            Objective::Balance(Evenness { weights: vec![1.0, 0.5], moves: 1.0, futures: None });
        let valid = all(&of).into_iter().filter(|at| is_valid(&of, at));
        let best = valid.map(|at| energy(&of, &at, 1.0)).min_by(f64::total_cmp);
        let found = search(&cluster, &Limits::rounds(3));
        let Some(best) = best else { continue };
        assert_eq!(found.violations, []);
        assert!(found.value.total >= best - 1e-9);
        solved += 1;
        best_found += usize::from(found.value.total <= best + 1e-9);
        worst = worst.max(found.value.total / best);
    }
    assert!(best_found * 100 >= solved * 99, "{best_found} of {solved}");
    assert!(worst <= 1.01, "{worst}");
}

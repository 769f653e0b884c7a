//! Weave's hard policies on tiny clusters, against rules written from figure 2 and every assignment.

use async_solver::backend::InProcess;
use placement::{Cluster, NodeState};
use policies::{Decides, Effort, Model, Outcome, Policies, Value, World, audit};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeSet;
use std::time::Duration;

const NODES: usize = 3;

const FILES: [(&str, &str); 8] = [
    ("capacity.sql", include_str!("../library/cluster/capacity.sql")),
    ("node_state.sql", include_str!("../library/cluster/node_state.sql")),
    ("allowed.sql", include_str!("../library/cluster/allowed.sql")),
    ("different_nodes.sql", include_str!("../library/cluster/different_nodes.sql")),
    ("near_cache.sql", include_str!("../library/cluster/near_cache.sql")),
    ("away_from_batch.sql", include_str!("../library/cluster/away_from_batch.sql")),
    ("one_zone.sql", include_str!("../library/cluster/one_zone.sql")),
    ("per_node.sql", include_str!("../library/cluster/per_node.sql")),
];
const SPARE: (&str, &str) = ("spare.sql", include_str!("../library/cluster/spare.sql"));

/// What the rules speak of.
#[derive(Clone, Debug)]
struct Tiny {
    capacity: Vec<i64>,
    state: Vec<NodeState>,
    zone: Vec<&'static str>,
    /// Service, node of today, demand.
    replicas: Vec<(&'static str, Option<usize>, i64)>,
    /// Replicas of `cache` run on these nodes only.
    cache_on: Option<Vec<bool>>,
    together: Vec<usize>,
}

impl Tiny {
    fn cluster(&self) -> Cluster {
        let mut builder = Cluster::builder("tiny").metric("cpu", false);
        for (node, capacity) in self.capacity.iter().enumerate() {
            builder = builder.node(&format!("n{node}"), [Some(*capacity)]);
        }
        builder = builder.level("zone", self.zone.iter().copied());
        for (number, (_, node, demand)) in self.replicas.iter().enumerate() {
            let node = node.map(|node| format!("n{node}"));
            builder = builder.replica(&format!("p{number}"), node.as_deref(), [*demand]);
        }
        builder
            .group("together", self.together.iter().copied())
            .with(|cluster| {
                for (node, state) in cluster.nodes.iter_mut().zip(&self.state) {
                    node.state = *state;
                }
                cluster.services.clear();
                for service in ["web", "cache", "batch"] {
                    let allowed = self.cache_on.clone().filter(|_| service == "cache");
                    let service = placement::Service { name: service.to_owned(), allowed };
                    cluster.services.push(service);
                }
                for (replica, (service, ..)) in cluster.replicas.iter_mut().zip(&self.replicas) {
                    let at = ["web", "cache", "batch"].iter().position(|own| own == service);
                    replica.service = placement::ServiceIx::new(at.expect("one of the three"));
                }
            })
            .build()
    }

    /// Whether an assignment satisfies the rule of each file.
    fn holds(&self, file: &str, nodes: &[usize]) -> bool {
        let on = || self.replicas.iter().zip(nodes.iter().copied());
        let used = |wanted: &str| -> BTreeSet<usize> {
            on().filter(|((service, ..), _)| *service == wanted).map(|(_, node)| node).collect()
        };
        match file {
            "capacity.sql" => (0..NODES).all(|node| self.spare(nodes, node) >= 0),
            "node_state.sql" => on().all(|((_, today, _), node)| match self.state[node] {
                NodeState::Up => true,
                NodeState::Closed => *today == Some(node),
                NodeState::Draining | NodeState::Down => false,
            }),
            "allowed.sql" => {
                self.cache_on.as_ref().is_none_or(|may| used("cache").iter().all(|node| may[*node]))
            }
            "different_nodes.sql" => {
                let own: BTreeSet<usize> = self.together.iter().map(|&at| nodes[at]).collect();
                own.len() == self.together.len()
            }
            "near_cache.sql" => used("web").is_subset(&used("cache")),
            "away_from_batch.sql" => used("web").is_disjoint(&used("batch")),
            "one_zone.sql" => ["web", "cache", "batch"].iter().all(|service| {
                used(service).iter().map(|node| self.zone[*node]).collect::<BTreeSet<_>>().len()
                    <= 1
            }),
            "per_node.sql" => ["web", "cache", "batch"].iter().all(|wanted| {
                (0..NODES).all(|node| {
                    on().filter(|((service, ..), at)| service == wanted && *at == node).count() <= 2
                })
            }),
            other => panic!("no rule for {other}"),
        }
    }

    fn spare(&self, nodes: &[usize], node: usize) -> i64 {
        let on = self.replicas.iter().zip(nodes).filter(|(_, at)| **at == node);
        self.capacity[node] - on.map(|((_, _, demand), _)| demand).sum::<i64>()
    }

    fn assignments(&self) -> impl Iterator<Item = Vec<usize>> + use<> {
        let count = self.replicas.len();
        (0..NODES.pow(u32::try_from(count).expect("few"))).map(move |mut number| {
            let digit = |_| {
                let node = number % NODES;
                number /= NODES;
                node
            };
            (0..count).map(digit).collect()
        })
    }
}

fn clusters() -> impl Strategy<Value = Tiny> {
    use NodeState::{Closed, Draining, Up};
    let state = prop_oneof![3 => Just(Up), 1 => Just(Closed), 1 => Just(Draining)];
    let service = prop_oneof![3 => Just("web"), 1 => Just("cache"), 1 => Just("batch")];
    let replica = (service, proptest::option::of(0..NODES), 1..4_i64);
    (
        proptest::collection::vec(2..8_i64, NODES),
        proptest::collection::vec(state, NODES),
        proptest::collection::vec(prop_oneof![Just("east"), Just("west")], NODES),
        proptest::collection::vec(replica, 3..5),
        proptest::option::of(proptest::collection::vec(any::<bool>(), NODES)),
        proptest::collection::btree_set(0..3_usize, 0..4),
    )
        .prop_map(|(capacity, state, zone, replicas, cache_on, together)| Tiny {
            capacity,
            state,
            zone,
            replicas,
            cache_on,
            together: together.into_iter().collect(),
        })
}

fn drawn(cases: u32) -> Vec<Tiny> {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]);
    let drawn = std::cell::RefCell::new(Vec::new());
    let ran = TestRunner::new_with_rng(config, rng).run(&clusters(), |tiny| {
        drawn.borrow_mut().push(tiny);
        Ok(())
    });
    ran.expect("clusters are drawn");
    drawn.into_inner()
}

fn values(nodes: &[usize]) -> Vec<Value> {
    nodes.iter().map(|node| Value::Text(format!("n{node}"))).collect()
}

fn compiled<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>, world: &World) -> Model {
    let policies = Policies::parse(files).unwrap_or_else(|error| panic!("{error}"));
    Model::compile(&policies, world).unwrap_or_else(|error| panic!("{error}"))
}

/// Of each policy: the compiled formulas and the rule agree on every assignment, and the library agrees on
/// some.
#[test]
fn each_policy_is_its_rule_on_every_assignment() {
    let (mut holds, mut fails) = ([0; FILES.len()], [0; FILES.len()]);
    for tiny in drawn(12) {
        let world = World::cluster(&tiny.cluster(), Decides::All).expect("a cluster");
        for (at, file) in FILES.into_iter().enumerate() {
            let model = compiled([file], &world);
            let policies = Policies::parse([file]).expect("SQL");
            for (number, nodes) in tiny.assignments().enumerate() {
                let rule = tiny.holds(file.0, &nodes);
                let broken = model.broken(&values(&nodes)).expect("options of the column");
                assert_eq!(broken.is_empty(), rule, "{}: {nodes:?}, {broken:?}, {tiny:?}", file.0);
                if rule {
                    holds[at] += 1
                } else {
                    fails[at] += 1
                }
                if number % 29 == 5 {
                    let after = world.with(&values(&nodes)).expect("one cell for each replica");
                    let found = audit(&policies, &after).unwrap_or_else(|error| panic!("{error}"));
                    let fails: usize = found.iter().map(|finding| finding.fails.len()).sum();
                    assert_eq!(fails, broken.len(), "{}: {nodes:?}, {found:?}, {tiny:?}", file.0);
                }
            }
        }
    }
    for (at, (name, _)) in FILES.iter().enumerate() {
        assert!(holds[at] > 0 && fails[at] > 0, "{name}: {} hold, {} fail", holds[at], fails[at]);
    }
}

/// All policies together, for the most even load; and every contradiction is one, and smallest.
#[test]
fn together_they_are_solved_to_the_optimum() {
    let (mut solved, mut impossible) = (0, 0);
    for tiny in drawn(24) {
        let world = World::cluster(&tiny.cluster(), Decides::All).expect("a cluster");
        // Half of the rules, so that more worlds can be.
        let some: Vec<_> = FILES.into_iter().skip(tiny.together.len() % 2).step_by(2).collect();
        let files: Vec<_> = some.iter().copied().chain([SPARE]).collect();
        let model = compiled(files, &world);
        let good = tiny.assignments().filter(|nodes| some.iter().all(|f| tiny.holds(f.0, nodes)));
        let least = |nodes: &[usize]| (0..NODES).map(|node| tiny.spare(nodes, node)).min();
        let best = good.filter_map(|nodes| least(&nodes)).max();
        let effort = Effort { time_limit: Duration::from_secs(60), seed: 1 };
        match model.solve(&InProcess, effort).expect("HiGHS solves tiny clusters") {
            Outcome::Solved(solution) => {
                let value = &solution.goals[0].value;
                assert_eq!(Some(value.to_f64()), best.map(|best| best as f64), "{tiny:?}");
                solved += 1;
            }
            Outcome::Impossible(rows) => {
                assert_eq!(best, None, "{rows:?} do not contradict in {tiny:?}");
                // By every assignment: together they leave nothing, without any one of them something.
                let broken: Vec<Vec<_>> = (tiny.assignments())
                    .map(|nodes| model.broken(&values(&nodes)).expect("options"))
                    .collect();
                assert!(
                    broken.iter().all(|of| of.iter().any(|row| rows.contains(row))),
                    "{rows:?}"
                );
                for (at, _) in rows.iter().enumerate() {
                    let mut rest = rows.clone();
                    rest.remove(at);
                    let left = broken.iter().any(|of| !of.iter().any(|row| rest.contains(row)));
                    assert!(left, "{rows:?}: row {at} is not needed");
                }
                impossible += 1;
            }
        }
    }
    assert!(solved >= 5 && impossible >= 3, "{solved} solved, {impossible} impossible");
}

/// Weave's figures 10 and 11: sums are sums of predicates, and all_different is a row for each node.
#[test]
fn sums_and_all_different_need_no_variables() {
    let (replicas, nodes) = (100, 50);
    let mut builder = Cluster::builder("figures").metric("cpu", false);
    for node in 0..nodes {
        builder = builder.node(&format!("n{node}"), [Some(1_000)]);
    }
    for number in 0..replicas {
        builder = builder.replica(&format!("p{number}"), None, [20 + number]);
    }
    let count = usize::try_from(replicas).expect("few");
    let cluster = builder.group("all", 0..count).build();
    let world = World::cluster(&cluster, Decides::All).expect("a cluster");
    let capacity = compiled([FILES[0]], &world).size().expect("small");
    assert_eq!((capacity.columns, capacity.rows), (count * nodes, count + nodes));
    let different = compiled([FILES[3]], &world).size().expect("small");
    assert_eq!((different.columns, different.rows), (count * nodes, count + nodes));
}

/// With pending replicas only, what runs is no variable.
#[test]
fn what_runs_does_not_add_to_the_program() {
    let pending = |running: usize| {
        let mut builder = Cluster::builder("c").metric("cpu", false);
        for node in 0..NODES {
            builder = builder.node(&format!("n{node}"), [Some(100)]);
        }
        for number in 0..running {
            builder = builder.replica(&format!("old{number}"), Some("n0"), [3]);
        }
        for number in 0..2 {
            builder = builder.replica(&format!("new{number}"), None, [50]);
        }
        let world = World::cluster(&builder.build(), Decides::Pending).expect("a cluster");
        compiled([FILES[0]], &world).size().expect("small")
    };
    assert_eq!(pending(1), pending(10));
    assert_eq!(pending(0).columns, 2 * NODES);
}

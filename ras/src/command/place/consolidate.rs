//! `ras place consolidate`

use super::answer::Answer;
use super::read;
use super::running::Running;
use crate::cli::{Consolidate, Consolidator, NodePolicy};
use crate::context::Context;
use crate::exit::Verdict;
use crate::interrupt;
use anyhow::Result;
use datasets::cluster::ConsolidationFile;
use placement::vro::{self, Exchange, Offline, empty_nodes};
use placement::{Found, Limits, NodeIx, Objective, consolidate, emptied_bound};

pub(super) fn run(options: &Consolidate, context: &Context) -> Result<Verdict> {
    let mut cluster = read(&options.input, &options.server, context)?;
    cluster.objective = Objective::FewestNodes;
    let placed = cluster.replicas.iter().filter(|replica| replica.node.is_some());
    let all: f64 = placed.map(|replica| replica.move_cost).sum();
    let budget = all * options.budget;
    interrupt::listen()?;
    let search = Running::start(options.deadline, context);
    let limits = Limits {
        seed: options.seed,
        rounds: None,
        deadline: Some(options.deadline),
        gap: 0.0,
        threads: 1,
        elapsed: &|| search.elapsed(),
        interrupted: &interrupt::asked,
        progress: &|progress| search.tell(progress),
    };
    let done = match options.engine {
        Consolidator::Search => consolidate(&cluster, budget, &limits),
        Consolidator::Vro => empty_nodes(&cluster, budget, &offline(options.policy)),
    };
    let name = |node: &NodeIx| cluster.nodes[node.ix()].name.as_str();
    let emptied: Vec<&str> = done.emptied.iter().map(name).collect();
    let most = emptied_bound(&cluster, budget);
    let mut found = Found::new(&cluster, done.assignment, 0.0);
    // The value is the number of nodes in use.
    found.bound = found.value.total - most.saturating_sub(emptied.len()) as f64;
    let consolidation = ConsolidationFile { budget, cost: done.cost, emptied, bound: most };
    let ended = search.end(&found);
    let consolidation = Some(consolidation);
    Answer { cluster: &cluster, found: &found, ended, consolidation }.write(&options.out, context)
}

/// The policies of Eigen exchange replicas between nodes too; the others only migrate them.
fn offline(policy: NodePolicy) -> Offline {
    let policy = vro::Policy::from(policy);
    let exchange = matches!(policy, vro::Policy::Vro(_)).then(Exchange::default);
    Offline { policy, exchange }
}

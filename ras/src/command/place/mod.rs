//! `ras place`

mod answer;
mod consolidate;
mod explain;
mod input;
mod running;
mod simulate;
mod text;

use crate::cli::{ClusterInput, Engine, NodePolicy, Place, PlaceAction, ServerOptions};
use crate::context::Context;
use crate::exit::Verdict;
use crate::interrupt;
use crate::terminal::say;
use answer::Answer;
use anyhow::{Context as _, Result};
use datasets::cluster::roadef;
use placement::vro::{self, Norm, Skewness, Vro, place_new};
use placement::{Cluster, Found, Limits, ServiceFabric, annealing, bound};
use running::Running;

pub(super) fn run(options: &Place, context: &Context) -> Result<Verdict> {
    match &options.action {
        Some(PlaceAction::Consolidate(options)) => return consolidate::run(options, context),
        Some(PlaceAction::Explain(options)) => return explain::run(options, context),
        Some(PlaceAction::Simulate(options)) => return simulate::run(options, context),
        None => {}
    }
    // Both are required where there is no action.
    let server = &options.server;
    let (input, options) =
        options.input.as_ref().zip(options.search.as_ref()).context("no CLUSTER")?;
    let cluster = read(input, server, context)?;
    interrupt::listen()?;
    let search = Running::start(options.deadline, context);
    let limits = Limits {
        seed: options.seed,
        rounds: None,
        deadline: Some(options.deadline),
        gap: options.gap,
        threads: options.threads.into(),
        elapsed: &|| search.elapsed(),
        interrupted: &interrupt::asked,
        progress: &|progress| search.tell(progress),
    };
    let found = match options.engine {
        Engine::Search => placement::search(&cluster, &limits),
        Engine::Annealing => annealing(&cluster, &ServiceFabric::default(), &limits),
        Engine::Vro => {
            let assignment = place_new(&cluster, options.policy.into());
            Found::new(&cluster, assignment, bound(&cluster))
        }
    };
    let ended = search.end(&found);
    let answer = Answer { cluster: &cluster, found: &found, ended, consolidation: None };
    if input.assignment.is_some() {
        // The search takes no process off its machine for good.
        let nodes: Option<Vec<_>> = found.assignment.iter().copied().collect();
        let nodes = nodes.context("a process has no machine")?;
        roadef::write(&options.out.join("assignment.txt"), &nodes)?;
    }
    answer.write(&options.out, context)
}

/// The cluster of an input; what of the input is not read is said.
fn read(options: &ClusterInput, server: &ServerOptions, context: &Context) -> Result<Cluster> {
    let (cluster, notes) = input::read(options, server)?;
    if !context.global.quiet {
        notes.iter().for_each(|note| say(&format!("note: {note}")));
    }
    Ok(cluster)
}

impl From<NodePolicy> for vro::Policy {
    fn from(policy: NodePolicy) -> vro::Policy {
        let vro = |skewness| vro::Policy::Vro(Vro::new(skewness));
        match policy {
            NodePolicy::DotProduct => vro(Skewness::DotProduct),
            NodePolicy::Diagonal => vro(Skewness::Diagonal),
            NodePolicy::Bottleneck => vro(Skewness::Bottleneck),
            NodePolicy::FirstFit => vro::Policy::FirstFit,
            NodePolicy::BestFit => vro::Policy::BestFit(Norm::L2),
            NodePolicy::MostAllocated => vro::Policy::MostAllocated,
            NodePolicy::RequestedToCapacityRatio => vro::Policy::requested_to_capacity_ratio(),
        }
    }
}

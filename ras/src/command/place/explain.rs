//! `ras place explain`

use super::input::read;
use crate::cli::ExplainReplica;
use crate::command::explain_result::among;
use crate::context::Context;
use crate::exit::Verdict;
use anyhow::{Result, bail};
use datasets::cluster::read_assignment;
use placement::{ReplicaIx, explain};

pub(super) fn run(options: &ExplainReplica, context: &Context) -> Result<Verdict> {
    let (cluster, _) = read(&options.input, &options.server)?;
    let names = || cluster.replicas.iter().map(|replica| replica.name.as_str());
    let Some(replica) = names().position(|name| name == options.replica) else {
        bail!("no replica {:?}{}", options.replica, among(names(), &options.replica, "cluster"));
    };
    let assignment = match &options.placement {
        Some(path) if path.is_dir() => read_assignment(&path.join("placement.json"), &cluster)?,
        Some(file) => read_assignment(file, &cluster)?,
        None => cluster.today(),
    };
    let explanation = explain(&cluster, &assignment, ReplicaIx::new(replica));
    context.answer(|| explanation.to_string(), &explanation)?;
    Ok(Verdict::fine_if(explanation.node.is_some()))
}

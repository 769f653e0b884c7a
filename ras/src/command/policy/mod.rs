//! `ras policy`

mod cases;
mod check;
mod diff;
mod solve;
mod tried;

use super::api::policy;
use crate::cli::{DecidedReplicas, PoliciesOf, PolicyCommand, WorldOf};
use crate::context::Context;
use crate::exit::Verdict;
use crate::results::read_snapshot;
use anyhow::{Context as _, Result};
use fleet::RegionSnapshot;
use policies::{Decides, Kind, Policies, World};
use std::fs;
use std::path::{Path, PathBuf};

/// Where a snapshot has its policies.
const FOLDER: &str = "policies";

pub(super) fn run(command: &PolicyCommand, context: &Context) -> Result<Verdict> {
    match command {
        PolicyCommand::Check(options) => check::run(options, context),
        PolicyCommand::Solve(options) => solve::run(options, context),
        PolicyCommand::Test(options) => cases::run(options, context),
        PolicyCommand::Try(options) => tried::run(options, context),
        PolicyCommand::Diff(options) => diff::run(options, context),
        PolicyCommand::Apply(options) => policy::apply(options, context),
        PolicyCommand::List { server } => policy::list(server, context),
        PolicyCommand::Show { policy: name, version, server } => {
            policy::show(name, *version, server, context)
        }
        PolicyCommand::Withdraw { policy: name, why, server } => {
            policy::withdraw(name, why.as_deref(), server, context)
        }
    }
}

fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))
}

/// Files of policies, in the order given.
fn parse(files: &[PathBuf]) -> Result<Policies> {
    parse_with(&[], files)
}

/// Policies that come with the program, then those of files.
fn parse_with(own: &[(&str, &str)], files: &[PathBuf]) -> Result<Policies> {
    let mut read = Vec::new();
    for path in files {
        read.push((path.display().to_string(), text(path)?));
    }
    let read = read.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    Ok(Policies::parse(own.iter().copied().chain(read))?)
}

/// The files of policies of a snapshot, in order of their names.
fn files_of(snapshot: &Path) -> Result<Vec<PathBuf>> {
    let folder = snapshot.join(FOLDER);
    let mut files = Vec::new();
    match fs::read_dir(&folder) {
        Ok(entries) => {
            for entry in entries {
                let path = entry.with_context(|| folder.display().to_string())?.path();
                if path.extension().is_some_and(|end| end == "sql") {
                    files.push(path);
                }
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| folder.display().to_string()),
    }
    files.sort_unstable();
    Ok(files)
}

fn region(folder: &Path) -> Result<(World, RegionSnapshot)> {
    let extra = datasets::read_extra(folder)
        .with_context(|| format!("cannot read snapshot {}", folder.display()))?;
    let region = read_snapshot(folder)?;
    let world = World::region_with(&region, &extra);
    Ok((world.with_context(|| folder.display().to_string())?, region))
}

/// Policies and their world, with the region where the world is one.
fn read(of: &PoliciesOf) -> Result<(Policies, World, Option<RegionSnapshot>)> {
    let (world, region) = read_world(&of.world, of.decide)?;
    let mut files = of.policies.clone();
    if files.is_empty() {
        files = of.world.snapshot.as_deref().map(files_of).transpose()?.unwrap_or_default();
    }
    anyhow::ensure!(
        !files.is_empty(),
        "there is no policy: name a FILE, or put files into {FOLDER}/*.sql of the snapshot"
    );
    Ok((parse(&files)?, world, region))
}

fn read_world(of: &WorldOf, decide: DecidedReplicas) -> Result<(World, Option<RegionSnapshot>)> {
    let world = if let Some(folder) = &of.snapshot {
        let (world, region) = region(folder)?;
        return Ok((world, Some(region)));
    } else if let Some(path) = &of.cluster {
        let cluster = datasets::cluster::read(path)?;
        let decides = match decide {
            DecidedReplicas::Pending => Decides::Pending,
            DecidedReplicas::All => Decides::All,
            DecidedReplicas::AllOrNone => Decides::AllOrNone,
        };
        World::cluster(&cluster, decides).with_context(|| path.display().to_string())?
    } else {
        // Clap requires one of the three.
        let path = of.world.as_ref().context("no world")?;
        World::parse(&text(path)?).with_context(|| path.display().to_string())?
    };
    Ok((world, None))
}

/// Pairs of an open server, or replica, and one of its options.
fn pairs(world: &World) -> usize {
    let decided = world.decided();
    let open = decided.open.iter().filter(|open| **open).count();
    open.saturating_mul(decided.options.len())
}

fn kind(of: Kind) -> &'static str {
    match of {
        Kind::View => "view",
        Kind::Hard => "hard",
        Kind::Soft { .. } => "soft",
    }
}

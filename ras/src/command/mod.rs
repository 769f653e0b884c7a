//! The subcommands: each reads, calls and writes.

mod api;
mod apply;
mod audit;
mod contract;
mod demo;
mod drill;
mod emergency;
mod explain;
mod export;
mod generate;
mod import;
mod import_snapshot;
mod inspect;
mod loans;
mod maintenance;
mod mover;
mod moves;
mod outages;
mod plan;
mod publish;
mod replacements;
mod replay;
mod replay_tables;
mod report;
mod request_solve;
mod shell;
mod solve;
mod status;
mod token;
mod up;
mod worker;

pub(crate) use export::write as write_export;
pub use report::write_text;

use crate::cli::{Command, Global, Import, Kind, Output};
use crate::overrides::Overrides;
use anyhow::{Context as _, Result};
use fleet::{RegionSnapshot, Targets};
use serde::Serialize;
use serde_json::Value;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Instant;

/// Context of every subcommand.
pub struct Context {
    /// When the process began.
    pub began: Instant,
    /// The options of every subcommand.
    pub global: Global,
}

/// The outcome of a subcommand that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Success.
    Fine,
    /// A reservation is short, a rule is broken, or the request was refused.
    Short,
    /// Its input is out of date: nothing was done.
    Stale,
}

impl Verdict {
    fn fine_if(fine: bool) -> Verdict {
        if fine { Verdict::Fine } else { Verdict::Short }
    }
}

/// Runs a subcommand.
///
/// # Errors
/// Any failure, with its chain of causes.
pub fn run(command: Command, context: &Context) -> Result<Verdict> {
    match command {
        Command::Import(Import::Csv(options)) => import::run(&options, context),
        Command::Generate(options) => generate::run(&options, context),
        Command::Solve(options) => solve::run(&options, context),
        Command::Audit(options) => audit::run(&options, context),
        Command::Report(options) => report::run(&options, context),
        Command::Explain(options) => explain::run(&options, context),
        Command::Plan(options) => plan::run(&options, context),
        Command::Apply(options) => apply::run(&options, context),
        Command::Login(options) => api::login::login(&options, context),
        Command::Logout(options) => api::login::logout(&options, context),
        Command::Request(options) => api::request::run(&options.action, context),
        Command::Get(options) => api::read::get(&options, context),
        Command::List(options) => api::read::list(&options, context),
        Command::Events(options) => api::read::one(Kind::Events, &options, context),
        Command::Solves(options) => api::read::one(Kind::Solves, &options, context),
        Command::Inspect(options) => inspect::run(&options, context),
        Command::Demo(options) => demo::run(&options, context),
        Command::Bench { .. } => anyhow::bail!(
            "the benchmark is a separate program: cargo run --release -p bench -- --help"
        ),
        Command::Import(Import::Snapshot(options)) => import_snapshot::run(&options, context),
        Command::Up(options) => up::run(&options, context),
        Command::Worker(options) => worker::run(&options, context),
        Command::Mover(options) => mover::run(&options, context),
        Command::Moves(options) => moves::run(&options, context),
        Command::Replacements(options) => replacements::run(&options, context),
        Command::Outages(options) => outages::run(&options, context),
        Command::Loans(options) => loans::run(&options, context),
        Command::Emergency(action) => emergency::run(&action, context),
        Command::Drill(options) => drill::run(&options, context),
        Command::Contract(options) => contract::run(&options, context),
        Command::Maintenance(options) => maintenance::run(&options, context),
        Command::Token(options) => token::run(&options, context),
        Command::Profile(options) => api::profile::run(&options.action, context),
        Command::Region(options) => api::region::region(&options.action, context),
        Command::Buffer(options) => api::region::buffer(&options.action, context),
        Command::Elastic(options) => api::region::elastic(&options.action, context),
        Command::Quota(options) => api::region::quota(&options.action, context),
        Command::Hardware(options) => api::region::hardware(&options.action, context),
        Command::Server(options) => api::region::servers(&options.action, context),
        Command::RequestSolve(options) => request_solve::run(&options, context),
        Command::Replay(options) => replay::run(&options, context),
        Command::Status(options) => status::run(&options, context),
        Command::Export(options) => export::run(&options, context),
        Command::Publish(options) => publish::run(&options, context),
        Command::Openapi => print(&capacity_portal::openapi()).map(|()| Verdict::Fine),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man => shell::man(),
        Command::HighsWorker { memory_limit } => {
            crate::highs_process::worker::run(memory_limit).map(|()| Verdict::Fine)
        }
    }
}

impl Context {
    /// Prints the answer in the form asked for.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn answer(&self, text: impl FnOnce() -> String, json: &impl Serialize) -> Result<()> {
        match self.global.output {
            Output::Text if self.global.quiet => Ok(()),
            Output::Text => print(&text()),
            Output::Json | Output::Yaml => self.document(json),
        }
    }

    /// Prints the document if the output format asks for one.
    pub(crate) fn document(&self, json: &impl Serialize) -> Result<()> {
        match self.global.output {
            Output::Text => Ok(()),
            Output::Json => {
                print(&serde_json::to_string_pretty(json).context("writing the answer")?)
            }
            Output::Yaml => print(&yaml(json)?),
        }
    }
}

/// Converts JSON to YAML.
fn yaml(json: &impl Serialize) -> Result<String> {
    // Via JSON, so that both formats agree.
    let value = serde_json::to_value(json).context("writing the answer")?;
    serde_saphyr::to_string(&value).context("writing the answer")
}

/// Prints to standard output. A closed pipe is not an error.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.trim_end().as_bytes()).and_then(|()| out.write_all(b"\n"));
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("writing the answer"),
    }
}

/// Reads a snapshot.
///
/// # Errors
/// If it is missing or damaged.
pub fn read_snapshot(folder: &Path) -> Result<RegionSnapshot> {
    datasets::read_snapshot(folder)
        .with_context(|| format!("cannot read snapshot {}", folder.display()))
}

/// A result, and the region with the overrides of its solve.
pub(crate) struct Solved {
    pub(crate) snapshot: RegionSnapshot,
    pub(crate) targets: Targets,
    pub(crate) report: Value,
}

pub(crate) fn read_solved(snapshot: &Path, result: &Path) -> Result<Solved> {
    let name = || format!("cannot read result {}", result.display());
    let report = datasets::read_report(result).with_context(name)?;
    let overrides = Overrides::of_report(&report).with_context(name)?;
    let snapshot = overrides.apply(read_snapshot(snapshot)?)?.ahead();
    let targets = datasets::read_assignment(result, &snapshot).with_context(name)?;
    Ok(Solved { snapshot, targets, report })
}

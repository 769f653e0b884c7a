//! The subcommands: each reads, calls and writes.

mod api;
mod audit;
mod contract;
mod demo;
mod emergency;
mod explain_result;
mod export;
mod generate;
mod import;
mod import_snapshot;
mod inspect;
mod loans;
mod maintenance;
mod mover;
mod moves;
mod next;
mod outages;
mod plan_snapshot;
mod publish;
mod rehearse;
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

use crate::cli::{
    Command, Global, OpsCommand, Output, RegionCommand, ResultCommand, SnapshotCommand,
};
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
        Command::Snapshot(command) => snapshot(&command, context),
        Command::Solve(options) => solve::run(&options, context),
        Command::Result(command) => result(&command, context),
        Command::Login(options) => api::login::login(&options, context),
        Command::Logout(options) => api::login::logout(&options, context),
        Command::Request(options) => api::request::run(&options.action, context),
        Command::Plan(options) => api::plan::run(&options, context),
        Command::Apply(options) => api::apply::run(&options, context),
        Command::Explain(options) => api::explain::run(&options, context),
        Command::Get(options) => api::read::get(&options, context),
        Command::List(options) => api::read::list(&options, context),
        Command::Ops(command) => ops(&command, context),
        Command::Region(command) => region(&command, context),
        Command::Token(options) => token::run(&options, context),
        Command::Status(options) => status::run(&options, context),
        Command::Up(options) => up::run(&options, context),
        Command::Worker(options) => worker::run(&options, context),
        Command::Mover(options) => mover::run(&options, context),
        Command::Demo(options) => demo::run(&options, context),
        Command::Openapi => print(&capacity_portal::openapi()).map(|()| Verdict::Fine),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man => shell::man(),
        Command::HighsWorker { memory_limit } => {
            crate::highs_process::worker::run(memory_limit).map(|()| Verdict::Fine)
        }
    }
}

fn snapshot(command: &SnapshotCommand, context: &Context) -> Result<Verdict> {
    match command {
        SnapshotCommand::Import(options) => import::run(options, context),
        SnapshotCommand::Generate(options) => generate::run(options, context),
        SnapshotCommand::Inspect(options) => inspect::run(options, context),
        SnapshotCommand::Plan(options) => plan_snapshot::run(options, context),
        SnapshotCommand::Next(options) => next::run(options, context),
        SnapshotCommand::Rehearse(options) => rehearse::run(options, context),
        SnapshotCommand::Load(options) => import_snapshot::run(options, context),
        SnapshotCommand::Export(options) => export::run(options, context),
    }
}

fn result(command: &ResultCommand, context: &Context) -> Result<Verdict> {
    match command {
        ResultCommand::Audit(options) => audit::run(options, context),
        ResultCommand::Explain(options) => explain_result::run(options, context),
        ResultCommand::Report(options) => report::run(options, context),
        ResultCommand::Publish(options) => publish::run(options, context),
    }
}

fn ops(command: &OpsCommand, context: &Context) -> Result<Verdict> {
    match command {
        OpsCommand::Moves(options) => moves::run(options, context),
        OpsCommand::Maintenance(options) => maintenance::run(options, context),
        OpsCommand::Emergency(action) => emergency::run(action, context),
        OpsCommand::Replacements(options) => replacements::run(options, context),
        OpsCommand::Outages(options) => outages::run(options, context),
        OpsCommand::Loans(options) => loans::run(options, context),
        OpsCommand::Drill(options) => api::drill::run(options, context),
        OpsCommand::Contract(options) => contract::run(options, context),
        OpsCommand::Solve(options) => request_solve::run(options, context),
        OpsCommand::Replay(options) => replay::run(options, context),
    }
}

fn region(command: &RegionCommand, context: &Context) -> Result<Verdict> {
    match command {
        RegionCommand::Settings(action) => api::region::region(action, context),
        RegionCommand::Server(options) => api::region::servers(&options.action, context),
        RegionCommand::Hardware(options) => api::region::hardware(&options.action, context),
        RegionCommand::Buffer(options) => api::region::buffer(&options.action, context),
        RegionCommand::Elastic(options) => api::region::elastic(&options.action, context),
        RegionCommand::Quota(options) => api::region::quota(&options.action, context),
        RegionCommand::Profile(options) => api::profile::run(&options.action, context),
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

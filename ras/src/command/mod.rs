//! The subcommands: each reads, calls and writes.

mod api;
mod audit;
mod config;
mod demo;
mod explain_result;
mod forecast;
mod generate;
mod import;
mod inspect;
mod live;
mod next;
mod place;
mod plan_snapshot;
#[cfg(feature = "policies")]
mod policy;
mod rehearse;
mod report;
mod shell;
mod solve;
mod store;

use crate::cli::{Command, OpsCommand, Output, RegionCommand, ResultCommand, SnapshotCommand};
use crate::context::Context;
use crate::exit::Verdict;
use crate::mistake::Hinted;
use crate::terminal::print;
use anyhow::{Result, ensure};

/// Runs a subcommand.
///
/// # Errors
/// Any failure, with its chain of causes.
pub fn run(command: Command, context: &Context) -> Result<Verdict> {
    ensure!(
        context.global.output != Output::Csv || matches!(command, Command::List(_)),
        Hinted::new("--output csv prints rows, which only `ras list` has", "use --output json")
    );
    match command {
        Command::Snapshot(command) => snapshot(&command, context),
        Command::Solve(options) => solve::run(&options, context),
        Command::Result(command) => result(&command, context),
        Command::Place(options) => place::run(&options, context),
        #[cfg(feature = "policies")]
        Command::Policy(command) => policy::run(&command, context),
        Command::Forecast(command) => forecast::run(&command, context),
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
        Command::Token(options) => api::token::run(&options, context),
        Command::Status(options) => api::status::run(&options, context),
        Command::Up(options) => store::up::run(&options, context),
        Command::Worker(options) => store::worker::run(&options, context),
        Command::Mover(options) => store::mover::run(&options, context),
        Command::Demo(options) if options.live => live::run(options.pace, context),
        Command::Demo(options) => demo::run(&options, context),
        Command::Openapi => print(&capacity_portal::openapi()).map(|()| Verdict::Fine),
        Command::Completions { shell } => shell::completions(shell),
        Command::Config(action) => config::run(&action, context),
        Command::Man { out: None } => shell::man(),
        Command::Man { out: Some(folder) } => shell::manual(&folder),
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
        SnapshotCommand::Load(options) => store::load::run(options, context),
        SnapshotCommand::Export(options) => store::export::run(options, context),
    }
}

fn result(command: &ResultCommand, context: &Context) -> Result<Verdict> {
    match command {
        ResultCommand::Audit(options) => audit::run(options, context),
        ResultCommand::Explain(options) => explain_result::run(options, context),
        ResultCommand::Report(options) => report::run(options, context),
        ResultCommand::Publish(options) => store::publish::run(options, context),
    }
}

fn ops(command: &OpsCommand, context: &Context) -> Result<Verdict> {
    match command {
        OpsCommand::Moves(options) => api::moves::run(options, context),
        OpsCommand::Maintenance(options) => api::maintenance::run(options, context),
        OpsCommand::Emergency(action) => api::emergency::run(action, context),
        OpsCommand::Replacements(options) => api::replacements::run(options, context),
        OpsCommand::Outages(options) => api::outages::run(options, context),
        OpsCommand::Loans(options) => api::loans::run(options, context),
        OpsCommand::Drill(options) => api::drill::run(options, context),
        OpsCommand::Contract(options) => api::contract::run(options, context),
        OpsCommand::Solve(options) => api::solve::run(options, context),
        OpsCommand::Request(decision) => api::request::decide(decision, context),
        OpsCommand::Replay(options) => store::replay::run(options, context),
    }
}

fn region(command: &RegionCommand, context: &Context) -> Result<Verdict> {
    match command {
        RegionCommand::Settings(action) => api::region::region(action, context),
        RegionCommand::Server(options) => api::region::servers(&options.action, context),
        RegionCommand::Hardware(options) => api::region::hardware(&options.action, context),
        RegionCommand::Order(options) => api::hardware_order::run(options, context),
        RegionCommand::Buffer(options) => api::buffer::run(&options.action, context),
        RegionCommand::Elastic(options) => api::region::elastic(&options.action, context),
        RegionCommand::Quota(options) => api::region::quota(&options.action, context),
        RegionCommand::Profile(options) => api::profile::run(&options.action, context),
    }
}

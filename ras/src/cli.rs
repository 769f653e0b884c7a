//! The command line: arguments and help texts. This module only defines arguments; each subcommand
//! is implemented in [`crate::command`].

mod apply;
mod autosize;
mod buffer;
mod config;
mod contract;
mod files;
mod forecast;
mod groups;
mod hardware_order;
mod incidents;
mod inventory;
mod maintenance;
mod mover;
mod place;
mod plan;
#[cfg(feature = "policies")]
mod policy;
mod postgres;
mod profile;
mod read;
mod region;
mod request;
mod server;
mod solving;
mod store;
mod token;

pub use apply::{Apply, Explain, ExplainResult, Next};
pub use autosize::{AutosizeAction, AutosizeOf, SetAutosize};
pub use buffer::{
    Buffer, BufferAction, BufferAutosizeAction, BufferAutosizeOf, SetBufferAutosize, WarmChance,
};
pub use config::ConfigAction;
pub use contract::{ContractAction, ContractOf, SetContract};
pub use files::{Audit, Demo, FleetProfile, Generate, Inspect, Report, Solve, State};
pub use forecast::{
    AutosizeForecast, AutosizePolicies, DailySeries, Decisions, DemandForecast, ForecastCommand,
    Lead, OrdersForecast, OrdersPolicies, PlanForecast, RegionHistory, ReplayForecast,
    ReportForecast, SeriesFile, SparesForecast, SparesPolicies, WarmForecast,
};
pub use groups::{OpsCommand, RegionCommand, ResultCommand, SnapshotCommand, new_name};
pub use hardware_order::{
    AddOrders, ApplyOrders, ChangeOrder, HardwareOrderAction, HardwareOrderOf, OneOrder,
};
pub use incidents::{
    Drill, EmergencyAction, Loans, Outages, OutagesAction, Rehearse, Replacements,
};
pub use inventory::{ImportCsv, LogOptions};
pub use maintenance::{
    Begin, ListMaintenance, Maintenance, MaintenanceAction, PlanMaintenance, StopMaintenance,
};
pub use mover::{AgentPlace, Mover, MoverOptions, Moves, MovesAction};
pub use place::{
    ClusterInput, Consolidate, Consolidator, Engine, ExplainReplica, NodePolicy, Place,
    PlaceAction, Search, Simulate, Technique,
};
pub use plan::{Plan, PlanSnapshot};
#[cfg(feature = "policies")]
pub use policy::{
    ApplyPolicies, CheckPolicies, DecidedReplicas, DiffPolicies, PoliciesOf, PolicyCommand,
    SolvePolicies, TestPolicies, TryPolicies, WorldOf,
};
pub use postgres::StoreOptions;
pub use profile::{Profile, ProfileAction};
pub use read::{Filter, Get, Kind, List, One, TableOptions, Watching};
pub use region::{
    Elastic, ElasticAction, Hardware, HardwareAction, OrRule, Quota, QuotaAction, RegionAction,
    ServerAction, ServerEdit, ServerFile, SetElastic, SetQuota, SetRegion,
};
pub use request::{
    AskingOptions, CancelRequest, ChangeOptions, CreateRequest, DeleteRequest, OrNever, OrRegion,
    Policy, Request, RequestAction, RequestDecision, ResizeRequest,
};
pub use server::{Gone, Login, Logout, NetworkOptions, Secret, ServerOptions, Waiting, gone};
pub use solving::{OverrideOptions, SolveOptions};
pub use store::{
    Export, ImportSnapshot, Listen, Publish, Replay, RequestSolve, ScheduleOptions, SolveDecision,
    Status, Up, Worker, WorkerOptions,
};
pub use token::{CreateToken, FirstToken, ListTokens, RevokeToken, Token, TokenAction};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  an error: nothing was written, or the result is today's assignment
  2  done, but a reservation is short, the audit found a broken rule, or the request was refused
  3  the plan or the data read is out of date: nothing was changed

Folders:
  SNAPSHOT  a region at one instant: region.json and Parquet tables (ras-snapshot/2 or /3)
  RESULT    a solve: assignment.parquet and report.json (ras-solve/1)

Example, from nothing to a page:
  ras snapshot generate --servers 5000 --state steady --out region
  ras solve region --deadline 60s --out result
  ras result report region result --out page.html

Example, a living region:
  ras up region                   # runs it with a private Postgres, until Ctrl-C
  ras status                      # in another terminal: asks it over its unix socket

Commands on a region ask its server, which checks the caller's role: --server or --data, else the
server of `ras login`, else that of the default data folder on this machine. These alone use
Postgres without a server, with its credentials and without a role, because no server runs yet or
they do its work:
  up, worker, mover               the services of a region
  snapshot load, snapshot export  first start, backup and restore
  result publish                  a solve by hand, from an export
  token first                     the first admin token
  ops replay                      a worker by hand: reads queue and archive; with --fan-out it
                                  adds jobs, and copies of folders to the archive until they end

Example, capacity from a server:
  ras login --server https://ras.example
  ras request create web --owner shop --servers 40 --hardware-types C1-S1,C2-S1
  ras get reservation web
  ras apply --request reservations/*.yaml";

/// Assigns the servers of a region to reservations. The input is a snapshot of the region; the
/// output is a target for each server, with a proven bound on how much better any other assignment
/// could be. The model is that of RAS (SOSP'21).
#[derive(Debug, Parser)]
#[command(name = "ras", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    /// Global options.
    #[command(flatten)]
    pub global: Global,
    /// The action.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every subcommand.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output and logs")]
pub struct Global {
    /// Output format
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text, value_name = "FORM")]
    pub output: Output,
    /// Log filter for standard error, such as `info` or `ras=debug,async_solver=trace`
    #[arg(long, global = true, value_name = "FILTER", env = "RUST_LOG", default_value = "warn")]
    pub log: String,
    /// Log format
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, value_name = "FORM")]
    pub log_format: LogFormat,
    /// Endpoint for traces (OTLP over HTTP), such as http://localhost:4318 [default: no traces]
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        hide_env = true
    )]
    pub otlp_endpoint: Option<String>,
    /// Print only errors, and the document with --output json or yaml
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// Log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Tables and sentences; on a terminal in its width.
    Text,
    /// The same, with every column.
    Wide,
    /// The rows of `ras list` as CSV.
    Csv,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Import, generate, inspect, load and export snapshots: regions on disk
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Solve a snapshot: assign its servers to reservations
    Solve(Solve),
    /// Audit, explain, report and publish the result of a solve
    #[command(subcommand)]
    Result(ResultCommand),
    /// Place replicas of services on the nodes of a cluster, with few moves
    Place(Box<Place>),
    /// Check policies in SQL against a region or a cluster, and apply them to a running region
    #[cfg(feature = "policies")]
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Forecast demand, and say how much capacity to hold for it
    #[command(subcommand)]
    Forecast(ForecastCommand),
    /// Save server URL and token for later commands
    Login(Login),
    /// Remove the saved server URL and token
    Logout(Logout),
    /// Create, resize or delete reservations
    Request(Request),
    /// Check whether a request can be granted, at what cost, and suggest alternatives
    Plan(Plan),
    /// Apply a plan or files of requests
    Apply(Apply),
    /// Explain the capacity of a reservation and the answer to its last request
    Explain(Explain),
    /// Show one object: a reservation, a request, a server, a solve, ...
    Get(Get),
    /// List objects of one kind
    List(List),
    /// Operate a region: moves, failures, maintenance, solves, replays
    #[command(subcommand)]
    Ops(OpsCommand),
    /// Show and change servers, hardware types, buffers, quotas, profiles and prices
    #[command(subcommand)]
    Region(RegionCommand),
    /// Create, list and revoke API tokens
    Token(Token),
    /// Show the state of a region and its server
    Status(Status),
    /// Keep a region in Postgres and serve it over HTTP until stopped
    Up(Up),
    /// Run solves and replays from a region's queue until stopped
    Worker(Worker),
    /// Execute the targets of a region until stopped
    Mover(Mover),
    /// Solve a real fleet of 10,001 servers, from the inventory to the page
    Demo(Demo),
    /// Print the OpenAPI 3.1 description of the HTTP API
    Openapi,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Check and show settings files (ras.toml)
    #[command(subcommand)]
    Config(ConfigAction),
    /// Print the manual page, or write one for each command
    #[command(after_help = "\
Examples:
  ras man | man -l -
  ras man --out /usr/local/share/man/man1")]
    Man {
        /// Write a page for each command to this folder
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Run HiGHS on a problem from standard input: `ras solve` starts this itself
    #[command(name = crate::highs_process::WORKER_COMMAND, hide = true)]
    HighsWorker {
        /// Address space it may take, in bytes
        #[arg(long, value_name = "BYTES")]
        memory_limit: Option<u64>,
    },
}

//! The command line: arguments and help texts. This module only defines arguments; each subcommand
//! is implemented in [`crate::command`].

mod apply;
mod between;
mod groups;
mod mover;
mod plan;
mod profile;
mod read;
mod region;
mod request;
mod server;
mod store;
mod token;

pub use apply::{Apply, Explain, ExplainResult, Next};
pub use between::{Drill, EmergencyAction, Loans, Outages, OutagesAction, Rehearse, Replacements};
pub use groups::{OpsCommand, RegionCommand, ResultCommand, SnapshotCommand, new_name};
pub use inventory::{ImportCsv, LogOptions};
mod contract;
mod inventory;
mod maintenance;
pub use contract::{ContractAction, ContractOf, SetContract};
pub use maintenance::{
    Begin, ListMaintenance, Maintenance, MaintenanceAction, PlanMaintenance, StopMaintenance,
};
pub use mover::{AgentPlace, Mover, MoverOptions, Moves, MovesAction};
pub use plan::{Plan, PlanSnapshot};
pub use profile::{Profile, ProfileAction};
pub use read::{Filter, Get, Kind, List};
pub use region::{
    Buffer, BufferAction, Elastic, ElasticAction, Hardware, HardwareAction, OrRule, Quota,
    QuotaAction, RegionAction, ServerAction, ServerEdit, ServerFile, SetElastic, SetQuota,
    SetRegion,
};
pub use request::{
    AskingOptions, CancelRequest, ChangeOptions, CreateRequest, DeleteRequest, OrNever, OrRegion,
    Policy, Request, RequestAction, ResizeRequest,
};
pub use server::{Login, Logout, Secret, ServerOptions, Waiting};
pub use store::{
    Export, ImportSnapshot, Listen, Publish, Replay, RequestSolve, ScheduleOptions, Status,
    StoreOptions, Up, Worker, WorkerOptions,
};
pub use token::{CreateToken, ListTokens, RevokeToken, Token, TokenAction};

use crate::quantity;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;
use std::time::Duration;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  an error: nothing was written, or the result is today's assignment
  2  done, but a reservation is short, the audit found a broken rule, or the request was refused
  3  the plan or the data read is out of date: nothing was changed

Folders:
  SNAPSHOT  a region at one instant: region.json and six Parquet tables (ras-snapshot/2)
  RESULT    a solve: assignment.parquet and report.json (ras-solve/1)

Example, from nothing to a page:
  ras snapshot generate --servers 5000 --state steady --out region
  ras solve region --deadline 60s --out result
  ras result report region result --out page.html

Example, a living region:
  ras up region                   # runs it with a private Postgres, until Ctrl-C
  ras status                      # in another terminal

Example, capacity from a server:
  ras login --server https://ras.example
  ras request create web --owner shop --rru 1200 --value C1=1.0 --value C2=1.6
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
pub struct Global {
    /// Output format
    #[arg(long, global = true, value_enum, default_value_t = Output::Text, value_name = "FORM")]
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
    /// Tables and sentences.
    Text,
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
    /// Show the state of a store or a server
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
    /// Print the manual page
    Man,
    /// Run HiGHS on a problem from standard input: `ras solve` starts this itself
    #[command(name = crate::highs_process::WORKER_COMMAND, hide = true)]
    HighsWorker {
        /// Address space it may take, in bytes
        #[arg(long, value_name = "BYTES")]
        memory_limit: Option<u64>,
    },
}

const GENERATE_EXAMPLES: &str = "\
Examples:
  ras snapshot generate --servers 20000 --reservations 80 --state steady --seed 7 --out region
  ras snapshot generate --servers 1000000 --reservations 2000 --out large";

/// `ras snapshot generate`
#[derive(Debug, Args)]
#[command(after_help = GENERATE_EXAMPLES)]
pub struct Generate {
    /// Servers, 1,000 to 1,000,000
    #[arg(long, value_name = "COUNT")]
    pub servers: usize,
    /// Guaranteed reservations [default: one for 300 servers, 5 to 2,000]
    #[arg(long, value_name = "COUNT")]
    pub reservations: Option<usize>,
    /// MSBs [default: 36]
    #[arg(long, value_name = "COUNT")]
    pub msbs: Option<usize>,
    /// Datacenters [default: 3]
    #[arg(long, value_name = "COUNT")]
    pub datacenters: Option<usize>,
    /// Hardware types [default: 12]
    #[arg(long, value_name = "COUNT")]
    pub hardware_types: Option<usize>,
    /// Racks [default: one for 40 servers, at least six in each MSB]
    #[arg(long, value_name = "COUNT")]
    pub racks: Option<usize>,
    /// Whether the reservations already have servers
    #[arg(long, value_enum, value_name = "STATE", default_value_t = State::Cold)]
    pub state: State,
    /// Share of the servers needed to meet all requests [default: 0.90]
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub utilisation: Option<f64>,
    /// Seed: the same seed gives the same bytes
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// The region's name
    #[arg(long, value_name = "NAME", default_value = "generated")]
    pub region: String,
    /// The snapshot to write
    #[arg(long, value_name = "SNAPSHOT")]
    pub out: PathBuf,
}

/// What a generated region holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum State {
    /// Nothing: every request is new.
    Cold,
    /// Everything, for months; then some requests were resized.
    Steady,
}

const SOLVE_EXAMPLES: &str = "\
During the solve, the first Ctrl-C stops it with the best assignment so far; a second one stops it
at once, and the result is today's assignment. A result is on disk by the deadline in any case.

Examples:
  ras solve region --out result
  ras solve region --out result --deadline 2m --gap 0.1%
  ras solve region --out result --spread-beta 0 --scale-requests 0.8
  ras solve region --out result --config ras.toml --output json

ras.toml holds the same settings; the command line overrides it, and unknown keys are errors:
  deadline = \"60s\"
  highs_memory = \"8GiB\"
  scale_requests = 1.0
  shared_buffer_fraction = 0.02
  [weights]            # of region.json: move_in_use, move_idle, spread_beta, buffer_tau,
  spread_beta = 2.0    # msb_alpha, rack_alpha, affinity_theta
  [solver]             # gap_limit, stall_rounds, threads, seed, hand_back, level, rack_phase
  gap_limit = 0.0001";

/// `ras solve`
#[derive(Debug, Args)]
#[command(after_help = SOLVE_EXAMPLES)]
pub struct Solve {
    /// The region
    pub snapshot: PathBuf,
    /// The result to write
    #[arg(long, value_name = "RESULT")]
    pub out: PathBuf,
    /// Result of the last solve, to warm-start prices from
    #[arg(long, value_name = "RESULT")]
    pub warm: Option<PathBuf>,
    /// List every reservation, not only the first
    #[arg(long)]
    pub all: bool,
    /// Limit of its address space in bytes: set by a parent process.
    #[arg(long, hide = true)]
    pub memory_limit: Option<u64>,
    /// Exit as soon as standard input closes: set by a parent process.
    #[arg(long, hide = true)]
    pub lifeline: bool,
    /// Run at low priority, after processes that serve requests: set by a parent process.
    #[arg(long, hide = true)]
    pub give_way: bool,
    /// How to solve.
    #[command(flatten)]
    pub options: SolveOptions,
}

/// How to solve: for `solve` and `demo`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Solving")]
pub struct SolveOptions {
    /// Settings file (TOML); the command line overrides it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Deadline for the result, counted from the start of the process: 60s, 2m, 1m30s
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub deadline: Option<Duration>,
    /// Stop when the proved gap is at most this [default: 0.01%]
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub gap: Option<f64>,
    /// Worker threads [default: one for each processor]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Seed of every random choice [default: 1]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Memory one HiGHS process may take [default: 8GiB]
    #[arg(long, value_name = "AMOUNT", value_parser = quantity::bytes)]
    pub highs_memory: Option<u64>,
    /// Skip phase 2, which places servers on racks
    #[arg(long)]
    pub no_rack_phase: bool,
    /// Do not release servers that a reservation no longer needs
    #[arg(long)]
    pub keep_surplus: bool,
    /// Overrides of the snapshot's settings.
    #[command(flatten)]
    pub overrides: OverrideOptions,
}

/// Settings that override the snapshot's for one solve; recorded in its report.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Overrides of the snapshot's settings")]
pub struct OverrideOptions {
    /// Price per RRU beyond a spread limit (beta)
    #[arg(long, value_name = "PRICE", value_parser = quantity::not_negative)]
    pub spread_beta: Option<f64>,
    /// Price per RRU of embedded buffer (tau)
    #[arg(long, value_name = "PRICE", value_parser = quantity::not_negative)]
    pub buffer_tau: Option<f64>,
    /// Price of moving a server with running containers (M)
    #[arg(long, value_name = "PRICE", value_parser = quantity::not_negative)]
    pub move_in_use: Option<f64>,
    /// Price of moving an idle server (M)
    #[arg(long, value_name = "PRICE", value_parser = quantity::not_negative)]
    pub move_idle: Option<f64>,
    /// Largest share of a reservation wanted in one MSB (alpha)
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub msb_alpha: Option<f64>,
    /// Largest share of a reservation wanted in one rack (alpha)
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub rack_alpha: Option<f64>,
    /// Tolerance of a datacenter's share (theta)
    #[arg(long, value_name = "SHARE", value_parser = quantity::not_negative)]
    pub affinity_theta: Option<f64>,
    /// Share of each hardware type kept for random failures
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub shared_buffer_fraction: Option<f64>,
    /// Multiply every guaranteed reservation's capacity
    #[arg(long, value_name = "FACTOR", value_parser = quantity::not_negative)]
    pub scale_requests: Option<f64>,
}

const AUDIT_HELP: &str = "\
Recomputes capacity, survival of the loss of each MSB, spread, affinity, stability and the four
terms of the objective, and compares them with what the result's report claims. Overrides of the solve
(\"overrides\" in report.json) are taken into account.";

/// `ras result audit`
#[derive(Debug, Args)]
#[command(after_help = AUDIT_HELP)]
pub struct Audit {
    /// The region
    pub snapshot: PathBuf,
    /// The result of its solve
    pub result: PathBuf,
}

/// `ras result report`
#[derive(Debug, Args)]
pub struct Report {
    /// The region
    pub snapshot: PathBuf,
    /// The result of its solve
    pub result: PathBuf,
    /// The page to write
    #[arg(long, value_name = "HTML")]
    pub out: PathBuf,
}

/// `ras snapshot inspect`
#[derive(Debug, Args)]
pub struct Inspect {
    /// The region
    pub snapshot: PathBuf,
}

const DEMO_HELP: &str = "\
If the trace is not beside the project, a small region of the repository is solved instead, and a
line says so.";

/// `ras demo`
#[derive(Debug, Args)]
#[command(after_help = DEMO_HELP)]
pub struct Demo {
    /// The folder of the trace [default: ../shared/data/google2019_cell_a beside the project]
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Output folder for snapshot, result and page
    #[arg(long, value_name = "FOLDER", default_value = "out")]
    pub out: PathBuf,
    /// How to solve.
    #[command(flatten)]
    pub options: SolveOptions,
}

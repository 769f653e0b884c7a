//! The command line: what may be asked for, with the help texts.
//!
//! Only shapes and words stand here; each subcommand does its work in [`crate::command`].

mod apply;
mod between;
mod mover;
mod plan;
mod profile;
mod read;
mod region;
mod request;
mod server;
mod store;
mod token;

pub use apply::{Apply, Explain};
pub use between::{Drill, EmergencyAction, Loans, Outages, OutagesAction, Replacements};
pub use inventory::{ImportCsv, LogOptions};
mod contract;
mod inventory;
mod maintenance;
pub use contract::{ContractAction, ContractOf, SetContract};
pub use maintenance::{
    Begin, ListMaintenance, Maintenance, MaintenanceAction, PlanMaintenance, StopMaintenance,
};
pub use mover::{AgentPlace, Mover, MoverOptions, Moves, MovesAction};
pub use plan::Plan;
pub use profile::{Profile, ProfileAction};
pub use read::{Filter, Get, Kind, List, ListOne};
pub use region::{
    Buffer, BufferAction, Elastic, ElasticAction, Hardware, HardwareAction, OrRule, Quota,
    QuotaAction, Region, RegionAction, ServerAction, ServerEdit, ServerFile, SetElastic, SetQuota,
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
  1  an error: nothing was written, or today's assignment stands as the result
  2  done, and somebody is short, or the audit found a broken rule, or what was asked for is refused
  3  the plan, or what was read, is out of date: nothing was changed

Folders:
  SNAPSHOT  a region at one instant: region.json and six Parquet tables (ras-snapshot/2)
  RESULT    a solve: assignment.parquet and report.json (ras-solve/1)

Example, from nothing to a page:
  ras generate --servers 5000 --state steady --out region
  ras solve region --deadline 60s --out result
  ras report region result --out page.html

Example, a living region:
  ras up region                   # keeps it in a Postgres of its own, until Ctrl-C
  ras status                      # in another terminal

Example, capacity from a server:
  ras login --server https://ras.example
  ras request create web --owner shop --rru 1200 --value C1=1.0 --value C2=1.6
  ras get reservation web
  ras apply --request reservations/*.yaml";

/// Assigns the servers of a region to reservations.
///
/// A snapshot of the region goes in; targets come out, with a proved bound on how much better any
/// other assignment could be. The model is that of RAS (SOSP'21).
#[derive(Debug, Parser)]
#[command(name = "ras", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    /// What holds for every subcommand.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every subcommand.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// How the answer is printed
    #[arg(long, global = true, value_enum, default_value_t = Output::Text, value_name = "FORM")]
    pub output: Output,
    /// What is logged to standard error, such as `info` or `ras=debug,async_solver=trace`
    #[arg(long, global = true, value_name = "FILTER", env = "RUST_LOG", default_value = "warn")]
    pub log: String,
    /// How logs are written
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, value_name = "FORM")]
    pub log_format: LogFormat,
    /// Where traces are sent (OTLP over HTTP), such as http://localhost:4318 [default: nowhere]
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        hide_env = true
    )]
    pub otlp_endpoint: Option<String>,
    /// Print nothing but errors, and the document where one is asked for
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// How an answer is printed.
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
    /// Turn an inventory into a snapshot, or a snapshot into the stored region
    #[command(subcommand)]
    Import(Import),
    /// Make a synthetic region, the same for the same seed
    Generate(Generate),
    /// Decide who should hold each server
    Solve(Solve),
    /// Recompute every guarantee of a result with code that is not the solver's
    Audit(Audit),
    /// Write a result as one HTML page that needs nothing else
    Report(Report),
    /// Say what a reservation holds, and why it is short
    Explain(Explain),
    /// Say whether a request could be granted, what it would take, and what could be instead
    Plan(Plan),
    /// Carry out a plan of the server, or the targets of a result: the snapshot after it
    Apply(Apply),
    /// Note a server and a token, so that subcommands ask it
    Login(Login),
    /// Forget them
    Logout(Logout),
    /// Ask a server for capacity: new, more, less, or none any more
    Request(Request),
    /// Show one thing of a server: a reservation, a request, a server, a solve, ...
    Get(Get),
    /// List what a server has, page by page
    List(List),
    /// List what is out of use, and why
    Events(ListOne),
    /// List solves
    Solves(ListOne),
    /// Say what is in a snapshot
    Inspect(Inspect),
    /// Solve a real fleet of 10,001 servers, from the inventory to the page
    Demo(Demo),
    /// Moved: `ras-bench`
    #[command(hide = true)]
    Bench {
        /// Ignored
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Keep a region in Postgres and serve it until told to stop
    Up(Up),
    /// Take solves and replays from the queue of a region until told to stop
    Worker(Worker),
    /// Carry out the targets of a region until told to stop
    Mover(Mover),
    /// List moves under way, and stop or resume them
    Moves(Moves),
    /// List servers that failed, what replaced them and how soon
    Replacements(Replacements),
    /// List MSBs that are lost, and who could give way to whom
    Outages(Outages),
    /// List what elastic reservations borrow
    Loans(Loans),
    /// Ask for capacity at once, without waiting for a solve
    #[command(subcommand)]
    Emergency(EmergencyAction),
    /// Replay a log of failures in virtual time: what is a shared buffer worth?
    Drill(Box<Drill>),
    /// Say how much of a reservation in use may be moved, and when
    Contract(ContractOf),
    /// Plan maintenance of servers, racks and MSBs, or hear why it cannot be
    Maintenance(Maintenance),
    /// Make, list and revoke tokens: who may do what over HTTP
    Token(Token),
    /// Say by a name what servers are worth, for requests
    Profile(Profile),
    /// Show and change a region's prices, default limits and buffer fraction
    Region(Region),
    /// List and set shared buffers, by hardware type and in servers
    Buffer(Buffer),
    /// Make, change and end elastic reservations, which borrow idle buffers
    Elastic(Elastic),
    /// List and set how much may be promised to owners
    Quota(Quota),
    /// List and add hardware types
    Hardware(Hardware),
    /// Rack, decommission and move servers, many at once
    Server(ServerEdit),
    /// Ask for a solve of the stored region now
    RequestSolve(RequestSolve),
    /// Solve solves of the past again, with other settings, and compare
    Replay(Box<Replay>),
    /// Say what is stored, and how it is
    Status(Status),
    /// Write the stored region of one instant as a snapshot
    Export(Export),
    /// Publish a result as the next version of the targets
    Publish(Publish),
    /// Print the description of what is asked and said over HTTP: OpenAPI 3.1
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

/// Where the inventory comes from.
#[derive(Debug, Subcommand)]
pub enum Import {
    /// From CSV files of servers, requests, events and topology
    Csv(ImportCsv),
    /// From a snapshot into the store: the plan of what changes, then the change
    Snapshot(ImportSnapshot),
}

const GENERATE_EXAMPLES: &str = "\
Examples:
  ras generate --servers 20000 --reservations 80 --state steady --seed 7 --out region
  ras generate --servers 1000000 --reservations 2000 --out large";

/// `ras generate`
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
    /// What is held already
    #[arg(long, value_enum, value_name = "STATE", default_value_t = State::Cold)]
    pub state: State,
    /// Share of the servers that meeting all requests takes [default: 0.90]
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
While it solves, Ctrl-C once ends it with the best assignment so far; twice ends it at once, and
today's assignment stands as the result. By the deadline a result is on disk in any case.

Examples:
  ras solve region --out result
  ras solve region --out result --deadline 2m --gap 0.1%
  ras solve region --out result --spread-beta 0 --scale-requests 0.8
  ras solve region --out result --config ras.toml --output json

ras.toml holds the same settings; the command line wins over it, and unknown keys are refused:
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
    /// The result of the last solve: prices start from what it left
    #[arg(long, value_name = "RESULT")]
    pub warm: Option<PathBuf>,
    /// List every reservation, however many there are
    #[arg(long)]
    pub all: bool,
    /// Address space it may take, in bytes: for whoever starts it as a child.
    #[arg(long, hide = true)]
    pub memory_limit: Option<u64>,
    /// It ends at once when its standard input does: likewise.
    #[arg(long, hide = true)]
    pub lifeline: bool,
    /// Whoever answers people comes first: likewise.
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
    /// Settings file (TOML); the command line wins over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A result is on disk by then, counted from the start of the process: 60s, 2m, 1m30s
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
    /// Leave out phase 2, which places servers on racks
    #[arg(long)]
    pub no_rack_phase: bool,
    /// Leave servers that a reservation no longer needs where they are
    #[arg(long)]
    pub keep_surplus: bool,
    /// What the snapshot says and this solve sees otherwise.
    #[command(flatten)]
    pub overrides: OverrideOptions,
}

/// What the snapshot says and a solve sees otherwise; recorded in its report.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Instead of what the snapshot says")]
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
terms of the objective, and compares them with what the result's report claims. Settings that the
solve saw instead of the snapshot's (\"overrides\" in report.json) are taken into account.";

/// `ras audit`
#[derive(Debug, Args)]
#[command(after_help = AUDIT_HELP)]
pub struct Audit {
    /// The region
    pub snapshot: PathBuf,
    /// The result of its solve
    pub result: PathBuf,
}

/// `ras report`
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

/// `ras inspect`
#[derive(Debug, Args)]
pub struct Inspect {
    /// The region
    pub snapshot: PathBuf,
}

const DEMO_HELP: &str = "\
Without the trace beside the project, a small region that comes with the project is solved instead,
and a line says so.";

/// `ras demo`
#[derive(Debug, Args)]
#[command(after_help = DEMO_HELP)]
pub struct Demo {
    /// The folder of the trace [default: ../shared/data/google2019_cell_a beside the project]
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// The folder that snapshot, result and page go to
    #[arg(long, value_name = "FOLDER", default_value = "out")]
    pub out: PathBuf,
    /// How to solve.
    #[command(flatten)]
    pub options: SolveOptions,
}

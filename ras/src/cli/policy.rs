//! Arguments of `ras policy`.

use super::server::ServerOptions;
use crate::quantity;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// The actions on policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Check files of policies against a world: what each compiles to, and which rows it breaks today
    #[command(after_help = "\
A policy is a view in SQL with an annotation (docs/policies.md). What cannot be compiled is refused
with file, line, column and a hint. In a region with more than 5,000,000 pairs of a server and a
reservation, policies are compiled as its solver does: hard ones that are linear per group.

Examples:
  ras policy check policies/*.sql --snapshot region
  ras policy check spread.sql --cluster cluster.json
  ras policy check power.sql --world small.txt --output json

Exit code 2: a hard policy does not hold today.")]
    Check(CheckPolicies),
    /// Find the best assignment of a small world under policies, or the rows that contradict
    #[command(after_help = "\
The world is solved exactly, as an integer program: for tens of servers or hundreds of pods, to try
policies. With --search, good decisions are found for thousands; the report says how far from the
optimum they can be at most.

Examples:
  ras policy solve power.sql --world small.txt
  ras policy solve spread.sql --cluster cluster.json --decide all --output json
  ras policy solve ten_moves.sql --cluster cluster.json --decide all --search 300000

Exit code 2: policies contradict; the smallest set of rows that do so is shown. With --search: no
decisions were found under which all hold.")]
    Solve(SolvePolicies),
    /// Run tests of policies: small worlds in text, and what must hold of them
    #[command(after_help = "\
The format of the files is in docs/policies.md. Of a case that fails, lines that differ are shown:
`- ` before what the file states, `+ ` before what was found.

Examples:
  ras policy test policies/tests/*.txt
  ras policy test power.txt --output json

Exit code 2: a case fails.")]
    Test(TestPolicies),
    /// Solve a small region with and without policies: moves and costs beside each other
    #[command(after_help = "\
Both sides have the model of RAS and the policies of the snapshot (policies/*.sql). A FILE of the
same name as one of these replaces it. The region is solved exactly, so it has to be small.

Examples:
  ras policy try power.sql --snapshot region

Exit code 2: with the policies there is no assignment.")]
    Try(TryPolicies),
    /// Compare two versions of a file: rows of today that newly break or are mended, and costs
    #[command(after_help = "\
Policies are compared by name, rows by what the audit says of them.

Examples:
  ras policy diff old/power.sql power.sql --snapshot region

Exit code 2: a row of a hard policy newly breaks.")]
    Diff(DiffPolicies),
    /// Set or replace policies of a running region, once it is known what they break today
    #[command(after_help = "\
The server compiles the files with all policies in force, on the region as it is. Before anything
changes, the command shows which rows break today and how many servers have to leave until they hold,
and asks. From then on each solve keeps them: what holds stays, what is broken is mended where
servers are there, and gets no worse. The name of a policy is that of its file.

Examples:
  ras policy apply power.sql --why 'new breakers in m07'
  ras policy apply policies/*.sql --dry-run
  ras policy apply --dry-run                      # those in force, as they stand today

Exit code 2: a row breaks today.")]
    Apply(ApplyPolicies),
    /// List the policies of a running region
    List {
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Show a policy of a running region: its text and its versions
    Show {
        /// The policy
        policy: String,
        /// This version, not the last one
        #[arg(long, value_name = "NUMBER")]
        version: Option<i32>,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Withdraw a policy of a running region; its versions stay readable
    Withdraw {
        /// The policy
        policy: String,
        /// Why, for the audit trail
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
}

/// `ras policy apply`
#[derive(Debug, Args)]
pub struct ApplyPolicies {
    /// Files of policies; with --dry-run none is needed
    #[arg(value_name = "FILE", required_unless_present = "dry_run")]
    pub policies: Vec<PathBuf>,
    /// Why, for the audit trail
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
    /// Show only what would be
    #[arg(long)]
    pub dry_run: bool,
    /// How long to search for an assignment in which they hold, if a row breaks today: 1s to 30s
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = quantity::duration)]
    pub search: Duration,
    /// Apply without a question
    #[arg(long)]
    pub yes: bool,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// Policies, and the world that they are about.
#[derive(Debug, Args)]
#[group(skip)]
pub struct PoliciesOf {
    /// Files of policies; without one, policies/*.sql of the snapshot
    #[arg(value_name = "FILE")]
    pub policies: Vec<PathBuf>,
    /// The world.
    #[command(flatten)]
    pub world: WorldOf,
    /// Replicas of the cluster that are decided
    #[arg(long, value_enum, default_value_t, requires = "cluster")]
    pub decide: DecidedReplicas,
}

/// What policies are about: one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct WorldOf {
    /// The region of a snapshot: `servers.target_reservation` is decided
    #[arg(long, value_name = "SNAPSHOT")]
    pub snapshot: Option<PathBuf>,
    /// A cluster, as for `ras place`: `replicas.node` is decided
    #[arg(long, value_name = "CLUSTER")]
    pub cluster: Option<PathBuf>,
    /// A world as text
    #[arg(long, value_name = "FILE")]
    pub world: Option<PathBuf>,
}

/// Which replicas are decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DecidedReplicas {
    /// Those without a node
    #[default]
    Pending,
    /// All of them
    All,
    /// All of them, and each may be left without a node
    AllOrNone,
}

/// `ras policy check`
#[derive(Debug, Args)]
pub struct CheckPolicies {
    /// Policies and world.
    #[command(flatten)]
    pub of: PoliciesOf,
}

/// `ras policy solve`
#[derive(Debug, Args)]
pub struct SolvePolicies {
    /// Policies and world.
    #[command(flatten)]
    pub of: PoliciesOf,
    /// Time limit of each run of HiGHS: 500ms, 60s, 2m
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = quantity::duration)]
    pub deadline: Duration,
    /// Seed of HiGHS, and of the search
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u32,
    /// Search, trying this many changes, instead of solving exactly: for what is too large for that
    #[arg(long, value_name = "CHANGES")]
    pub search: Option<u64>,
}

/// `ras policy test`
#[derive(Debug, Args)]
pub struct TestPolicies {
    /// Files of tests
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Time limit of each run of HiGHS: 500ms, 60s, 2m
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = quantity::duration)]
    pub deadline: Duration,
    /// Seed of HiGHS
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u32,
}

/// `ras policy try`
#[derive(Debug, Args)]
pub struct TryPolicies {
    /// Files of policies to try
    #[arg(required = true, value_name = "FILE")]
    pub policies: Vec<PathBuf>,
    /// The region
    #[arg(long, value_name = "SNAPSHOT")]
    pub snapshot: PathBuf,
    /// Time limit of each run of HiGHS: 500ms, 60s, 2m
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = quantity::duration)]
    pub deadline: Duration,
    /// Seed of HiGHS
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u32,
}

/// `ras policy diff`
#[derive(Debug, Args)]
pub struct DiffPolicies {
    /// Policies as they were
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// Policies as they will be
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// The world.
    #[command(flatten)]
    pub world: WorldOf,
    /// Replicas of the cluster that are decided
    #[arg(long, value_enum, default_value_t, requires = "cluster")]
    pub decide: DecidedReplicas,
}

//! Arguments of `ras policy`.

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
with file, line, column and a hint.

Examples:
  ras policy check policies/*.sql --snapshot region
  ras policy check spread.sql --cluster cluster.json
  ras policy check power.sql --world small.txt --output json

Exit code 2: a hard policy does not hold today.")]
    Check(CheckPolicies),
    /// Find the best assignment of a small world under policies, or the rows that contradict
    #[command(after_help = "\
The world is solved exactly, as an integer program: for tens of servers or hundreds of pods, to try
policies.

Examples:
  ras policy solve power.sql --world small.txt
  ras policy solve spread.sql --cluster cluster.json --decide all --output json

Exit code 2: policies contradict; the smallest set of rows that do so is shown.")]
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
    /// Seed of HiGHS
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u32,
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

//! Arguments of `ras place`.

use crate::quantity;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// `ras place`
#[derive(Debug, Args)]
#[command(
    after_help = "\
CLUSTER is a JSON file or a folder of Parquet tables (ras-cluster/1, docs/placement.md), nodes and
pods as kubectl prints them, or a model of the ROADEF/EURO challenge 2012 with its assignment. The
answer is DIR/placement.json (ras-placement/1) and DIR/placement.html, a page to look at; of a model
also DIR/assignment.txt, which the checkers of the challenge read. A cluster in a file called
`explain` is ./explain.

Examples:
  ras place cluster.json --out placed
  ras place explain cluster.json db-7 --placement placed
  ras place services.json --snapshot region --reservation web --out placed
  kubectl get nodes,pods -A -o json > now.json && ras place now.json --out placed
  ras place model_a1_1.txt.gz --assignment assignment_a1_1.txt.gz --deadline 30s --out placed",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Place {
    /// The action; without one, replicas are placed.
    #[command(subcommand)]
    pub action: Option<PlaceAction>,
    /// The cluster, without an action.
    #[command(flatten)]
    pub input: Option<ClusterInput>,
    /// The search, without an action.
    #[command(flatten)]
    pub search: Option<Search>,
}

/// The actions on placements.
#[derive(Debug, Subcommand)]
pub enum PlaceAction {
    /// Explain why a replica is not placed, or why it moves, and where it could run
    Explain(ExplainReplica),
    /// Simulate weeks in which tenants come and go on the nodes of a cluster
    Simulate(Simulate),
}

/// Where a cluster is read from.
#[derive(Debug, Args)]
pub struct ClusterInput {
    /// The cluster: nodes, services and their replicas
    pub cluster: PathBuf,
    /// Assignment of today, for a model of the challenge
    #[arg(long, value_name = "FILE", conflicts_with = "reservation")]
    pub assignment: Option<PathBuf>,
    /// Nodes are the servers of this reservation of the snapshot
    #[arg(long, value_name = "NAME", requires = "snapshot")]
    pub reservation: Option<String>,
    /// Snapshot with the servers of the reservation
    #[arg(long, value_name = "SNAPSHOT", requires = "reservation")]
    pub snapshot: Option<PathBuf>,
}

/// What looks for an assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// Our own: the fewest moves, a bound, and all objectives
    #[default]
    Search,
    /// Service Fabric's simulated annealing, with its limits: at most 30 % of the replicas move
    Annealing,
}

impl fmt::Display for Engine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Engine::Search => "search",
            Engine::Annealing => "annealing",
        })
    }
}

/// A search.
#[derive(Debug, Args)]
pub struct Search {
    /// Folder for the answer
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Engine that looks for the assignment
    #[arg(long, value_enum, default_value_t)]
    pub engine: Engine,
    /// Deadline for the search: 500ms, 60s, 2m
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = quantity::duration)]
    pub deadline: Duration,
    /// Stop when the value is within this share of the bound
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = quantity::share)]
    pub gap: f64,
    /// Threads that search
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Seed of every random choice
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}

/// `ras place explain`
#[derive(Debug, Args)]
#[command(after_help = "\
Of a replica that is not placed: the smallest set of rules and capacities that keeps it off every
node, the replicas in its way on the node where they are fewest, and single changes with which it
would be placed. Of one that moves: what forbids its staying, which replicas took its place, or what
the move saves. Of one that is placed: the other nodes that can take it while no other replica
moves.

Without --placement the replicas are where they are today.

Examples:
  ras place explain cluster.json db-7 --placement placed
  ras place explain now.json shop/cart-0 --output json

Exit code 2: the replica is not placed.")]
pub struct ExplainReplica {
    /// The cluster.
    #[command(flatten)]
    pub input: ClusterInput,
    /// Name of the replica
    pub replica: String,
    /// Answer of `ras place`: its folder, or placement.json [default: the assignment of today]
    #[arg(long, value_name = "PATH")]
    pub placement: Option<PathBuf>,
}

/// `ras place simulate`
#[derive(Debug, Args)]
#[command(after_help = "\
The nodes, levels and history of demands are those of CLUSTER (docs/placement.md); its services are
left out. Tenants come until the largest demands of all are DENSITY times the capacity of all nodes
in the first metric, and leave after a while. Each has the demand of a series of the history. Every
other series tells of demands in future. Whenever a node is over its capacity or a replica has no
node, the engine places all replicas. All engines see the same tenants.

Examples:
  ras place simulate cluster --engine search,annealing
  ras place simulate cluster --days 3 --density 1.8 --output json")]
pub struct Simulate {
    /// The cluster with its history: a JSON file or a folder of tables
    pub cluster: PathBuf,
    /// Days to simulate
    #[arg(long, value_name = "COUNT", default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub days: u32,
    /// What places the replicas; several are compared
    #[arg(long = "engine", value_name = "ENGINE", value_enum, value_delimiter = ',', default_values_t = [Engine::Search])]
    pub engines: Vec<Engine>,
    /// Largest demands of all replicas over the capacity, in the first metric
    #[arg(long, value_name = "NUMBER", default_value_t = 2.2, value_parser = density)]
    pub density: f64,
    /// Days that a tenant stays on average
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub stay_days: u32,
    /// Share of tenants with several replicas
    #[arg(long, value_name = "SHARE", default_value = "25%", value_parser = quantity::share)]
    pub replicated: f64,
    /// Replicas of such a tenant
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub replicas: u16,
    /// Deadline for each call of an engine
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = quantity::duration)]
    pub deadline: Duration,
    /// Seed of tenants and engines
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}

fn density(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(density) if (0.01..=100.0).contains(&density) => Ok(density),
        _ => Err("must be a number from 0.01 to 100".to_owned()),
    }
}

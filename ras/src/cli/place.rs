//! Arguments of `ras place`.

use super::server::ServerOptions;
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
pods as kubectl prints them, an instance of vector bin packing (.vbp), or a model of the ROADEF/EURO
challenge 2012 with its assignment. The answer is DIR/placement.json (ras-placement/1) and
DIR/placement.html, a page to look at; of a model also DIR/assignment.txt, which the checkers of the
challenge read. A cluster in a file called `explain` is ./explain.

Examples:
  ras place cluster.json --out placed
  ras place explain cluster.json db-7 --placement placed
  ras place consolidate cluster.json --budget 5% --out packed
  ras place services.json --reservation web --out placed
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
    /// The server with the reservation, if no snapshot has it.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// The actions on placements.
#[derive(Debug, Subcommand)]
pub enum PlaceAction {
    /// Empty the most nodes with moves within a budget
    Consolidate(Consolidate),
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
    /// Nodes are the servers of this reservation, of a running region or of the snapshot
    #[arg(long, value_name = "NAME")]
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
    /// Best fit of new replicas, in microseconds each; others leave only nodes that are draining or down
    Vro,
}

/// How the engine vro chooses the node of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum NodePolicy {
    /// Eigen's two steps; of the best nodes, the one left least skewed by the dot product
    #[default]
    DotProduct,
    /// The same, by the distance from the diagonal
    Diagonal,
    /// The same, by the scarcest metric
    Bottleneck,
    /// The first node in use that has room
    FirstFit,
    /// The node in use on which least is left
    BestFit,
    /// Kubernetes' MostAllocated
    MostAllocated,
    /// Kubernetes' RequestedToCapacityRatio
    RequestedToCapacityRatio,
}

/// What places replicas in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Technique {
    /// Our own search
    Search,
    /// Service Fabric's simulated annealing, as it mends what is broken
    Annealing,
    /// The same, which also weighs violations to expect in future
    AnnealingPrv,
}

impl fmt::Display for Technique {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Technique::Search => "search",
            Technique::Annealing => "annealing",
            Technique::AnnealingPrv => "annealing-prv",
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
    /// Policy of the engine vro
    #[arg(long, value_enum, default_value_t)]
    pub policy: NodePolicy,
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

/// `ras place consolidate`
#[derive(Debug, Args)]
#[command(after_help = "\
Nodes that have replicas are emptied by moves to other nodes that have some; nothing is placed on a
node that is empty today. All rules hold, and what breaks one today may stay. The answer is that of
`ras place`: moves in phases, with the number of nodes that no moves within the budget exceed.

Examples:
  ras place consolidate cluster.json --budget 5% --out packed
  ras place consolidate cluster.json --budget 22% --engine vro --policy diagonal --out packed
  kubectl get nodes,pods -A -o json > now.json && ras place consolidate now.json --out packed

Exit code 2: the assignment breaks a rule.")]
pub struct Consolidate {
    /// The cluster.
    #[command(flatten)]
    pub input: ClusterInput,
    /// Folder for the answer
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Largest cost of the moves, as a share of that of moving every replica
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = quantity::share)]
    pub budget: f64,
    /// Engine that empties nodes
    #[arg(long, value_enum, default_value_t)]
    pub engine: Consolidator,
    /// Policy of the engine vro
    #[arg(long, value_enum, default_value_t)]
    pub policy: NodePolicy,
    /// Deadline for the search: 500ms, 60s, 2m
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = quantity::duration)]
    pub deadline: Duration,
    /// Seed of every random choice
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// The server with the reservation, if no snapshot has it.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// What empties nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Consolidator {
    /// Our own: local search, which ends early at the bound
    #[default]
    Search,
    /// Eigen's migrations and exchanges, a few passes
    Vro,
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
    /// The server with the reservation, if no snapshot has it.
    #[command(flatten)]
    pub server: ServerOptions,
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
  ras place simulate cluster --engine search,annealing,annealing-prv
  ras place simulate cluster --move-costs 1,15,40
  ras place simulate cluster --days 3 --density 1.8 --output json")]
pub struct Simulate {
    /// The cluster with its history: a JSON file or a folder of tables
    pub cluster: PathBuf,
    /// Days to simulate
    #[arg(long, value_name = "COUNT", default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub days: u32,
    /// What places the replicas; several are compared
    #[arg(long = "engine", value_name = "ENGINE", value_enum, value_delimiter = ',', default_values_t = [Technique::Search])]
    pub engines: Vec<Technique>,
    /// Move costs of tenants, each for an equal share of them: 1,15,40
    #[arg(long, value_name = "COSTS", value_delimiter = ',', default_values_t = [1.0], value_parser = move_cost)]
    pub move_costs: Vec<f64>,
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

fn move_cost(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(cost) if (0.0..=1e9).contains(&cost) => Ok(cost),
        _ => Err("must be a number from 0 to 1000000000".to_owned()),
    }
}

fn density(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(density) if (0.01..=100.0).contains(&density) => Ok(density),
        _ => Err("must be a number from 0.01 to 100".to_owned()),
    }
}

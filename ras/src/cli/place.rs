//! Arguments of `ras place`.

use crate::quantity;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `ras place`
#[derive(Debug, Args)]
#[command(after_help = "\
CLUSTER is a JSON file (ras-cluster/1, docs/placement.md), nodes and pods as kubectl prints them, or
a model of the ROADEF/EURO challenge 2012 with its assignment. The answer is DIR/placement.json (ras-placement/1) and DIR/placement.html, a
page to look at; of a model also DIR/assignment.txt, which the checkers of the challenge read.

Examples:
  ras place cluster.json --out placed
  ras place services.json --snapshot region --reservation web --out placed
  kubectl get nodes,pods -A -o json > now.json && ras place now.json --out placed
  ras place model_a1_1.txt.gz --assignment assignment_a1_1.txt.gz --deadline 30s --out placed")]
pub struct Place {
    /// The cluster: nodes, services and their replicas
    pub cluster: PathBuf,
    /// Folder for the answer
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Assignment of today, for a model of the challenge
    #[arg(long, value_name = "FILE", conflicts_with = "reservation")]
    pub assignment: Option<PathBuf>,
    /// Nodes are the servers of this reservation of the snapshot
    #[arg(long, value_name = "NAME", requires = "snapshot")]
    pub reservation: Option<String>,
    /// Snapshot with the servers of the reservation
    #[arg(long, value_name = "SNAPSHOT", requires = "reservation")]
    pub snapshot: Option<PathBuf>,
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

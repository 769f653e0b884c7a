//! `ras plan` and `ras snapshot plan`

use super::server::ServerOptions;
use super::solving::{OverrideOptions, SolveOptions};
use crate::quantity;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

const PLAN_HELP: &str = "\
FILE has one request as YAML or JSON. Members left out keep their value:
  reservation: web            # new, if the region has no reservation of this name
  owner: shop                 # required for a new one, like capacity_rru and rru
  capacity_rru: 1200
  rru: {C1: 1.0, C2: 1.6}     # RRU of one server of each eligible hardware type
  msb_buffer: true            # survives the loss of any one MSB
  priority: 5                 # 0 is the most important
  affinity: {dc1: 0.6, dc2: 0.4}    # shares of the capacity, without the buffer
  allowed_datacenters: [dc1, dc2]   # for the buffer, too; []: all
  survives: [switch]          # the loss of any one domain of these partitions, too; []: none
  replicas: 3                 # with replicas_per_msb: 1, at most a third of it is in one MSB
  affinity_theta: 0.05        # also msb_alpha, rack_alpha, host_profile; null: the region's rule
A server also accepts
  grant_policy: all           # or best_effort, or {at_least_rru: 900}
  labels: {tier: front}
  starts_at: 2026-03-01T22:00:00Z   # and ends_at
  profile: web                # instead of rru: an RRU profile (`ras list profiles`)
  servers: 40                 # with hardware_types: [C1, C2], instead of capacity_rru and rru
  churn_contract: {in_use_percent: 2, window_seconds: 86400, quiet: [\"08:00-18:00\"], zone: UTC}
To end a reservation:
  reservation: web
  remove: true

Existing shortfalls of equal priority are served first, as in the next solve. No reservation becomes
worse than today. Spread limits never refuse a request: exceeding them has a price.

Exit codes: 0 granted in full, 2 granted in part or not at all, 1 an error.

Examples:
  ras plan --request reservations/*.yaml
  ras snapshot plan region --warm result --request web.yaml";

/// `ras plan`
#[derive(Debug, Args)]
#[command(
    before_long_help = "The server plans all requests together on its current region;\n\
        `ras apply --plan ID` applies the plan.",
    after_help = PLAN_HELP
)]
pub struct Plan {
    /// The requests
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub request: Vec<PathBuf>,
    /// How long to search, at most, for all requests together: 0.5s to 30s [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub deadline: Option<Duration>,
    /// List every source of servers, not only the first
    #[arg(long)]
    pub all: bool,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras snapshot plan`
#[derive(Debug, Args)]
#[command(after_help = PLAN_HELP)]
pub struct PlanSnapshot {
    /// The region
    pub snapshot: PathBuf,
    /// The request
    #[arg(long, value_name = "FILE")]
    pub request: PathBuf,
    /// Result of the last solve, to warm-start prices from [default: beside the snapshot]
    #[arg(long, value_name = "RESULT")]
    pub warm: Option<PathBuf>,
    /// File of offers. What this plan offers instead of a refused request is kept there; requested with the same file,
    /// it is granted at the price that was said, if the region still has it
    #[arg(long, value_name = "FILE")]
    pub offers: Option<PathBuf>,
    /// Policies in SQL that the plan keeps (docs/policies.md)
    #[cfg(feature = "policies")]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub policies: Vec<PathBuf>,
    /// List every source of servers, not only the first
    #[arg(long)]
    pub all: bool,
    /// Settings file (TOML); the command line wins over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Deadline of the search, counted from the start of the process [default: 5s after the snapshot is read]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub deadline: Option<Duration>,
    /// Worker threads [default: one for each processor]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Seed of every random choice [default: 1]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Overrides of the snapshot's settings.
    #[command(flatten)]
    pub overrides: OverrideOptions,
}

impl PlanSnapshot {
    /// The options of a solve with these settings.
    pub fn solving(&self) -> SolveOptions {
        SolveOptions {
            config: self.config.clone(),
            deadline: self.deadline,
            threads: self.threads,
            seed: self.seed,
            overrides: self.overrides.clone(),
            ..SolveOptions::default()
        }
    }
}

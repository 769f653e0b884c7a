//! `ras plan`

use super::{OverrideOptions, ServerOptions, SolveOptions};
use crate::quantity;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

const PLAN_HELP: &str = "\
With SNAPSHOT it is solved here. Without, the server is asked, about its region of now and any
number of requests together; `ras apply --plan ID` carries out what it answers.

FILE holds one request as YAML or JSON. What is left out stays as it is:
  reservation: web            # new, if the region has none of this name
  owner: shop                 # needed of a new one, like capacity_rru and rru
  capacity_rru: 1200
  rru: {C1: 1.0, C2: 1.6}     # what one server of each accepted hardware type is worth
  msb_buffer: true            # survives the loss of any one MSB
  priority: 0
  affinity: {dc1: 0.6, dc2: 0.4}    # of the capacity, the buffer apart
  allowed_datacenters: [dc1, dc2]   # the only ones, the buffer included; []: all
  replicas: 3                 # with replicas_per_msb: 1, at most a third of it is in one MSB
  affinity_theta: 0.05        # also msb_alpha, rack_alpha, host_profile; null: the region's rule
A server also knows
  grant_policy: all           # or best_effort, or {at_least_rru: 900}
  labels: {tier: front}
  starts_at: 2026-03-01T22:00:00Z   # and ends_at
  profile: web                # in place of rru: what the region's operators named (`ras list profiles`)
  servers: 40                 # with hardware_types: [C1, C2], in place of capacity_rru and rru
  churn_contract: {in_use_percent: 2, window_seconds: 86400, quiet: [\"08:00-18:00\"], zone: UTC}
To end a reservation:
  reservation: web
  remove: true

Servers that were short before, and count as much, come first, as in the next solve. Nobody ends
worse than today. Spread limits never refuse: what is beyond them has a price.

Exit codes: 0 granted in full, 2 not or in part, 1 an error.

Examples, the first with the prices of the last solve:
  ras plan region --warm result --request web.yaml
  ras plan --request reservations/*.yaml";

/// `ras plan`
#[derive(Debug, Args)]
#[command(after_help = PLAN_HELP)]
pub struct Plan {
    /// The region; without it, that of the server
    pub snapshot: Option<PathBuf>,
    /// The request; without SNAPSHOT any number of them
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub request: Vec<PathBuf>,
    /// The result of the last solve: prices start from what it left [default: beside the snapshot]
    #[arg(long, value_name = "RESULT", requires = "snapshot")]
    pub warm: Option<PathBuf>,
    /// List every source of servers, however many there are
    #[arg(long)]
    pub all: bool,
    /// Settings file (TOML); the command line wins over it
    #[arg(long, value_name = "FILE", requires = "snapshot")]
    pub config: Option<PathBuf>,
    /// The search ends by then, counted from the start of the process: 5s
    #[arg(long, value_name = "DURATION", requires = "snapshot", value_parser = quantity::duration)]
    pub deadline: Option<Duration>,
    /// Worker threads [default: one for each processor]
    #[arg(long, value_name = "COUNT", requires = "snapshot", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Seed of every random choice [default: 1]
    #[arg(long, value_name = "NUMBER", requires = "snapshot")]
    pub seed: Option<u64>,
    /// What the snapshot says and this plan sees otherwise.
    #[command(flatten)]
    pub overrides: OverrideOptions,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

impl Plan {
    /// As the options of a solve.
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

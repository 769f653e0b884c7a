//! Arguments that say how to solve.

use crate::quantity;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

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

//! The command line.

use crate::regions::{GeneratedRegion, Regions};
use crate::{Figures, Rival};
use clap::Args;
use ras::cli::{FleetProfile, State};
use ras::quantity;
use std::path::PathBuf;
use std::time::Duration;

/// What to measure.
#[derive(Debug, Args)]
#[command(after_help = "\
Competitors, each on the same region in the same run with the same deadline:
  solver  this one, as `ras solve`, in a process of its own
  raw     the paper's model, a binary for each server and reservation, by good_lp and HiGHS
  pooled  the pooled model as one mixed-integer program of HiGHS, from today's assignment
  greedy  reservation by reservation, rack by rack: where the paper's section 4.2 starts
  lp      the LP relaxation of phase 1, cold, by HiGHS' interior point method: a bound only

Figures, numbered as in the paper (RAS, SOSP'21):
  7 time of hourly solves   8 time by step   9 gap in in-use moves   10, 11 time and memory
  by size, from a tenth of --servers to ten times as many
  12 largest share in one MSB   13 spread over MSBs   14 power by MSB   15 traffic between
  datacenters   16 moves by hour
With --state greedy and 12 or 14, these and 16 follow the region for --hours.

Regions are generated unless SNAPSHOT is given. Times are of this machine: compare those of one
run with each other.

Examples:
  ras-bench --out bench                                  # about two minutes
  ras-bench --servers 20000 --reservations 80 --deadline 60s --figures none --out bench
  ras-bench --servers 100000 --only greedy --figures 10,11 --deadline 10m --out bench
  ras-bench --servers 100000 --state greedy --only solver,lp --figures 16 --deadline 60s --out bench
  ras-bench --profile research --only solver,pooled --figures none --deadline 35s --out bench
  ras-bench --regions headline --only solver,pooled --deadline 60s --runs 1 --out bench
  ras-bench --regions 20000x80-cold,20000x80-greedy,research-cold --deadline 30s --out bench
  ras-bench region --only solver,pooled,lp --figures 9,16 --hours 168 --out bench
  ras-bench --state greedy --only greedy --figures 12,14,16 --hours 1440 --gap 0.5% --out bench
  ras-bench --servers 100000 --only greedy --figures 7,9 --warm --deadline 10m --out bench")]
pub struct Options {
    /// A region of your own, instead of a generated one
    #[arg(conflicts_with_all = ["servers", "profile", "msbs", "hardware_types", "reservations", "state"])]
    pub snapshot: Option<PathBuf>,
    /// Several generated regions instead of one, each measured as if alone, and no figures: `headline`, or a list of SERVERSxRESERVATIONS-STATE,
    /// research-STATE and switches-STATE
    #[arg(
        long,
        value_name = "REGIONS",
        conflicts_with_all = [
            "snapshot", "servers", "profile", "msbs", "hardware_types", "reservations", "state", "figures", "hours",
            "warm", "in_use_moves", "resized", "failed"
        ]
    )]
    pub regions: Option<Regions>,
    /// Servers of the generated region, 1,000 to 10,000,000 [default: 2,000; 939 of `research`, 10,001 of `switches`]
    #[arg(long, value_name = "COUNT")]
    pub servers: Option<usize>,
    /// What fleet it is like; figures 10 and 11 are of `ras` always
    #[arg(long, value_enum, value_name = "PROFILE", default_value_t = FleetProfile::Ras)]
    pub profile: FleetProfile,
    /// Its MSBs [default: those of the profile]
    #[arg(long, value_name = "COUNT")]
    pub msbs: Option<usize>,
    /// Its hardware types [default: those of the profile]
    #[arg(long, value_name = "COUNT")]
    pub hardware_types: Option<usize>,
    /// Its guaranteed reservations [default: those of the profile; of `ras` at least 40]
    #[arg(long, value_name = "COUNT")]
    pub reservations: Option<usize>,
    /// What it holds already when competitors begin; figures 7, 8, 9 and 16 follow `steady` instead of `cold`
    #[arg(long, value_enum, value_name = "STATE", default_value_t = State::Cold)]
    pub state: State,
    /// How long each competitor has, each solve of a figure, and each hour of `--state churned`
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, default_value = "5s")]
    pub deadline: Duration,
    /// The proved gap at which a solve of this solver ends before [default: 0.01%]
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub gap: Option<f64>,
    /// How often each competitor runs; its time is the median
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub runs: u32,
    /// Seed of the region, of what happens to it and of every random choice
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Only these competitors
    #[arg(long, value_enum, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<Rival>,
    /// Which figures: all, none, or numbers such as 7,9,16
    #[arg(long, value_name = "NUMBERS", default_value = "all")]
    pub figures: Figures,
    /// Hours that figures 7, 8, 9 and 16 follow, one solve each; of `--state greedy` also 12 and 14
    #[arg(long, value_name = "COUNT", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=8760))]
    pub hours: u32,
    /// Where figures 12, 14 and 16 follow the region: the most moves of servers in use each hour
    #[arg(long, value_name = "COUNT")]
    pub in_use_moves: Option<u32>,
    /// In figures 7, 8, 9 and 16: start each hour from what the one before left, and solve it from
    /// nothing to the same gap as well
    #[arg(long)]
    pub warm: bool,
    /// Share of the requests that are resized each hour
    #[arg(long, value_name = "SHARE", value_parser = quantity::share, default_value = "5%")]
    pub resized: f64,
    /// Share of the servers that fail each hour, for three hours
    #[arg(long, value_name = "SHARE", value_parser = quantity::share, default_value = "0.3%")]
    pub failed: f64,
    /// Worker threads of each competitor [default: one for each processor]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Memory one HiGHS process may take [default: 8GiB]
    #[arg(long, value_name = "AMOUNT", value_parser = quantity::bytes)]
    pub highs_memory: Option<u64>,
    /// The folder that bench.json, bench.html and bench.md go to
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
}

impl Options {
    /// The one region to generate.
    pub fn region(&self) -> GeneratedRegion {
        GeneratedRegion {
            profile: self.profile,
            servers: self.servers,
            msbs: self.msbs,
            hardware_types: self.hardware_types,
            reservations: self.reservations,
            state: self.state,
        }
    }
}

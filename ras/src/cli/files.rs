//! Arguments of subcommands on files: snapshots and results.

use super::solving::SolveOptions;
use crate::quantity;
use clap::{Args, ValueEnum};
use datasets::generate;
use std::path::PathBuf;
use std::time::Duration;

const GENERATE_EXAMPLES: &str = "\
Examples:
  ras snapshot generate --servers 20000 --reservations 80 --state steady --seed 7 --out region
  ras snapshot generate --servers 1000000 --reservations 2000 --out large
  ras snapshot generate --servers 100000 --state greedy --out hard
  ras snapshot generate --servers 20000 --state churned --hours 48 --out two-days
  ras snapshot generate --profile switches --servers 4034 --msbs 292 --hardware-types 1 --out switches";

/// `ras snapshot generate`
#[derive(Debug, Args)]
#[command(after_help = GENERATE_EXAMPLES)]
pub struct Generate {
    /// Servers, 1,000 to 10,000,000 [default: 939 of `research`, 10,001 of `switches`]
    #[arg(long, value_name = "COUNT", required_unless_present = "profile")]
    pub servers: Option<usize>,
    /// What fleet it is like: other defaults and another mix of hardware
    #[arg(long, value_enum, value_name = "PROFILE", default_value_t = FleetProfile::Ras)]
    pub profile: FleetProfile,
    /// Guaranteed reservations [default: one for 300 servers, 5 to 2,000; 9 and 16]
    #[arg(long, value_name = "COUNT")]
    pub reservations: Option<usize>,
    /// MSBs [default: 36; 42 and 261]
    #[arg(long, value_name = "COUNT")]
    pub msbs: Option<usize>,
    /// Datacenters [default: 3; 8 of `research`]
    #[arg(long, value_name = "COUNT")]
    pub datacenters: Option<usize>,
    /// Hardware types [default: 12; 161 of `research`]
    #[arg(long, value_name = "COUNT")]
    pub hardware_types: Option<usize>,
    /// Racks [default: one for 40 servers, at least six in each MSB; one for 12 servers; one for each MSB]
    #[arg(long, value_name = "COUNT")]
    pub racks: Option<usize>,
    /// Network switches over racks of neighbouring MSBs; reservations with an embedded buffer must survive the loss of any one
    #[arg(long, value_name = "COUNT")]
    pub switches: Option<usize>,
    /// Whether the reservations already have servers
    #[arg(long, value_enum, value_name = "STATE", default_value_t = State::Cold)]
    pub state: State,
    /// Hourly solves of `--state churned`, each to a gap of 0.5% or until it stalls [default: 24]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=8760))]
    pub hours: Option<u32>,
    /// Deadline of each of these solves; one that is cut short may differ the next time [default: none]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub deadline: Option<Duration>,
    /// Share of the servers needed to meet all requests [default: 0.90]
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
    /// Everything, but for embedded buffers, after months of a greedy allocator that spreads nothing.
    Greedy,
    /// What hourly solves made of `greedy`: requests resized, servers failed, containers moved on.
    Churned,
}

/// What fleet a generated region is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FleetProfile {
    /// Facebook's: MSBs of many racks, each rack of one hardware type.
    Ras,
    /// A research grid: a great many hardware types of a few servers, in one to three MSBs each.
    Research,
    /// The fault domain is the switch: a great many MSBs of one rack.
    Switches,
}

impl From<FleetProfile> for generate::Profile {
    fn from(profile: FleetProfile) -> generate::Profile {
        match profile {
            FleetProfile::Ras => generate::Profile::Ras,
            FleetProfile::Research => generate::Profile::Research,
            FleetProfile::Switches => generate::Profile::Switches,
        }
    }
}

impl State {
    /// What the generator makes; hours of solves make the rest of `churned`.
    pub const fn generated(self) -> generate::State {
        match self {
            State::Cold => generate::State::Cold,
            State::Steady => generate::State::Steady,
            State::Greedy | State::Churned => generate::State::Greedy,
        }
    }
}

const SOLVE_EXAMPLES: &str = "\
During the solve, the first Ctrl-C stops it with the best assignment so far; a second one stops it
at once, and the result is today's assignment. A result is on disk by the deadline in any case.

Examples:
  ras solve region --out result
  ras solve region --out result --deadline 2m --gap 0.1%
  ras solve region --out result --spread-beta 0 --scale-requests 0.8
  ras solve region --out result --config ras.toml --output json

ras.toml holds the same settings; the command line overrides it, and unknown keys are errors:
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
    /// Result of the last solve, to warm-start prices from
    #[arg(long, value_name = "RESULT")]
    pub warm: Option<PathBuf>,
    /// Policies in SQL that the result keeps (docs/policies.md)
    #[cfg(feature = "policies")]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub policies: Vec<PathBuf>,
    /// List every reservation, not only the first
    #[arg(long)]
    pub all: bool,
    /// Limit of its address space in bytes: set by a parent process.
    #[arg(long, hide = true)]
    pub memory_limit: Option<u64>,
    /// Exit as soon as standard input closes: set by a parent process.
    #[arg(long, hide = true)]
    pub lifeline: bool,
    /// Run at low priority, after processes that serve requests: set by a parent process.
    #[arg(long, hide = true)]
    pub give_way: bool,
    /// Print each progress as a line of JSON: set by a parent process.
    #[arg(long, hide = true)]
    pub progress: bool,
    /// How to solve.
    #[command(flatten)]
    pub options: SolveOptions,
}

const AUDIT_HELP: &str = "\
Recomputes capacity, survival of the loss of each MSB, spread, affinity, stability and the four
terms of the objective, and compares them with what the result's report claims. Overrides of the solve
(\"overrides\" in report.json) are taken into account.";

/// `ras result audit`
#[derive(Debug, Args)]
#[command(after_help = AUDIT_HELP)]
pub struct Audit {
    /// The region
    pub snapshot: PathBuf,
    /// The result of its solve
    pub result: PathBuf,
}

/// `ras result report`
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

/// `ras snapshot inspect`
#[derive(Debug, Args)]
pub struct Inspect {
    /// The region
    pub snapshot: PathBuf,
}

const DEMO_HELP: &str = "\
If the trace is not beside the project, a small region of the repository is solved instead, and a
line says so.

--live generates a region of 2,000 servers and runs it as `ras up` does, with a Postgres of its own in
a folder of its own, and with simulated host agents. It plays for about two minutes, and prints what
happens with the address of the page that shows it. Ctrl-C ends it and removes everything.";

/// `ras demo`
#[derive(Debug, Args)]
#[command(after_help = DEMO_HELP)]
pub struct Demo {
    /// Run a small living region with its pages instead, until Ctrl-C: a request is granted, servers fail and
    /// are replaced, a request is refused, an MSB is lost
    #[arg(long, conflicts_with_all = ["data", "out"])]
    pub live: bool,
    /// Pause between two events of --live
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, default_value = "15s", requires = "live")]
    pub pace: Duration,
    /// The folder of the trace [default: ../shared/data/google2019_cell_a beside the project]
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Output folder for snapshot, result and page
    #[arg(long, value_name = "FOLDER", default_value = "out")]
    pub out: PathBuf,
    /// How to solve.
    #[command(flatten)]
    pub options: SolveOptions,
}

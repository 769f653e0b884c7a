//! What may be done with a plan or a result.

use super::ServerOptions;
use clap::Args;
use std::path::PathBuf;
use uuid::Uuid;

/// `ras explain`
#[derive(Debug, Args)]
#[command(
    override_usage = "ras explain [OPTIONS] <RESERVATION>\n       \
        ras explain [OPTIONS] <SNAPSHOT> <RESULT> [--reservation <NAME>]",
    after_help = "\
With one name the server is asked: how the reservation stands, and what was said to its last request.

Examples:
  ras explain web
  ras explain region result --reservation web"
)]
pub struct Explain {
    /// The region; or a reservation of the server, if no result follows
    #[arg(value_name = "SNAPSHOT|RESERVATION")]
    pub what: PathBuf,
    /// The result of its solve
    pub result: Option<PathBuf>,
    /// The reservation; without it, every one that is short
    #[arg(long, value_name = "NAME", requires = "result")]
    pub reservation: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

const APPLY_EXAMPLES: &str = "\
With --plan or --request the server is asked. Requests are planned together; what they come to is
shown, and carried out after a yes. Files of requests can live in a git repository: what is granted
already changes nothing. A plan that the region has moved on from is refused (exit code 3), and
what it would be now is shown.

With SNAPSHOT and RESULT, servers are with their targets in the new snapshot, idle where they moved;
settings that the solve saw instead of the snapshot's are not carried over.

Examples, the last one day of a chain:
  ras apply --plan 0198a2c4-...
  ras apply --request reservations/*.yaml --yes
  ras apply day0 result0 --out day6 --request-changes request_changes.csv --day 6";

/// `ras apply`
#[derive(Debug, Args)]
#[command(
    override_usage = "ras apply [OPTIONS] --plan <ID>\n       \
        ras apply [OPTIONS] --request <FILE>...\n       \
        ras apply [OPTIONS] <SNAPSHOT> <RESULT> --out <SNAPSHOT>",
    after_help = APPLY_EXAMPLES,
    group = clap::ArgGroup::new("what").args(["snapshot", "plan", "request"]).required(true)
)]
pub struct Apply {
    /// The region
    #[arg(requires_all = ["result", "out"])]
    pub snapshot: Option<PathBuf>,
    /// The result of its solve
    pub result: Option<PathBuf>,
    /// The snapshot to write
    #[arg(long, value_name = "SNAPSHOT", requires = "snapshot")]
    pub out: Option<PathBuf>,
    /// Requests from then on: name, capacity, ... as for `import csv`
    #[arg(long, value_name = "CSV", requires = "snapshot", conflicts_with = "request_changes")]
    pub requests: Option<PathBuf>,
    /// Requests that change: day, date, reservation, servers
    #[arg(long, value_name = "CSV", requires_all = ["snapshot", "day"])]
    pub request_changes: Option<PathBuf>,
    /// The day whose changes apply
    #[arg(long, value_name = "DAY", requires = "request_changes")]
    pub day: Option<u32>,
    /// A plan of the server
    #[arg(long, value_name = "ID")]
    pub plan: Option<Uuid>,
    /// Requests, as for `ras plan`
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub request: Vec<PathBuf>,
    /// Do not ask whether that is meant
    #[arg(long, conflicts_with = "snapshot")]
    pub yes: bool,
    /// List every source of servers, however many there are
    #[arg(long, conflicts_with = "snapshot")]
    pub all: bool,
    /// Do not wait for its end
    #[arg(long, conflicts_with = "snapshot")]
    pub no_wait: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

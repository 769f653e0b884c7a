//! Arguments of `ras explain` and `ras apply`.

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
With one name, asks the server for the state of the reservation and the answer to its last request.

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
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

const APPLY_EXAMPLES: &str = "\
With --plan or --request, the server applies them. Requests are planned together; their effect is
shown and applied after confirmation. Files of requests can be kept in a git repository: requests
already granted change nothing. A plan that is out of date is refused (exit code 3), and an updated
plan is shown.

With SNAPSHOT and RESULT, the new snapshot has each server at its target, idle if it moved;
overrides of the solve are not carried over.

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
    /// Requests that replace the snapshot's: name, capacity, ... as for `import csv`
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
    /// Do not ask for confirmation
    #[arg(long, conflicts_with = "snapshot")]
    pub yes: bool,
    /// List every source of servers, not only the first
    #[arg(long, conflicts_with = "snapshot")]
    pub all: bool,
    /// Do not wait until it ends
    #[arg(long, conflicts_with = "snapshot")]
    pub no_wait: bool,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

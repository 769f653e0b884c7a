//! Arguments of `ras apply`, `ras explain`, `ras result explain` and `ras snapshot next`.

use super::server::ServerOptions;
use crate::quantity;
use broker::PlanId;
use clap::Args;
use std::path::PathBuf;

/// `ras explain`
#[derive(Debug, Args)]
#[command(after_help = "\
Shows the state of the reservation and the answer to its last request.

Example:
  ras explain web")]
pub struct Explain {
    /// The reservation
    pub reservation: String,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras result explain`
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  ras result explain region result --reservation web")]
pub struct ExplainResult {
    /// The region
    pub snapshot: PathBuf,
    /// The result of its solve
    pub result: PathBuf,
    /// The reservation; without it, every one that is short
    #[arg(long, value_name = "NAME")]
    pub reservation: Option<String>,
}

const APPLY_EXAMPLES: &str = "\
Requests are planned together; their effect is shown and applied after confirmation. Files of
requests can be kept in a git repository: a reservation that is as its file says is `unchanged`, and
nothing is planned or written for it. A plan that is
out of date is refused (exit code 3), and an updated plan is shown.

Examples:
  ras apply --plan ID
  ras apply --request reservations/*.yaml --yes";

/// `ras apply`
#[derive(Debug, Args)]
#[command(
    override_usage = "ras apply [OPTIONS] --plan <ID>\n       \
        ras apply [OPTIONS] --request <FILE>...",
    after_help = APPLY_EXAMPLES,
    group = clap::ArgGroup::new("what").args(["plan", "request"]).required(true)
)]
pub struct Apply {
    /// A plan of the server
    #[arg(long, value_name = "ID", value_parser = quantity::id::<PlanId>)]
    pub plan: Option<PlanId>,
    /// Requests, as for `ras plan`
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub request: Vec<PathBuf>,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
    /// List every source of servers, not only the first
    #[arg(long)]
    pub all: bool,
    /// Do not wait until it ends
    #[arg(long)]
    pub no_wait: bool,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras snapshot next`
#[derive(Debug, Args)]
#[command(after_help = "\
The new snapshot has each server at its target, idle if it moved; overrides of the solve are not
carried over.

Example, one day of a chain:
  ras snapshot next day0 result0 --out day6 --request-changes request_changes.csv --day 6")]
pub struct Next {
    /// The region
    pub snapshot: PathBuf,
    /// The result of its solve
    pub result: PathBuf,
    /// The snapshot to write
    #[arg(long, value_name = "SNAPSHOT")]
    pub out: PathBuf,
    /// Requests that replace the snapshot's: name, capacity, ... as for `ras snapshot import`
    #[arg(long, value_name = "CSV", conflicts_with = "request_changes")]
    pub requests: Option<PathBuf>,
    /// Requests that change: day, date, reservation, servers
    #[arg(long, value_name = "CSV", requires = "day")]
    pub request_changes: Option<PathBuf>,
    /// The day whose changes apply
    #[arg(long, value_name = "DAY", requires = "request_changes")]
    pub day: Option<u32>,
}

//! Arguments of subcommands that use the Postgres of a region without asking its server.

use super::mover::MoverOptions;
use super::postgres::StoreOptions;
use super::read::{Watching, watching};
use super::server::ServerOptions;
use super::solving::OverrideOptions;
use crate::quantity;
use chrono::{DateTime, Utc};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const UP_HELP: &str = "\
Uses the Postgres of --database-url, DATABASE_URL or ras.toml. Otherwise it starts a private one in
the data folder: a unix socket, no network port, fsync on. The data survives a restart.

ras.toml:
  [store]
  database_url = \"postgres://ras@db.example/region\"
  data = \"/srv/ras\"
  [service]
  schedule = \"0 * * * *\"     # UTC; missed runs are coalesced into one
  event_servers = 100         # this many newly unavailable servers trigger a solve
  deadline = \"50m\"           # of one solve
  memory = \"16GiB\"           # of one solve, without HiGHS
  lease = \"60s\"              # a worker without a heartbeat for this long loses its job
  archive = \"/srv/archive\"   # or a URL: snapshot, settings, result and report of each solve
  keep_least = 24             # newest solves that are always kept
  keep_most = 1000            # maximum number of solves kept
  keep_age = \"744h\"          # and their maximum age, as that of the history of the region
  [portal]
  read = \"open\"               # or \"token\": reads need a token, too
  requests_per_second = 1000  # per caller; more are answered with 429
  tls_before = false          # whether a proxy in front terminates TLS
  [portal.tls]                # PEM files; without them there is no TLS
  certificate = \"/etc/ras/cert.pem\"
  key = \"/etc/ras/key.pem\"
  [[portal.tokens]]           # in addition to tokens of `ras token create`
  name = \"alertmanager\"       # recorded in the audit trail
  roles = [\"health\"]          # viewer, owner, operator, admin, health, emergency
  token_file = \"/etc/ras/alertmanager.token\"
The sections of `ras solve --help` apply to each solve, [mover] of `ras mover --help` to moves.

The HTTP API on --listen serves container allocators (GET /v1/reservations/NAME/servers and /changes)
and, under /ops/v1, health events (POST /events, /alertmanager, /usage), planned maintenance and
more. It is described at /api; docs/operations has examples.

It also listens on a unix socket in the data folder (server/ras.sock, mode 0600 in a folder of mode
0700), for commands of this machine. They need no token: the caller is the user that the kernel names,
`local:USER` in the audit trail, with the role admin. Only the user that runs the server and root are
admitted.

Examples:
  ras up region
  ras up --data /srv/ras
  DATABASE_URL=postgres://ras@db.example/region ras up";

/// `ras up`
#[derive(Debug, Args)]
#[command(after_help = UP_HELP)]
pub struct Up {
    /// Snapshot to load if the store is empty
    pub snapshot: Option<PathBuf>,
    /// Address to serve HTTP on, or `none`
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878", value_parser = listen)]
    pub listen: Listen,
    /// End when standard input does: for a program that starts this one, and may be killed
    #[arg(long, hide = true)]
    pub until_input_ends: bool,
    /// The schedule of solves.
    #[command(flatten)]
    pub schedule: ScheduleOptions,
    /// How jobs are executed.
    #[command(flatten)]
    pub worker: WorkerOptions,
    /// The host agent.
    #[command(flatten)]
    pub mover: MoverOptions,
    /// The store to use.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// How jobs are executed: for `up` and `worker`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Solves")]
pub struct WorkerOptions {
    /// Archive of solves: a folder or a URL [default: `archive` in the data folder]
    #[arg(long, value_name = "PLACE")]
    pub archive: Option<String>,
    /// Deadline of a solve [default: 50m]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub deadline: Option<Duration>,
    /// Memory limit of a solve, without HiGHS [default: 16GiB]
    #[arg(long, value_name = "AMOUNT", value_parser = quantity::bytes)]
    pub memory: Option<u64>,
    /// Lease: how long a worker keeps a job without a heartbeat [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub lease: Option<Duration>,
    /// The program that solves, instead of this one: for tests.
    #[arg(long, hide = true)]
    pub solver: Option<PathBuf>,
}

/// The schedule of solves: for `up`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Solves")]
pub struct ScheduleOptions {
    /// Schedule of solves: a cron expression in UTC, or `never` [default: 0 * * * *]
    #[arg(long, value_name = "CRON")]
    pub schedule: Option<String>,
    /// Number of newly unavailable servers that triggers a solve at once; 0: never [default: 100]
    #[arg(long, value_name = "COUNT")]
    pub event_servers: Option<u32>,
    /// Run no jobs in this process; other workers do
    #[arg(long)]
    pub no_worker: bool,
}

/// `ras worker`
#[derive(Debug, Args)]
#[command(after_help = "\
Runs solves and replays from the queue in the region's Postgres, one at a time, until Ctrl-C, which
requeues the current job. Any number of workers may run, on any machine that reaches the Postgres and
the archive: give both. A worker that dies or is cut off loses its job to another after its lease.")]
pub struct Worker {
    /// How jobs are executed.
    #[command(flatten)]
    pub worker: WorkerOptions,
    /// The store to use.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras ops solve`
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
If a solve is already queued, joins it. Solves that move more servers in use than
approval_above_in_use_moves of [service] await approval: `ras list solves` shows them.
Requests await it too: see `ras ops request`.

Examples:
  ras ops solve --wait
  ras ops solve approve ID
  ras ops solve reject ID --why \"not during the sale\""
)]
pub struct RequestSolve {
    /// A decision on a solve.
    #[command(subcommand)]
    pub decision: Option<SolveDecision>,
    /// Wait until it ends
    #[arg(long)]
    pub wait: bool,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// The decisions of `ras ops solve`.
#[derive(Debug, clap::Subcommand)]
pub enum SolveDecision {
    /// Cancel a solve that waits or runs; it publishes nothing
    Cancel {
        /// The solve
        solve: broker::SolveId,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Publish the targets of a solve that awaits approval
    Approve {
        /// The solve
        solve: broker::SolveId,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Reject the targets of a solve that awaits approval
    Reject {
        /// The solve
        solve: broker::SolveId,
        /// Reason, recorded in the audit trail
        #[arg(long, value_name = "TEXT")]
        why: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
}

const REPLAY_HELP: &str = "\
Repeats past solves on their archived snapshots, with their recorded settings and the overrides of
the command line, and compares the results with the recorded ones. Nothing is published.
`ras forecast replay` judges forecasts, and the decisions that rest on them, on the same archive.

Examples:
  a policy on the last month
    ras ops replay --since 2026-10-21T00:00:00Z --msb-alpha 5% --shared-buffer-fraction 1.5% \\
        --fan-out --out replay.html
  the last ten unchanged, and snapshots from elsewhere
    ras ops replay --last 10
    ras ops replay monday tuesday --spread-beta 0";

/// `ras ops replay`
#[derive(Debug, Args)]
#[command(after_help = REPLAY_HELP)]
pub struct Replay {
    /// Solves by id, or folders of snapshots
    #[arg(value_name = "SOLVE|SNAPSHOT")]
    pub what: Vec<String>,
    /// This many of the last published solves
    #[arg(long, value_name = "COUNT")]
    pub last: Option<u32>,
    /// Published solves requested since this time
    #[arg(long, value_name = "INSTANT", conflicts_with = "last")]
    pub since: Option<DateTime<Utc>>,
    /// Let the workers of the queue replay them
    #[arg(long)]
    pub fan_out: bool,
    /// The page to write
    #[arg(long, value_name = "HTML")]
    pub out: Option<PathBuf>,
    /// Add tables by day and by reservation: which are short more or less often
    #[arg(long)]
    pub tables: bool,
    /// How jobs are executed.
    #[command(flatten)]
    pub worker: WorkerOptions,
    /// Overrides of the settings.
    #[command(flatten)]
    pub overrides: OverrideOptions,
    /// The store to use.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// The address for HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// No HTTP.
    Nowhere,
    /// This address.
    At(SocketAddr),
}

fn listen(text: &str) -> Result<Listen, String> {
    if text == "none" {
        return Ok(Listen::Nowhere);
    }
    let complaint = |_| format!("{text:?} is neither an address such as 127.0.0.1:7878 nor `none`");
    text.parse().map(Listen::At).map_err(complaint)
}

const IMPORT_SNAPSHOT_HELP: &str = "\
Compares the snapshot with the store, shows the changes, and makes them in one transaction, as a new
version of the targets. Objects that the snapshot lacks stay, unless --remove-missing.

Columns that the CSV inventory lacked (see `ras snapshot import`) keep their stored values.

A snapshot that lacks more than 5 % of the servers, of the reservations or of the bindings of servers
to reservations is refused, unless --force. A snapshot with servers, racks or MSBs in other places, or
of other types, is refused, unless --accept-contradictions.";

/// `ras snapshot load`
#[derive(Debug, Args)]
#[command(after_help = IMPORT_SNAPSHOT_HELP)]
pub struct ImportSnapshot {
    /// The snapshot to load
    pub snapshot: PathBuf,
    /// Only show the changes
    #[arg(long, visible_alias = "dry-run")]
    pub plan: bool,
    /// Load it even if it removes more than 5 %
    #[arg(long)]
    pub force: bool,
    /// Load it even if it contradicts the store
    #[arg(long)]
    pub accept_contradictions: bool,
    /// Remove objects that the snapshot lacks
    #[arg(long)]
    pub remove_missing: bool,
    /// The store to use.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras snapshot export`
#[derive(Debug, Args)]
#[command(after_help = "\
The folder also has the version of the region (`version` in region.json, `generation` in
servers.parquet), so that `ras result publish` can publish a result from files alone.

Example, a solve by hand:
  ras snapshot export region && ras solve region --out result && ras result publish region result")]
pub struct Export {
    /// The snapshot to write
    pub out: PathBuf,
    /// The store to use.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras result publish`
#[derive(Debug, Args)]
#[command(after_help = "\
The result is audited first. It is published on top of the version that was exported, or not at all;
servers whose binding changed since then keep their targets, and are counted. Publishing a result
twice changes nothing.")]
pub struct Publish {
    /// The region as it was exported
    pub snapshot: PathBuf,
    /// The result of its solve
    pub result: PathBuf,
    /// The store to use.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras status`
#[derive(Debug, Args)]
#[command(after_help = watching!().trim_start())]
pub struct Status {
    /// Check the invariants of the stored region: no gaps in versions and audit trail, one owner per
    /// server, ... (role operator)
    #[arg(long)]
    pub check: bool,
    /// Whether to watch it.
    #[command(flatten)]
    pub watching: Watching,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

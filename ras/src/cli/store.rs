//! What may be asked of a region in Postgres.

use super::{MoverOptions, OverrideOptions, ServerOptions};
use crate::quantity;
use chrono::{DateTime, Utc};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where the region is kept: for every subcommand that works on one.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Store")]
pub struct StoreOptions {
    /// The Postgres that holds the region [default: a private one in the data folder]
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// The folder of the private Postgres and of what solves leave behind [default:
    /// $XDG_STATE_HOME/ras, else /var/tmp/ras-UID]
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// The folder of the programs `postgres` and `initdb` [default: the newest there are]
    #[arg(long, value_name = "FOLDER", env = "RAS_PG_BIN")]
    pub postgres_programs: Option<PathBuf>,
    /// Settings file (TOML); the command line wins over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Who is written into the audit trail
    #[arg(long, value_name = "NAME", env = "USER", default_value = "ras")]
    pub actor: String,
    /// Where the user's programs keep their state.
    #[arg(long, hide = true, env = "XDG_STATE_HOME")]
    pub state_home: Option<PathBuf>,
}

const UP_HELP: &str = "\
Uses the Postgres of --database-url, DATABASE_URL or ras.toml. Where there is none, a private one is
started in the data folder: a unix socket, no network port, fsync on. Stopping leaves the data, and
starting again finds it.

ras.toml:
  [store]
  database_url = \"postgres://ras@db.example/region\"
  data = \"/srv/ras\"
  [service]
  schedule = \"0 * * * *\"     # UTC; a time that was missed is made up for once
  event_servers = 100         # so many servers newly unavailable ask for a solve at once
  deadline = \"50m\"           # of one solve
  memory = \"16GiB\"           # of one solve, without HiGHS
  lease = \"60s\"              # a worker without a sign of life for so long loses its job
  archive = \"/srv/archive\"   # or a URL: snapshot, settings, result and report of each solve
  keep_least = 24             # solves kept in any case, the newest
  keep_most = 1000            # and at most
  keep_age = \"744h\"          # and for how long
  [portal]
  read = \"open\"               # or \"token\": who reads needs a token as well
  requests_per_second = 1000  # of one caller; more is answered with 429
  tls_before = false          # whether a proxy in front ends TLS
  [portal.tls]                # files in PEM; without them there is no TLS
  certificate = \"/etc/ras/cert.pem\"
  key = \"/etc/ras/key.pem\"
  [[portal.tokens]]           # beside those that `ras token create` makes
  name = \"alertmanager\"       # stands in the audit trail
  roles = [\"health\"]          # viewer, owner, operator, admin, health, emergency
  token_file = \"/etc/ras/alertmanager.token\"
The sections of `ras solve --help` hold for each solve, [mover] of `ras mover --help` for moves.

Over HTTP, on --listen: what container allocators read (GET /v1/reservations/NAME/servers and
/changes), and under /ops/v1 health in (POST /events, /alertmanager, /usage), planned maintenance
and more: all of it is described at /api; docs/operations has examples.

Examples:
  ras up region
  ras up --data /srv/ras
  DATABASE_URL=postgres://ras@db.example/region ras up";

/// `ras up`
#[derive(Debug, Args)]
#[command(after_help = UP_HELP)]
pub struct Up {
    /// The region to load, where none is loaded yet
    pub snapshot: Option<PathBuf>,
    /// Where the region is served over HTTP, or `none`
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878", value_parser = listen)]
    pub listen: Listen,
    /// When the region is solved.
    #[command(flatten)]
    pub schedule: ScheduleOptions,
    /// How jobs are done.
    #[command(flatten)]
    pub worker: WorkerOptions,
    /// Who does the steps of moves.
    #[command(flatten)]
    pub mover: MoverOptions,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// How jobs are done: for `up` and `worker`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Solves")]
pub struct WorkerOptions {
    /// Where solves leave what they did: a folder or a URL [default: `archive` in the data folder]
    #[arg(long, value_name = "PLACE")]
    pub archive: Option<String>,
    /// How long a solve may take [default: 50m]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub deadline: Option<Duration>,
    /// Memory a solve may take, without HiGHS [default: 16GiB]
    #[arg(long, value_name = "AMOUNT", value_parser = quantity::bytes)]
    pub memory: Option<u64>,
    /// For how long a worker has a job without a sign of life [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub lease: Option<Duration>,
    /// The program that solves, in place of this one: for tests.
    #[arg(long, hide = true)]
    pub solver: Option<PathBuf>,
}

/// When a region is solved: for `up`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Solves")]
pub struct ScheduleOptions {
    /// When the region is solved: a cron expression in UTC, or `never` [default: 0 * * * *]
    #[arg(long, value_name = "CRON")]
    pub schedule: Option<String>,
    /// Servers newly unavailable that ask for a solve at once; 0: never [default: 100]
    #[arg(long, value_name = "COUNT")]
    pub event_servers: Option<u32>,
    /// Take no jobs in this process: workers elsewhere do
    #[arg(long)]
    pub no_worker: bool,
}

/// `ras worker`
#[derive(Debug, Args)]
#[command(after_help = "\
Takes solves and replays from the queue in the region's Postgres, one at a time, until Ctrl-C, which
gives the job under way back. Any number may run, on any machine that reaches the Postgres and the
archive: name both. A worker that dies or is cut off loses its job to another after its lease.")]
pub struct Worker {
    /// How jobs are done.
    #[command(flatten)]
    pub worker: WorkerOptions,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras request-solve`
#[derive(Debug, Args)]
#[command(after_help = "A solve that waits already is the one asked for.")]
pub struct RequestSolve {
    /// Wait for its end
    #[arg(long)]
    pub wait: bool,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

const REPLAY_HELP: &str = "\
Solves of the past are solved again on their archived snapshots, with the settings they had and what
the command line gives instead, and compared with what was recorded. Nothing is published.

Examples:
  a policy on the last month
    ras replay --since 2026-10-21T00:00:00Z --msb-alpha 5% --shared-buffer-fraction 1.5% \\
        --fan-out --out replay.html
  the last ten as they were, and snapshots from elsewhere
    ras replay --last 10
    ras replay monday tuesday --spread-beta 0";

/// `ras replay`
#[derive(Debug, Args)]
#[command(after_help = REPLAY_HELP)]
pub struct Replay {
    /// Solves by id, or folders of snapshots
    #[arg(value_name = "SOLVE|SNAPSHOT")]
    pub what: Vec<String>,
    /// The last so many solves that were published
    #[arg(long, value_name = "COUNT")]
    pub last: Option<u32>,
    /// Solves that were asked for since then and published
    #[arg(long, value_name = "INSTANT", conflicts_with = "last")]
    pub since: Option<DateTime<Utc>>,
    /// Have the workers of the queue do it
    #[arg(long)]
    pub fan_out: bool,
    /// The page to write
    #[arg(long, value_name = "HTML")]
    pub out: Option<PathBuf>,
    /// Tables by day and by reservation, too: who is short more or less often
    #[arg(long)]
    pub tables: bool,
    /// How jobs are done.
    #[command(flatten)]
    pub worker: WorkerOptions,
    /// What differs.
    #[command(flatten)]
    pub overrides: OverrideOptions,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// Where health is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Not at all.
    Nowhere,
    /// There.
    At(SocketAddr),
}

fn listen(text: &str) -> Result<Listen, String> {
    if text == "none" {
        return Ok(Listen::Nowhere);
    }
    let complaint = |_| format!("{text:?} is neither an address such as 127.0.0.1:7878 nor none");
    text.parse().map(Listen::At).map_err(complaint)
}

const IMPORT_SNAPSHOT_HELP: &str = "\
Compares the snapshot with what is stored, shows what would change, and changes it in one
transaction, as a new version of the targets. What the snapshot lacks stays, unless --remove-missing.

Columns that an inventory in CSV did not have (see `ras import csv`) are left as they are stored.

A snapshot that lacks more than 5 % of the servers, of the reservations or of the bindings of servers
to reservations is refused, unless --force; one that has servers, racks or MSBs in other places, or of other types, unless
--accept-contradictions.";

/// `ras import snapshot`
#[derive(Debug, Args)]
#[command(after_help = IMPORT_SNAPSHOT_HELP)]
pub struct ImportSnapshot {
    /// The region as it should be stored
    pub snapshot: PathBuf,
    /// Say what would change, and change nothing
    #[arg(long, visible_alias = "dry-run")]
    pub plan: bool,
    /// Load it although more than 5 % vanishes
    #[arg(long)]
    pub force: bool,
    /// Load it although it contradicts what is stored
    #[arg(long)]
    pub accept_contradictions: bool,
    /// Remove what the snapshot lacks
    #[arg(long)]
    pub remove_missing: bool,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras export`
#[derive(Debug, Args)]
#[command(after_help = "\
The folder also says what a decision made on it rests on (`version` in region.json, `generation` in
servers.parquet), so that `ras publish` can publish a result from files alone.

Example, a solve by hand:
  ras export region && ras solve region --out result && ras publish region result")]
pub struct Export {
    /// The snapshot to write
    pub out: PathBuf,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras publish`
#[derive(Debug, Args)]
#[command(after_help = "\
The result is audited first. It is published on top of the version that was exported, or not at all;
servers whose binding moved since keep what they have, and are counted. Publishing the same again
changes nothing.")]
pub struct Publish {
    /// The region as it was exported
    pub snapshot: PathBuf,
    /// The result of its solve
    pub result: PathBuf,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras status`
#[derive(Debug, Args)]
pub struct Status {
    /// Read everything that must hold, of a store: versions and audit trail without holes, one owner, ...
    #[arg(long)]
    pub check: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

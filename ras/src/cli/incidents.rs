//! Arguments of subcommands about incidents: replacements, outages, loans, emergencies and failure
//! drills.

use super::inventory::LogOptions;
use super::server::ServerOptions;
use super::solving::SolveOptions;
use crate::quantity;
use broker::EmergencyId;
use clap::{Args, Subcommand};
use fleet::Rru;
use std::path::PathBuf;
use std::time::Duration;

/// `ras ops replacements`
#[derive(Debug, Args)]
#[command(after_help = "\
A server that fails unplanned while a guaranteed reservation holds it is replaced from the
shared buffer by the mover. States: owed (no spare fits), swapped (a spare is on its way), bound,
recovered (it came back first), paid (a solve that knew of it was published), withdrawn (the
reservation that was short is gone).

Exit code 2 with --owed: servers are owed.")]
pub struct Replacements {
    /// Only reservations that are owed servers
    #[arg(long)]
    pub owed: bool,
    /// List at most this many, newest first
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub limit: u32,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras ops loans`
#[derive(Debug, Args)]
#[command(after_help = "\
Idle servers of embedded and shared buffers are lent to elastic reservations, by weight, and
recalled when their owners need them: see [mover.elastic] of `ras mover --help`.")]
pub struct Loans {
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras ops outages`
#[derive(Debug, Args)]
#[command(
    after_help = "\
While an MSB is lost its servers are not replaced: embedded buffers cover the loss. Loans elsewhere
are recalled, three quarters of them at once, and maintenance waits. If more than one MSB is lost,
`give-way` shows which reservations would give servers to which, by declared priority, and does it
with --apply.",
    args_conflicts_with_subcommands = true
)]
pub struct Outages {
    /// Include outages that have ended
    #[arg(long)]
    pub all: bool,
    /// The action; without one, outages are listed.
    #[command(subcommand)]
    pub action: Option<OutagesAction>,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// The actions on outages.
#[derive(Debug, Subcommand)]
pub enum OutagesAction {
    /// Preview or apply preemption: which reservations would give servers to which, by priority
    #[command(after_help = "\
The most important reservation that is short is filled first: from unassigned servers, then from
shared buffers, then from less important reservations, the least important first and idle servers
before those in use. Without --apply nothing is changed. Exactly the plan shown is applied: if it has
changed meanwhile, nothing is done (exit code 3).

The mover applies it automatically once two MSBs have been lost for give_way_after of [mover]; by
default it never does.

Exit code 2: a reservation remains short.")]
    GiveWay {
        /// Apply it
        #[arg(long, requires = "why")]
        apply: bool,
        /// Reason, recorded in the audit trail
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
        /// Preempt even if only one MSB is lost, which embedded buffers cover
        #[arg(long)]
        anyway: bool,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
}

/// `ras ops emergency`
#[derive(Debug, Subcommand)]
pub enum EmergencyAction {
    /// Request capacity now, and wait for the answer
    #[command(after_help = "\
The acting mover grants it within seconds, from unassigned servers and then from shared buffers,
without waiting for a solve. The granted capacity is guaranteed from then on: the next solve keeps
it, spreads it and adds its buffer. Until then it counts as a debt.

It shows what would be granted and asks first; no more servers are taken than it shows. Half of each
shared buffer stays. It is refused if the emergencies of the reservation would more than double its
promise, or if it would exceed a quota of its owner; --beyond-limits, for operators, lifts these limits.

Exit code 2: less was granted than requested, or nothing.")]
    Ask {
        /// The reservation that needs it
        reservation: String,
        /// Additional capacity in RRU
        #[arg(long, value_name = "AMOUNT", value_parser = rru)]
        rru: Rru,
        /// Reason, recorded in the audit trail
        #[arg(long, value_name = "TEXT")]
        why: String,
        /// How long to wait for the answer
        #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::duration)]
        wait: Duration,
        /// Go beyond the limits of emergencies and quotas; needs the role operator
        #[arg(long)]
        beyond_limits: bool,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// List emergencies, newest first
    List {
        /// List at most this many
        #[arg(long, value_name = "COUNT", default_value_t = 20)]
        limit: u32,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// End an emergency: the reservation shrinks to its former size, and the next solve releases
    /// the surplus
    End {
        /// Id of the emergency
        #[arg(value_parser = quantity::id::<EmergencyId>)]
        id: EmergencyId,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
}

/// `ras ops drill`
#[derive(Debug, Args)]
#[command(after_help = "\
Nothing is changed. Exit code 2: a reservation would be short.

Examples:
  ras ops drill --msb msb4
  ras ops drill --domain switch=sw1")]
pub struct Drill {
    /// The MSB that is lost
    #[arg(
        long,
        value_name = "NAME",
        required_unless_present = "domain",
        conflicts_with = "domain"
    )]
    pub msb: Option<String>,
    /// The fault domain that is lost, of a partition such as switch
    #[arg(long, value_name = "PARTITION=DOMAIN", value_parser = crate::quantity::pair)]
    pub domain: Option<(String, String)>,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras snapshot rehearse`
#[derive(Debug, Args)]
#[command(after_help = "\
Replays a log of failures in virtual time, on the region as a solve leaves it, with the decisions of
the mover: the storm guard and the choice of spares. Shows how many servers were replaced and how
soon, and the capacity that reservations lacked meanwhile, for shared buffers of several sizes. No
store is needed.

Columns of the log: server_id, kind, start, end, as for `ras snapshot import`. Planned maintenance is
not a failure. [mover] settle and [mover.storm_guard] of --config apply as they do to the mover.

Examples:
  ras snapshot rehearse region --events events.csv
  ras snapshot rehearse region --events events.csv --shared-buffer 0,1%,2%,3% --solve-every 24h")]
pub struct Rehearse {
    /// The region
    pub snapshot: PathBuf,
    /// Logs of failures
    #[arg(long, value_name = "CSV", required = true)]
    pub events: Vec<PathBuf>,
    /// How times and kinds are written.
    #[command(flatten)]
    pub log: LogOptions,
    /// Sizes of the shared buffer to compare, as shares of each hardware type [default: the snapshot's]
    #[arg(long, value_name = "SHARES", value_delimiter = ',', value_parser = quantity::share)]
    pub shared_buffer: Vec<f64>,
    /// For how long the log is replayed [default: to its last event]
    #[arg(long, value_name = "TIME", value_parser = quantity::span)]
    pub span: Option<Duration>,
    /// How long a move takes
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::duration)]
    pub move_takes: Duration,
    /// How long a failure must last before the mover reacts [default: that of the settings, or 1s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub settle: Option<Duration>,
    /// How often the region is solved during the rehearsal [default: never]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub solve_every: Option<Duration>,
    /// How to solve; --deadline is for each solve
    #[command(flatten)]
    pub options: SolveOptions,
}

fn rru(text: &str) -> Result<Rru, String> {
    let amount = text.trim().parse::<f64>().ok().and_then(Rru::from_f64);
    let amount = amount.filter(|amount| *amount > Rru::ZERO);
    amount.ok_or_else(|| format!("{text:?} is not an amount of RRU above 0 and up to 1e9"))
}

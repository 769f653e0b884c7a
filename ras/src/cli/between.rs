//! What may be asked about that which is decided between two solves.

use super::{ServerOptions, StoreOptions};
use crate::quantity;
use clap::{Args, Subcommand};
use fleet::Rru;
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

/// `ras replacements`
#[derive(Debug, Args)]
#[command(after_help = "\
A server that fails unplanned while a guaranteed reservation holds it is replaced from the
shared buffer by the mover. States: owed (no spare fits: a debt), swapped (a spare is on its
way), bound, recovered (it came back first), paid (a solve that knew of it was published),
withdrawn (who was short is gone).

Exit code 2 with --owed: there are debts.")]
pub struct Replacements {
    /// Only debts
    #[arg(long)]
    pub owed: bool,
    /// At most so many, the youngest first
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub limit: u32,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras loans`
#[derive(Debug, Args)]
#[command(after_help = "\
Idle servers of embedded and shared buffers are lent to elastic reservations, by share, and
taken back when their owners need them: see [mover.elastic] of `ras mover --help`.")]
pub struct Loans {
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras outages`
#[derive(Debug, Args)]
#[command(
    after_help = "\
While an MSB is lost its servers are not replaced: embedded buffers serve. What is lent
elsewhere comes back, three quarters of it at once, and maintenance waits. When more than one is
lost, `give-way` shows who would give servers to whom, by declared priority, and does it with
--apply.",
    args_conflicts_with_subcommands = true
)]
pub struct Outages {
    /// Past ones, too
    #[arg(long)]
    pub all: bool,
    /// What to do about them.
    #[command(subcommand)]
    pub action: Option<OutagesAction>,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// What may be done about outages.
#[derive(Debug, Subcommand)]
pub enum OutagesAction {
    /// Show who would give way to whom, by declared priority
    #[command(after_help = "\
The most important reservation that is short is made whole first: from servers that nobody owns,
then from shared buffers, then from less important reservations, the least important first and
idle servers before those in use. Without --apply nothing is changed. What was shown is what is
done: if the plan has changed meanwhile, nothing is (exit code 3).

The mover does it by itself once two MSBs have been lost for as long as give_way_after in [mover]
says; by default it never does.

A server that is named is asked; else a store that is named (--data, --database-url, DATABASE_URL,
--config); else the server of `ras login`; else the store in the default folder.

Exit code 2: a reservation is short even afterwards.")]
    GiveWay {
        /// Do it
        #[arg(long, requires = "why")]
        apply: bool,
        /// Why, for the audit trail
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
        /// Even if no more than one MSB is lost, which embedded buffers are there for
        #[arg(long)]
        anyway: bool,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
        /// Where the region is kept.
        #[command(flatten)]
        store: StoreOptions,
    },
}

/// `ras emergency`
#[derive(Debug, Subcommand)]
pub enum EmergencyAction {
    /// Ask for capacity now, and wait for the answer
    #[command(after_help = "\
The mover that acts grants it within seconds, from servers that nobody owns and then from shared
buffers; no solve is waited for. What is granted is promised from then on: the next solve keeps
it, spreads it and gives it its buffer. Until then it is a debt.

Exit code 2: less was granted than asked, or nothing.")]
    Ask {
        /// Who needs it
        reservation: String,
        /// How much more than it has
        #[arg(long, value_name = "AMOUNT", value_parser = rru)]
        rru: Rru,
        /// Why, for those who wonder
        #[arg(long, value_name = "TEXT")]
        why: String,
        /// How long to wait for the answer
        #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::duration)]
        wait: Duration,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
        /// Where the region is kept.
        #[command(flatten)]
        store: StoreOptions,
    },
    /// List emergencies, the youngest first
    List {
        /// At most so many
        #[arg(long, value_name = "COUNT", default_value_t = 20)]
        limit: u32,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
        /// Where the region is kept.
        #[command(flatten)]
        store: StoreOptions,
    },
    /// End one: what is promised shrinks again, and the next solve takes what is too much
    End {
        /// Its id
        id: Uuid,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
        /// Where the region is kept.
        #[command(flatten)]
        store: StoreOptions,
    },
}

/// `ras drill`
#[derive(Debug, Args)]
#[command(after_help = "\
Replays a log of failures in virtual time, on the region as a solve leaves it, with the
decisions of the mover: the storm guard and the choice of spares. Says how many servers were
replaced and how soon, what reservations lacked meanwhile, and what that is for shared buffers
of several sizes. No store is needed.

With --msb the server is asked instead: who would keep what if that MSB were lost now? Nothing is
touched. Exit code 2: somebody would be short.

Columns of the log: server_id, kind, start, end, as for `ras import csv`. Planned maintenance is no
failure. [mover] settle and [mover.storm_guard] of --config hold here as they do for the mover.

Examples:
  ras drill region --events events.csv
  ras drill region --events events.csv --shared-buffer 0,1%,2%,3% --solve-every 24h --deadline 20s
  ras drill --msb msb4")]
pub struct Drill {
    /// The region
    #[arg(required_unless_present = "msb", requires = "events")]
    pub snapshot: Option<PathBuf>,
    /// Logs of failures
    #[arg(long, value_name = "CSV", requires = "snapshot")]
    pub events: Vec<PathBuf>,
    /// How times and kinds are written.
    #[command(flatten)]
    pub log: super::LogOptions,
    /// The MSB that is lost, of the region that a server has
    #[arg(long, value_name = "NAME", conflicts_with_all = ["snapshot", "events"])]
    pub msb: Option<String>,
    /// Sizes of the shared buffer to compare, as shares of each hardware type [default: the snapshot's]
    #[arg(long, value_name = "SHARES", value_delimiter = ',', value_parser = quantity::share)]
    pub shared_buffer: Vec<f64>,
    /// For how long the log is replayed [default: to its last event]
    #[arg(long, value_name = "TIME", value_parser = quantity::span)]
    pub span: Option<Duration>,
    /// How long a move takes
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::duration)]
    pub move_takes: Duration,
    /// How long a failure is left alone before it is dealt with [default: that of the settings, or 1s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub settle: Option<Duration>,
    /// How often the region is solved during the drill [default: never]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub solve_every: Option<Duration>,
    /// How to solve; --deadline is for each solve
    #[command(flatten)]
    pub options: super::SolveOptions,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

fn rru(text: &str) -> Result<Rru, String> {
    let amount = text.trim().parse::<f64>().ok().and_then(Rru::from_f64);
    let amount = amount.filter(|amount| *amount > Rru::ZERO);
    amount.ok_or_else(|| format!("{text:?} is not an amount of RRU above 0 and up to 1e9"))
}

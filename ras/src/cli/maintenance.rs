//! What may be asked of planned maintenance.

use super::{ServerOptions, StoreOptions};
use crate::quantity;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use std::str::FromStr;
use std::time::Duration;
use uuid::Uuid;

const MAINTENANCE_HELP: &str = "\
A window is of a server or a rack. For --drain before it begins nothing new is put there; when it
begins, containers that still run are ended; then the servers are out of use until it ends.
Nothing is replaced: embedded buffers serve maintenance. An MSB is taken in batches of whole
racks that follow one another, each for as long as --for says.

It is refused, with exit code 2, the numbers and what would be accepted instead, if more than a
quarter of an MSB would be under maintenance at once (--share says otherwise) or if a reservation
would fall below what it was promised: its capacity while no MSB is lost; with any one MSB lost,
its capacity less a quarter of its embedded buffer at once, and all of it within 30 minutes. Work
that says --recall-minutes 30 or less counts as back within 30 minutes; all other work counts as
gone. Both are looked at again when it begins: then it is paused, and begins as soon as it may, or
is cancelled when its time is over. While an MSB is lost nothing begins.

Examples:
  ras maintenance plan --rack rack17 --from now --for 2h --drain 30m --why \"new fans\"
  ras maintenance plan --msb msb4 --from 2026-03-01T22:00:00Z --for 4h \\
      --recall-minutes 20 --why \"power feed B\"
  ras maintenance list
  ras maintenance end 0198a2c4-...        # work is done before its time
  ras maintenance cancel 0198a2c4-...     # a window, or all of a plan";

/// `ras maintenance`
#[derive(Debug, Args)]
#[command(after_help = MAINTENANCE_HELP)]
pub struct Maintenance {
    /// What to do.
    #[command(subcommand)]
    pub action: MaintenanceAction,
}

/// What may be done with maintenance.
#[derive(Debug, Subcommand)]
pub enum MaintenanceAction {
    /// Plan a window, or hear why it cannot be
    Plan(PlanMaintenance),
    /// List windows that are to come or under way
    List(ListMaintenance),
    /// End work that is done before its time
    End(StopMaintenance),
    /// Cancel windows, however far they are
    Cancel(StopMaintenance),
}

/// `ras maintenance plan`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("scope").required(true))]
pub struct PlanMaintenance {
    /// A server
    #[arg(long, value_name = "NAME", group = "scope")]
    pub of_server: Option<String>,
    /// A rack
    #[arg(long, value_name = "NAME", group = "scope")]
    pub rack: Option<String>,
    /// An MSB: its racks, in batches
    #[arg(long, value_name = "NAME", group = "scope")]
    pub msb: Option<String>,
    /// When work begins: RFC 3339, or `now`: as soon as the drain is over
    #[arg(long, value_name = "TIME")]
    pub from: Begin,
    /// How long work takes: up to 7d
    #[arg(long = "for", value_name = "DURATION", value_parser = quantity::duration)]
    pub length: Duration,
    /// For how long before nothing new is put there
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = quantity::duration)]
    pub drain: Duration,
    /// How much of the MSB may be under maintenance at once [default: 25%]
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub share: Option<f64>,
    /// How many minutes work takes to give its servers back when it is recalled because an MSB is
    /// lost [default: it cannot be recalled]
    #[arg(long, value_name = "MINUTES")]
    pub recall_minutes: Option<u32>,
    /// Why, for those who wonder
    #[arg(long, value_name = "TEXT")]
    pub why: String,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// When work begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// As soon as the drain is over.
    Now,
    /// Then.
    At(DateTime<Utc>),
}

impl FromStr for Begin {
    type Err = String;

    fn from_str(text: &str) -> Result<Begin, String> {
        if text == "now" {
            return Ok(Begin::Now);
        }
        let at = DateTime::parse_from_rfc3339(text).map(|at| Begin::At(at.to_utc()));
        at.map_err(|_| format!("{text:?} is neither `now` nor a time such as 2026-03-01T22:00:00Z"))
    }
}

/// `ras maintenance list`
#[derive(Debug, Args)]
pub struct ListMaintenance {
    /// Those that are over, too
    #[arg(long)]
    pub all: bool,
    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub limit: u32,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras maintenance end`, `ras maintenance cancel`
#[derive(Debug, Args)]
pub struct StopMaintenance {
    /// A window, or a plan: all of its windows
    pub id: Uuid,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

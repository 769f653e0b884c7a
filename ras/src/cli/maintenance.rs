//! Arguments of `ras ops maintenance`.

use super::server::ServerOptions;
use crate::quantity;
use broker::MaintenanceId;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use std::str::FromStr;
use std::time::Duration;

const MAINTENANCE_HELP: &str = "\
A window covers a server or a rack. For --drain before it begins, the servers receive no new
work; when it begins, remaining containers are stopped and the servers are out of use until it
ends. They are not replaced: embedded buffers cover maintenance. An MSB is taken in consecutive
batches of whole racks, each for the duration --for.

A window is refused, with exit code 2, the numbers and acceptable alternatives, if more than a
quarter of an MSB would be under maintenance at once (--share changes that) or if a reservation
would fall below its guarantee: its capacity while no MSB is lost; with any one MSB lost, its
capacity less a quarter of its embedded buffer at once, and all of it within 30 minutes. Work
with --recall-minutes 30 or less counts as back within 30 minutes; all other work counts as
gone. Both rules are checked again when the window begins: if one is broken, it is paused and
begins as soon as it may, or is cancelled when its time is over. While an MSB is lost no window
begins.

Examples:
  ras ops maintenance plan --rack rack17 --from now --for 2h --drain 30m --why \"new fans\"
  ras ops maintenance plan --msb msb4 --from 2026-03-01T22:00:00Z --for 4h \\
      --recall-minutes 20 --why \"power feed B\"
  ras ops maintenance list
  ras ops maintenance end ID        # work is done early
  ras ops maintenance cancel ID     # a window, or all windows of a plan";

/// `ras ops maintenance`
#[derive(Debug, Args)]
#[command(after_help = MAINTENANCE_HELP)]
pub struct Maintenance {
    /// The action.
    #[command(subcommand)]
    pub action: MaintenanceAction,
}

/// The actions on maintenance.
#[derive(Debug, Subcommand)]
pub enum MaintenanceAction {
    /// Schedule a maintenance window
    Plan(PlanMaintenance),
    /// List windows that are planned or under way
    List(ListMaintenance),
    /// End a window early, because the work is done
    End(StopMaintenance),
    /// Cancel windows, at any stage
    Cancel(StopMaintenance),
}

/// `ras ops maintenance plan`
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
    /// Start of work: an RFC 3339 time, or `now` for as soon as the drain is over
    #[arg(long, value_name = "TIME")]
    pub from: Begin,
    /// Duration of the work, at most 7d
    #[arg(long = "for", value_name = "DURATION", value_parser = quantity::duration)]
    pub length: Duration,
    /// Drain time before the start, during which the servers receive no new work
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = quantity::duration)]
    pub drain: Duration,
    /// Largest share of the MSB under maintenance at once [default: 25%]
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub share: Option<f64>,
    /// Minutes within which the work returns its servers if it is recalled because an MSB is lost
    /// [default: it cannot be recalled]
    #[arg(long, value_name = "MINUTES")]
    pub recall_minutes: Option<u32>,
    /// Reason, recorded in the audit trail
    #[arg(long, value_name = "TEXT")]
    pub why: String,
    /// Accept that this reservation falls below its promise meanwhile; may be repeated
    #[arg(long, value_name = "RESERVATION", requires = "accept_why")]
    pub accept_short: Vec<String>,
    /// Why that is accepted, recorded in the audit trail
    #[arg(long, value_name = "TEXT", requires = "accept_short")]
    pub accept_why: Option<String>,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// Start of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// As soon as the drain is over.
    Now,
    /// At this time.
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

/// `ras ops maintenance list`
#[derive(Debug, Args)]
pub struct ListMaintenance {
    /// Include those that have ended
    #[arg(long)]
    pub all: bool,
    /// List at most this many
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub limit: u32,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras ops maintenance end`, `ras ops maintenance cancel`
#[derive(Debug, Args)]
pub struct StopMaintenance {
    /// A window, or a plan: all of its windows
    #[arg(value_parser = quantity::id::<MaintenanceId>)]
    pub id: MaintenanceId,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

//! Arguments of `ras forecast replay`.

use super::long::{Lead, lead};
use crate::cli::ServerOptions;
use crate::quantity;
use chrono::{DateTime, Utc};
use clap::{Args, ValueEnum};
use std::time::Duration;

/// Which decisions are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Decisions {
    /// Requests that follow demand
    Autosize,
    /// Spares for failed servers
    Spares,
    /// Orders of hardware
    Orders,
}

/// `ras forecast replay`
#[derive(Debug, Args)]
#[command(after_help = "\
Judges policies on the past: reads the snapshots of an archive in order, decides at each time with only what was known
then, and says how it came out in the time after. Several values of an option are policies that are compared; `as it
was` is what the region did. Nothing is changed. `ras ops replay` repeats the solves themselves; that needs the queue's
Postgres and a worker. This needs neither, and its options are those of forecasts, so it is here. Only --own asks a server.

ARCHIVE is the one that `ras up --archive` names, a folder or URL, or any folder with snapshots of one region below it.
It keeps 31 days by default (keep_age and keep_most in [service]). What lies before --since is only learnt from.

autosize  each reservation's request follows its used RRU at each pair of --quantile and --cooldown: hours whose peak
          exceeded the request when they began, RRU-hours requested above the demand, changes
spares    of each hardware type, for each --chance, for each --fixed share, and as many as that shared out over types:
          RRU-hours that were missing, and that the spares cost
orders    of each hardware type and datacenter, at each --order-quantile: days on which demand exceeded what was there,
          servers that were free on average, servers ordered and given back

Snapshots are an hour apart, so steps are hours: requests are decided once an hour, where a server decides every ten
minutes on samples of five; peaks within an hour and failures that the events do not list are not seen. Demand that was
not granted is not used, so it is not seen either.

Examples:
  ras forecast replay /srv/archive --since 2026-07-01T00:00:00Z --quantile 95%,99% --cooldown 1d,7d
  ras forecast replay s3://archive/region --only autosize --own --server https://ras.example
  ras forecast replay snapshots --only orders --order-quantile 70%,90% --lead 21,T4=49 --output json")]
pub struct ReplayForecast {
    /// The archive: a folder or URL
    pub archive: String,
    /// Decide from this instant on [default: after the first quarter of the time]
    #[arg(long, value_name = "INSTANT")]
    pub since: Option<DateTime<Utc>>,
    /// Leave out snapshots from this instant on
    #[arg(long, value_name = "INSTANT")]
    pub until: Option<DateTime<Utc>>,
    /// Only these decisions
    #[arg(long, value_name = "DECISIONS,...", value_delimiter = ',')]
    pub only: Vec<Decisions>,
    /// Show each reservation, hardware type and place, too
    #[arg(long)]
    pub all: bool,
    /// Requests that follow demand.
    #[command(flatten)]
    pub autosize: AutosizePolicies,
    /// Spares.
    #[command(flatten)]
    pub spares: SparesPolicies,
    /// Orders.
    #[command(flatten)]
    pub orders: OrdersPolicies,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// How requests follow demand.
#[derive(Debug, Args)]
#[command(next_help_heading = "Requests that follow demand")]
pub struct AutosizePolicies {
    /// Shares of the hours whose peak of demand the request must cover
    #[arg(long, value_name = "SHARE,...", default_value = "99%", value_delimiter = ',',
          value_parser = quantity::share)]
    pub quantile: Vec<f64>,
    /// Times after a change before the request may shrink
    #[arg(long, value_name = "DURATION,...", default_value = "1d", value_delimiter = ',',
          value_parser = quantity::span)]
    pub cooldown: Vec<Duration>,
    /// Requests never fall below it
    #[arg(long, value_name = "RRU", default_value = "0", value_parser = quantity::not_negative)]
    pub min: f64,
    /// Requests never rise above it
    #[arg(long, value_name = "RRU", default_value = "1000000000", value_parser = quantity::not_negative)]
    pub max: f64,
    /// Only these reservations
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub reservation: Vec<String>,
    /// Replay the settings that each reservation has in the running region, too
    #[arg(long)]
    pub own: bool,
}

/// How many spares are kept.
#[derive(Debug, Args)]
#[command(next_help_heading = "Spares")]
pub struct SparesPolicies {
    /// Accepted chances that a hardware type is short at an instant
    #[arg(long, value_name = "SHARE,...", default_value = "1%", value_delimiter = ',',
          value_parser = quantity::share)]
    pub chance: Vec<f64>,
    /// Shares of each type that are kept without a forecast; as many spares are shared out, too
    #[arg(long, value_name = "SHARE,...", default_value = "2%", value_delimiter = ',',
          value_parser = quantity::share)]
    pub fixed: Vec<f64>,
    /// Failures that begin within this time of each other are one burst
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = quantity::span)]
    pub burst: Duration,
    /// A server out for longer is lost: an order replaces it, and its spare is free again
    #[arg(long, value_name = "DURATION", default_value = "3d", value_parser = quantity::span)]
    pub lost_after: Duration,
}

/// What is ordered.
#[derive(Debug, Args)]
#[command(next_help_heading = "Orders")]
pub struct OrdersPolicies {
    /// Quantiles of demand that must be covered
    #[arg(long, value_name = "SHARE,...", default_value = "70%", value_delimiter = ',',
          value_parser = quantity::share)]
    pub order_quantile: Vec<f64>,
    /// Days between two decisions on orders, and on spares
    #[arg(long, value_name = "DAYS", default_value_t = 7,
          value_parser = clap::value_parser!(u8).range(1..=30))]
    pub period: u8,
    /// Days from an order to its arrival, of all types or of one
    #[arg(long, value_name = "DAYS|TYPE=DAYS,...", default_value = "21", value_delimiter = ',',
          value_parser = lead)]
    pub lead: Vec<Lead>,
}

impl ReplayForecast {
    /// Whether decisions are replayed.
    pub fn replays(&self, decisions: Decisions) -> bool {
        self.only.is_empty() || self.only.contains(&decisions)
    }
}

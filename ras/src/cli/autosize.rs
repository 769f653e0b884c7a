//! Arguments of `ras request autosize`.

use super::server::ServerOptions;
use crate::quantity;
use clap::{Args, Subcommand};
use std::time::Duration;

const AUTOSIZE_HELP: &str = "\
Lets the request of a reservation follow its demand: the RRU of its servers with running containers.
Every ten minutes the peak of the next hour is forecast at the quantile. The request grows at once
where the forecast exceeds it. It shrinks by at most a tenth, once in a cooldown after any change,
and never below what the last cooldown needed. Each change is an ordinary request: it is planned,
quotas apply, the audit trail has it with the forecast as its reason, and it may be refused.

Examples:
  ras request autosize set web --min 400 --max 2000
  ras request autosize set web --quantile 99.9% --min 400 --max 2000 --cooldown 7d
  ras request autosize show web";

/// `ras request autosize`
#[derive(Debug, Args)]
#[command(after_help = AUTOSIZE_HELP)]
pub struct AutosizeOf {
    /// The action.
    #[command(subcommand)]
    pub action: AutosizeAction,
}

/// The actions on requests that follow demand.
#[derive(Debug, Subcommand)]
pub enum AutosizeAction {
    /// Let the request of a reservation follow demand, or change how
    Set(SetAutosize),
    /// Show the settings of a reservation, the last decision and the last request
    Show {
        /// The reservation
        reservation: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Keep the request as it is from now on
    Remove {
        /// The reservation
        reservation: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
}

/// `ras request autosize set`
#[derive(Debug, Args)]
pub struct SetAutosize {
    /// The reservation; it must be guaranteed
    pub reservation: String,
    /// Share of the hours whose peak of demand the request must cover, from 50% to 99.99%
    #[arg(long, value_name = "SHARE", default_value = "99%", value_parser = quantity::share)]
    pub quantile: f64,
    /// The request never falls below it
    #[arg(long, value_name = "RRU", value_parser = quantity::not_negative)]
    pub min: f64,
    /// The request never rises above it
    #[arg(long, value_name = "RRU", value_parser = quantity::not_negative)]
    pub max: f64,
    /// Time after a change before the request may shrink, from 1h to 31d
    #[arg(long, value_name = "DURATION", default_value = "1d", value_parser = quantity::duration)]
    pub cooldown: Duration,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

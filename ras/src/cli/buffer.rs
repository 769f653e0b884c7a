//! Arguments of `ras region buffer` and `ras forecast headroom`.

use super::server::ServerOptions;
use crate::quantity;
use clap::{Args, Subcommand};
use std::time::Duration;

/// `ras region buffer`
#[derive(Debug, Args)]
#[command(after_help = "\
The shared buffer of a hardware type replaces its servers that fail. `list` shows it beside what the
failures of the region's own history say (docs/forecasts.md): the fewest servers that keep the chance
that more are down at an instant.

Examples:
  ras region buffer list --chance 0.1%
  ras region buffer set C4 12
  ras region buffer autosize set C4 --chance 1% --min 8 --max 40")]
pub struct Buffer {
    /// The action.
    #[command(subcommand)]
    pub action: BufferAction,
}

/// The actions on shared buffers.
#[derive(Debug, Subcommand)]
pub enum BufferAction {
    /// List shared buffers beside what failures need
    List(WarmChance),
    /// Set the shared buffer of a hardware type in servers, overriding the region's fraction
    Set {
        /// The hardware type
        hardware_type: String,
        /// Number of servers
        servers: f64,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Return to the region's fraction
    Remove {
        /// The hardware type
        hardware_type: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Let shared buffers follow failures
    Autosize(BufferAutosizeOf),
}

/// `ras region buffer list`, `ras forecast headroom`
#[derive(Debug, Args)]
pub struct WarmChance {
    /// Accepted chance of a shortfall: 0.1%, 0.5%, 1% or 5%
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = quantity::share)]
    pub chance: f64,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras region buffer autosize`
#[derive(Debug, Args)]
#[command(after_help = "\
Every ten minutes the failures of a hardware type say how many servers its shared buffer needs. It
grows at once. It shrinks by at most a tenth, once in a cooldown after any change, and only if two
weeks of failures are known. Each change is in the audit trail, with its reason.

Examples:
  ras region buffer autosize set C4 --chance 1% --min 8 --max 40
  ras region buffer autosize show C4
  ras region buffer autosize remove C4      # it keeps its size")]
pub struct BufferAutosizeOf {
    /// The action.
    #[command(subcommand)]
    pub action: BufferAutosizeAction,
}

/// The actions on shared buffers that follow failures.
#[derive(Debug, Subcommand)]
pub enum BufferAutosizeAction {
    /// Let the shared buffer of a hardware type follow failures, or change how
    Set(SetBufferAutosize),
    /// Show the settings of a hardware type and the last decision
    Show {
        /// The hardware type
        hardware_type: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Keep the shared buffer as it is from now on
    Remove {
        /// The hardware type
        hardware_type: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
}

/// `ras region buffer autosize set`
#[derive(Debug, Args)]
pub struct SetBufferAutosize {
    /// The hardware type
    pub hardware_type: String,
    /// Accepted chance that more servers are down at an instant than the buffer has, from 0.01% to 50%
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = quantity::share)]
    pub chance: f64,
    /// The buffer never falls below it
    #[arg(long, value_name = "SERVERS", value_parser = quantity::count)]
    pub min: u32,
    /// The buffer never rises above it
    #[arg(long, value_name = "SERVERS", value_parser = quantity::count)]
    pub max: u32,
    /// Time after a change before the buffer may shrink, from 1h to 31d
    #[arg(long, value_name = "DURATION", default_value = "1d", value_parser = quantity::duration)]
    pub cooldown: Duration,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

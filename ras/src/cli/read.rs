//! Arguments of `ras get` and `ras list`.

use super::server::ServerOptions;
use clap::{Args, ValueEnum};

/// The kinds of objects that are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Reservations and their state.
    #[value(alias = "reservation")]
    Reservations,
    /// Capacity requests and their outcome.
    #[value(alias = "request")]
    Requests,
    /// Servers.
    #[value(alias = "server")]
    Servers,
    /// Solves.
    #[value(alias = "solve")]
    Solves,
    /// Moves of servers between reservations.
    #[value(alias = "move")]
    Moves,
    /// Unavailability events.
    #[value(alias = "event")]
    Events,
    /// Maintenance windows.
    Maintenance,
    /// Emergency capacity.
    #[value(alias = "emergency")]
    Emergencies,
    /// Failed servers and their replacements.
    #[value(alias = "replacement")]
    Replacements,
    /// Outages of MSBs.
    #[value(alias = "outage")]
    Outages,
    /// Loans to elastic reservations.
    #[value(alias = "loan")]
    Loans,
    /// Objects stuck in a state for too long.
    Stuck,
    /// The audit trail.
    Trail,
    /// Quotas of owners.
    #[value(alias = "quota")]
    Quotas,
    /// API tokens.
    #[value(alias = "token")]
    Tokens,
    /// Named RRU profiles.
    #[value(alias = "profile")]
    Profiles,
}

/// The kinds of objects that are shown one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum One {
    /// A reservation and its state.
    #[value(alias = "reservations")]
    Reservation,
    /// A capacity request and its outcome.
    #[value(alias = "requests")]
    Request,
    /// A plan: the effect of proposed changes.
    #[value(alias = "plans")]
    Plan,
    /// A long-running operation.
    #[value(alias = "operations")]
    Operation,
    /// A server.
    #[value(alias = "servers")]
    Server,
    /// A solve.
    #[value(alias = "solves")]
    Solve,
    /// A maintenance window.
    Maintenance,
    /// Emergency capacity.
    #[value(alias = "emergencies")]
    Emergency,
    /// A named RRU profile.
    #[value(alias = "profiles")]
    Profile,
}

/// `ras get`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ras get reservation web
  ras get request ID
  ras get operation ID --output yaml   # every member")]
pub struct Get {
    /// The kind of object
    #[arg(value_enum)]
    pub kind: One,
    /// Name or id
    pub name: String,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras list`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ras list reservations --owner shop --label tier=front
  ras list requests --state refused --output json
  ras list servers --reservation web --columns server,rack --sort-by rack
  ras list requests --output csv --no-headers
  ras list moves --watch

A table has the width of the terminal; columns that do not fit are left out (--output wide has all).")]
pub struct List {
    /// The kind of object
    #[arg(value_enum)]
    pub kind: Kind,
    /// The filter.
    #[command(flatten)]
    pub filter: Filter,
    /// The table.
    #[command(flatten)]
    pub table: TableOptions,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// What a table of a list shows.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Table")]
pub struct TableOptions {
    /// Show only these columns, in this order
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Sort by this column; with `-` in front, the largest first [default: the server's order]
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub sort_by: Option<String>,
    /// Print no header
    #[arg(long)]
    pub no_headers: bool,
    /// Go on until Ctrl-C: every two seconds print rows that are new or have changed
    #[arg(long)]
    pub watch: bool,
}

/// Filters of a list. The server rejects filters that a kind does not support.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which")]
pub struct Filter {
    /// Only of this owner
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Only of this reservation
    #[arg(long, value_name = "NAME")]
    pub reservation: Option<String>,
    /// Only of this server
    #[arg(long = "of-server", value_name = "NAME")]
    pub of_server: Option<String>,
    /// Only in this state
    #[arg(long, value_name = "WORD")]
    pub state: Option<String>,
    /// Only with this label; if repeated, with all of them
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<String>,
    /// Any other filter of the API, such as `actor=me`
    #[arg(long = "where", value_name = "NAME=VALUE")]
    pub others: Vec<String>,
    /// List at most this many
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}

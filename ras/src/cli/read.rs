//! Arguments of `ras get` and `ras list`.

use super::server::ServerOptions;
use clap::{Args, ValueEnum};

/// What `--watch` does, in help.
macro_rules! watching {
    () => {
        "\n\n\
With --watch the server is asked every second and sends only what has changed. A terminal shows
the last state in its place; a pipe gets a line for each row or fact that is new or has changed,
and with --output json or yaml a document for each. Ctrl-C ends it, with exit code 0."
    };
}
pub(super) use watching;

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
#[command(after_help = concat!("\
Examples:
  ras get reservation web
  ras get request ID --watch
  ras get operation ID --output yaml   # every member", watching!()))]
pub struct Get {
    /// The kind of object
    #[arg(value_enum)]
    pub kind: One,
    /// Name or id
    pub name: String,
    /// Whether to watch it.
    #[command(flatten)]
    pub watching: Watching,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras list`
#[derive(Debug, Args)]
#[command(after_help = concat!("\
Examples:
  ras list reservations --owner shop --label tier=front
  ras list requests --state refused --output json
  ras list servers --reservation web --columns server,rack --sort-by rack
  ras list servers --where filter=use=free
  ras list requests --output csv --no-headers
  ras list moves --watch

A table has the width of the terminal; columns that do not fit are left out (--output wide has all).", watching!()))]
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
    /// Whether to watch it.
    #[command(flatten)]
    pub watching: Watching,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Watching {
    /// Show it again whenever it changes, until Ctrl-C
    #[arg(short, long)]
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

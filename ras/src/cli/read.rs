//! What may be read from a server.

use super::ServerOptions;
use clap::{Args, ValueEnum};

/// What there is to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// What is promised, and how it stands.
    #[value(alias = "reservation")]
    Reservations,
    /// What owners asked for, and what became of it.
    #[value(alias = "request")]
    Requests,
    /// What changes would come to.
    #[value(alias = "plan")]
    Plans,
    /// Work that somebody waits for.
    #[value(alias = "operation")]
    Operations,
    /// Servers.
    #[value(alias = "server")]
    Servers,
    /// Solves.
    #[value(alias = "solve")]
    Solves,
    /// Servers that change their owner.
    #[value(alias = "move")]
    Moves,
    /// What is out of use, and why.
    #[value(alias = "event")]
    Events,
    /// Planned maintenance.
    Maintenance,
    /// Capacity asked for at once.
    #[value(alias = "emergency")]
    Emergencies,
    /// Servers that failed, and what replaced them.
    #[value(alias = "replacement")]
    Replacements,
    /// MSBs that are lost.
    #[value(alias = "outage")]
    Outages,
    /// What elastic reservations borrow.
    #[value(alias = "loan")]
    Loans,
    /// What is in its state for too long.
    Stuck,
    /// Who changed what.
    Trail,
    /// How much may be promised to whom.
    #[value(alias = "quota")]
    Quotas,
    /// Who may ask.
    #[value(alias = "token")]
    Tokens,
    /// What servers are worth, by a name.
    #[value(alias = "profile")]
    Profiles,
}

/// `ras get`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ras get reservation web
  ras get operation 0198a2c4-... --output yaml")]
pub struct Get {
    /// Of which kind
    #[arg(value_enum, hide_possible_values = false)]
    pub kind: Kind,
    /// Its name or id
    pub name: String,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras list`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ras list reservations --owner shop --label tier=front
  ras list requests --state refused --output json
  ras list servers --reservation web")]
pub struct List {
    /// Of which kind
    #[arg(value_enum)]
    pub kind: Kind,
    /// What is listed.
    #[command(flatten)]
    pub filter: Filter,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras events`, `ras solves`
#[derive(Debug, Args)]
pub struct ListOne {
    /// What is listed.
    #[command(flatten)]
    pub filter: Filter,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// Which rows are listed. The server says which of these it knows of a kind.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which")]
pub struct Filter {
    /// Of one owner
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Of one reservation
    #[arg(long, value_name = "NAME")]
    pub reservation: Option<String>,
    /// Of one server
    #[arg(long = "of-server", value_name = "NAME")]
    pub of_server: Option<String>,
    /// In one state
    #[arg(long, value_name = "WORD")]
    pub state: Option<String>,
    /// With a label; with all of them, if given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<String>,
    /// Anything else that the server's interface names, such as `actor=me`
    #[arg(long = "where", value_name = "NAME=VALUE")]
    pub others: Vec<String>,
    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}

//! Arguments of subcommands that change a server's region: prices, shared buffers, elastic
//! reservations, quotas, hardware types, servers.

use super::request::value;
use super::server::ServerOptions;
use crate::quantity;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The actions on prices and limits.
#[derive(Debug, Subcommand)]
pub enum RegionAction {
    /// Show prices, default limits and the buffer fraction
    Show {
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Change prices and limits, used from the next solve on; options left out keep their value
    Set(SetRegion),
}

/// `ras region set`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args([
    "move_in_use", "move_idle", "spread_beta", "buffer_tau", "affinity_theta", "msb_alpha", "rack_alpha",
    "shared_buffer_fraction",
]))]
pub struct SetRegion {
    /// Price of moving a server in use (M of expression 1)
    #[arg(long, value_name = "PRICE")]
    pub move_in_use: Option<f64>,
    /// Price of moving an idle server (M of expression 1)
    #[arg(long, value_name = "PRICE")]
    pub move_idle: Option<f64>,
    /// Price per RRU beyond a spread limit (beta of expressions 2 and 3)
    #[arg(long, value_name = "PRICE")]
    pub spread_beta: Option<f64>,
    /// Price per RRU of the largest MSB share (tau of expression 4)
    #[arg(long, value_name = "PRICE")]
    pub buffer_tau: Option<f64>,
    /// Default tolerance of datacenter shares (theta of eq. 7)
    #[arg(long, value_name = "SHARE")]
    pub affinity_theta: Option<f64>,
    /// Default of the largest share wanted in one MSB, above 0 and at most 1; `rule` for the
    /// default rule
    #[arg(long, value_name = "SHARE", value_parser = or_rule)]
    pub msb_alpha: Option<OrRule>,
    /// Default of the largest share wanted in one rack; `rule` for the default rule
    #[arg(long, value_name = "SHARE", value_parser = or_rule)]
    pub rack_alpha: Option<OrRule>,
    /// Share of each hardware type to keep as shared buffer, unless set with `ras region buffer`; 0.02 is
    /// 2 %
    #[arg(long, value_name = "SHARE")]
    pub shared_buffer_fraction: Option<f64>,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// A share, or the default rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OrRule {
    /// The default rule.
    Rule,
    /// This share.
    Share(f64),
}

fn or_rule(text: &str) -> Result<OrRule, String> {
    if text == "rule" {
        return Ok(OrRule::Rule);
    }
    let share = text.parse().map_err(|_| format!("{text:?} is neither a number nor `rule`"));
    share.map(OrRule::Share)
}

/// `ras region elastic`
#[derive(Debug, Args)]
#[command(after_help = "\
An elastic reservation owns no servers. It borrows idle servers of embedded and shared buffers, by
its weight, and returns them when their owners need them.

Examples:
  ras region elastic set batch --owner lab --hardware-types C1 --value C2=1.6 --share 2
  ras region elastic list
  ras region elastic end batch            # removed once its loans are returned")]
pub struct Elastic {
    /// The action.
    #[command(subcommand)]
    pub action: ElasticAction,
}

/// The actions on elastic reservations.
#[derive(Debug, Subcommand)]
pub enum ElasticAction {
    /// List elastic reservations and what they borrow
    List {
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Create or change an elastic reservation
    Set(SetElastic),
    /// End an elastic reservation: it is removed once its loans are returned
    End {
        /// Name
        name: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
}

/// `ras region elastic set`
#[derive(Debug, Args)]
pub struct SetElastic {
    /// Name
    pub name: String,
    /// The business unit
    #[arg(long)]
    pub owner: String,
    /// The eligible hardware types, 1 RRU a server
    #[arg(
        long = "hardware-types",
        alias = "type",
        id = "types",
        value_name = "TYPE,...",
        value_delimiter = ',',
        required_unless_present = "value"
    )]
    pub types: Vec<String>,
    /// RRU of one server of an eligible hardware type; may be repeated
    #[arg(long, value_name = "TYPE=RRU", value_parser = value)]
    pub value: Vec<(String, f64)>,
    /// Weight against other borrowers [default: from the mover's settings, else 1]
    #[arg(long)]
    pub share: Option<f64>,
    /// Priority: 0 is the most important
    #[arg(long, default_value_t = fleet::PRIORITY_DEFAULT)]
    pub priority: i32,
    /// OS configuration of its servers
    #[arg(long, value_name = "NAME")]
    pub host_profile: Option<String>,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras region quota`
#[derive(Debug, Args)]
#[command(after_help = "\
A limit is in RRU of one profile, or in servers of all hardware types or of one. A reservation counts
with the most it can amount to, without its embedded buffer. All limits of an owner apply; setting
limits replaces the former ones.

Examples:
  ras region quota set shop --rru web=2000 --servers 1500 --servers-of GPU=40
  ras region quota set shop --servers 1500 --max-priority 2
  ras region quota remove shop
  ras region quota list")]
pub struct Quota {
    /// The action.
    #[command(subcommand)]
    pub action: QuotaAction,
}

/// The actions on quotas.
#[derive(Debug, Subcommand)]
pub enum QuotaAction {
    /// List owners with their limits and the capacity they are promised
    List {
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Set the limits of an owner
    Set(SetQuota),
    /// Remove the quota of an owner: nothing bounds its promises then
    Remove {
        /// The owner
        owner: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
}

/// `ras region quota set`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("limits").required(true).multiple(true)
    .args(["rru", "servers", "servers_of", "max_priority", "none"]))]
pub struct SetQuota {
    /// The owner
    pub owner: String,
    /// Maximum RRU of a profile; may be repeated
    #[arg(long, value_name = "PROFILE=RRU", value_parser = value)]
    pub rru: Vec<(String, f64)>,
    /// Maximum number of servers
    #[arg(long, value_name = "COUNT", value_parser = quantity::not_negative)]
    pub servers: Option<f64>,
    /// Maximum number of servers of a hardware type; may be repeated
    #[arg(long, value_name = "TYPE=COUNT", value_parser = value)]
    pub servers_of: Vec<(String, f64)>,
    /// The most important priority that the owner may request; 0 is the most important [default: 5]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(0..))]
    pub max_priority: Option<i32>,
    /// No limit
    #[arg(long, conflicts_with_all = ["rru", "servers", "servers_of"])]
    pub none: bool,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras region hardware`
#[derive(Debug, Args)]
pub struct Hardware {
    /// The action.
    #[command(subcommand)]
    pub action: HardwareAction,
}

/// The actions on hardware types.
#[derive(Debug, Subcommand)]
pub enum HardwareAction {
    /// List hardware types with their servers and shared buffers
    List {
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Rename a hardware type; all references follow
    Rename {
        /// Name
        from: String,
        /// New name
        to: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Remove an unused hardware type
    Remove {
        /// Name
        name: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Add hardware types, so that servers of them can be racked
    Add {
        /// Names
        #[arg(required = true)]
        names: Vec<String>,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
}

const SERVER_HELP: &str = "\
Files are CSV with a header, or JSON: {\"servers\": [...]} or the list alone. Columns and members:
  add     server, rack, hardware_type; msb and datacenter if the rack is new; power_watts
  move    server, rack; msb and datacenter if the rack is new
  remove  server
Servers have the fault domains that all servers of their rack share. A column domain:NAME says another domain of the
partition NAME, - for none; it is needed if the rack is new or has servers in different domains.

A file is applied as a whole or not at all, and all its errors are reported together. --preview shows
the effect.

A server that is in use, lent or moving is neither moved nor removed, and a server of a reservation
is not removed: the error says what must happen first. With --drain such servers are moved out first,
within the limits and contracts of moves; the next solve replaces them. `drained` shows the progress.

Examples:
  ras region server add -f racked.csv --preview
  ras region server remove -f old.csv
  ras region server remove -f old.csv --drain
  ras region server keep rack7-s01
  ras region server move -f moved.json";

/// `ras region server`
#[derive(Debug, Args)]
#[command(after_help = SERVER_HELP)]
pub struct ServerEdit {
    /// The action.
    #[command(subcommand)]
    pub action: ServerAction,
}

/// What may be done with servers.
#[derive(Debug, Subcommand)]
pub enum ServerAction {
    /// Rack servers
    Add(ServerFile),
    /// Decommission servers
    Remove(RemoveServers),
    /// List servers being drained, which are removed once they are free
    Drained {
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Cancel the draining of servers
    Keep {
        /// Names
        #[arg(required = true)]
        names: Vec<String>,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Move servers to other racks
    Move(ServerFile),
}

/// The servers, and whether to drain them.
#[derive(Debug, Args)]
pub struct RemoveServers {
    /// Drain servers that cannot be removed now, and remove them once they are free
    #[arg(long)]
    pub drain: bool,
    /// The servers.
    #[command(flatten)]
    pub of: ServerFile,
}

/// The servers to edit.
#[derive(Debug, Args)]
pub struct ServerFile {
    /// The servers, as CSV or JSON
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Only show the effect
    #[arg(long)]
    pub preview: bool,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

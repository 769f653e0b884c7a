//! What operators may change of a region that a server has: prices, shared buffers, elastic reservations,
//! quotas, hardware types, servers.

use super::ServerOptions;
use super::request::value;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `ras region`
#[derive(Debug, Args)]
pub struct Region {
    /// What to do.
    #[command(subcommand)]
    pub action: RegionAction,
}

/// What may be done with prices and limits.
#[derive(Debug, Subcommand)]
pub enum RegionAction {
    /// Show prices, default limits and the buffer fraction
    Show {
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Change them; what is left out stays. The next solve uses them
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
    /// Default for the largest share wanted in one MSB, above 0 to 1; `rule`: the default rule
    #[arg(long, value_name = "SHARE", value_parser = or_rule)]
    pub msb_alpha: Option<OrRule>,
    /// Default for the largest share wanted in one rack; `rule`: the default rule
    #[arg(long, value_name = "SHARE", value_parser = or_rule)]
    pub rack_alpha: Option<OrRule>,
    /// Share of each hardware type kept as its shared buffer, where none is listed; 0.02 is 2 %
    #[arg(long, value_name = "SHARE")]
    pub shared_buffer_fraction: Option<f64>,
    /// Which server.
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

/// `ras buffer`
#[derive(Debug, Args)]
pub struct Buffer {
    /// What to do.
    #[command(subcommand)]
    pub action: BufferAction,
}

/// What may be done with shared buffers.
#[derive(Debug, Subcommand)]
pub enum BufferAction {
    /// List hardware types with their servers and shared buffers
    List {
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Set the shared buffer of a hardware type, in servers, whatever the region's fraction is
    Set {
        /// The hardware type
        hardware_type: String,
        /// How many servers
        servers: f64,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Have the region's fraction make it again
    Remove {
        /// The hardware type
        hardware_type: String,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
}

/// `ras elastic`
#[derive(Debug, Args)]
#[command(after_help = "\
An elastic reservation is given no server. It borrows idle servers of embedded and shared buffers, by
its share, and they come back when their owners need them.

Examples:
  ras elastic set batch --owner lab --type C1 --value C2=1.6 --share 2
  ras elastic list
  ras elastic end batch            # gone once its servers are back")]
pub struct Elastic {
    /// What to do.
    #[command(subcommand)]
    pub action: ElasticAction,
}

/// What may be done with elastic reservations.
#[derive(Debug, Subcommand)]
pub enum ElasticAction {
    /// List elastic reservations and what they borrow
    List {
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Make one, or change the one of this name
    Set(SetElastic),
    /// End one: it goes once what it borrows is back
    End {
        /// Its name
        name: String,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
}

/// `ras elastic set`
#[derive(Debug, Args)]
pub struct SetElastic {
    /// Its name
    pub name: String,
    /// The business unit
    #[arg(long)]
    pub owner: String,
    /// An eligible hardware type whose servers are worth 1; may be given for several
    #[arg(long = "type", value_name = "TYPE", required_unless_present = "value")]
    pub types: Vec<String>,
    /// What a server of an eligible hardware type is worth; may be given for several
    #[arg(long, value_name = "TYPE=RRU", value_parser = value)]
    pub value: Vec<(String, f64)>,
    /// The share by which it is served beside others [default: that of the mover's settings, else 1]
    #[arg(long)]
    pub share: Option<f64>,
    /// 0 is the most important
    #[arg(long, default_value_t = 0)]
    pub priority: i32,
    /// The OS configuration of its servers
    #[arg(long, value_name = "NAME")]
    pub host_profile: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras quota`
#[derive(Debug, Args)]
#[command(after_help = "\
A limit counts in the RRU of one profile, or in servers, of all hardware types or of one. A promise counts
as the most it can come to, embedded buffers apart. All limits of an owner hold; setting them replaces
those there are.

Examples:
  ras quota set shop --rru web=2000 --servers 1500 --servers-of GPU=40
  ras quota set shop --none
  ras quota list")]
pub struct Quota {
    /// What to do.
    #[command(subcommand)]
    pub action: QuotaAction,
}

/// What may be done with quotas.
#[derive(Debug, Subcommand)]
pub enum QuotaAction {
    /// List owners with their limits and what they are promised
    List {
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Set the limits of an owner
    Set(SetQuota),
}

/// `ras quota set`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("limits").required(true).multiple(true)
    .args(["rru", "servers", "servers_of", "none"]))]
pub struct SetQuota {
    /// The owner
    pub owner: String,
    /// The most RRU of a profile; may be given for several
    #[arg(long, value_name = "PROFILE=RRU", value_parser = value)]
    pub rru: Vec<(String, f64)>,
    /// The most servers
    #[arg(long, value_name = "COUNT")]
    pub servers: Option<f64>,
    /// The most servers of a hardware type; may be given for several
    #[arg(long, value_name = "TYPE=COUNT", value_parser = value)]
    pub servers_of: Vec<(String, f64)>,
    /// No limit
    #[arg(long, conflicts_with_all = ["rru", "servers", "servers_of"])]
    pub none: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras hardware`
#[derive(Debug, Args)]
pub struct Hardware {
    /// What to do.
    #[command(subcommand)]
    pub action: HardwareAction,
}

/// What may be done with hardware types.
#[derive(Debug, Subcommand)]
pub enum HardwareAction {
    /// List hardware types with their servers and shared buffers
    List {
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Give a hardware type another name; everything that refers to it follows
    Rename {
        /// Its name
        from: String,
        /// Its new name
        to: String,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Remove a hardware type that nothing uses
    Remove {
        /// Its name
        name: String,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Add hardware types, so that servers of them can be racked
    Add {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
}

const SERVER_HELP: &str = "\
Files are CSV with a header, or JSON: {\"servers\": [...]} or the list alone. Columns and members:
  add     server, rack, hardware_type; msb and datacenter where they are new; power_watts
  move    server, rack; msb and datacenter where they are new
  remove  server
All of a file is done or none of it, and all that is wrong is named at once. --preview says what it comes to.

A server that is in use, lent or on its way is neither moved nor removed, and one that belongs to a
reservation is not removed: what must happen first is said. With --drain such servers are moved out first,
under the limits and contracts of moves; the next solve replaces them. `drained` says how far that is.

Examples:
  ras server add -f racked.csv --preview
  ras server remove -f old.csv
  ras server remove -f old.csv --drain
  ras server keep rack7-s01
  ras server move -f moved.json";

/// `ras server`
#[derive(Debug, Args)]
#[command(after_help = SERVER_HELP)]
pub struct ServerEdit {
    /// What to do.
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
    /// List servers that are drained, and removed once they are free
    Drained {
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Keep servers that were to be drained
    Keep {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Move servers to other racks
    Move(ServerFile),
}

/// Which servers, and how.
#[derive(Debug, Args)]
pub struct RemoveServers {
    /// Drain those that cannot go now, and remove them once they are free
    #[arg(long)]
    pub drain: bool,
    /// Which.
    #[command(flatten)]
    pub of: ServerFile,
}

/// Which servers.
#[derive(Debug, Args)]
pub struct ServerFile {
    /// The servers, as CSV or JSON
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Only say what it would come to
    #[arg(long)]
    pub preview: bool,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

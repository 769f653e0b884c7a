//! Arguments of `ras region profile`: RRU profiles, and roll-outs of host profiles.

use super::request::value;
use super::server::ServerOptions;
use clap::{Args, Subcommand};

const PROFILE_HELP: &str = "\
An RRU profile is a named list of RRU per server and hardware type. A request gives the name
(`ras request create --profile`, `profile: NAME` in a file) and copies the values: later changes of
the profile do not affect existing requests and reservations.

`pause` and `resume` are about host profiles: when the `host_profile` of a reservation changes, its
servers are reconfigured one after the other. An operator can pause that roll-out.

Examples:
  ras region profile set web --value C1-S1=1.0 --value C2-S1=1.6
  ras region profile list
  ras request create front --owner shop --rru 1200 --profile web
  ras region profile remove web
  ras region profile pause front --why 'three hosts of 40 did not boot'
  ras region profile resume front";

/// `ras region profile`
#[derive(Debug, Args)]
#[command(after_help = PROFILE_HELP)]
pub struct Profile {
    /// The action.
    #[command(subcommand)]
    pub action: ProfileAction,
}

/// The actions on profiles.
#[derive(Debug, Subcommand)]
pub enum ProfileAction {
    /// Create or replace an RRU profile
    Set {
        /// Name
        name: String,
        /// RRU of one server of a hardware type; may be repeated
        #[arg(long, value_name = "TYPE=RRU", value_parser = value, required = true)]
        value: Vec<(String, f64)>,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// List RRU profiles
    List {
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Remove an RRU profile; reservations made with it keep their capacity
    Remove {
        /// Name
        name: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Pause the roll-out of a changed host profile: no server starts, those under way finish
    Pause {
        /// The reservation
        reservation: String,
        /// Reason, recorded in the audit trail
        #[arg(long)]
        why: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Resume the roll-out of a reservation's changed host profile
    Resume {
        /// The reservation
        reservation: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
}

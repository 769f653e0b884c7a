//! What may be asked of RRU profiles.

use super::ServerOptions;
use super::request::value;
use clap::{Args, Subcommand};

const PROFILE_HELP: &str = "\
A profile says by a name what one server of each hardware type is worth. A request gives the name
(`ras request create --profile`, `profile: NAME` in a file) and takes the values of that moment: what is
asked or promised already does not change with a profile.

Examples:
  ras profile set web --value C1=1.0 --value C2=1.6
  ras profile list
  ras request create front --owner shop --rru 1200 --profile web
  ras profile remove web";

/// `ras profile`
#[derive(Debug, Args)]
#[command(after_help = PROFILE_HELP)]
pub struct Profile {
    /// What to do.
    #[command(subcommand)]
    pub action: ProfileAction,
}

/// What may be done with RRU profiles.
#[derive(Debug, Subcommand)]
pub enum ProfileAction {
    /// Set a profile, in place of the one of this name
    Set {
        /// Its name
        name: String,
        /// What a server of a hardware type is worth; may be given for several
        #[arg(long, value_name = "TYPE=RRU", value_parser = value, required = true)]
        value: Vec<(String, f64)>,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// List profiles
    List {
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Remove a profile; what was promised with it stays
    Remove {
        /// Its name
        name: String,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
}

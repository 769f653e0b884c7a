//! What may be asked of RRU profiles, and of roll-outs of host profiles.

use super::ServerOptions;
use super::request::value;
use clap::{Args, Subcommand};

const PROFILE_HELP: &str = "\
A profile says by a name what one server of each hardware type is worth. A request gives the name
(`ras request create --profile`, `profile: NAME` in a file) and takes the values of that moment: what is
asked or promised already does not change with a profile.

`pause` and `resume` are about the other kind of profile: when a reservation is granted another
`host_profile`, its servers are reconfigured one after the other, until an operator pauses that.

Examples:
  ras profile set web --value C1=1.0 --value C2=1.6
  ras profile list
  ras request create front --owner shop --rru 1200 --profile web
  ras profile remove web
  ras profile pause front --why 'three hosts of 40 did not boot'
  ras profile resume front";

/// `ras profile`
#[derive(Debug, Args)]
#[command(after_help = PROFILE_HELP)]
pub struct Profile {
    /// What to do.
    #[command(subcommand)]
    pub action: ProfileAction,
}

/// What may be done with profiles.
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
    /// Pause the roll-out of a reservation's changed host profile: no server begins, those under way end
    Pause {
        /// The reservation
        reservation: String,
        /// Why, for those who wonder
        #[arg(long)]
        why: String,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Let the roll-out of a reservation's changed host profile go on
    Resume {
        /// The reservation
        reservation: String,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
    },
}

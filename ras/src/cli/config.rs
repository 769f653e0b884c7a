//! Arguments of `ras config`.

use clap::Subcommand;
use std::path::PathBuf;

/// The actions on a settings file.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Check a settings file as `ras up` would read it, with the files that it names
    #[command(after_help = "\
Example:
  ras config check ras.toml")]
    Check {
        /// The settings file (TOML)
        file: PathBuf,
    },
    /// Show every setting in force, and whether it comes from the file
    #[command(after_help = "\
Examples:
  ras config show ras.toml
  ras config show                 # the defaults")]
    Show {
        /// The settings file (TOML)
        file: Option<PathBuf>,
    },
}

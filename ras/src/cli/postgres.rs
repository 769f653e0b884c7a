//! Arguments that select the Postgres of a region, for subcommands that use it without asking its server.

use super::server::{Gone, actor_is_gone};
use clap::Args;
use std::path::PathBuf;

/// The store of the region: for every subcommand that uses its Postgres itself.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Store")]
pub struct StoreOptions {
    /// The Postgres that holds the region [default: a private one in the data folder]
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Data folder: the private Postgres and the archive of solves [default: $XDG_STATE_HOME/ras,
    /// else /var/tmp/ras-UID]
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Folder of the programs `postgres` and `initdb` [default: the newest installed]
    #[arg(long, value_name = "FOLDER", env = "RAS_PG_BIN")]
    pub postgres_programs: Option<PathBuf>,
    /// Settings file (TOML); the command line wins over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Actor of the last release.
    #[arg(long, hide = true, value_parser = actor_is_gone)]
    pub actor: Option<Gone>,
    /// Base folder of the user's state.
    #[arg(long, hide = true, env = "XDG_STATE_HOME")]
    pub state_home: Option<PathBuf>,
}

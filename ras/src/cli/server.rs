//! Arguments that select a server and a token.

use clap::Args;
use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The server (`ras up`) to ask: for every subcommand that uses the HTTP API.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerOptions {
    /// A server on the network, and the token for it.
    #[command(flatten)]
    pub network: NetworkOptions,
    /// Data folder of a server on this machine: ask it over its unix socket, as an administrator
    /// [default: $XDG_STATE_HOME/ras, else /var/tmp/ras-UID]
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Base folder of the user's state.
    #[arg(long, hide = true, env = "XDG_STATE_HOME")]
    pub state_home: Option<PathBuf>,
    /// Options of the last release.
    #[command(flatten)]
    pub gone: GoneOptions,
}

/// Options of the last release, with which these subcommands worked on Postgres: each is refused with
/// its successor.
#[derive(Clone, Debug, Default, Args)]
pub struct GoneOptions {
    /// The Postgres that holds the region.
    #[arg(long, hide = true, value_parser = store_is_gone)]
    pub database_url: Option<Gone>,
    /// Settings file with section `[store]`.
    #[arg(long, hide = true, value_parser = store_is_gone)]
    pub config: Option<Gone>,
    /// Actor recorded in the audit trail.
    #[arg(long, hide = true, value_parser = actor_is_gone)]
    pub actor: Option<Gone>,
}

/// The value of an option that is refused.
#[derive(Clone, Debug)]
pub enum Gone {}

const STORE_IS_GONE: &str = "this command asks a server, not Postgres: give --server, or --data for a server on this \
    machine";
const ACTOR_IS_GONE: &str = "the audit trail has the name of the token, or `local:` and your user name; it cannot be chosen";

/// The successor of an option of the last release; `None`: it had no such option.
pub fn gone(option: &str) -> Option<&'static str> {
    match option {
        "--database-url" | "--config" => Some(STORE_IS_GONE),
        "--actor" => Some(ACTOR_IS_GONE),
        _ => None,
    }
}

fn store_is_gone(_: &str) -> Result<Gone, &'static str> {
    Err(STORE_IS_GONE)
}

/// Refuses `--actor`.
pub(super) fn actor_is_gone(_: &str) -> Result<Gone, &'static str> {
    Err(ACTOR_IS_GONE)
}

/// A server on the network, and the token for it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Server")]
pub struct NetworkOptions {
    /// The server to ask, such as `https://ras.example` [default: that of `ras login`]
    #[arg(long, value_name = "URL", env = "RAS_SERVER")]
    pub server: Option<String>,
    /// The file with the token [default: RAS_TOKEN, else that of `ras login`]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The token, only from the environment: command lines are visible to other users.
    #[arg(long, hide = true, env = "RAS_TOKEN", hide_env_values = true)]
    pub token: Option<Secret>,
    /// Base folder of the user's settings.
    #[arg(long, hide = true, env = "XDG_CONFIG_HOME")]
    pub config_home: Option<PathBuf>,
    /// The user's home folder.
    #[arg(long, hide = true, env = "HOME")]
    pub home: Option<PathBuf>,
}

/// A value that must not be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("(secret)")
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Secret, Infallible> {
        Ok(Secret(text.trim().to_owned()))
    }
}

const LOGIN_HELP: &str = "\
The token is read from --token-file or RAS_TOKEN; else it is prompted for on a terminal, or read
from standard input. The server checks it; then URL and token are saved in a file that only you
can read, $XDG_CONFIG_HOME/ras/login.toml (else ~/.config/ras/login.toml).

From then on, subcommands use that server unless another server (--server, RAS_SERVER) or the data
folder of a server on this machine (--data) is given. The token is sent to no other server.

The system's CA certificates are trusted; SSL_CERT_FILE overrides them.

Examples:
  ras login --server https://ras.example
  ras login --server http://127.0.0.1:7878 --token-file me.token";

/// `ras login`
#[derive(Debug, Args)]
#[command(after_help = LOGIN_HELP)]
pub struct Login {
    /// The server to ask.
    #[command(flatten)]
    pub server: NetworkOptions,
}

/// `ras logout`
#[derive(Debug, Args)]
pub struct Logout {
    /// The server to ask.
    #[command(flatten)]
    pub server: NetworkOptions,
}

/// Whether to wait for an answer.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Waiting {
    /// Wait for the answer [default: on a terminal]
    #[arg(long, overrides_with = "no_wait")]
    pub wait: bool,
    /// Print the operation, and do not wait for its end
    #[arg(long)]
    pub no_wait: bool,
}

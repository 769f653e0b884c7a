//! Which server is asked, and as whom.

use clap::Args;
use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A server of `ras up`: for every subcommand that asks one.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerOptions {
    /// The server that is asked, such as `https://ras.example` [default: that of `ras login`]
    #[arg(long, value_name = "URL", env = "RAS_SERVER")]
    pub server: Option<String>,
    /// The file with the token [default: RAS_TOKEN, else that of `ras login`]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The token, by the environment: whoever lists processes sees a command line.
    #[arg(long, hide = true, env = "RAS_TOKEN", hide_env_values = true)]
    pub token: Option<Secret>,
    /// Where the user's programs keep their settings.
    #[arg(long, hide = true, env = "XDG_CONFIG_HOME")]
    pub config_home: Option<PathBuf>,
    /// The user's folder.
    #[arg(long, hide = true, env = "HOME")]
    pub home: Option<PathBuf>,
}

/// What nobody should read.
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
The token is read from --token-file or RAS_TOKEN; else it is asked for on a terminal, or read from
standard input. The server is asked whose it is; then both are kept in a file that only you may
read, $XDG_CONFIG_HOME/ras/login.toml (else ~/.config/ras/login.toml).

From then on that server is asked wherever a subcommand names neither a server (--server,
RAS_SERVER) nor a store (--data, --database-url, DATABASE_URL, --config). The token goes to no
other server.

Certificates are those the system trusts; SSL_CERT_FILE names others.

Examples:
  ras login --server https://ras.example
  ras login --server http://127.0.0.1:7878 --token-file me.token";

/// `ras login`
#[derive(Debug, Args)]
#[command(after_help = LOGIN_HELP)]
pub struct Login {
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras logout`
#[derive(Debug, Args)]
pub struct Logout {
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// Whether an answer is waited for.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Waiting {
    /// Wait for the answer [default: on a terminal]
    #[arg(long, overrides_with = "no_wait")]
    pub wait: bool,
    /// Print the operation, and do not wait for its end
    #[arg(long)]
    pub no_wait: bool,
}

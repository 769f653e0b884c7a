//! Arguments of `ras token`.

use super::postgres::StoreOptions;
use super::server::ServerOptions;
use capacity_portal::Role;
use clap::{Args, Subcommand};

const TOKEN_HELP: &str = "\
A token authenticates a caller over HTTP: its name is recorded in the audit trail. Its secret is
shown once, when it is created; the store keeps only a digest. Roles:

  viewer     reads
  owner      reads objects of its owner, and requests capacity for that owner
  operator   runs the region, and may do everything an owner may
  admin      manages tokens, and may do everything
  health     reports health events and usage
  emergency  requests emergency capacity

Examples:
  ras token create --name ann --role admin          # needs no token on the server's machine
  ras token create --name web-deploys --role owner --owner web --days 365
  ras token list --all
  ras token revoke web-deploys";

/// `ras token`
#[derive(Debug, Args)]
#[command(after_help = TOKEN_HELP)]
pub struct Token {
    /// The action.
    #[command(subcommand)]
    pub action: TokenAction,
}

/// The actions on tokens.
#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Create a token, and show its secret once
    Create(CreateToken),
    /// Create the first admin token in Postgres, for a server on a machine without a terminal
    First(FirstToken),
    /// List tokens
    List(ListTokens),
    /// Revoke a token; it is rejected within two seconds
    Revoke(RevokeToken),
}

/// `ras token create`
#[derive(Debug, Args)]
pub struct CreateToken {
    /// Name recorded in the audit trail
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Roles of the token
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: Role,
    /// Owner whose objects it may access: required for the role owner, optional for viewer
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Days until it expires: up to five years
    #[arg(long, value_name = "COUNT", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=1830))]
    pub days: u32,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras token first`
#[derive(Debug, Args)]
#[command(after_help = "\
Needs no server, and works only while the store has no good admin token. On the server's machine,
`ras token create` needs neither this nor a token.")]
pub struct FirstToken {
    /// Name recorded in the audit trail
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Days until it expires: up to five years
    #[arg(long, value_name = "COUNT", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=1830))]
    pub days: u32,
    /// The store to use.
    #[command(flatten)]
    pub store: StoreOptions,
}

fn role(word: &str) -> Result<Role, String> {
    let roles = || Role::ALL.map(Role::as_str).join(", ");
    Role::parse(word).ok_or_else(|| format!("it is not one of {}", roles()))
}

/// `ras token list`
#[derive(Debug, Args)]
pub struct ListTokens {
    /// Include those that have ended
    #[arg(long)]
    pub all: bool,
    /// List at most this many
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub limit: u32,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras token revoke`
#[derive(Debug, Args)]
pub struct RevokeToken {
    /// Its name, or its id
    #[arg(value_name = "TOKEN")]
    pub which: String,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

//! What may be asked of tokens.

use super::StoreOptions;
use capacity_portal::Role;
use clap::{Args, Subcommand};

const TOKEN_HELP: &str = "\
A token says over HTTP who asks: its name stands in the audit trail. Its secret is shown once, when it
is made; the store has a digest of it. Roles:

  viewer     reads
  owner      reads what is its owner's, and asks for capacity for that owner
  operator   runs the region, and does what any owner may
  admin      says who may do what, and does everything
  health     reports what is out of use, and what is in use
  emergency  takes capacity at once

Examples:
  ras token create --name ann --role admin                  # the first one
  ras token create --name web-deploys --role owner --owner web --days 365
  ras token list --all
  ras token revoke web-deploys";

/// `ras token`
#[derive(Debug, Args)]
#[command(after_help = TOKEN_HELP)]
pub struct Token {
    /// What to do.
    #[command(subcommand)]
    pub action: TokenAction,
}

/// What may be done with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Make a token, and show its secret this once
    Create(CreateToken),
    /// List tokens
    List(ListTokens),
    /// Revoke a token: within two seconds it is good for nothing
    Revoke(RevokeToken),
}

/// `ras token create`
#[derive(Debug, Args)]
pub struct CreateToken {
    /// Who will stand in the audit trail
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// What may be done with it
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: Role,
    /// Whose objects it is for: needed for the role owner, allowed for viewer
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// How many days it is good for: up to five years
    #[arg(long, value_name = "COUNT", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=1830))]
    pub days: u32,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

fn role(word: &str) -> Result<Role, String> {
    let roles = || Role::ALL.map(Role::as_str).join(", ");
    Role::parse(word).ok_or_else(|| format!("it is none of {}", roles()))
}

/// `ras token list`
#[derive(Debug, Args)]
pub struct ListTokens {
    /// Those that are over, too
    #[arg(long)]
    pub all: bool,
    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub limit: u32,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras token revoke`
#[derive(Debug, Args)]
pub struct RevokeToken {
    /// Its name, or its id
    pub token: String,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

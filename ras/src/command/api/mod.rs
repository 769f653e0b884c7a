//! Subcommands that use a server: each sends HTTP requests and shows the answers.

pub(super) mod apply;
pub(super) mod drill;
pub(super) mod emergency;
pub(super) mod explain;
pub(super) mod give_way;
pub(super) mod login;
pub(super) mod maintenance;
pub(super) mod moves;
pub(super) mod plan;
pub(super) mod profile;
pub(super) mod read;
pub(super) mod region;
pub(super) mod request;
pub(super) mod status;

mod body;
mod kinds;

use crate::client::Client;
use crate::client::login::Server;
use crate::store;
use anyhow::{Context as _, Result, ensure};
use std::io::{BufRead, IsTerminal, Write};

/// Runs a subcommand against a server.
fn with_server<T>(server: Server, work: impl AsyncFnOnce(&Client) -> Result<T>) -> Result<T> {
    store::run(async { work(&Client::new(server)?).await })
}

/// Asks for confirmation on the terminal; without a terminal, requires --yes.
fn confirmed(question: &str, yes: bool) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    ensure!(terminal, "nothing was done: without a terminal this requires --yes");
    eprint!("{question} [y/N] ");
    std::io::stderr().flush().context("asking")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("reading the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

//! Subcommands that ask a server: each says something over HTTP and shows what comes back.

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

/// Asks a server.
fn with_server<T>(server: Server, work: impl AsyncFnOnce(&Client) -> Result<T>) -> Result<T> {
    store::run(async { work(&Client::new(server)?).await })
}

/// Asks the person at the terminal whether that is meant; where there is none, --yes has to say it.
fn confirmed(question: &str, yes: bool) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    ensure!(terminal, "nothing was done: without a terminal --yes has to say that it is meant");
    eprint!("{question} [y/N] ");
    std::io::stderr().flush().context("asking")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("reading the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

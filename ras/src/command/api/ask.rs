//! Asks a server, and the user before a change.

use crate::client::Client;
use crate::client::login::Server;
use crate::mistake::Hinted;
use crate::store;
use crate::terminal;
use anyhow::{Context as _, Result, ensure};
use std::io::{BufRead, IsTerminal};

/// Runs a subcommand against a server.
pub(super) fn with_server<T>(
    server: Server,
    work: impl AsyncFnOnce(&Client) -> Result<T>,
) -> Result<T> {
    store::run(async { work(&Client::new(server)?).await })
}

/// Asks for confirmation on the terminal; without a terminal, requires --yes.
pub(super) fn confirmed(question: &str, yes: bool) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    let terminal = std::io::stdin().is_terminal() && terminal::is_err();
    let unasked = || {
        let what = format!("nothing was done: {question:?} cannot be asked without a terminal");
        Hinted::new(what, "give --yes to do it without a question")
    };
    ensure!(terminal, unasked());
    terminal::ask(&format!("{question} [y/N] "))?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("reading the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

//! Waiting for long-running operations of the server.

use super::problem::Problem;
use super::{Answer, Client, query};
use crate::cli::Waiting;
use anyhow::{Context, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::io::IsTerminal;
use std::time::Duration;

/// Duration of one long poll.
const WAIT: &str = "10s";
const TICK: Duration = Duration::from_millis(100);

impl Waiting {
    /// Whether to wait: on a terminal, unless told otherwise.
    pub fn waits(self) -> bool {
        self.wait || !self.no_wait && std::io::stdout().is_terminal()
    }
}

/// Waits for the operation that an answer points to. Returns its result.
///
/// # Errors
/// [`Problem`] if the operation failed.
pub async fn wait(client: &Client, answer: &Answer, what: &str, quiet: bool) -> Result<Value> {
    let path = path(answer)?;
    let line = Line::new(what, quiet);
    loop {
        let operation = client.get(&query(&path, &[("wait", WAIT.to_owned())])).await?.body;
        match operation["state"].as_str() {
            Some("running") => line.tell(&operation),
            Some("done") => return Ok(operation["result"].clone()),
            Some("failed") => {
                return Err(match Problem::within(&operation["result"]) {
                    Some(problem) => problem.into(),
                    None => anyhow!("{what} failed, and the server gives no reason"),
                });
            }
            _ => bail!("the server's answer is not an operation: {operation}"),
        }
    }
}

/// Path of the operation: from the answer's location, or the id in its body.
fn path(answer: &Answer) -> Result<String> {
    let location = answer.location.as_deref();
    if let Some(location) = location.filter(|location| location.contains("/operations/")) {
        // Only the path: the server may know itself by another host name.
        let path = url::Url::parse(location).map(|url| url.path().to_owned());
        return Ok(path.unwrap_or_else(|_| location.to_owned()));
    }
    let id = answer.body["operation"].as_str();
    let id = id.context("the server's answer has no operation to wait for")?;
    Ok(super::path(&["v1", "operations", id]))
}

/// A spinner line on a terminal, plain lines otherwise.
struct Line {
    what: String,
    living: Option<ProgressBar>,
    quiet: bool,
}

impl Line {
    fn new(what: &str, quiet: bool) -> Line {
        let living = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let line = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
                line.set_style(style);
            }
            line.set_message(format!("{what}: submitted"));
            line.enable_steady_tick(TICK);
            line
        });
        if living.is_none() && !quiet {
            eprintln!("{what}: submitted");
        }
        Line { what: what.to_owned(), living, quiet }
    }

    fn tell(&self, operation: &Value) {
        let since = operation["created_at"].as_str().unwrap_or_default();
        let text = format!("{}: under way since {since}", self.what);
        match &self.living {
            Some(line) => line.set_message(text),
            None if !self.quiet => eprintln!("{text}"),
            None => {}
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(line) = &self.living {
            line.finish_and_clear();
        }
    }
}

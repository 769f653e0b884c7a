//! Waiting for long-running operations of the server.

use super::problem::Problem;
use super::{Client, query};
use crate::cli::Waiting;
use crate::terminal::{self, Spinner};
use anyhow::{Context as _, Result, anyhow, bail};
use api_types::requests::Operation;
use broker::{OperationState, State as _};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;

/// Duration of one long poll.
const WAIT: &str = "10s";

impl Waiting {
    /// Whether to wait: on a terminal, unless told otherwise.
    pub fn waits(self) -> bool {
        self.wait || !self.no_wait && terminal::is_out()
    }
}

/// Waits for an operation. Returns its result.
///
/// # Errors
/// [`Problem`] if the operation failed.
pub async fn wait(client: &Client, id: &str, what: &str, quiet: bool) -> Result<Value> {
    let path = super::path(&["v1", "operations", id]);
    let line = Line::new(what, quiet);
    loop {
        let answer = client.get(&query(&path, &[("wait", WAIT.to_owned())])).await?;
        let operation: Operation = answer.read()?;
        let result = operation.result.unwrap_or_default();
        match OperationState::ALL.iter().find(|state| state.as_str() == operation.state) {
            Some(OperationState::Running) => line.tell(operation.created_at),
            Some(OperationState::Done) => return Ok(result),
            Some(OperationState::Failed) => {
                return Err(match Problem::of_result(&result) {
                    Some(problem) => problem.into(),
                    None => anyhow!("{what} failed, and the server gives no reason"),
                });
            }
            None => {
                bail!("operation {id} is {:?}, which this program does not know", operation.state)
            }
        }
    }
}

/// The user ended the wait for something that goes on at the server.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct GoesOn(String);

/// Does the work, unless Ctrl-C ends it before. `goes_on`: what then goes on at the server, how to follow and how to
/// cancel it.
///
/// # Errors
/// [`GoesOn`] after Ctrl-C; those of the work.
pub async fn or_ctrl_c<T>(goes_on: String, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        // In this order: Ctrl-C is noticed from the first line on that says that something is waited for.
        biased;
        pressed = tokio::signal::ctrl_c() => {
            pressed.context("waiting for Ctrl-C")?;
            Err(GoesOn(goes_on).into())
        }
        done = work => done,
    }
}

/// A spinner line on a terminal, plain lines otherwise.
struct Line {
    what: String,
    living: Option<Spinner>,
    quiet: bool,
}

impl Line {
    fn new(what: &str, quiet: bool) -> Line {
        let living = if quiet { None } else { Spinner::new("{spinner} {elapsed} {wide_msg}") };
        if let Some(line) = &living {
            line.set(&format!("{what}: submitted"));
        }
        if living.is_none() && !quiet {
            terminal::say(&format!("{what}: submitted"));
        }
        Line { what: what.to_owned(), living, quiet }
    }

    fn tell(&self, since: DateTime<Utc>) {
        let since = since.to_rfc3339_opts(SecondsFormat::Secs, true);
        let text = format!("{}: under way since {since}", self.what);
        match &self.living {
            Some(line) => line.set(&text),
            None if !self.quiet => terminal::say(&text),
            None => {}
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(line) = &self.living {
            line.finish();
        }
    }
}

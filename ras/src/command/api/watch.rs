//! `--watch`: something is shown again whenever it changes, until Ctrl-C.

use crate::cli::Output;
use crate::client::Client;
use crate::client::login::Server;
use crate::context::{Context, yaml};
use crate::store;
use crate::terminal::{self, Drawing};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::sleep;

/// How long `--watch` waits before it asks again.
const EVERY: Duration = Duration::from_secs(1);

/// A line, and what makes it another one: its text may be padded in another way.
pub(super) struct Line {
    pub(super) key: String,
    pub(super) text: String,
}

impl Line {
    pub(super) fn new(key: impl Into<String>, text: impl Into<String>) -> Line {
        Line { key: key.into(), text: text.into() }
    }

    /// The lines of a text.
    pub(super) fn all(text: &str) -> Vec<Line> {
        text.lines().filter(|line| !line.is_empty()).map(|line| Line::new(line, line)).collect()
    }
}

/// What is watched, at one moment.
pub(super) struct Moment {
    /// For a terminal.
    pub(super) text: String,
    /// For a pipe.
    pub(super) lines: Vec<Line>,
    /// For programs.
    pub(super) documents: Vec<Value>,
}

/// Looks every second until Ctrl-C or until the output is closed, and shows what has changed.
///
/// # Errors
/// Those of `look`.
pub(super) fn watch(
    server: Server,
    context: &Context,
    look: impl AsyncFn(&Client) -> Result<Moment>,
) -> Result<()> {
    let show = async {
        let client = Client::new(server)?.remembering();
        let mut shown = Shown::default();
        while shown.show(look(&client).await?, context)? {
            sleep(EVERY).await;
        }
        Ok(())
    };
    store::run(async {
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed.context("waiting for Ctrl-C"),
            ended = show => ended,
        }
    })
}

/// What was shown last.
#[derive(Default)]
struct Shown {
    keys: HashSet<String>,
    text: String,
    drawing: Drawing,
}

impl Shown {
    /// Shows what has changed. Returns whether the output is still read.
    fn show(&mut self, moment: Moment, context: &Context) -> Result<bool> {
        let Moment { text, lines, documents } = moment;
        let lines = match context.global.output {
            Output::Text | Output::Wide if terminal::is_out() => {
                if text == self.text {
                    return Ok(true);
                }
                let drawn = self.drawing.draw(&format!("{text}\n\nwatching; Ctrl-C ends it"));
                self.text = text;
                return drawn;
            }
            Output::Text | Output::Wide | Output::Csv => lines,
            Output::Json => {
                documents.iter().map(|of| Line::new(of.to_string(), of.to_string())).collect()
            }
            Output::Yaml => (documents.iter())
                .map(|of| Ok(Line::new(of.to_string(), format!("---\n{}", yaml(of)?.trim_end()))))
                .collect::<Result<_>>()?,
        };
        let fresh = lines.iter().filter(|line| !self.keys.contains(&line.key));
        let fresh: Vec<&str> = fresh.map(|line| line.text.as_str()).collect();
        let read = fresh.is_empty() || terminal::print_more(&fresh.join("\n"))?;
        self.keys = lines.into_iter().map(|line| line.key).collect();
        Ok(read)
    }
}

//! Context of a subcommand: global options, and answers in the form asked for.

use crate::cli::{Global, Output};
use crate::terminal::print;
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::time::Instant;

/// Context of every subcommand.
pub struct Context {
    /// When the process began.
    pub began: Instant,
    /// The options of every subcommand.
    pub global: Global,
}

impl Context {
    /// Prints the answer in the form asked for.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn answer(&self, text: impl FnOnce() -> String, json: &impl Serialize) -> Result<()> {
        match self.global.output {
            Output::Text | Output::Wide if self.global.quiet => Ok(()),
            Output::Text | Output::Wide => print(&text()),
            Output::Json | Output::Yaml => self.document(json),
            // Refused before the subcommand begins, except for lists.
            Output::Csv => Ok(()),
        }
    }

    /// Whether answers are text.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.global.output, Output::Text | Output::Wide)
    }

    /// Prints the document if the output format asks for one.
    pub(crate) fn document(&self, json: &impl Serialize) -> Result<()> {
        match self.global.output {
            Output::Text | Output::Wide | Output::Csv => Ok(()),
            Output::Json => {
                print(&serde_json::to_string_pretty(json).context("writing the answer")?)
            }
            Output::Yaml => print(&yaml(json)?),
        }
    }
}

/// Converts JSON to YAML.
pub(crate) fn yaml(json: &impl Serialize) -> Result<String> {
    // Via JSON, so that both formats agree.
    let value = serde_json::to_value(json).context("writing the answer")?;
    serde_saphyr::to_string(&value).context("writing the answer")
}

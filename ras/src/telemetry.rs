//! Logs, to standard error.

use crate::cli::LogFormat;
use anyhow::{Context, Result};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts logging what the filter lets through.
///
/// # Errors
/// If the filter is not one.
pub fn start(filter: &str, format: LogFormat, quiet: bool) -> Result<()> {
    let filter = if quiet { "error" } else { filter };
    let filter = EnvFilter::builder()
        .parse(filter)
        .with_context(|| format!("--log: {filter:?} is not a filter such as info or ras=debug"))?;
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match format {
        LogFormat::Text => logs.compact().try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot start: {error}"))
}

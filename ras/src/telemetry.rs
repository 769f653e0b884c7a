//! Logs to standard error, and traces to a collector if one is configured.

#[cfg(feature = "otlp")]
mod traces;
#[cfg(not(feature = "otlp"))]
#[path = "telemetry/no_traces.rs"]
mod traces;

use crate::cli::{Global, LogFormat};
use anyhow::{Context, Result};
use std::time::Duration;
use traces::Traces;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context as LayerContext, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// Handle of logs and traces; dropping it sends the last spans.
#[must_use = "dropped, it ends the traces"]
pub struct Telemetry {
    _traces: Traces,
}

/// Starts logging with a filter, and tracing if an endpoint is given.
///
/// # Errors
/// If the filter or the endpoint's URL is invalid.
pub fn start(options: &Global) -> Result<Telemetry> {
    let filter = if options.quiet { "error" } else { &options.log };
    let filter = EnvFilter::builder()
        .parse(filter)
        .with_context(|| format!("--log: {filter:?} is not a filter such as info or ras=debug"))?;
    let logs = tracing_subscriber::fmt::layer()
        .with_writer(|| crate::terminal::Log)
        // The writer escapes control characters, those of colours, too.
        .with_ansi(false);
    let logs = match options.log_format {
        LogFormat::Text => logs.compact().with_filter(filter).boxed(),
        LogFormat::Json => logs.json().flatten_event(true).with_filter(filter).boxed(),
    };
    let traces = Traces::start(options.otlp_endpoint.as_deref())?;
    let statements =
        StatementTimes.with_filter(Targets::new().with_target("sqlx::query", LevelFilter::DEBUG));
    let started =
        tracing_subscriber::registry().with(logs).with(traces.layer()).with(statements).try_init();
    started.context("cannot start logging")?;
    Ok(Telemetry { _traces: traces })
}

/// Records durations of statements from the driver's events.
struct StatementTimes;

impl<S: Subscriber> Layer<S> for StatementTimes {
    fn on_event(&self, event: &Event<'_>, _: LayerContext<'_, S>) {
        let mut ended = Ended::default();
        event.record(&mut ended);
        // The summary of a short statement is the whole statement.
        let whole = if ended.statement.is_empty() { &ended.summary } else { &ended.statement };
        broker::note_statement(whole, ended.took);
    }
}

/// A completed statement.
#[derive(Default)]
struct Ended {
    summary: String,
    statement: String,
    took: Duration,
}

impl Visit for Ended {
    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "summary" => value.clone_into(&mut self.summary),
            "db.statement" => value.clone_into(&mut self.statement),
            _ => {}
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if field.name() == "elapsed_secs" {
            self.took = Duration::try_from_secs_f64(value).unwrap_or_default();
        }
    }
}

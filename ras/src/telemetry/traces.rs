//! Traces to a collector over OTLP.

use anyhow::{Context, Result};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

/// Crates whose spans are traced, regardless of the log filter.
const TRACED: [&str; 5] = ["ras", "broker", "control", "online_mover", "capacity_portal"];

/// Exporter of spans; dropping it sends the last ones.
pub(super) struct Traces(Option<SdkTracerProvider>);

impl Drop for Traces {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.as_ref().map(SdkTracerProvider::shutdown) {
            tracing::warn!(%error, "the last spans may be lost");
        }
    }
}

impl Traces {
    /// Sends spans to a collector in batches, from a separate thread. Without an endpoint nothing is
    /// traced.
    ///
    /// # Errors
    /// If the endpoint is not a URL.
    pub(super) fn start(endpoint: Option<&str>) -> Result<Traces> {
        let Some(endpoint) = endpoint else { return Ok(Traces(None)) };
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let exporter = SpanExporter::builder().with_http().with_endpoint(url).build();
        let exporter = exporter.with_context(|| {
            format!("--otlp-endpoint: {endpoint:?} is not a URL such as http://localhost:4318")
        })?;
        let resource = Resource::builder().with_service_name("ras").build();
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
        Ok(Traces(Some(provider.with_resource(resource).build())))
    }

    /// The layer that hands spans to the exporter.
    pub(super) fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        self.0.as_ref().map(|provider| {
            let ours = TRACED.map(|target| (target, LevelFilter::INFO));
            tracing_opentelemetry::layer()
                .with_tracer(provider.tracer("ras"))
                .with_filter(Targets::new().with_targets(ours))
        })
    }
}

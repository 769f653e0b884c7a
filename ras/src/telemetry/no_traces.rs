//! Built without the feature `otlp`: no traces.

use anyhow::Result;
use tracing_subscriber::layer::Identity;

/// Exports nothing.
pub(super) struct Traces;

impl Traces {
    /// Fails if an endpoint is given.
    ///
    /// # Errors
    /// If there is one.
    pub(super) fn start(endpoint: Option<&str>) -> Result<Traces> {
        anyhow::ensure!(endpoint.is_none(), "--otlp-endpoint: built without the feature `otlp`");
        Ok(Traces)
    }

    /// A layer that does nothing.
    pub(super) fn layer(&self) -> Option<Identity> {
        None
    }
}

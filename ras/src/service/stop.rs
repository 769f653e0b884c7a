//! Signals that stop the service.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for Ctrl-C, SIGTERM and SIGHUP from its creation on.
pub struct Stop([Signal; 3]);

impl Stop {
    /// Starts listening.
    ///
    /// # Errors
    /// If the system refuses the handler.
    pub fn listen() -> Result<Stop> {
        let on = |kind| signal(kind).context("listening for Ctrl-C");
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(on);
        Ok(Stop([interrupt?, terminate?, hangup?]))
    }

    /// Waits for the first signal.
    pub async fn asked(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

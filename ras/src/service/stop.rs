//! Signals that stop the service.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for Ctrl-C, SIGTERM and SIGHUP from its creation on.
pub struct Stop([Signal; 3]);

/// Returns once standard input has ended.
pub async fn input_ended() {
    let (ends, ended) = tokio::sync::oneshot::channel::<()>();
    // Not a task: reading cannot be interrupted, and the runtime would wait for it.
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop(ends);
    });
    let _ = ended.await;
}

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

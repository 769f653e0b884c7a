//! Waiting for conditions, and crashes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long anything may take; a machine under load is slow.
pub const PATIENCE: Duration = Duration::from_secs(100);

/// Waits until a condition holds, checking every few milliseconds.
pub async fn poll(mut holds: impl AsyncFnMut() -> bool) {
    while !holds().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs a future that never ends until a condition holds.
///
/// # Panics
/// If the future ends, or the condition does not hold within [`PATIENCE`].
pub async fn until<T>(run: impl Future<Output = T>, holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        tokio::select! {
            _ = run => unreachable!("it has no end"),
            () = poll(holds) => {}
        }
    });
    waited.await.expect("it takes too long");
}

/// A future that is dropped after a number of polls: a crash at that await.
pub struct Crashes<F> {
    /// The future.
    pub future: F,
    /// Polls left before the crash.
    pub polls: u64,
}

impl<F: Future + Unpin> Future for Crashes<F> {
    /// `None` if it crashed before its end.
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        let polled = Pin::new(&mut self.future).poll(context);
        if self.polls == 0 && polled.is_pending() {
            return Poll::Ready(None);
        }
        polled.map(Some)
    }
}

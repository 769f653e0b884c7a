//! Work beside a server gives way to it: people wait for answers, nobody for a solve.

use anyhow::{Context as _, Result};
use rustix::io::Errno;
use tokio::sync::oneshot;

/// By how much.
const NICENESS: i32 = 10;

/// Has this thread, and those it starts, give way.
///
/// # Errors
/// If the system refuses.
pub(crate) fn give_way() -> Result<(), Errno> {
    rustix::process::nice(NICENESS).map(drop)
}

/// Does it on a thread of its own that gives way.
///
/// # Errors
/// Those of the work, or if no thread can be started.
pub(crate) async fn beside<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<Result<T, E>> {
    let (say, said) = oneshot::channel();
    let work = move || {
        if let Err(error) = give_way() {
            tracing::debug!(%error, "work beside the server does not give way to it");
        }
        // Nobody may wait for it any more.
        let _ = say.send(work());
    };
    let started = std::thread::Builder::new().name("beside".to_owned()).spawn(work);
    started.context("no thread can be started")?;
    said.await.context("it ended in a panic")
}

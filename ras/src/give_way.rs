//! Work beside a server gives way to it: people wait for answers, nobody for a solve.

use anyhow::{Context as _, Result};
use rustix::io::Errno;
use rustix::process::{Pid, getpriority_process, setpriority_process};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::sync::oneshot;

/// By how much.
const NICENESS: i32 = 10;

/// By how much a process of Postgres does. It holds locks that others wait for: a third of the share of one
/// that answers people, not a tenth.
const NICENESS_OF_POSTGRES: i32 = 5;

/// The system lets somebody say this of a session ten times a second.
const AGAIN_AFTER: Duration = Duration::from_millis(150);
const ATTEMPTS: u32 = 20;

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

/// Has a process of Postgres, by its number, give way; it must be of this machine and of our own.
pub(crate) fn of_postgres(process: i32) {
    let Some(pid) = Pid::from_raw(process) else { return };
    tokio::task::spawn_blocking(move || {
        // All of it may give way to something else already.
        let give = getpriority_process(Some(pid))
            .and_then(|now| setpriority_process(Some(pid), now.max(NICENESS_OF_POSTGRES)));
        if let Err(error) = give {
            tracing::debug!(%error, process, "a process of Postgres does not give way");
        }
        // Each is a session of its own, and where the system shares processors out by session, it counts
        // what is said of that.
        for _ in 0..ATTEMPTS {
            let session = format!("/proc/{process}/autogroup");
            match std::fs::write(session, NICENESS_OF_POSTGRES.to_string()) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(AGAIN_AFTER);
                }
                // It is no such system, or the process is gone.
                Ok(()) | Err(_) => return,
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{NICENESS_OF_POSTGRES, Pid, getpriority_process, of_postgres};
    use std::process::Command;
    use std::time::Duration;

    #[tokio::test]
    async fn a_process_gives_way() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("it starts");
        let process = i32::try_from(child.id()).expect("a small number");
        of_postgres(process);
        let mut nice = 0;
        for _ in 0..100 {
            nice = getpriority_process(Pid::from_raw(process)).expect("it runs");
            if nice >= NICENESS_OF_POSTGRES {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert!(nice >= NICENESS_OF_POSTGRES, "{nice}");
    }
}

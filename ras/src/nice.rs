//! Low priority for background work beside a server: users wait for answers, not for solves.

use anyhow::{Context as _, Result};
use rustix::io::Errno;
use rustix::process::{Pid, getpriority_process, setpriority_process};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::sync::oneshot;

/// Nice value of background work.
const NICENESS: i32 = 10;

/// Nice value of a Postgres process for background work. It holds locks that others wait for, so it
/// gets a third of the CPU share of one that serves requests, not a tenth.
const NICENESS_OF_POSTGRES: i32 = 5;

/// Linux limits changes of a session's priority to ten per second.
const AGAIN_AFTER: Duration = Duration::from_millis(150);
const ATTEMPTS: u32 = 20;

/// Lowers the priority of this thread and the threads it starts.
///
/// # Errors
/// If the system refuses.
pub(crate) fn lower_priority() -> Result<(), Errno> {
    rustix::process::nice(NICENESS).map(drop)
}

/// Runs work on a new thread with lower priority.
///
/// # Errors
/// Those of the work, or if cannot start a thread.
pub(crate) async fn spawn_low_priority<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<Result<T, E>> {
    let (say, said) = oneshot::channel();
    let work = move || {
        if let Err(error) = lower_priority() {
            tracing::debug!(%error, "cannot lower the priority of background work");
        }
        // The caller may have stopped waiting.
        let _ = say.send(work());
    };
    let started = std::thread::Builder::new().name("low-priority".to_owned()).spawn(work);
    started.context("cannot start a thread")?;
    said.await.context("the work panicked")
}

/// Lowers the priority of a Postgres process, by its id; it must be local and owned by this user.
pub(crate) fn of_postgres(process: i32) {
    let Some(pid) = Pid::from_raw(process) else { return };
    tokio::task::spawn_blocking(move || {
        // This process may already run at lower priority.
        let give = getpriority_process(Some(pid))
            .and_then(|now| setpriority_process(Some(pid), now.max(NICENESS_OF_POSTGRES)));
        if let Err(error) = give {
            tracing::debug!(%error, process, "cannot lower the priority of a Postgres process");
        }
        // Each process is a session of its own; with autogroups, only the session's priority
        // counts.
        for _ in 0..ATTEMPTS {
            let session = format!("/proc/{process}/autogroup");
            match std::fs::write(session, NICENESS_OF_POSTGRES.to_string()) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(AGAIN_AFTER);
                }
                // No autogroups on this system, or the process has ended.
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

//! `ras solve` as a child process: it may hang, crash and eat memory; we may not.

use crate::program;
use anyhow::Result;
use broker::FailureReason;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::Command;

/// A solve holds its deadline by itself. One that has not ended by this much later hangs: a share
/// of its deadline, within limits.
const GRACE_SHARE: f64 = 0.1;
const GRACE_LIMITS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));

/// How much of what it says last is told.
const LAST_WORDS: usize = 2_000;

/// What Rust says when memory is refused, before it aborts.
const NO_MEMORY: &str = "memory allocation of";

/// What `ras solve` says when the audit objects.
const NOT_AUDITED: &str = "failed the audit";

/// One solve to run.
pub struct ChildSolve<'a> {
    /// The program; `None`: this one.
    pub program: Option<&'a Path>,
    /// The region.
    pub snapshot: &'a Path,
    /// The result to write.
    pub result: &'a Path,
    /// The settings.
    pub config: &'a Path,
    /// More of the command line.
    pub arguments: &'a [String],
    /// How long it may take.
    pub deadline: Duration,
    /// Memory it may take, in bytes.
    pub memory: u64,
}

/// Why there is no result.
#[derive(Debug)]
pub struct ChildFailure {
    /// The kind of it.
    pub reason: FailureReason,
    /// What happened, for people.
    pub detail: String,
}

impl ChildSolve<'_> {
    /// Runs it. Dropped, it is killed.
    ///
    /// # Errors
    /// [`ChildFailure`]: it did not end by itself, or not well.
    pub async fn run(&self) -> Result<(), ChildFailure> {
        let crashed = |detail: String| ChildFailure { reason: FailureReason::Crashed, detail };
        let program = match self.program {
            Some(program) => program.to_owned(),
            None => program::this().map_err(|error| crashed(error.to_string()))?,
        };
        let mut command = Command::new(&program);
        command
            .arg("solve")
            .arg(self.snapshot)
            .arg("--out")
            .arg(self.result)
            .arg("--config")
            .arg(self.config)
            // What the last solve left lies there, if it does.
            .arg("--warm")
            .arg(self.snapshot)
            .args(["--deadline", &format!("{}s", self.deadline.as_secs_f64())])
            .args([
                "--memory-limit",
                &self.memory.to_string(),
                "--lifeline",
                "--give-way",
                "--quiet",
            ])
            .args(self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C in a terminal is for us: we tell it.
            .process_group(0);
        let mut child = command.spawn().map_err(|error| {
            crashed(format!("{} cannot be started: {error}", program.display()))
        })?;
        // Its life depends on our end of this pipe.
        let lifeline = child.stdin.take();
        let output = child.wait_with_output();
        let grace = self.deadline.mul_f64(GRACE_SHARE).clamp(GRACE_LIMITS.0, GRACE_LIMITS.1);
        let output = match tokio::time::timeout(self.deadline + grace, output).await {
            Ok(output) => output.map_err(|error| crashed(format!("waiting for it: {error}")))?,
            Err(_) => {
                let detail = format!("it did not end within {} s", self.deadline.as_secs());
                return Err(ChildFailure { reason: FailureReason::OutOfTime, detail });
            }
        };
        drop(lifeline);
        judge(output.status, &String::from_utf8_lossy(&output.stderr))
    }
}

fn judge(status: ExitStatus, said: &str) -> Result<(), ChildFailure> {
    // 2: somebody is short, which is an outcome.
    if matches!(status.code(), Some(0 | 2)) {
        return Ok(());
    }
    let reason = if said.contains(NO_MEMORY) {
        FailureReason::OutOfMemory
    } else if said.contains(NOT_AUDITED) {
        FailureReason::AuditRefused
    } else {
        FailureReason::Crashed
    };
    let mut begin = said.len().saturating_sub(LAST_WORDS);
    while !said.is_char_boundary(begin) {
        begin += 1;
    }
    let words = said[begin..].trim();
    let detail = match (status.code(), status.signal()) {
        // Nothing of ours: the system for want of memory, or a person.
        (_, Some(9)) => format!("it was killed by somebody else, or by the system; {words}"),
        (_, Some(signal)) => format!("it ended by signal {signal}; {words}"),
        (code, _) => format!("exit code {}; {words}", code.unwrap_or(-1)),
    };
    Err(ChildFailure { reason, detail })
}

#[cfg(test)]
mod tests {
    use super::judge;
    use broker::FailureReason;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn ends_are_told_apart() {
        let reason = |raw, said| judge(ExitStatus::from_raw(raw), said).err().map(|e| e.reason);
        assert_eq!(reason(0, ""), None);
        assert_eq!(reason(2 << 8, "somebody is short"), None);
        assert_eq!(reason(1 << 8, "boom"), Some(FailureReason::Crashed));
        let refused = "the solver's answer failed the audit";
        assert_eq!(reason(1 << 8, refused), Some(FailureReason::AuditRefused));
        let memory = "memory allocation of 8 bytes failed";
        assert_eq!(reason(6, memory), Some(FailureReason::OutOfMemory));
        assert_eq!(reason(9, ""), Some(FailureReason::Crashed));
    }
}

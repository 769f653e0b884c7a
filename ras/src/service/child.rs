//! Runs `ras solve` as a child process: it may hang, crash or exhaust memory without harming this
//! one.

use crate::executable;
use crate::exit::{EXIT_AUDIT_FAILED, EXIT_POLICIES_REFUSED, EXIT_SHORT};
use anyhow::Result;
use async_solver::Progress;
use broker::FailureReason;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::sync::watch;

/// A solve keeps its deadline by itself. After this additional time, a share of the deadline within
/// limits, it counts as hung.
const GRACE_SHARE: f64 = 0.1;
const GRACE_LIMITS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));

/// Points of a history that are kept.
const POINTS_MAX: usize = 300;

/// Length of the last output that goes into the error.
const LAST_WORDS: usize = 2_000;

/// The signal of an abort. Rust aborts when an allocation fails; HiGHS, which may abort for other reasons, runs in
/// another process.
const SIGABRT: i32 = 6;

/// The signal with which the system kills a process that exhausts memory, and a person one that hangs.
const SIGKILL: i32 = 9;

/// One solve to run.
pub struct ChildSolve<'a> {
    /// The program; `None` for this one.
    pub program: Option<&'a Path>,
    /// The region.
    pub snapshot: &'a Path,
    /// The result to write.
    pub result: &'a Path,
    /// The settings.
    pub config: &'a Path,
    /// Files of policies to keep.
    pub policies: &'a [PathBuf],
    /// Further arguments.
    pub arguments: &'a [String],
    /// Deadline.
    pub deadline: Duration,
    /// Memory limit in bytes.
    pub memory: u64,
    /// Where its progress is told; `None`: nowhere.
    pub progress: Option<&'a watch::Sender<Vec<Progress>>>,
}

/// The reason for a missing result.
#[derive(Debug)]
pub struct ChildFailure {
    /// The reason.
    pub reason: FailureReason,
    /// Details as text.
    pub detail: String,
}

impl ChildSolve<'_> {
    /// Runs the child. Dropping the future kills it.
    ///
    /// # Errors
    /// [`ChildFailure`] if it hangs, is killed or fails.
    pub async fn run(&self) -> Result<(), ChildFailure> {
        let crashed = |detail: String| ChildFailure { reason: FailureReason::Crashed, detail };
        let program = match self.program {
            Some(program) => program.to_owned(),
            None => executable::path().map_err(|error| crashed(error.to_string()))?,
        };
        let mut command = Command::new(&program);
        command
            .arg("solve")
            .arg(self.snapshot)
            .arg("--out")
            .arg(self.result)
            .arg("--config")
            .arg(self.config)
            // The warm start is beside the snapshot, if there is one.
            .arg("--warm")
            .arg(self.snapshot)
            .args(["--deadline", &format!("{}s", self.deadline.as_secs_f64())])
            .args([
                "--memory-limit",
                &self.memory.to_string(),
                "--lifeline",
                "--give-way",
                "--quiet",
                "--progress",
            ])
            .args(self.arguments)
            .args(self.policies.first().map(|_| "--policies"))
            .args(self.policies)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C in a terminal goes to this process, which stops the child.
            .process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| crashed(format!("cannot start {}: {error}", program.display())))?;
        // The child exits when our end of this pipe closes.
        let lifeline = child.stdin.take();
        let told = child.stdout.take();
        let output =
            async { tokio::join!(child.wait_with_output(), listen(told, self.progress)).0 };
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

/// Reads the progress of a child until it ends, and ignores other lines.
async fn listen(from: Option<ChildStdout>, to: Option<&watch::Sender<Vec<Progress>>>) {
    let Some(from) = from else { return };
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let progress = serde_json::from_str::<Progress>(&line);
        if let (Some(to), Ok(progress)) = (to, progress) {
            to.send_modify(|history| {
                if history.len() >= POINTS_MAX {
                    thin(history);
                }
                history.push(progress);
            });
        }
    }
}

/// Leaves out every other point of a history.
fn thin(history: &mut Vec<Progress>) {
    let mut keep = false;
    history.retain(|_| {
        keep = !keep;
        keep
    });
}

/// Decides by exit code and signal. The end of standard error is only for people.
fn judge(status: ExitStatus, stderr: &str) -> Result<(), ChildFailure> {
    let reason = match (status.code(), status.signal()) {
        // A short reservation is an outcome, not a failure.
        (Some(0), _) => return Ok(()),
        (Some(code), _) if code == i32::from(EXIT_SHORT) => return Ok(()),
        (Some(code), _) if code == i32::from(EXIT_AUDIT_FAILED) => FailureReason::AuditRefused,
        (Some(code), _) if code == i32::from(EXIT_POLICIES_REFUSED) => {
            FailureReason::PoliciesRefused
        }
        (_, Some(SIGABRT)) => FailureReason::OutOfMemory,
        _ => FailureReason::Crashed,
    };
    let mut begin = stderr.len().saturating_sub(LAST_WORDS);
    while !stderr.is_char_boundary(begin) {
        begin += 1;
    }
    let words = stderr[begin..].trim();
    let detail = match (status.code(), status.signal()) {
        (_, Some(SIGKILL)) => format!("it was killed by another process or by the system; {words}"),
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
    fn judge_decides_by_exit_code_and_signal() {
        let reason = |raw| judge(ExitStatus::from_raw(raw), "").err().map(|e| e.reason);
        assert_eq!(reason(0), None);
        assert_eq!(reason(2 << 8), None);
        assert_eq!(reason(1 << 8), Some(FailureReason::Crashed));
        assert_eq!(reason(4 << 8), Some(FailureReason::AuditRefused));
        assert_eq!(reason(5 << 8), Some(FailureReason::PoliciesRefused));
        assert_eq!(reason(6), Some(FailureReason::OutOfMemory));
        assert_eq!(reason(9), Some(FailureReason::Crashed));
    }
}

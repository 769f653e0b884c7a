//! Orders steps by running a program for each one.
//!
//! The program gets step and server as arguments and the [`StepOrder`] as JSON on standard input. Exit code
//! 0 means done, 3 under way, 4 refused with the reason on standard output, 5 outdated. With exit code 0 the
//! program may instead write a [`StepReport`] as JSON to standard output. Any other result is an error, and
//! the order is repeated.

use super::{ANSWER_MAX, AgentError, HostAgent, SAID_MAX, StepOrder, StepReport, read};
use broker::storable;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// The exit codes with a meaning, beside 0.
const UNDER_WAY: i32 = 3;
const REFUSED: i32 = 4;
const OUTDATED: i32 = 5;

/// Orders steps through a program.
pub struct CommandAgent {
    program: PathBuf,
    timeout: Duration,
}

impl CommandAgent {
    /// Runs this program for each order, and kills it after the timeout.
    pub fn new(program: PathBuf, timeout: Duration) -> CommandAgent {
        CommandAgent { program, timeout }
    }

    async fn run(&self, order: &StepOrder) -> Result<StepReport, AgentError> {
        let lost = |error: std::io::Error| {
            AgentError::Unreachable(format!("{}: {error}", self.program.display()))
        };
        order.may_be_sent()?;
        let mut child = Command::new(&self.program)
            .args([order.step.as_str(), &order.server])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(lost)?;
        let json = serde_json::to_vec(order).expect("an order has no map and no float");
        let mut input = child.stdin.take().expect("piped");
        let give = async move {
            // A program that does not read its input may have ended.
            let _ = input.write_all(&json).await;
        };
        let said = all_of(child.stdout.take().expect("piped"));
        let errors = all_of(child.stderr.take().expect("piped"));
        let (said, errors, status, ()) = tokio::join!(said, errors, child.wait(), give);
        let (said, errors) = (said.map_err(lost)?, errors.map_err(lost)?);
        let status = status.map_err(lost)?;
        let text = |bytes: &[u8]| storable(&String::from_utf8_lossy(bytes), SAID_MAX);
        match status.code() {
            Some(0) if said.trim_ascii().is_empty() => Ok(StepReport::Done),
            Some(0) => read(&said),
            Some(UNDER_WAY) => Ok(StepReport::UnderWay { again_after_seconds: None }),
            Some(REFUSED) => Ok(StepReport::Refused { why: text(&said) }),
            Some(OUTDATED) => Ok(StepReport::Outdated { epoch: 0 }),
            _ => Err(AgentError::Unreachable(format!(
                "{} ended with {}: {}",
                self.program.display(),
                status,
                text(&errors)
            ))),
        }
    }
}

/// The output of a program, up to the length of an answer; the rest is not read.
async fn all_of(pipe: impl AsyncRead + Unpin) -> std::io::Result<Vec<u8>> {
    let mut all = Vec::new();
    pipe.take(ANSWER_MAX as u64 + 1).read_to_end(&mut all).await?;
    Ok(all)
}

impl HostAgent for CommandAgent {
    fn ask<'a>(&'a self, order: &'a StepOrder) -> BoxFuture<'a, Result<StepReport, AgentError>> {
        let run = async {
            let run = tokio::time::timeout(self.timeout, self.run(order));
            run.await.unwrap_or(Err(AgentError::TooLate(self.timeout)))
        };
        run.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::CommandAgent;
    use crate::agent::tests::order;
    use crate::agent::{AgentError, HostAgent, StepReport};
    use crate::steps::Step;
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    /// A program with this script. A process of its own writes it: were the file open for writing here, a child that
    /// another test starts would inherit it, and running the program would fail with "text file busy".
    fn program(folder: &Path, script: &str) -> PathBuf {
        let path = folder.join("agent");
        let mut install = Command::new("install");
        install.args(["-m", "755", "/dev/stdin"]).arg(&path).stdin(Stdio::piped());
        let mut child = install.spawn().expect("started");
        let mut input = child.stdin.take().expect("piped");
        write!(input, "#!/bin/sh\n{script}\n").expect("given");
        drop(input);
        assert!(child.wait().expect("ended").success());
        path
    }

    async fn ask(script: &str) -> Result<StepReport, AgentError> {
        let folder = tempfile::tempdir().expect("a folder");
        let order = order(1, Step::CleanUp);
        let agent = CommandAgent::new(program(folder.path(), script), Duration::from_secs(5));
        agent.ask(&order).await
    }

    #[tokio::test]
    async fn exit_codes_and_output_are_read_as_reports() {
        let under_way = |again_after_seconds| StepReport::UnderWay { again_after_seconds };
        let seen = r#"[ "$1 $2" = "clean_up s1" ] && grep -q '"version":7'"#;
        assert_eq!(ask(seen).await.expect("an answer"), StepReport::Done);
        assert_eq!(ask("exit 3").await.expect("an answer"), under_way(None));
        let json = r#"echo '{"state": "under_way", "again_after_seconds": 2}'"#;
        assert_eq!(ask(json).await.expect("an answer"), under_way(Some(2)));
        let refused = StepReport::Refused { why: "no power".into() };
        assert_eq!(ask("echo no power; exit 4").await.expect("an answer"), refused);
        let failed = ask("echo broken >&2; exit 1").await;
        assert!(matches!(failed, Err(AgentError::Unreachable(said)) if said.contains("broken")));
        assert!(matches!(ask("echo done").await, Err(AgentError::NotAnAnswer(_))));
        let zero = ask(r"printf 'no\0power\377'; exit 4").await.expect("an answer");
        assert_eq!(zero, StepReport::Refused { why: "no\u{FFFD}power\u{FFFD}".into() });
        let endless = ask("while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done").await;
        assert!(matches!(endless, Err(AgentError::Unreachable(_))), "{endless:?}");
        assert!(matches!(ask("kill -9 $$").await, Err(AgentError::Unreachable(_))));
        let none = CommandAgent::new("/no/such/program".into(), Duration::from_secs(1));
        let order = order(1, Step::Preempt);
        assert!(matches!(none.ask(&order).await, Err(AgentError::Unreachable(_))));
    }

    #[tokio::test]
    async fn program_is_killed_after_the_timeout() {
        let order = order(1, Step::Preempt);
        let folder = tempfile::tempdir().expect("a folder");
        let path = program(folder.path(), "exec sleep 1000");
        let slow = CommandAgent::new(path, Duration::from_millis(100));
        let answer = slow.ask(&order).await;
        assert!(matches!(answer, Err(AgentError::TooLate(_))), "{answer:?}");
    }
}

//! HiGHS in a child process of the same binary.
//!
//! HiGHS can overrun its time limit, hang or abort (see its issues #885 and #2226), and a running
//! LP cannot be cancelled from outside. A process can: dropping a job kills and reaps it. The
//! problem goes over the child's standard input, the answer comes back over its standard output
//! ([`frame`]), and the child ends by itself when its input closes ([`worker`]), so that it never
//! outlives the parent, not even one killed by SIGKILL.

pub mod frame;
mod job;
pub mod worker;

use crate::executable;
use async_solver::backend::{LpProblem, LpRequest};
use async_solver::{Backend, LpFailure, LpJob};
use job::{Failed, ProcessJob};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The hidden subcommand that calls [`worker::run`].
pub const WORKER_COMMAND: &str = "highs-worker";

/// Default memory limit of HiGHS. The interior point method took 0.7 GB on the phase 1 LP of a
/// million servers; ten times that means a failure, which must not take down the machine.
pub const MEMORY_LIMIT_DEFAULT: u64 = 8 << 30;

/// Starts a process for each HiGHS run.
#[derive(Clone, Debug)]
pub struct HighsProcess {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Peak resident memory of all completed runs, in bytes.
    peak: Arc<AtomicU64>,
}

impl HighsProcess {
    /// Runs HiGHS in this binary, with at most `memory_limit` bytes of address space.
    ///
    /// # Errors
    /// If the path of this binary is unknown.
    pub fn of_this_binary(memory_limit: u64) -> std::io::Result<HighsProcess> {
        let program = executable::path()?;
        let limit = OsString::from(format!("--memory-limit={memory_limit}"));
        Ok(HighsProcess::new(program, vec![WORKER_COMMAND.into(), limit]))
    }

    /// Runs HiGHS in any program that implements the protocol of [`frame`].
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> HighsProcess {
        HighsProcess { program, arguments, peak: Arc::default() }
    }

    /// Peak resident memory of all completed runs, in bytes; `None` before the first run, or if it is
    /// unknown.
    pub fn peak_memory(&self) -> Option<u64> {
        Some(self.peak.load(Ordering::Relaxed)).filter(|&peak| peak > 0)
    }

    fn spawn(&self) -> std::io::Result<std::process::Child> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        {
            // In its own process group: Ctrl-C in the terminal goes to the parent, which then
            // decides.
            use std::os::unix::process::CommandExt;
            command.process_group(0);
        }
        command.spawn()
    }
}

impl Backend for HighsProcess {
    fn start(&self, problem: LpProblem, request: LpRequest) -> Box<dyn LpJob> {
        let started = self
            .spawn()
            .and_then(|child| ProcessJob::start(child, problem, request, Arc::clone(&self.peak)));
        match started {
            Ok(job) => Box::new(job),
            Err(error) => {
                let program = self.program.display();
                tracing::warn!(%program, %error, "cannot start the HiGHS process");
                Box::new(Failed::new(LpFailure::Process(format!(
                    "cannot start {program}: {error}"
                ))))
            }
        }
    }
}

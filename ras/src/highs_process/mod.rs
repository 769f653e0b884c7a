//! HiGHS in a child process of the same binary.
//!
//! HiGHS can overrun its time limit, hang or abort (see its issues #885 and #2226), and a running
//! LP cannot be told to stop from outside. A process can: dropping a job kills it and collects
//! what is left. The problem goes over the child's standard input, the answer comes back over its
//! standard output ([`frame`]), and the child ends by itself when its input closes ([`worker`]),
//! so that it never outlives the parent, not even one killed by SIGKILL.

pub mod frame;
mod job;
pub mod worker;

use crate::program;
use async_solver::backend::{LpProblem, LpRequest};
use async_solver::{Backend, LpFailure, LpJob};
use job::{Failed, ProcessJob};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The hidden subcommand that [`worker::run`] serves.
pub const WORKER_COMMAND: &str = "highs-worker";

/// Memory HiGHS may take by default. The interior point method took 0.7 GB on the phase 1 LP of a
/// million servers; ten times that means that something went wrong, and the machine must live on.
pub const MEMORY_LIMIT_DEFAULT: u64 = 8 << 30;

/// Starts a process for each HiGHS run.
#[derive(Clone, Debug)]
pub struct HighsProcess {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Largest resident memory of any run that answered, in bytes.
    peak: Arc<AtomicU64>,
}

impl HighsProcess {
    /// Runs HiGHS in this same binary, with at most `memory_limit` bytes of address space.
    ///
    /// # Errors
    /// If the system does not say where this binary is.
    pub fn of_this_binary(memory_limit: u64) -> std::io::Result<HighsProcess> {
        let program = program::this()?;
        let limit = OsString::from(format!("--memory-limit={memory_limit}"));
        Ok(HighsProcess::new(program, vec![WORKER_COMMAND.into(), limit]))
    }

    /// Runs HiGHS in any program that speaks the protocol of [`frame`].
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> HighsProcess {
        HighsProcess { program, arguments, peak: Arc::default() }
    }

    /// Largest resident memory of any run that answered, in bytes; `None`: none did, or the
    /// system does not say.
    pub fn peak_memory(&self) -> Option<u64> {
        Some(self.peak.load(Ordering::Relaxed)).filter(|&peak| peak > 0)
    }

    fn spawn(&self) -> std::io::Result<std::process::Child> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        {
            // In a group of its own: Ctrl-C in the terminal asks the parent, which then decides.
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
                tracing::warn!(%program, %error, "the HiGHS process could not be started");
                Box::new(Failed::new(LpFailure::Process(format!(
                    "{program} could not be started: {error}"
                ))))
            }
        }
    }
}

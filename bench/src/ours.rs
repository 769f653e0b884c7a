//! One solve of ours, by `ras solve` in a process of its own, so that its time
//! and memory are its alone.

use anyhow::{Context, Result, bail, ensure};
use fleet::audit::{AuditReport, audit};
use fleet::{RegionSnapshot, Targets};
use ras::results::read_report;
use ras::{executable, interrupt};
use report::SolveReport;
use report::solve_report::Termination;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The result in the folder of a solve.
const RESULT: &str = "result";

/// A solve holds its deadline by itself. One that has not ended by this much later hangs.
const GRACE: Duration = Duration::from_secs(10);
/// How often it is looked after.
const GLANCE: Duration = Duration::from_millis(5);

/// How to solve.
#[derive(Clone, Debug)]
pub struct How {
    /// How long it may take.
    pub deadline: Duration,
    /// The proved gap at which it may end before; `None`: as by default.
    pub gap: Option<f64>,
    /// Seed.
    pub seed: u64,
    /// Worker threads.
    pub threads: usize,
    /// Memory one HiGHS process may take, in bytes.
    pub highs_memory: u64,
}

/// A solve that ended.
#[derive(Clone, Debug)]
pub struct Ours {
    /// Who should hold each server.
    pub targets: Targets,
    /// What the audit finds, again.
    pub audit: AuditReport,
    /// Its report.
    pub report: SolveReport,
}

impl Ours {
    /// Seconds of the solve, without reading.
    pub fn solve_seconds(&self) -> f64 {
        self.report.seconds.solve.unwrap_or(f64::NAN)
    }

    /// Seconds from the start of the process to its end.
    pub fn seconds(&self) -> f64 {
        self.report.seconds.total.unwrap_or(f64::NAN)
    }

    /// Largest resident memory of the process and of HiGHS beside it, in bytes.
    pub fn memory_bytes(&self) -> Option<u64> {
        Some(self.report.peak_memory_bytes? + self.report.highs_peak_memory_bytes.unwrap_or(0))
    }

    /// Whether the clock ended it, and not what it had found.
    pub fn was_cut(&self) -> bool {
        !matches!(self.report.termination, Some(Termination::Optimal | Termination::Stalled))
    }

    /// Seconds of a step of a phase.
    pub fn step_seconds(&self, phase: u8, step: &str) -> f64 {
        let here = self.report.steps.iter().filter(|of| of.phase == phase && of.step == step);
        // An empty sum of floats is minus zero.
        here.map(|of| of.seconds).sum::<f64>() + 0.0
    }
}

/// Solves a region.
///
/// # Errors
/// If the solve fails, or the run is interrupted.
pub fn solve(snapshot: &RegionSnapshot, how: &How) -> Result<Ours> {
    solve_in(folder()?.path(), None, snapshot, how)
}

/// A folder for [`solve_in`], gone when dropped.
///
/// # Errors
/// If the system refuses.
pub fn folder() -> Result<TempDir> {
    tempfile::tempdir().context("making a folder for a solve")
}

/// Solves a region in an empty folder, where what it leaves for the next solve stays. `last`: the folder
/// of the solve to start from.
///
/// # Errors
/// As [`solve`].
pub fn solve_in(
    folder: &Path,
    last: Option<&Path>,
    snapshot: &RegionSnapshot,
    how: &How,
) -> Result<Ours> {
    let (region, result) = (folder.join("region"), folder.join(RESULT));
    datasets::write_snapshot(&region, snapshot).context("writing the region of a solve")?;
    let program = executable::path().context("finding this program, to solve with")?;
    let mut command = Command::new(program);
    command
        .arg("solve")
        .arg(&region)
        .arg("--out")
        .arg(&result)
        .args(["--deadline", &format!("{}s", how.deadline.as_secs_f64())])
        .args(["--seed", &how.seed.to_string(), "--threads", &how.threads.to_string()])
        .args(["--highs-memory", &format!("{}B", how.highs_memory), "--lifeline", "--quiet"])
        .args(how.gap.map(|gap| format!("--gap={gap}")))
        .args(last.map(|last| [PathBuf::from("--warm"), last.join(RESULT)]).into_iter().flatten())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    #[cfg(unix)]
    {
        // Ctrl-C in a terminal is for us: it ends with us.
        use std::os::unix::process::CommandExt;
        command.process_group(0);
    }
    let mut child = Ended(command.spawn().context("starting a solve")?);
    wait(&mut child.0, how.deadline + GRACE)?;
    let targets = datasets::read_assignment(&result, snapshot).context("the result of a solve")?;
    let (report, _) = read_report(&result).context("the report of a solve")?;
    let audit = audit(snapshot, &targets);
    Ok(Ours { targets, audit, report })
}

/// A child that does not outlive us.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Harmless when it is gone.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait(child: &mut Child, at_most: Duration) -> Result<()> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context("waiting for a solve")? {
            if matches!(status.code(), Some(0 | 2)) {
                return Ok(());
            }
            let mut said = String::new();
            if let Some(stderr) = child.stderr.take() {
                // What it said is only for the message.
                let _ = stderr.take(2_000).read_to_string(&mut said);
            }
            bail!("a solve failed ({status}): {}", said.trim());
        }
        ensure!(!interrupt::asked(), "asked to end");
        ensure!(began.elapsed() < at_most, "a solve did not end by its deadline");
        thread::sleep(GLANCE);
    }
}

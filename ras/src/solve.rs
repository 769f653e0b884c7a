//! The shell around a solve: clock, deadline, Ctrl-C, and results on disk. The solver runs in a
//! separate thread; this one waits for it and watches the clock. Today's assignment is written as
//! the result first, so that there is always one. This also measures the time of audit and writing,
//! which is reserved before the deadline: if the solver has not returned by then, hangs or panics,
//! its last incumbent is the result. Every result has passed the audit.

use crate::highs_process::HighsProcess;
use crate::interrupt;
use crate::progress::Reporter;
use crate::reasons::{self, Reason};
use crate::report_json::{self, ReportInputs, Timing};
use crate::settings::Settings;
use anyhow::{Context, Result, bail};
use async_solver::{
    GroupLimits, LimitUse, Progress, SolveEnv, SolveOutcome, SolveStats, SolverConfig, Termination,
    WarmStart, Whole, solve_within,
};
use fleet::audit::{AuditReport, audit};
use fleet::{RegionSnapshot, ReservationName, Targets};
use report::SolveReport;
use report::solve_report::{Ending, PolicyState};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between checks of clock and Ctrl-C while the solver works.
const GLANCE: Duration = Duration::from_millis(20);
/// Multiple of the time that audit and writing took on today's assignment: the second time also has
/// moves, reasons and a changed page cache.
const RESERVE_FACTOR: f64 = 2.0;
/// Additional reserve.
const RESERVE_LEAST: Duration = Duration::from_millis(100);
/// The solver gets an earlier deadline than the enforced one: by this share of its time...
const GRACE_SHARE: f64 = 0.03;
/// ...within these limits.
const GRACE_LIMITS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// Grace period of the solver after Ctrl-C.
const PATIENCE: Duration = Duration::from_secs(5);

/// A solve to run.
pub struct Job {
    /// The region with the overrides of the solve.
    pub snapshot: Arc<RegionSnapshot>,
    /// The result folder.
    pub out: PathBuf,
    /// The settings.
    pub settings: Settings,
    /// Start of the process.
    pub began: Instant,
    /// The warm start.
    pub warm: Option<WarmStart>,
    /// Limits of groups.
    pub limits: Arc<GroupLimits>,
    /// What policies say of an assignment, if there are any: it must pass them before it is a result.
    pub check: Option<Check>,
}

/// Policies as plain SQL, which shares nothing with the solver.
pub struct Check {
    /// What they say of today's assignment.
    pub today: Vec<PolicyState>,
    /// How long it takes to ask them.
    pub takes: Duration,
    /// What they say of another assignment.
    pub of: Box<AskPolicies>,
}

type AskPolicies = dyn Fn(&Targets) -> Result<Vec<PolicyState>>;

/// Policies that cannot be kept in this region: they do not compile, or read what it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the region cannot be solved within its policies")]
pub struct PoliciesRefused;

/// A completed solve, with its result on disk.
pub struct Solved {
    /// The target of each server.
    pub targets: Targets,
    /// The audit's findings.
    pub audit: AuditReport,
    /// The reasons of shortfalls.
    pub reasons: BTreeMap<ReservationName, Reason>,
    /// The contents of `report.json`.
    pub report: SolveReport,
    /// The origin of the result.
    pub ending: Ending,
}

/// Solves, audits and writes.
///
/// # Errors
/// If the result cannot be written, or the solver's answer fails the audit: then the
/// result is today's assignment.
pub fn run(job: &Job, reporter: &Reporter) -> Result<Solved> {
    interrupt::listen()?;
    let highs = HighsProcess::of_this_binary(job.settings.highs_memory)
        .context("cannot find the program's own executable, to run HiGHS")?;
    let limits = Arc::clone(&job.limits);
    run_with(job, reporter, highs, move |snapshot, config, env| {
        solve_within(snapshot, &limits, config, env)
    })
}

/// Messages from the solver's thread.
struct Shared {
    began: Instant,
    incumbent: Mutex<Option<Targets>>,
    history: Mutex<Vec<Progress>>,
}

impl Shared {
    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

fn run_with<S>(job: &Job, reporter: &Reporter, highs: HighsProcess, solver: S) -> Result<Solved>
where
    S: FnOnce(&RegionSnapshot, &SolverConfig, &SolveEnv) -> SolveOutcome + Send + 'static,
{
    let read = job.began.elapsed();
    let deadline = job.settings.deadline.map(|after| job.began + after);
    let today = write_today(job, read)?;
    let audited = job.check.as_ref().map_or(Duration::ZERO, |check| check.takes);
    let written = job.began.elapsed().saturating_sub(read);
    let reserve = (written + audited).mul_f64(RESERVE_FACTOR) + RESERVE_LEAST;
    // The enforced deadline of the solver.
    let until = match deadline {
        None => None,
        Some(deadline) => {
            let until = deadline.checked_sub(reserve).unwrap_or(job.began);
            if until <= Instant::now() {
                reporter.note(&format!(
                    "the deadline leaves no time to solve ({} elapsed, {} reserved for audit and writing): the result is today's assignment",
                    crate::quantity::show_duration(job.began.elapsed()),
                    crate::quantity::show_duration(reserve),
                ));
                return Ok(today);
            }
            Some(until)
        }
    };
    let solve_began = Instant::now();
    let end = solve_until(job, reporter, &highs, until, solver)?;
    reporter.finish();
    let timing = Timing { read, solve: solve_began.elapsed(), began: job.began };
    let memory = highs.peak_memory();
    let mut warm = None;
    let solved = match end {
        End::Returned(outcome) => {
            warm = Some(crate::warm::to_json(&outcome.warm));
            conclude(job, outcome.targets, outcome.stats, Ending::Returned)
        }
        End::Cut { incumbent: None, .. } => return Ok(unsolved(today, reporter)),
        End::Cut { incumbent: Some(targets), stats, ending } => {
            reporter.note(ending.sentence());
            conclude(job, targets, stats, ending)
        }
    };
    let solved = solved.map(|checked| checked.with(job, timing, memory));
    let solved = solved.context("the result is today's assignment")?;
    write(&job.out, &job.snapshot, &solved.targets, &solved.report, warm.as_ref())
        .context("the result is today's assignment")?;
    match solved.ending {
        Ending::Panicked => bail!(
            "the solver failed (a bug); its best assignment passed the audit and is the result"
        ),
        _ => Ok(solved),
    }
}

/// No incumbent was found in time: today's assignment is the result.
fn unsolved(today: Solved, reporter: &Reporter) -> Solved {
    reporter.note("no incumbent was found in time: the result is today's assignment");
    today
}

/// The outcome of the solver's thread.
enum End {
    Returned(SolveOutcome),
    Cut { incumbent: Option<Targets>, stats: SolveStats, ending: Ending },
}

fn solve_until<S>(
    job: &Job,
    reporter: &Reporter,
    highs: &HighsProcess,
    until: Option<Instant>,
    solver: S,
) -> Result<End>
where
    S: FnOnce(&RegionSnapshot, &SolverConfig, &SolveEnv) -> SolveOutcome + Send + 'static,
{
    let shared = Arc::new(Shared {
        began: Instant::now(),
        incumbent: Mutex::default(),
        history: Mutex::default(),
    });
    let told_deadline = until.map(|until| {
        let left = until.saturating_duration_since(shared.began);
        left - left.mul_f64(GRACE_SHARE).clamp(GRACE_LIMITS.0, GRACE_LIMITS.1).min(left)
    });
    let (tell, told) = mpsc::channel();
    let (answered, answer) = mpsc::channel();
    let thread = {
        let (snapshot, config) = (Arc::clone(&job.snapshot), job.settings.solver);
        let (shared, highs) = (Arc::clone(&shared), highs.clone());
        let warm = job.warm.clone();
        let work = move || {
            let env = SolveEnv {
                elapsed: &|| shared.elapsed(),
                deadline: told_deadline,
                interrupted: &interrupt::asked,
                progress: &|progress| {
                    lock(&shared.history).push(progress.clone());
                    // The receiver is gone once the solver was abandoned.
                    let _ = tell.send(progress.clone());
                },
                on_incumbent: &|targets| *lock(&shared.incumbent) = Some(targets.clone()),
                backend: &highs,
                warm: warm.as_ref(),
            };
            let outcome = solver(&snapshot, &config, &env);
            let _ = answered.send(outcome);
        };
        thread::Builder::new().name("solver".to_owned()).spawn(work)
    };
    let thread = thread.context("starting the solver's thread")?;
    let mut asked_at = None;
    let ending = loop {
        told.try_iter().for_each(|progress| reporter.tell(&progress));
        match answer.recv_timeout(GLANCE) {
            Ok(outcome) => return Ok(End::Returned(outcome)),
            Err(RecvTimeoutError::Disconnected) => {
                // The panic hook has printed message and location.
                let _ = thread.join();
                break Ending::Panicked;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if interrupt::asked() && asked_at.is_none() {
            reporter.note("stopping with the best assignment so far");
            asked_at = Some(Instant::now());
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            break Ending::Deadline;
        }
        if asked_at.is_some_and(|at| at.elapsed() >= PATIENCE) {
            break Ending::Interrupted;
        }
    };
    tracing::warn!(?ending, "the solver did not return in time");
    let incumbent = lock(&shared.incumbent).take();
    let history = lock(&shared.history).clone();
    Ok(End::Cut { incumbent, stats: stats_so_far(job, history, ending), ending })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of a solve that did not return, from its last messages.
fn stats_so_far(job: &Job, history: Vec<Progress>, ending: Ending) -> SolveStats {
    let mut stats = SolveStats::default();
    stats.phase1.termination = match ending {
        Ending::Interrupted => Termination::Interrupted,
        _ => Termination::Deadline,
    };
    let last = |value: fn(&Progress) -> Option<f64>| history.iter().rev().find_map(value);
    let primal = last(|progress| progress.primal);
    let dual_bound = last(|progress| progress.dual_bound);
    // NaN is "not known" and becomes null.
    stats.whole =
        Whole { primal: f64::NAN, dual_bound: f64::NAN, gap: f64::NAN, gap_in_use_moves: f64::NAN };
    stats.phase1.primal = primal.unwrap_or(f64::NAN);
    stats.phase1.dual_bound = dual_bound.unwrap_or(f64::NAN);
    if let Some((primal, bound)) = primal.zip(dual_bound) {
        stats.phase1.gap = if primal == bound { 0.0 } else { (primal - bound) / primal.abs() };
        stats.phase1.gap_in_use_moves = (primal - bound) / job.snapshot.weights.move_in_use;
        stats.phase1.proof = "the last bound proven before the solver was interrupted".to_owned();
    } else {
        stats.phase1.gap = f64::NAN;
        stats.phase1.gap_in_use_moves = f64::NAN;
    }
    stats.sizes.servers = job.snapshot.servers.len();
    stats.sizes.reservations = job.snapshot.reservations.len();
    stats.history = history;
    stats
}

/// Targets that passed the audit.
struct Checked {
    targets: Targets,
    audit: AuditReport,
    reasons: BTreeMap<ReservationName, Reason>,
    policies: Vec<PolicyState>,
    stats: SolveStats,
    ending: Ending,
    audit_seconds: f64,
}

/// The audit rejects the result of the solver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the solver's answer failed the audit (a bug):\n  {objections}")]
pub struct AuditFailed {
    /// What the audit found, one finding a line.
    pub objections: String,
}

/// Audits targets and compares the solver's figures with the findings.
fn conclude(job: &Job, targets: Targets, mut stats: SolveStats, ending: Ending) -> Result<Checked> {
    let begun = Instant::now();
    if targets.holders().len() != job.snapshot.servers.len() {
        bail!("the solver's targets are for another number of servers (a bug)");
    }
    // Counted server by server, independently of the solver.
    let limits = job.limits.report(&job.snapshot, &targets);
    if stats.limits.is_empty() {
        stats.limits.clone_from(&limits);
    }
    let audit = audit(&job.snapshot, &targets);
    let reasons = reasons::of_all(&job.snapshot, &targets, &audit);
    let policies = match &job.check {
        Some(check) => (check.of)(&targets)?,
        None => Vec::new(),
    };
    let checked = Checked { targets, audit, reasons, policies, stats, ending, audit_seconds: 0.0 };
    let report = checked.report(job, &Timing::unknown(job.began), None);
    let claims = report.claims()?;
    let mut objections: Vec<String> =
        checked.audit.violations.iter().map(ToString::to_string).collect();
    objections.extend(checked.audit.compare(&claims).iter().map(ToString::to_string));
    for (of, claimed) in limits.iter().zip(&checked.stats.limits) {
        if !of.is_kept() || of.after != claimed.after {
            let LimitUse { name, most, before, after, .. } = of;
            let claimed = claimed.after;
            objections.push(format!(
                "limit `{name}`: {after}, claimed {claimed}; at most {most}, today {before}"
            ));
        }
    }
    for of in checked.policies.iter().filter(|of| !of.is_kept()) {
        let PolicyState { policy, fails_before, fails, rows, .. } = of;
        let rows = rows.join("; ");
        objections.push(format!(
            "policy `{policy}` fails in {fails} rows, today in {fails_before}: {rows}"
        ));
    }
    if objections.is_empty() {
        return Ok(Checked { audit_seconds: begun.elapsed().as_secs_f64(), ..checked });
    }
    const SHOWN: usize = 20;
    let more = objections.len().saturating_sub(SHOWN);
    objections.truncate(SHOWN);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    Err(AuditFailed { objections: format!("{}{more}", objections.join("\n  ")) }.into())
}

impl Checked {
    fn report(&self, job: &Job, timing: &Timing, highs_memory: Option<u64>) -> SolveReport {
        report_json::assemble(&ReportInputs {
            snapshot: &job.snapshot,
            settings: &job.settings,
            stats: Some(&self.stats),
            audit: &self.audit,
            reasons: &self.reasons,
            policies: &self.policies,
            ending: self.ending,
            timing,
            audit_seconds: self.audit_seconds,
            highs_memory,
        })
    }

    fn with(self, job: &Job, timing: Timing, highs_memory: Option<u64>) -> Solved {
        let report = self.report(job, &timing, highs_memory);
        let Checked { targets, audit, reasons, ending, .. } = self;
        Solved { targets, audit, reasons, report, ending }
    }
}

/// Writes today's assignment as the result, before anything else is tried.
fn write_today(job: &Job, read: Duration) -> Result<Solved> {
    let snapshot = &job.snapshot;
    let targets = Targets::unchanged(snapshot);
    let begun = Instant::now();
    let audit = audit(snapshot, &targets);
    let audit_seconds = begun.elapsed().as_secs_f64();
    let report = report_json::assemble(&ReportInputs {
        snapshot,
        settings: &job.settings,
        stats: None,
        audit: &audit,
        reasons: &BTreeMap::new(),
        policies: job.check.as_ref().map_or(&[], |check| &check.today),
        ending: Ending::Unsolved,
        timing: &Timing { read, solve: Duration::ZERO, began: job.began },
        audit_seconds,
        highs_memory: None,
    });
    write(&job.out, snapshot, &targets, &report, None)?;
    Ok(Solved { targets, audit, reasons: BTreeMap::new(), report, ending: Ending::Unsolved })
}

fn write(
    out: &Path,
    snapshot: &RegionSnapshot,
    targets: &Targets,
    report: &SolveReport,
    warm: Option<&Value>,
) -> Result<()> {
    datasets::write_result(out, snapshot, targets, &report.to_json(), warm)
        .with_context(|| format!("cannot write the result to {}", out.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::read_report;
    use async_solver::backend::InProcess;
    use std::sync::OnceLock;

    fn snapshot() -> Arc<RegionSnapshot> {
        let options = datasets::generate::GenerateOptions::new(1_000);
        let parts = datasets::generate::generate(&options).expect("in range");
        Arc::new(RegionSnapshot::new(parts).expect("a valid region"))
    }

    fn job(out: &Path, deadline: Option<Duration>) -> Job {
        let options = crate::cli::SolveOptions { deadline, ..Default::default() };
        let settings = Settings::new(&options).expect("defaults");
        Job {
            snapshot: snapshot(),
            out: out.join("result"),
            settings,
            began: Instant::now(),
            warm: None,
            limits: Arc::default(),
            check: None,
        }
    }

    fn run_solver<S>(job: &Job, solver: S) -> Result<Solved>
    where
        S: FnOnce(&RegionSnapshot, &SolverConfig, &SolveEnv) -> SolveOutcome + Send + 'static,
    {
        let reporter = Reporter::new(true, job.began, job.settings.deadline);
        run_with(job, &reporter, HighsProcess::new("/no/such/highs".into(), Vec::new()), solver)
    }

    /// The real solver, with HiGHS in this process.
    fn solve_here(
        snapshot: &RegionSnapshot,
        config: &SolverConfig,
        env: &SolveEnv,
    ) -> SolveOutcome {
        let env = SolveEnv {
            elapsed: env.elapsed,
            deadline: env.deadline,
            interrupted: env.interrupted,
            progress: env.progress,
            on_incumbent: env.on_incumbent,
            backend: &InProcess,
            warm: env.warm,
        };
        async_solver::solve(snapshot, config, &env)
    }

    /// The real solver's incumbents and outcome, solved once for all tests without a deadline: their region and
    /// settings are equal.
    fn solve_once(
        snapshot: &RegionSnapshot,
        config: &SolverConfig,
        env: &SolveEnv,
    ) -> SolveOutcome {
        static SOLVED: OnceLock<(Vec<Targets>, SolveOutcome)> = OnceLock::new();
        let (incumbents, outcome) = SOLVED.get_or_init(|| {
            let incumbents: Mutex<Vec<Targets>> = Mutex::default();
            let keep = |of: &Targets| incumbents.lock().expect("whole").push(of.clone());
            let outcome = solve_here(snapshot, config, &SolveEnv { on_incumbent: &keep, ..*env });
            (incumbents.into_inner().expect("whole"), outcome)
        });
        assert!(!incumbents.is_empty(), "there was something to lose");
        incumbents.iter().for_each(|of| (env.on_incumbent)(of));
        outcome.clone()
    }

    fn on_disk(job: &Job) -> (Targets, SolveReport) {
        let targets = datasets::read_assignment(&job.out, &job.snapshot).expect("a result");
        (targets, read_report(&job.out).expect("a report").0)
    }

    #[test]
    fn what_the_solver_returns_is_audited_and_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let job = job(folder.path(), None);
        let solved = run_solver(&job, solve_once).expect("solves");
        let (targets, report) = on_disk(&job);
        assert_eq!(solved.ending, Ending::Returned);
        assert_eq!(targets, solved.targets);
        assert_eq!(report, solved.report);
        assert_ne!(targets, Targets::unchanged(&job.snapshot));
    }

    #[test]
    fn at_the_deadline_the_last_incumbent_of_a_hung_solver_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let began = Instant::now();
        let deadline = Duration::from_secs(20);
        let job = job(folder.path(), Some(deadline));
        let solved = run_solver(&job, |snapshot, config, env| {
            let early = SolveEnv { deadline: Some(Duration::from_secs(5)), ..*env };
            solve_here(snapshot, config, &early);
            loop {
                thread::sleep(Duration::from_secs(1));
            }
        });
        let solved = solved.expect("the incumbent is taken");
        assert!(began.elapsed() < deadline, "{:?}", began.elapsed());
        assert_eq!(solved.ending, Ending::Deadline);
        let (targets, report) = on_disk(&job);
        assert_ne!(targets, Targets::unchanged(&job.snapshot));
        assert_eq!(report.ending, Some(Ending::Deadline));
        assert!(
            audit(&job.snapshot, &targets).compare(&report.claims().expect("claims")).is_empty()
        );
    }

    #[test]
    fn without_an_incumbent_today_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let job = job(folder.path(), Some(Duration::from_secs(1)));
        let solved = run_solver(&job, |_, _, _| {
            loop {
                thread::sleep(Duration::from_secs(1));
            }
        });
        assert_eq!(solved.expect("no error").ending, Ending::Unsolved);
        assert_eq!(on_disk(&job).0, Targets::unchanged(&job.snapshot));
    }

    #[test]
    fn a_solver_that_panics_is_an_error_with_today_or_its_incumbent_on_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let job = job(folder.path(), None);
        run_solver(&job, |_, _, _| panic!("on purpose")).err();
        assert_eq!(on_disk(&job).0, Targets::unchanged(&job.snapshot));
        let error = run_solver(&job, |snapshot, config, env| {
            solve_once(snapshot, config, env);
            panic!("on purpose")
        });
        assert!(format!("{:#}", error.err().expect("an error")).contains("the solver failed"));
        assert_eq!(on_disk(&job).1.ending, Some(Ending::Panicked));
    }

    #[test]
    fn a_solver_that_lies_is_found_out_and_today_stays() {
        let lies: [fn(&RegionSnapshot, &mut SolveOutcome); 3] = [
            |_, outcome| outcome.stats.objective.buffer += 1.0,
            |snapshot, outcome| outcome.targets = Targets::unchanged(snapshot),
            // All servers to one reservation: some are not eligible, and other reservations are
            // short.
            |snapshot, outcome| {
                let holders = vec![snapshot.reservation("backend-01"); snapshot.servers.len()];
                outcome.targets = Targets::new(snapshot, holders);
            },
        ];
        for lie in lies {
            let folder = tempfile::tempdir().expect("a folder");
            let job = job(folder.path(), None);
            let error = run_solver(&job, move |snapshot, config, env| {
                let mut outcome = solve_once(snapshot, config, env);
                lie(snapshot, &mut outcome);
                outcome
            });
            let error = error.err().expect("the audit objects");
            assert!(error.is::<AuditFailed>(), "{error:#}");
            let error = format!("{error:#}");
            assert!(error.contains("the result is today's assignment"), "{error}");
            assert_eq!(on_disk(&job).0, Targets::unchanged(&job.snapshot));
            assert_eq!(on_disk(&job).1.ending, Some(Ending::Unsolved));
        }
    }

    #[test]
    fn a_zero_deadline_gives_today() {
        let folder = tempfile::tempdir().expect("a folder");
        let job = job(folder.path(), Some(Duration::ZERO));
        let solved = run_solver(&job, solve_here).expect("no error");
        assert_eq!(solved.ending, Ending::Unsolved);
        let (targets, report) = on_disk(&job);
        assert_eq!(targets, Targets::unchanged(&job.snapshot));
        assert_eq!(report.phase1.primal, None);
        report.claims().expect("an unsolved report can be checked");
    }
}

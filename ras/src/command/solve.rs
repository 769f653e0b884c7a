//! `ras solve`

use crate::cli::{Solve, SolveOptions};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Rows;
use crate::nice::lower_priority;
use crate::progress::Reporter;
#[cfg(feature = "policies")]
use crate::region_policies::{RegionPolicies, read_files};
use crate::results::read_snapshot;
use crate::settings::Settings;
#[cfg(feature = "policies")]
use crate::solve::PoliciesRefused;
use crate::solve::{Check, Job, Solved};
use crate::{solve, tables};
use anyhow::{Context as _, Result};
use async_solver::GroupLimits;
#[cfg(feature = "policies")]
use fleet::Targets;
use fleet::{RegionSnapshot, Rru};
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(options: &Solve, context: &Context) -> Result<Verdict> {
    if let Some(bytes) = options.memory_limit {
        crate::memory::limit(bytes).context("limiting the memory of the solve")?;
    }
    if options.lifeline {
        crate::interrupt::end_with_standard_input()?;
    }
    if options.give_way
        && let Err(error) = lower_priority()
    {
        tracing::debug!(%error, "cannot lower the priority of this solve");
    }
    let settings = Settings::new(&options.options)?;
    let snapshot = settings.overrides.apply(read_snapshot(&options.snapshot)?)?.ahead();
    let warm = options.warm.as_deref();
    #[cfg(feature = "policies")]
    let (limits, check) = policies_of(options, &snapshot)?;
    #[cfg(not(feature = "policies"))]
    let (limits, check) = (Arc::default(), None);
    let how = How { warm, lines: options.progress, limits, check };
    let (_, solved) = solve_reporting(snapshot, settings, &options.out, how, context)?;
    let text = || {
        let out = options.out.display();
        format!("{}\nresult written to {out}", tables::end_report(&solved, Rows::of(options.all)))
    };
    context.answer(text, &solved.report.to_json())?;
    Ok(verdict(&solved))
}

/// The limits that policies are to the solver, and their audit as plain SQL.
#[cfg(feature = "policies")]
fn policies_of(
    options: &Solve,
    snapshot: &RegionSnapshot,
) -> Result<(Arc<GroupLimits>, Option<Check>)> {
    if options.policies.is_empty() {
        return Ok((Arc::default(), None));
    }
    let files = read_files(&options.policies)?;
    let files = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let extra = datasets::read_extra(&options.snapshot)
        .with_context(|| format!("cannot read snapshot {}", options.snapshot.display()))?;
    let policies = RegionPolicies::new(files, snapshot, &extra).context(PoliciesRefused)?;
    let (limits, today, takes) = (policies.limits(), policies.today(), policies.audit_took());
    let of = Box::new(move |targets: &Targets| Ok(policies.of(targets)?));
    Ok((limits, Some(Check { today, takes, of })))
}

pub(super) fn verdict(solved: &Solved) -> Verdict {
    Verdict::fine_if(solved.audit.shortfall == Rru::ZERO)
}

/// Settings of a command that includes a solve.
pub(super) fn settings(options: &SolveOptions) -> Result<Settings> {
    Settings::new(options)
}

/// Solves a region into a result folder. `warm`: the result of the last solve.
pub(super) fn solve_to(
    snapshot: RegionSnapshot,
    settings: Settings,
    out: &Path,
    warm: Option<&Path>,
    context: &Context,
) -> Result<(Arc<RegionSnapshot>, Solved)> {
    let how = How { warm, lines: false, limits: Arc::default(), check: None };
    solve_reporting(snapshot, settings, out, how, context)
}

/// What a solve starts from and keeps to.
struct How<'a> {
    /// The result of the last solve.
    warm: Option<&'a Path>,
    /// Whether progress is written as lines of JSON, too.
    lines: bool,
    limits: Arc<GroupLimits>,
    check: Option<Check>,
}

/// [`solve_to`] with limits.
fn solve_reporting(
    snapshot: RegionSnapshot,
    settings: Settings,
    out: &Path,
    How { warm, lines, limits, check }: How<'_>,
    context: &Context,
) -> Result<(Arc<RegionSnapshot>, Solved)> {
    let reporter = Reporter::new(context.global.quiet, context.began, settings.deadline);
    let reporter = reporter.with_lines(lines);
    let snapshot = Arc::new(snapshot);
    let job = Job {
        snapshot: Arc::clone(&snapshot),
        out: out.to_owned(),
        settings,
        began: context.began,
        warm: warm.and_then(|folder| crate::warm::read(folder, &reporter)),
        limits,
        check,
    };
    let solved = solve::run(&job, &reporter);
    reporter.finish();
    Ok((snapshot, solved?))
}

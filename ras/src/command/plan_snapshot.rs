//! `ras snapshot plan`

use crate::cli::PlanSnapshot;
use crate::context::Context;
use crate::exit::Verdict;
use crate::first_error::FirstError;
use crate::highs_process::HighsProcess;
use crate::layout::Rows;
use crate::number::seconds;
use crate::offers::Offers;
use crate::progress::Reporter;
#[cfg(feature = "policies")]
use crate::region_policies::{LimitsByRegion, RegionPoliciesError, read_files};
use crate::results::read_snapshot;
use crate::settings::Settings;
use crate::{interrupt, plan_answer, plan_text, request_file, warm};
use anyhow::{Context as _, Result};
use async_solver::{GroupLimits, Means, QuoteContext, quote};
use control::PlanDeadline;
use fleet::RegionSnapshot;
use fleet::quote::QuoteSeconds;
#[cfg(not(feature = "policies"))]
use std::convert::Infallible;
use std::sync::Arc;

pub(super) fn run(options: &PlanSnapshot, context: &Context) -> Result<Verdict> {
    let (folder, file) = (&options.snapshot, &options.request);
    interrupt::listen()?;
    let settings = Settings::new(&options.solving())?;
    let request = request_file::read(file)?;
    let snapshot = settings.overrides.apply(read_snapshot(folder)?)?.ahead_for_plans();
    let reporter = Reporter::new(context.global.quiet, context.began, settings.deadline);
    let folder = options.warm.as_deref().unwrap_or(folder);
    let warm = warm::read(folder, &reporter);
    let read = context.began.elapsed();
    let mut offers = options.offers.as_deref().map(Offers::read).transpose()?.unwrap_or_default();
    let highs = HighsProcess::of_this_binary(settings.highs_memory)
        .context("cannot find the program's own executable, to run HiGHS")?;
    let policies = policies_of(options, &snapshot)?;
    let unkept = FirstError::none();
    let limits = |region: &RegionSnapshot| unkept.or_default(policies(region));
    let quote_context = QuoteContext {
        snapshot: &snapshot,
        config: &settings.solver,
        warm: warm.as_ref(),
        offered: offers.plans(),
        limits: Some(&limits),
        means: Means {
            backend: &highs,
            elapsed: &|| context.began.elapsed(),
            deadline: Some(settings.deadline.unwrap_or(read + PlanDeadline::default().duration())),
            interrupted: &interrupt::asked,
        },
    };
    let answer =
        quote(&quote_context, &request).with_context(|| format!("request {}", file.display()))?;
    unkept.told().context("the region with the request in it")?;
    if let Some(file) = &options.offers {
        offers.keep(std::slice::from_ref(&answer));
        offers.write(file)?;
    }
    let times =
        QuoteSeconds { read: read.as_secs_f64(), total: context.began.elapsed().as_secs_f64() };
    let document = plan_answer::quote(&answer, times);
    let text = || {
        format!(
            "{}\n\nplanned in {}, of which reading took {}",
            plan_text::text(&document, Rows::of(options.all)),
            seconds(times.total),
            seconds(times.read)
        )
    };
    context.answer(text, &document)?;
    Ok(Verdict::fine_if(answer.refusal.is_none()))
}

/// The limits that policies are to plans. They are compiled for the region as it is first, so that what does not compile is
/// said before a search.
#[cfg(feature = "policies")]
fn policies_of(
    options: &PlanSnapshot,
    snapshot: &RegionSnapshot,
) -> Result<impl Fn(&RegionSnapshot) -> Result<Arc<GroupLimits>, RegionPoliciesError> + Sync + use<>>
{
    let files = read_files(&options.policies)?;
    let extra = match files.is_empty() {
        true => Vec::new(),
        false => datasets::read_extra(&options.snapshot)
            .with_context(|| format!("cannot read snapshot {}", options.snapshot.display()))?,
    };
    let files = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let policies = LimitsByRegion::new(files, extra)?;
    policies.of(snapshot)?;
    Ok(move |region: &RegionSnapshot| policies.of(region))
}

#[cfg(not(feature = "policies"))]
fn policies_of(
    _: &PlanSnapshot,
    _: &RegionSnapshot,
) -> Result<impl Fn(&RegionSnapshot) -> Result<Arc<GroupLimits>, Infallible> + Sync + use<>> {
    Ok(|_: &RegionSnapshot| Ok(Arc::default()))
}

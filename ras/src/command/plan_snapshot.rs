//! `ras snapshot plan`

use crate::cli::PlanSnapshot;
use crate::context::Context;
use crate::exit::Verdict;
use crate::highs_process::HighsProcess;
use crate::layout::Rows;
use crate::number::seconds;
use crate::offers::Offers;
use crate::progress::Reporter;
use crate::results::read_snapshot_of_msbs;
use crate::settings::Settings;
use crate::{interrupt, plan_answer, plan_text, request_file, warm};
use anyhow::{Context as _, Result};
use async_solver::{Means, QuoteContext, quote};
use control::PlanDeadline;
use fleet::quote::QuoteSeconds;

pub(super) fn run(options: &PlanSnapshot, context: &Context) -> Result<Verdict> {
    let (folder, file) = (&options.snapshot, &options.request);
    interrupt::listen()?;
    let settings = Settings::new(&options.solving())?;
    let request = request_file::read(file)?;
    let snapshot = settings.overrides.apply(read_snapshot_of_msbs(folder)?)?.ahead_for_plans();
    let reporter = Reporter::new(context.global.quiet, context.began, settings.deadline);
    let folder = options.warm.as_deref().unwrap_or(folder);
    let warm = warm::read(folder, &reporter);
    let read = context.began.elapsed();
    let mut offers = options.offers.as_deref().map(Offers::read).transpose()?.unwrap_or_default();
    let highs = HighsProcess::of_this_binary(settings.highs_memory)
        .context("cannot find the program's own executable, to run HiGHS")?;
    let quote_context = QuoteContext {
        snapshot: &snapshot,
        config: &settings.solver,
        warm: warm.as_ref(),
        offered: offers.plans(),
        limits: None,
        means: Means {
            backend: &highs,
            elapsed: &|| context.began.elapsed(),
            deadline: Some(settings.deadline.unwrap_or(read + PlanDeadline::default().duration())),
            interrupted: &interrupt::asked,
        },
    };
    let answer =
        quote(&quote_context, &request).with_context(|| format!("request {}", file.display()))?;
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

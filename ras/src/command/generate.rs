//! `ras snapshot generate`

use crate::churn;
use crate::cli::{Generate, SolveOptions, State};
use crate::context::Context;
use crate::exit::Verdict;
use crate::hour::Pace;
use crate::progress::Reporter;
use crate::settings::Settings;
use anyhow::{Context as _, Result, ensure};
use datasets::generate::{GenerateOptions, generate};
use fleet::RegionSnapshot;
use serde_json::json;
use std::sync::Arc;

pub(super) fn run(options: &Generate, context: &Context) -> Result<Verdict> {
    let churned = options.state == State::Churned;
    ensure!(churned || options.hours.is_none(), "--hours is for --state churned only");
    ensure!(churned || options.deadline.is_none(), "--deadline is for --state churned only");
    let parts = generate(&generate_options(options)).context("generation failed")?;
    let snapshot = RegionSnapshot::new(parts).context("the generated region is invalid (a bug)")?;
    let snapshot =
        if churned { after_hours(snapshot, options, context)? } else { Arc::new(snapshot) };
    datasets::write_snapshot(&options.out, &snapshot)
        .with_context(|| format!("cannot write the snapshot to {}", options.out.display()))?;
    let json = json!({
        "snapshot": options.out,
        "region": snapshot.region,
        "servers": snapshot.servers.len(),
        "racks": snapshot.racks.len(),
        "msbs": snapshot.msbs.len(),
        "datacenters": snapshot.datacenters.len(),
        "hardware_types": snapshot.hardware_types.len(),
        "reservations": snapshot.reservations.len(),
    });
    let text = || {
        format!(
            "{}: {} servers of {} hardware types in {} racks, {} MSBs, {} datacenters; \
             {} reservations, shared buffers included",
            options.out.display(),
            snapshot.servers.len(),
            snapshot.hardware_types.len(),
            snapshot.racks.len(),
            snapshot.msbs.len(),
            snapshot.datacenters.len(),
            snapshot.reservations.len(),
        )
    };
    context.answer(text, &json)?;
    Ok(Verdict::Fine)
}

/// The region after its hours.
fn after_hours(
    first: RegionSnapshot,
    options: &Generate,
    context: &Context,
) -> Result<Arc<RegionSnapshot>> {
    let of_solve = SolveOptions {
        deadline: options.deadline,
        gap: Some(churn::GAP),
        seed: Some(options.seed),
        ..SolveOptions::default()
    };
    let settings = Settings::new(&of_solve)?;
    let reporter = Reporter::new(context.global.quiet, context.began, None);
    let hours = options.hours.unwrap_or(churn::HOURS);
    let pace = Pace::ordinary(options.seed);
    churn::churn(first, hours, &pace, &settings, &|text| reporter.note(text))
}

fn generate_options(options: &Generate) -> GenerateOptions {
    let defaults = GenerateOptions::of(options.profile.into(), options.servers);
    GenerateOptions {
        region: options.region.clone(),
        reservations: options.reservations.unwrap_or(defaults.reservations),
        msbs: options.msbs.unwrap_or(defaults.msbs),
        datacenters: options.datacenters.unwrap_or(defaults.datacenters),
        hardware_types: options.hardware_types.unwrap_or(defaults.hardware_types),
        racks: options.racks,
        switches: options.switches,
        seed: options.seed,
        state: options.state.generated(),
        utilisation: options.utilisation.unwrap_or(defaults.utilisation),
        ..defaults
    }
}

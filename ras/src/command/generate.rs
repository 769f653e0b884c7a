//! `ras snapshot generate`

use crate::cli::Generate;
use crate::context::Context;
use crate::exit::Verdict;
use anyhow::{Context as _, Result};
use datasets::generate::{GenerateOptions, generate};
use fleet::RegionSnapshot;
use serde_json::json;

pub(super) fn run(options: &Generate, context: &Context) -> Result<Verdict> {
    let parts = generate(&generate_options(options)).context("generation failed")?;
    let snapshot = RegionSnapshot::new(parts).context("the generated region is invalid (a bug)")?;
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

fn generate_options(options: &Generate) -> GenerateOptions {
    let defaults = GenerateOptions::of(options.profile.into(), options.servers);
    GenerateOptions {
        region: options.region.clone(),
        reservations: options.reservations.unwrap_or(defaults.reservations),
        msbs: options.msbs.unwrap_or(defaults.msbs),
        datacenters: options.datacenters.unwrap_or(defaults.datacenters),
        hardware_types: options.hardware_types.unwrap_or(defaults.hardware_types),
        racks: options.racks,
        seed: options.seed,
        state: options.state.into(),
        utilisation: options.utilisation.unwrap_or(defaults.utilisation),
        ..defaults
    }
}

//! A region after hours of solves: what an hourly solver starts from.

use crate::hour::{Beginning, Pace, next_hour};
use crate::interrupt;
use crate::progress::Reporter;
use crate::settings::Settings;
use crate::solve::{self, Job};
use crate::warm;
use anyhow::{Context, Result, ensure};
use fleet::RegionSnapshot;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Hours, unless others are asked for.
pub const HOURS: u32 = 24;

/// Gap at which the solve of an hour ends: the next hour changes more.
pub const GAP: f64 = 0.005;

/// Solves a region hour by hour, each solve with the prices of the last, and lets an hour pass after
/// each. If no deadline of the settings cuts a solve short, equal arguments give equal regions.
/// `say`: told of each hour.
///
/// # Errors
/// If a solve fails or is interrupted.
pub fn churn(
    first: RegionSnapshot,
    hours: u32,
    pace: &Pace,
    settings: &Settings,
    say: &dyn Fn(&str),
) -> Result<Arc<RegionSnapshot>> {
    let beginning = Beginning::of(&first);
    let place = tempfile::tempdir().context("creating a folder for the solves")?;
    let (mut region, mut last) = (Arc::new(first), None::<PathBuf>);
    for hour in 1..=hours {
        say(&format!("hour {hour} of {hours}"));
        let began = Instant::now();
        let reporter = Reporter::new(true, began, settings.deadline);
        let job = Job {
            snapshot: Arc::clone(&region),
            out: place.path().join(hour.to_string()),
            settings: settings.clone(),
            began,
            warm: last.as_deref().and_then(|folder| warm::read(folder, &reporter)),
            limits: Arc::default(),
            check: None,
        };
        let solved = solve::run(&job, &reporter).with_context(|| format!("hour {hour}"))?;
        ensure!(!interrupt::asked(), "interrupted in hour {hour}");
        let parts = next_hour(&region, &solved.targets, &beginning, hour, pace);
        region = Arc::new(RegionSnapshot::new(parts).context("an hour broke the region (a bug)")?);
        last = Some(job.out);
    }
    Ok(region)
}

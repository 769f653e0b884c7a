//! Samples of the region, for charts over time: one every five minutes, by the first server that takes it.

use crate::http::Problem;
use crate::region_summary::{RegionSummaries, RegionSummary};
use broker::{Broker, RegionSample};
use control::RegionCache;
use fleet::Rru;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::sleep;

/// How often is looked whether a sample is due.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Takes samples while it is polled.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    pub(crate) broker: Broker,
    pub(crate) region: RegionCache,
    pub(crate) summaries: RegionSummaries,
}

impl Sampler {
    /// Takes samples without end.
    pub(crate) async fn run(self) -> Infallible {
        let mut read = self.region.subscribe();
        loop {
            // The region is read by others: until then there is nothing to sample.
            while self.region.latest().is_none() && read.changed().await.is_ok() {}
            if let Err(problem) = self.take().await {
                tracing::debug!(detail = problem.detail(), "no sample of the region");
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Takes a sample if one is due.
    async fn take(&self) -> Result<(), Problem> {
        if self.broker.is_sampled().await? {
            return Ok(());
        }
        if let Some(summary) = self.summaries.current(&self.region).await? {
            self.broker.add_sample(&sample(&summary)).await?;
        }
        Ok(())
    }
}

fn sample(summary: &RegionSummary) -> RegionSample {
    let all = summary.all;
    let count = |servers: usize| i32::try_from(servers).unwrap_or(i32::MAX);
    let mut sample = RegionSample {
        in_use: count(all.in_use),
        idle: count(all.idle),
        shared_buffer: count(all.shared),
        free: count(all.free),
        unavailable: count(all.down),
        ..RegionSample::default()
    };
    for row in &summary.held.certificate.rows {
        let figures = row.figures();
        sample.promised += figures.promised;
        // What one reservation holds beyond its promise makes up for no other.
        sample.held += Rru::min(figures.held, figures.promised);
        sample.guaranteed += figures.guaranteed();
    }
    sample
}

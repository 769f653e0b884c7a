//! Samples of the region, for charts over time: one every five minutes, by the first server that takes it.

use crate::http::Problem;
use crate::region_summary::{RegionSummaries, RegionSummary, unreadable};
use crate::supply::SupplyCache;
use crate::usage::counted;
use crate::warm_capacity::WarmCapacityCache;
use broker::{Broker, RegionSample};
use control::RegionCache;
use fleet::Rru;
use std::convert::Infallible;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// How often is looked whether a sample is due.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Takes samples while it is polled.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    pub(crate) broker: Broker,
    pub(crate) region: RegionCache,
    pub(crate) summaries: RegionSummaries,
    pub(crate) supply: SupplyCache,
    pub(crate) warm: WarmCapacityCache,
}

impl Sampler {
    /// Takes samples without end; says after each day and each order how long servers last, and every ten minutes how many must be warm.
    pub(crate) async fn run(self) -> Infallible {
        tokio::select! {
            never = self.take_all() => never,
            never = self.supply.follow(&self.broker, &self.region) => never,
            never = self.warm.follow(&self.broker, &self.region) => never,
        }
    }

    async fn take_all(&self) -> Infallible {
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
            let of = summary.clone();
            let cells = spawn_blocking(move || counted(of.region())).await;
            let cells = cells.map_err(|error| unreadable(&error))?;
            self.broker.add_sample(&sample(&summary), &cells).await?;
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

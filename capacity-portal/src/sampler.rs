//! Samples of the region, for charts over time: one every five minutes, by the first server that takes it.

use crate::http::Problem;
use crate::region_summary::{RegionSummaries, RegionSummary, unreadable};
use crate::supply::SupplyCache;
use crate::warm_capacity::WarmCapacityCache;
use broker::{Broker, RegionSample, UsageCell, UsageCount};
use control::RegionCache;
use fleet::{RegionSnapshot, Rru};
use std::collections::BTreeMap;
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
            let counted = spawn_blocking(move || usage(of.region())).await;
            let counted = counted.map_err(|error| unreadable(&error))?;
            self.broker.add_sample(&sample(&summary), &counted).await?;
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

/// What each reservation is promised, and its servers in service by hardware type and datacenter; free servers, too. Takes
/// as long as a pass over all servers: not for an async thread.
fn usage(region: &RegionSnapshot) -> Vec<(UsageCell, UsageCount)> {
    let mut servers: BTreeMap<_, UsageCount> = BTreeMap::new();
    for server in region.servers.iter().filter(|server| server.available) {
        let cell = (server.current, server.hardware_type, region.datacenter_of(server));
        let count = servers.entry(cell).or_default();
        count.held += 1;
        count.used += i32::from(server.in_use);
        count.lent += i32::from(server.loaned_to.is_some());
    }
    let promises = region.reservations.iter().map(|of| {
        let (reservation, owner) = (of.id.to_string(), of.owner.to_string());
        let cell = UsageCell { reservation, owner, ..UsageCell::default() };
        (cell, UsageCount { promised: of.capacity, ..UsageCount::default() })
    });
    let servers = servers.into_iter().map(|((owner, ty, datacenter), count)| {
        let mut cell = UsageCell {
            hardware_type: region.hardware_types[ty.ix()].to_string(),
            datacenter: region.datacenters[datacenter.ix()].id.to_string(),
            ..UsageCell::default()
        };
        if let Some(owner) = owner {
            let of = &region.reservations[owner.ix()];
            (cell.reservation, cell.owner) = (of.id.to_string(), of.owner.to_string());
            cell.value = of.value(ty).unwrap_or_default();
        }
        (cell, count)
    });
    promises.chain(servers).collect()
}

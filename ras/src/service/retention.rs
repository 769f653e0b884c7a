//! Retention of the archive: deletes solves that are too old or too many, never the newest or
//! running ones.

use super::archive::Archive;
use super::settings::ServiceSettings;
use anyhow::Result;
use broker::Broker;
use std::time::Duration;

/// The age at which the usage of servers is deleted: a year and a month, for forecasts of weeks and quarters.
const USAGE_AGE: Duration = Duration::from_secs(400 * 86_400);

/// Deletes expired samples of the region and expired solves: of these first the files, then their URLs in the store. If interrupted between
/// the two, the next run repeats the first.
pub async fn tidy(broker: &Broker, archive: &Archive, settings: &ServiceSettings) -> Result<usize> {
    let ServiceSettings { keep_least, keep_most, keep_age, .. } = *settings;
    let solves = broker.solves_to_forget(keep_least, keep_most, keep_age).await?;
    for solve in &solves {
        archive.delete(&format!("solves/{solve}")).await?;
        broker.forget_solve(*solve).await?;
    }
    broker.forget_samples(keep_age).await?;
    broker.forget_usage(USAGE_AGE).await?;
    if !solves.is_empty() {
        tracing::info!(solves = solves.len(), "deleted old solves from the archive");
    }
    Ok(solves.len())
}

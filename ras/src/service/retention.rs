//! What of the archive is deleted: what is old or too many, never the newest nor what runs.

use super::archive::Archive;
use super::settings::ServiceSettings;
use anyhow::Result;
use broker::Broker;

/// Deletes what need not be kept any more: first the files, then where they were. Whoever is
/// interrupted between the two deletes them again.
pub async fn tidy(broker: &Broker, archive: &Archive, settings: &ServiceSettings) -> Result<usize> {
    let ServiceSettings { keep_least, keep_most, keep_age, .. } = *settings;
    let solves = broker.solves_to_forget(keep_least, keep_most, keep_age).await?;
    for solve in &solves {
        archive.delete(&format!("solves/{solve}")).await?;
        broker.forget_solve(*solve).await?;
    }
    if !solves.is_empty() {
        tracing::info!(solves = solves.len(), "old solves were deleted from the archive");
    }
    Ok(solves.len())
}

//! Preemption without an operator, if the settings allow it.

use broker::{Broker, Epoch, MoverError, PreemptionCause, PreemptionError};
use decisions::preemption::{Due, RegionHeld, due, plan};
use std::time::Duration;

/// The largest number of outages that are read; more MSBs are not lost at once.
const OUTAGES_MAX: u32 = 1_000;

/// Preempts less important reservations once enough MSBs have been lost for this long. Gives the time
/// until that is the case, if enough MSBs are lost now.
pub(super) async fn after_delay(
    broker: &Broker,
    mover: &str,
    epoch: Epoch,
    after: Duration,
) -> Result<Option<Duration>, MoverError> {
    let lost = broker.outages(true, OUTAGES_MAX).await?;
    let began = lost.iter().map(|outage| outage.began_at).collect();
    let now = broker.clock().await?;
    let since = match due(began, now, after) {
        Due::No => return Ok(None),
        Due::At(at) => return Ok(Some((at - now).to_std().unwrap_or_default())),
        Due::Now(since) => since,
    };
    // First without a lock: most passes find nothing to preempt any more.
    if plan(&broker.region_held().await?).0.is_empty() {
        return Ok(None);
    }
    let cause = PreemptionCause::Delay { epoch, after, since };
    match broker.preempt(mover, &cause, None, |held: &RegionHeld| plan(held).0).await {
        Ok(gave) => {
            tracing::warn!(gave.servers, "less important reservations were preempted");
        }
        Err(PreemptionError::Mover(error)) => return Err(error),
        Err(PreemptionError::Db(error)) => return Err(error.into()),
        // An MSB has returned; the other errors concern requests of operators.
        Err(error) => tracing::info!(%error, "no reservation was preempted"),
    }
    Ok(None)
}

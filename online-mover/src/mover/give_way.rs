//! Reservations that give way without an operator's word, where the mover is set so.

use broker::{Broker, Epoch, GiveWayCause, GiveWayError, MoverError};
use decisions::give_way::{Due, RegionHeld, due, plan};
use std::time::Duration;

/// The most outages looked at: more MSBs are not lost at once.
const OUTAGES_MAX: u32 = 1_000;

/// Lets reservations give way, once enough MSBs have been lost for so long. Gives when to look again,
/// if that time is to come.
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
    // Without a lock first: most looks find that nobody has to give way any more.
    if plan(&broker.region_held().await?).0.is_empty() {
        return Ok(None);
    }
    let cause = GiveWayCause::Delay { epoch, after, since };
    match broker.give_way(mover, &cause, None, |held: &RegionHeld| plan(held).0).await {
        Ok(gave) => {
            tracing::warn!(gave.servers, "reservations gave way: MSBs are lost for too long");
        }
        Err(GiveWayError::Mover(error)) => return Err(error),
        Err(GiveWayError::Db(error)) => return Err(error.into()),
        // An MSB came back meanwhile; the rest is about what operators ask.
        Err(error) => tracing::info!(%error, "reservations did not give way"),
    }
    Ok(None)
}

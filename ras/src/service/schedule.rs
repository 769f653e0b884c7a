//! Requests solves on a schedule, and after many servers became unavailable. Stored times decide
//! what is due: a solve is due if none was requested since the last scheduled time. So missed runs
//! are coalesced into one, two schedulers of one region request one solve, and a clock that jumps
//! costs one additional solve at worst.

use super::in_time::in_time;
use super::settings::ServiceSettings;
use anyhow::Result;
use broker::{Broker, Cause, DbError, SolveId, TargetVersion};
use std::time::Duration;

/// Interval between checks whether a solve is due. Unavailability is checked as soon as it is
/// recorded.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Minimum time between checks: trail entries arrive by the ten thousand, and one check covers all
/// before it.
const REST: Duration = Duration::from_millis(500);

/// The actor in the audit trail.
const ACTOR: &str = "schedule";

/// Requests solves until dropped. Failures of Postgres are logged and retried.
pub async fn run(broker: &Broker, settings: &ServiceSettings) {
    loop {
        if let Err(error) = follow(broker, settings).await {
            tracing::warn!("the schedule cannot reach the database; retrying: {error:#}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Checks whenever the audit trail grows, and every few seconds.
async fn follow(broker: &Broker, settings: &ServiceSettings) -> Result<()> {
    let mut listener = in_time(broker.trail_listener()).await?;
    loop {
        in_time(look(broker, settings)).await?;
        tokio::time::sleep(REST).await;
        listener.wait(LOOK_EVERY).await;
    }
}

async fn look(broker: &Broker, settings: &ServiceSettings) -> Result<(), DbError> {
    if broker.version().await? == TargetVersion(0) {
        return Ok(());
    }
    if let Some(schedule) = &settings.schedule
        && let Some(due) = schedule.last_due(broker.clock().await?)
    {
        let cause = Cause::Schedule;
        tell(broker.request_solve(ACTOR, SolveId::now_v7(), cause, Some(due)).await?, cause);
    }
    if settings.event_servers > 0 {
        let (servers, at) = broker.newly_unavailable().await?;
        // Since the last request: a failed solve is not requested repeatedly.
        if servers >= i64::from(settings.event_servers) {
            let cause = Cause::Event;
            tell(broker.request_solve(ACTOR, SolveId::now_v7(), cause, at).await?, cause);
        }
    }
    Ok(())
}

fn tell(requested: Option<(SolveId, bool)>, cause: Cause) {
    if let Some((solve, true)) = requested {
        tracing::info!(%solve, cause = cause.as_str(), "requested a solve");
    }
}

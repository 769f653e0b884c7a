//! Requests solves on a schedule, and after many servers became unavailable. Stored times decide
//! what is due: a solve is due if none was requested since the last scheduled time. So missed runs
//! are coalesced into one, two schedulers of one region request one solve, and a clock that jumps
//! costs one additional solve at worst.

use super::settings::ServiceSettings;
use super::worker::in_time;
use anyhow::{Context, Result};
use broker::{Broker, Cause, DbError, SolveId, TargetVersion};
use chrono::{DateTime, Utc};
use croner::Cron;
use std::str::FromStr;
use std::time::Duration;

/// Interval between checks whether a solve is due. Unavailability is checked as soon as it is
/// recorded.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Minimum time between checks: trail entries arrive by the ten thousand, and one check covers all
/// before it.
const REST: Duration = Duration::from_millis(500);

/// The actor in the audit trail.
const ACTOR: &str = "schedule";

/// The schedule of solves.
#[derive(Clone, Debug)]
pub struct Schedule(Cron);

impl Schedule {
    /// Parses a cron expression; its times are UTC.
    ///
    /// # Errors
    /// If it is not a cron expression.
    pub fn parse(text: &str) -> Result<Schedule> {
        let cron = Cron::from_str(text);
        cron.map(Schedule).with_context(|| {
            format!(
                "schedule {text:?} is neither a cron expression such as \"0 * * * *\" nor never"
            )
        })
    }

    /// The last scheduled time until now; `None` if the last one is long ago.
    pub fn last_due(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.0.find_previous_occurrence(&now, true).ok()
    }

    /// The next scheduled time.
    pub fn next_due(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.0.find_next_occurrence(&now, false).ok()
    }
}

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
    let mut doorbell = in_time(broker.trail_doorbell()).await?;
    loop {
        in_time(look(broker, settings)).await?;
        tokio::time::sleep(REST).await;
        doorbell.wait(LOOK_EVERY).await;
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

#[cfg(test)]
mod tests {
    use super::Schedule;
    use chrono::{DateTime, Utc};

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("a time")
    }

    #[test]
    fn the_last_time_counts_up_to_now() {
        let hourly = Schedule::parse("0 * * * *").expect("cron");
        let last = |now| hourly.last_due(at(now)).expect("hourly");
        assert_eq!(last("2026-01-01T10:59:59Z"), at("2026-01-01T10:00:00Z"));
        assert_eq!(last("2026-01-01T11:00:00Z"), at("2026-01-01T11:00:00Z"));
        assert_eq!(last("2026-01-01T11:00:00.000001Z"), at("2026-01-01T11:00:00Z"));
        assert_eq!(hourly.next_due(at("2026-01-01T11:00:00Z")), Some(at("2026-01-01T12:00:00Z")));
        assert!(Schedule::parse("every hour").is_err());
        assert!(Schedule::parse("61 * * * *").is_err());
    }
}

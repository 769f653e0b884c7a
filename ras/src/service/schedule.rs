//! Asks for solves: by the clock, and after many servers became unavailable.
//!
//! What is due follows from stored times: a solve is, if none was asked for since the last time the
//! expression names. So a time that was missed is made up for once, however many were; two of us on
//! one region ask for one solve; and of a clock that jumps the worst is one solve more.

use super::settings::ServiceSettings;
use super::worker::in_time;
use anyhow::{Context, Result};
use broker::{Broker, Cause, DbError, TargetVersion};
use chrono::{DateTime, Utc};
use croner::Cron;
use std::str::FromStr;
use std::time::Duration;
use uuid::Uuid;

/// How often it is looked whether a solve is due. Unavailability is looked at as soon as it is
/// recorded.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How long a look stays true: entries of the trail come by the ten thousand, and one look answers for
/// all that came before it.
const REST: Duration = Duration::from_millis(500);

/// Who asks, as the audit trail has it.
const ACTOR: &str = "schedule";

/// When the region is solved.
#[derive(Clone, Debug)]
pub struct Schedule(Cron);

impl Schedule {
    /// Reads a cron expression; its times are UTC.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> Result<Schedule> {
        let cron = Cron::from_str(text);
        cron.map(Schedule).with_context(|| {
            format!(
                "schedule {text:?} is neither a cron expression such as \"0 * * * *\" nor never"
            )
        })
    }

    /// The last time it names, until now; `None`: it has not named one for long.
    pub fn last_due(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.0.find_previous_occurrence(&now, true).ok()
    }

    /// The next time it names.
    pub fn next_due(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.0.find_next_occurrence(&now, false).ok()
    }
}

/// Asks until dropped. Failures of Postgres are logged and tried again.
pub async fn run(broker: &Broker, settings: &ServiceSettings) {
    loop {
        if let Err(error) = follow(broker, settings).await {
            tracing::warn!("the schedule cannot reach the region; trying again: {error:#}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Looks whenever the audit trail grows, and every few seconds.
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
        tell(broker.request_solve(ACTOR, Uuid::now_v7(), cause, Some(due)).await?, cause);
    }
    if settings.event_servers > 0 {
        let (servers, at) = broker.newly_unavailable().await?;
        // Since the last of them: one that failed is not asked for again and again.
        if servers >= i64::from(settings.event_servers) {
            let cause = Cause::Event;
            tell(broker.request_solve(ACTOR, Uuid::now_v7(), cause, at).await?, cause);
        }
    }
    Ok(())
}

fn tell(requested: Option<(Uuid, bool)>, cause: Cause) {
    if let Some((solve, true)) = requested {
        tracing::info!(%solve, cause = cause.as_str(), "a solve was asked for");
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

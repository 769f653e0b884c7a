//! A schedule: a cron expression in UTC.

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use croner::Cron;
use std::str::FromStr;

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

//! Detects that the database's clock was set forward. Maintenance windows end by that clock, and must not
//! end early.

use broker::{Broker, Due, Epoch, MoverError};
use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::{Instant, sleep_until};

/// A smaller jump is an ordinary adjustment.
const JUMP_LEAST: TimeDelta = TimeDelta::seconds(30);

/// Compares the database's clock with a monotonic one.
#[derive(Debug, Default)]
pub(crate) struct ClockWatch {
    /// The last reading, and an instant before it was requested.
    last: Option<(Instant, DateTime<Utc>)>,
}

impl ClockWatch {
    /// Reads what is due. If the database's clock was set forward, the ends of active maintenance are
    /// postponed by as much.
    pub(crate) async fn due(
        &mut self,
        broker: &Broker,
        name: &str,
        epoch: Epoch,
    ) -> Result<Due, MoverError> {
        let asked = Instant::now();
        let due = broker.due().await?;
        if let Some(jump) = self.jump(asked, due.now, Instant::now()) {
            tracing::warn!(seconds = jump.num_seconds(), "the clock of Postgres was set forward");
            broker.clock_jumped(name, epoch, jump).await?;
        }
        Ok(due)
    }

    /// Takes a reading that was made between two instants. Gives a lower bound on the jump since the last
    /// reading. A clock that was set back ends nothing early, so it does not count.
    fn jump(
        &mut self,
        asked: Instant,
        read: DateTime<Utc>,
        answered: Instant,
    ) -> Option<TimeDelta> {
        let (before, last) = self.last.replace((asked, read))?;
        let longest = TimeDelta::from_std(answered - before).unwrap_or(TimeDelta::MAX);
        let jump = (read - last).checked_sub(&longest)?;
        (jump >= JUMP_LEAST).then_some(jump)
    }
}

/// Waits for an instant; `None`: forever.
pub(crate) async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::ClockWatch;
    use chrono::{DateTime, TimeDelta};
    use std::time::Duration;
    use tokio::time::Instant;

    #[test]
    fn clock_watch_reports_forward_jumps_only() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let read = |seconds: i64| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
        let mut watch = ClockWatch::default();
        assert_eq!(watch.jump(at(0), read(0), at(1)), None, "the first reading");
        assert_eq!(watch.jump(at(30), read(31), at(31)), None);
        assert_eq!(watch.jump(at(60), read(3_661), at(61)), Some(TimeDelta::seconds(3_599)));
        assert_eq!(watch.jump(at(90), read(3_691), at(91)), None, "once");
        assert_eq!(watch.jump(at(120), read(121), at(121)), None, "set back");
        // A pause of the mover or a slow answer is not a jump.
        assert_eq!(watch.jump(at(4_000), read(4_400), at(4_500)), None);
    }
}

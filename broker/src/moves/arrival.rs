//! The arrival of the servers of a reservation: how many have arrived, how many are left, and at which rate.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use chrono::{DateTime, TimeDelta, Utc};

/// The time over which the rate is measured. A completed arrival is shown as long.
pub(crate) const LATELY: TimeDelta = TimeDelta::minutes(15);

/// Arrivals below which no rate is known: one or two say little about the next hundred.
const ENOUGH: i64 = 3;

pub(crate) mod sql {
    crate::statements! {
        /// The servers that were assigned together with the oldest that has not arrived; or, if all have, with
        /// the first that arrived lately. Of many moves only the last are looked at.
        ARRIVALS = "WITH last AS (SELECT open, state, opened_at, state_at FROM moves \
                WHERE target_reservation = $1 AND NOT stays ORDER BY move_id DESC LIMIT 20000), \
            late AS (SELECT clock_timestamp() - make_interval(secs => $2) AS at), \
            began AS (SELECT coalesce( \
                (SELECT min(opened_at) FROM last WHERE open), \
                (SELECT min(opened_at) FROM last, late WHERE state = 'bound' AND state_at > late.at)) AS at) \
            SELECT count(*) FILTER (WHERE open) + (SELECT count(*) FROM servers s \
                    JOIN reservations r ON r.reservation_id = s.target_reservation_id \
                    WHERE s.target_pending AND r.reservation = $1 AND NOT EXISTS \
                        (SELECT FROM moves m WHERE m.open AND m.server_id = s.server_id)), \
                count(*) FILTER (WHERE state = 'bound'), \
                count(*) FILTER (WHERE state = 'bound' AND state_at > (SELECT at FROM late)), \
                (SELECT at FROM began), max(state_at) FILTER (WHERE state = 'bound'), clock_timestamp() \
            FROM last WHERE opened_at >= (SELECT at FROM began)";
    }
}

/// The arrival of servers that were assigned to a reservation together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// Servers that have not arrived.
    pub left: i64,
    /// Servers that have arrived.
    pub arrived: i64,
    /// Of these, those of the last quarter of an hour.
    pub lately: i64,
    /// When the first of their moves was opened; `None`: none was yet.
    pub began_at: Option<DateTime<Utc>>,
    /// When the last of them arrived.
    pub last_at: Option<DateTime<Utc>>,
    /// The time, by the database's clock.
    pub now: DateTime<Utc>,
}

impl Arrivals {
    /// The time over which [`Self::lately`] counts.
    pub fn measured(&self) -> TimeDelta {
        self.began_at.map_or(LATELY, |began| (self.now - began).min(LATELY))
    }

    /// When the last server will have arrived, at the rate measured lately; `None`: too few have arrived to
    /// measure it.
    pub fn done_at(&self) -> Option<DateTime<Utc>> {
        if self.lately < ENOUGH {
            return None;
        }
        let measured = self.measured().num_milliseconds().max(1);
        let needed = measured.checked_mul(self.left)? / self.lately;
        self.now.checked_add_signed(TimeDelta::try_milliseconds(needed)?)
    }
}

impl Broker {
    /// The servers that were assigned to a reservation last; `None`: none is left, and none arrived lately.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn arrivals(&self, reservation: &str) -> Result<Option<Arrivals>, DbError> {
        let read = sqlx::query_as(sql::ARRIVALS)
            .bind(reservation)
            .bind(LATELY.as_seconds_f64())
            .fetch_one(&self.pool);
        let (left, arrived, lately, began_at, last_at, now) =
            read.await.doing("looking at the arrival of servers")?;
        let of = Arrivals { left, arrived, lately, began_at, last_at, now };
        Ok(Some(of).filter(|of| of.left + of.arrived > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::Arrivals;
    use chrono::{DateTime, TimeDelta};

    #[test]
    fn end_of_an_arrival_follows_from_the_measured_rate() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::hours(1);
        let of = |lately, minutes, left| Arrivals {
            left,
            arrived: 153,
            lately,
            began_at: Some(now - TimeDelta::minutes(minutes)),
            last_at: Some(now),
            now,
        };
        // 30 in 10 minutes: 60 more take 20.
        assert_eq!(of(30, 10, 60).done_at(), Some(now + TimeDelta::minutes(20)));
        // It began long ago: the last quarter of an hour counts.
        assert_eq!(of(30, 600, 60).done_at(), Some(now + TimeDelta::minutes(30)));
        assert_eq!(of(2, 10, 60).done_at(), None, "too few to know");
        assert_eq!(of(3, 10, i64::MAX).done_at(), None, "too many to count");
    }
}

//! Throttle for the read of a whole region, which occupies this process and Postgres for seconds: unless a
//! caller waits for it, most of the time is left to other work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Rows between two yields to other tasks: a fifth of a millisecond.
const ROWS_AT_A_TIME: usize = 100;

/// Rows between two rests: timers have a resolution of a millisecond, and these rows take a few.
const ROWS_BETWEEN_RESTS: usize = 2_000;

/// A rest lasts this many times as long as the work before it.
const REST: u32 = 3;

/// The total of all rests: a read without an end would make its caller give up.
const REST_AT_MOST: Duration = Duration::from_secs(15);

/// The number of callers that wait for the read.
#[derive(Debug, Default)]
pub struct PriorityReaders(AtomicUsize);

/// A waiting caller, until it is dropped.
#[derive(Debug)]
pub struct Waiting<'a>(&'a PriorityReaders);

impl PriorityReaders {
    /// Registers a waiting caller.
    pub fn join(&self) -> Waiting<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }

    fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The throttle of one read. Postgres follows: it sends rows no faster than they are taken.
pub(crate) struct ReadThrottle<'a> {
    /// `None`: the read is not throttled.
    waiters: Option<&'a PriorityReaders>,
    rows: usize,
    /// The start of the rows since the last rest or chance of one.
    since: Instant,
    /// The remaining time for rests.
    left: Duration,
}

impl<'a> ReadThrottle<'a> {
    /// Starts now.
    pub(crate) fn new(waiters: Option<&'a PriorityReaders>) -> ReadThrottle<'a> {
        ReadThrottle { waiters, rows: 0, since: Instant::now(), left: REST_AT_MOST }
    }

    /// Counts a row. Rows arrive faster than they are taken, so without yields a thread of the runtime would be
    /// occupied to the end.
    pub(crate) async fn row(&mut self) {
        match self.next(self.since.elapsed()) {
            Next::Row => {}
            Next::Others => tokio::task::yield_now().await,
            Next::Rest(rest) => sleep(rest).await,
        }
        // Rows that were read while a caller waited require no rest.
        if self.rows.is_multiple_of(ROWS_BETWEEN_RESTS) {
            self.since = Instant::now();
        }
    }

    /// The next action after one more row, given the time worked since the last rest.
    fn next(&mut self, worked: Duration) -> Next {
        self.rows += 1;
        let nobody_waits = || self.waiters.is_some_and(|waiters| !waiters.any());
        if self.rows.is_multiple_of(ROWS_BETWEEN_RESTS) && nobody_waits() {
            // On a busy machine these rows took long, so the rest is long.
            let rest = (worked * REST).min(self.left);
            self.left -= rest;
            Next::Rest(rest)
        } else if self.rows.is_multiple_of(ROWS_AT_A_TIME) {
            Next::Others
        } else {
            Next::Row
        }
    }
}

/// The action after a row.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Take the next row.
    Row,
    /// Yield to other tasks.
    Others,
    /// Sleep for the given time.
    Rest(Duration),
}

#[cfg(test)]
mod tests {
    use super::{Next, PriorityReaders, REST, REST_AT_MOST, ROWS_BETWEEN_RESTS, ReadThrottle};
    use std::time::Duration;

    const WORKED: Duration = Duration::from_millis(7);

    /// The numbers of yields and rests.
    fn stops(pace: &mut ReadThrottle<'_>) -> (usize, usize) {
        let mut stops = (0, 0);
        for _ in 0..3 * ROWS_BETWEEN_RESTS {
            match pace.next(WORKED) {
                Next::Row => {}
                Next::Others => stops.0 += 1,
                Next::Rest(rest) => {
                    assert_eq!(rest, REST * WORKED);
                    stops.1 += 1;
                }
            }
        }
        stops
    }

    #[test]
    fn throttle_rests_longer_than_it_works_unless_awaited() {
        let waiters = PriorityReaders::default();
        assert_eq!(stops(&mut ReadThrottle::new(None)), (60, 0));
        let mut pace = ReadThrottle::new(Some(&waiters));
        assert_eq!(stops(&mut pace), (57, 3));
        let (one, another) = (waiters.join(), waiters.join());
        assert_eq!(stops(&mut pace), (60, 0));
        drop(one);
        assert_eq!(stops(&mut pace), (60, 0));
        drop(another);
        assert_eq!(stops(&mut pace), (57, 3));
    }

    #[test]
    fn throttle_limits_the_total_of_rests() {
        let waiters = PriorityReaders::default();
        let mut pace = ReadThrottle::new(Some(&waiters));
        let mut rested = Duration::ZERO;
        for _ in 0..50 * ROWS_BETWEEN_RESTS {
            if let Next::Rest(rest) = pace.next(Duration::from_secs(1)) {
                rested += rest;
            }
        }
        assert_eq!(rested, REST_AT_MOST);
    }
}

//! How fast a whole region is read. That takes seconds of this process and of Postgres, and others want
//! their answers meanwhile: where nobody waits for it, most of the time is left to them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Rows that are read before others have their turn: a fifth of a millisecond.
const ROWS_AT_A_TIME: usize = 100;

/// Rows between two rests: timers go by the millisecond, and this many take a few.
const ROWS_BETWEEN_RESTS: usize = 2_000;

/// So many times as long as it works it rests.
const REST: u32 = 3;

/// In all it rests no longer than this: who reads gives a reading up that does not end.
const REST_AT_MOST: Duration = Duration::from_secs(15);

/// Who waits for what is read.
#[derive(Debug, Default)]
pub struct Waiters(AtomicUsize);

/// Somebody waits, until this is dropped.
#[derive(Debug)]
pub struct Waiting<'a>(&'a Waiters);

impl Waiters {
    /// Somebody waits from now on.
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

/// The pace of one reading. Postgres goes along: it sends no faster than rows are taken.
pub(crate) struct Pace<'a> {
    /// `None`: somebody does.
    waiters: Option<&'a Waiters>,
    rows: usize,
    /// When the rows since the last rest, or the last chance of one, were begun.
    since: Instant,
    /// What may still be rested.
    left: Duration,
}

impl<'a> Pace<'a> {
    /// From now on.
    pub(crate) fn new(waiters: Option<&'a Waiters>) -> Pace<'a> {
        Pace { waiters, rows: 0, since: Instant::now(), left: REST_AT_MOST }
    }

    /// A row was read. Rows come faster than they are taken, so without this a thread that answers others
    /// would be kept to the last one.
    pub(crate) async fn row(&mut self) {
        match self.next(self.since.elapsed()) {
            Next::Row => {}
            Next::Others => tokio::task::yield_now().await,
            Next::Rest(rest) => sleep(rest).await,
        }
        // Rows that were read while somebody waited are not rested for afterwards.
        if self.rows.is_multiple_of(ROWS_BETWEEN_RESTS) {
            self.since = Instant::now();
        }
    }

    /// What to do after one more row, so long after the last rest.
    fn next(&mut self, worked: Duration) -> Next {
        self.rows += 1;
        let nobody_waits = || self.waiters.is_some_and(|waiters| !waiters.any());
        if self.rows.is_multiple_of(ROWS_BETWEEN_RESTS) && nobody_waits() {
            // Where much else is to be done these rows took long, so the rest is long.
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

/// What to do after a row.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Take another.
    Row,
    /// Let others have their turn, if there are any.
    Others,
    /// Leave the processors to others for so long.
    Rest(Duration),
}

#[cfg(test)]
mod tests {
    use super::{Next, Pace, REST, REST_AT_MOST, ROWS_BETWEEN_RESTS, Waiters};
    use std::time::Duration;

    const WORKED: Duration = Duration::from_millis(7);

    /// How often it gives way to others, and how often it rests.
    fn stops(pace: &mut Pace<'_>) -> (usize, usize) {
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
    fn it_rests_for_longer_than_it_works_unless_somebody_waits() {
        let waiters = Waiters::default();
        assert_eq!(stops(&mut Pace::new(None)), (60, 0));
        let mut pace = Pace::new(Some(&waiters));
        assert_eq!(stops(&mut pace), (57, 3));
        let (one, another) = (waiters.join(), waiters.join());
        assert_eq!(stops(&mut pace), (60, 0));
        drop(one);
        assert_eq!(stops(&mut pace), (60, 0));
        drop(another);
        assert_eq!(stops(&mut pace), (57, 3));
    }

    #[test]
    fn it_does_not_rest_for_ever() {
        let waiters = Waiters::default();
        let mut pace = Pace::new(Some(&waiters));
        let mut rested = Duration::ZERO;
        for _ in 0..50 * ROWS_BETWEEN_RESTS {
            if let Next::Rest(rest) = pace.next(Duration::from_secs(1)) {
                rested += rest;
            }
        }
        assert_eq!(rested, REST_AT_MOST);
    }
}

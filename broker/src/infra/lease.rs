//! Keeping a lease, and knowing until when it certainly holds.

use crate::infra::error::DbError;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use nix::time::ClockId;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Renewals begun within a lease: two may be lost.
const WITHIN: u32 = 3;

/// Time since the machine was started, the time in which it was suspended included: what a lease in a
/// database goes by as well, and nothing sets it.
pub fn since_boot() -> Duration {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;
    CLOCK.now().expect("the system has this clock").into()
}

/// Until when its holder may believe that a lease holds, without asking: counted from when the last renewal
/// that was written down *began*, so never later than the database has it. Clones share it.
#[derive(Clone, Debug)]
pub struct LeaseTerm(Arc<AtomicU64>);

impl LeaseTerm {
    /// One that holds for so long since an instant of [`since_boot`].
    pub fn new(begun: Duration, lease: Duration) -> LeaseTerm {
        LeaseTerm(Arc::new(AtomicU64::new(nanoseconds(begun + lease))))
    }

    /// One that does not end.
    pub fn endless() -> LeaseTerm {
        LeaseTerm(Arc::new(AtomicU64::new(u64::MAX)))
    }

    /// Whether it holds.
    pub fn holds(&self) -> bool {
        !self.left().is_zero()
    }

    /// For how long it holds.
    pub fn left(&self) -> Duration {
        let until = self.0.load(Ordering::Acquire);
        Duration::from_nanos(until.saturating_sub(nanoseconds(since_boot())))
    }

    /// It was renewed; another renewal may have been later.
    fn renewed(&self, begun: Duration, lease: Duration) {
        self.0.fetch_max(nanoseconds(begun + lease), Ordering::AcqRel);
    }

    /// It is over: another has it, or it was given back.
    pub fn end(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// Two that end at the same time are alike.
impl PartialEq for LeaseTerm {
    fn eq(&self, other: &LeaseTerm) -> bool {
        self.0.load(Ordering::Acquire) == other.0.load(Ordering::Acquire)
    }
}

impl Eq for LeaseTerm {}

fn nanoseconds(of: Duration) -> u64 {
    u64::try_from(of.as_nanos()).unwrap_or(u64::MAX)
}

/// Renews a lease until it is lost: another has it, which `renew` says by `false`, or no renewal was
/// written down for as long as it holds.
///
/// A renewal counts from when it began, for Postgres may have taken it down as early as that. One that
/// takes long goes on beside the next ones: where it must first make a connection it may need most of the
/// lease, and where its connection is dead the next has another.
pub async fn keep_lease<F>(term: &LeaseTerm, lease: Duration, renew: impl Fn() -> F)
where
    F: Future<Output = Result<bool, DbError>>,
{
    let every = lease / WITHIN;
    // Where it took long to get it, some of it is over.
    let mut next = Instant::now() + term.left().saturating_sub(every * (WITHIN - 1));
    let mut under_way = FuturesUnordered::new();
    while term.holds() {
        tokio::select! {
            biased;
            Some((begun, outcome)) = under_way.next() => match outcome {
                Ok(true) => term.renewed(begun, lease),
                Ok(false) => break,
                Err(error) => tracing::warn!(%error, "a lease was not renewed"),
            },
            () = sleep(term.left()) => {}
            () = sleep_until(next) => {
                let begun = since_boot();
                let renewal = renew();
                under_way.push(async move { (begun, renewal.await) });
                next = Instant::now() + every;
            }
        }
    }
    term.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infra::error::Doing;
    use std::cell::Cell;
    use tokio::time::{sleep, timeout};

    /// Long enough for a machine that stalls.
    const LEASE: Duration = Duration::from_secs(6);
    /// What hangs.
    const NEVER: u64 = 10_000;

    fn failed() -> DbError {
        Err::<(), _>(sqlx::Error::PoolTimedOut).doing("renewing").expect_err("it is one")
    }

    /// How long a lease is kept whose renewals, by number, take so many seconds and come to that; `None`:
    /// for twice as long as it holds.
    async fn kept(renewal: impl Fn(u32) -> (u64, Result<bool, DbError>)) -> Option<Duration> {
        let (begun, count) = (Instant::now(), Cell::new(0));
        let term = LeaseTerm::new(since_boot(), LEASE);
        let renew = || {
            count.set(count.get() + 1);
            let (after, outcome) = renewal(count.get());
            async move {
                sleep(Duration::from_secs(after)).await;
                outcome
            }
        };
        assert!(term.holds());
        let lost = timeout(2 * LEASE, keep_lease(&term, LEASE, renew)).await.is_ok();
        assert_eq!(term.holds(), !lost, "its holder is told at once");
        lost.then(|| begun.elapsed())
    }

    #[tokio::test]
    async fn it_is_kept_while_renewals_come() {
        let (at_once, slow, hanging, failing) = tokio::join!(
            kept(|_| (0, Ok(true))),
            // Each goes on beside the next: half of the lease is more than there is between two.
            kept(|_| (3, Ok(true))),
            kept(|number| (if number % 2 == 1 { NEVER } else { 0 }, Ok(true))),
            kept(|number| (0, if number % 2 == 1 { Err(failed()) } else { Ok(true) })),
        );
        assert_eq!((at_once, slow, hanging, failing), (None, None, None, None));
    }

    #[tokio::test]
    async fn it_is_lost_when_it_has_run_out_or_another_has_it() {
        let (silent, failing, late, taken) = tokio::join!(
            kept(|number| (if number == 1 { 0 } else { NEVER }, Ok(true))),
            kept(|number| if number == 1 { (1, Ok(true)) } else { (0, Err(failed())) }),
            kept(|_| (7, Ok(true))),
            kept(|number| (0, Ok(number < 2))),
        );
        // From when the last one began that was written down.
        assert!(silent.is_some_and(|kept| kept >= LEASE * 4 / 3), "{silent:?}");
        assert!(failing.is_some_and(|kept| kept >= LEASE * 4 / 3), "{failing:?}");
        assert!(late.is_some_and(|kept| kept >= LEASE), "{late:?}");
        assert!(taken.is_some_and(|kept| kept >= LEASE * 2 / 3), "{taken:?}");
    }
}

//! Leases: renewal, and a holder's own estimate of when its lease ends.

use crate::infra::error::DbError;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use nix::time::ClockId;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Renewals per lease: two may fail.
const WITHIN: u32 = 3;

/// Time since boot, including suspension: it advances like the database's clock during a lease, and cannot be
/// set.
pub fn since_boot() -> Duration {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;
    CLOCK.now().expect("the system has this clock").into()
}

/// The time until which a holder may assume that its lease holds, without asking. It counts from the *start* of
/// the last successful renewal, so it never exceeds the database's value. Clones share it.
#[derive(Clone, Debug)]
pub struct LeaseTerm(Arc<AtomicU64>);

impl LeaseTerm {
    /// A term of the given length, from an instant of [`since_boot`].
    pub fn new(begun: Duration, lease: Duration) -> LeaseTerm {
        LeaseTerm(Arc::new(AtomicU64::new(nanoseconds(begun + lease))))
    }

    /// A term that never ends.
    pub fn endless() -> LeaseTerm {
        LeaseTerm(Arc::new(AtomicU64::new(u64::MAX)))
    }

    /// Whether the lease holds.
    pub fn holds(&self) -> bool {
        !self.left().is_zero()
    }

    /// The remaining time.
    pub fn left(&self) -> Duration {
        let until = self.0.load(Ordering::Acquire);
        Duration::from_nanos(until.saturating_sub(nanoseconds(since_boot())))
    }

    /// Records a renewal, unless a later one has been recorded.
    fn renewed(&self, begun: Duration, lease: Duration) {
        self.0.fetch_max(nanoseconds(begun + lease), Ordering::AcqRel);
    }

    /// Ends the term: another holder has the lease, or it was given back.
    pub fn end(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// Terms with the same end are equal.
impl PartialEq for LeaseTerm {
    fn eq(&self, other: &LeaseTerm) -> bool {
        self.0.load(Ordering::Acquire) == other.0.load(Ordering::Acquire)
    }
}

impl Eq for LeaseTerm {}

fn nanoseconds(of: Duration) -> u64 {
    u64::try_from(of.as_nanos()).unwrap_or(u64::MAX)
}

/// Renews a lease until it is lost: `renew` returns `false` because another holder has it, or no renewal
/// succeeded within the term.
///
/// A renewal counts from its start, because Postgres may have recorded it that early. A slow renewal runs on
/// beside the next ones: opening a connection may take most of a lease, and if a connection is dead, the next
/// renewal uses another.
pub async fn keep_lease<F>(term: &LeaseTerm, lease: Duration, renew: impl Fn() -> F)
where
    F: Future<Output = Result<bool, DbError>>,
{
    let every = lease / WITHIN;
    // Obtaining the lease may already have used up a part of it.
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
    /// The duration of a renewal that hangs.
    const NEVER: u64 = 10_000;

    fn failed() -> DbError {
        Err::<(), _>(sqlx::Error::PoolTimedOut).doing("renewing").expect_err("it is one")
    }

    /// How long a lease is kept if its renewals, by number, take the given seconds and end with the given
    /// result; `None`: at least two terms.
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
        assert_eq!(term.holds(), !lost, "the term ends with the loss");
        lost.then(|| begun.elapsed())
    }

    #[tokio::test]
    async fn lease_is_kept_while_renewals_succeed() {
        let (at_once, slow, hanging, failing) = tokio::join!(
            kept(|_| (0, Ok(true))),
            // Renewals overlap: half a lease is longer than the interval between two.
            kept(|_| (3, Ok(true))),
            kept(|number| (if number % 2 == 1 { NEVER } else { 0 }, Ok(true))),
            kept(|number| (0, if number % 2 == 1 { Err(failed()) } else { Ok(true) })),
        );
        assert_eq!((at_once, slow, hanging, failing), (None, None, None, None));
    }

    #[tokio::test]
    async fn lease_is_lost_on_expiry_or_takeover() {
        let (silent, failing, late, taken) = tokio::join!(
            kept(|number| (if number == 1 { 0 } else { NEVER }, Ok(true))),
            kept(|number| if number == 1 { (1, Ok(true)) } else { (0, Err(failed())) }),
            kept(|_| (7, Ok(true))),
            kept(|number| (0, Ok(number < 2))),
        );
        // Counted from the start of the last successful renewal.
        assert!(silent.is_some_and(|kept| kept >= LEASE * 4 / 3), "{silent:?}");
        assert!(failing.is_some_and(|kept| kept >= LEASE * 4 / 3), "{failing:?}");
        assert!(late.is_some_and(|kept| kept >= LEASE), "{late:?}");
        assert!(taken.is_some_and(|kept| kept >= LEASE * 2 / 3), "{taken:?}");
    }
}

//! Keeping what is had under a lease.

use crate::error::DbError;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Renewals begun within a lease: two may be lost.
const WITHIN: u32 = 3;

/// Renews a lease until it is lost: another has it, which `renew` says by `false`, or none was written
/// down for as long as it holds.
///
/// A renewal counts from when it began, for Postgres may have taken it down as early as that. One that
/// takes long goes on beside the next ones: where it must first make a connection it may need most of the
/// lease, and where its connection is dead the next has another.
pub async fn keep_lease<F>(lease: Duration, renew: impl Fn() -> F)
where
    F: Future<Output = Result<bool, DbError>>,
{
    let every = lease / WITHIN;
    let mut renewed = Instant::now();
    let mut next = renewed + every;
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some((begun, outcome)) = under_way.next() => match outcome {
                Ok(true) => renewed = renewed.max(begun),
                Ok(false) => return,
                Err(error) => tracing::warn!(%error, "a lease was not renewed"),
            },
            () = sleep_until(renewed + lease) => return,
            () = sleep_until(next) => {
                let begun = Instant::now();
                let renewal = renew();
                under_way.push(async move { (begun, renewal.await) });
                next = begun + every;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Doing;
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
        let renew = || {
            count.set(count.get() + 1);
            let (after, outcome) = renewal(count.get());
            async move {
                sleep(Duration::from_secs(after)).await;
                outcome
            }
        };
        let lost = timeout(2 * LEASE, keep_lease(LEASE, renew)).await.is_ok();
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

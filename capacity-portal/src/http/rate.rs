//! Rate limits by caller, by address, and of guesses at tokens.

use super::auth::secret::digest;
use broker::SecretDigest;
use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::interval;

/// Default limit of one caller, in requests per second. An allocator or a dashboard sends a few; a client that
/// sends a thousand runs in a loop.
const PER_SECOND: NonZeroU32 = NonZeroU32::new(1_000).expect("a number");

/// Limit of one address, as a multiple of a caller's: several callers may share it.
const CALLERS_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(4).expect("a number");

/// Invalid tokens that an address may send, per second and at once: people mistype, and programs retry with
/// revoked tokens.
const GUESSES_PER_SECOND: NonZeroU32 = NonZeroU32::new(2).expect("a number");
const GUESSES_AT_ONCE: NonZeroU32 = NonZeroU32::new(20).expect("a number");

/// How often idle callers and addresses are dropped.
const SHRINK_EVERY: Duration = Duration::from_secs(60);

type Limiter<K> = RateLimiter<K, DashMapStateStore<K>, DefaultClock>;

/// Rate limits of this process.
#[derive(Debug)]
pub(crate) struct RateLimits {
    callers: Limiter<SecretDigest>,
    addresses: Limiter<IpAddr>,
    guesses: Limiter<IpAddr>,
}

fn shrink<K: Hash + Eq + Clone>(limiter: &Limiter<K>) {
    limiter.retain_recent();
    limiter.shrink_to_fit();
}

impl RateLimits {
    /// Starts the task that drops idle keys; it stops when the last clone is dropped. `per_second`: requests of
    /// one caller.
    pub(crate) fn start(per_second: Option<NonZeroU32>) -> Arc<RateLimits> {
        let per_second = per_second.unwrap_or(PER_SECOND);
        let of_address = per_second.saturating_mul(CALLERS_PER_ADDRESS);
        let guesses = Quota::per_second(GUESSES_PER_SECOND).allow_burst(GUESSES_AT_ONCE);
        let limits = Arc::new(RateLimits {
            callers: RateLimiter::dashmap(Quota::per_second(per_second)),
            addresses: RateLimiter::dashmap(Quota::per_second(of_address)),
            guesses: RateLimiter::dashmap(guesses),
        });
        let weak = Arc::downgrade(&limits);
        tokio::spawn(async move {
            let mut ticks = interval(SHRINK_EVERY);
            loop {
                ticks.tick().await;
                let Some(limits) = weak.upgrade() else { return };
                shrink(&limits.callers);
                shrink(&limits.addresses);
                shrink(&limits.guesses);
            }
        });
        limits
    }

    /// Counts a request; returns whether it is within the limits. Requests without a secret count as one caller
    /// for each address.
    pub(crate) fn may_ask(&self, secret: Option<SecretDigest>, from: IpAddr) -> bool {
        let from = block(from);
        // A rejected request does not count against the address, which other callers may share.
        let caller = secret.unwrap_or_else(|| digest(&from.to_string()));
        self.callers.check_key(&caller).is_ok() && self.addresses.check_key(&from).is_ok()
    }

    /// Counts an invalid token; returns whether the address may send another.
    pub(crate) fn may_guess(&self, from: IpAddr) -> bool {
        self.guesses.check_key(&block(from)).is_ok()
    }
}

/// The address block of one party: for IPv6 the upper half, as a host chooses the lower half freely.
pub(crate) fn block(of: IpAddr) -> IpAddr {
    match of.to_canonical() {
        IpAddr::V6(of) => IpAddr::V6((of.to_bits() >> 64 << 64).into()),
        of @ IpAddr::V4(_) => of,
    }
}

#[cfg(test)]
mod tests {
    use super::{GUESSES_AT_ONCE, RateLimits, block};
    use std::net::IpAddr;
    use std::num::NonZeroU32;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[tokio::test]
    async fn rate_limit_rejects_only_the_fast_caller() {
        let limits = RateLimits::start(NonZeroU32::new(10));
        let (here, there) = (address("192.0.2.1"), address("192.0.2.2"));
        let count = |secret, from| (0..1_000).filter(|_| limits.may_ask(secret, from)).count();
        let first = count(Some([1; 32]), here);
        assert!((10..20).contains(&first), "{first}");
        assert!(limits.may_ask(Some([2; 32]), here), "another caller");
        assert!(limits.may_ask(None, there), "another address");
        // A new secret each time is still one address.
        let all = (0..200u8).filter(|n| limits.may_ask(Some([*n; 32]), there)).count();
        assert!((35..60).contains(&all), "{all}");
        let most = usize::try_from(GUESSES_AT_ONCE.get()).expect("few");
        let guesses = (0..1_000).filter(|_| limits.may_guess(here)).count();
        assert!((most..most + 5).contains(&guesses), "{guesses}");
        assert!(limits.may_guess(there));
    }

    #[test]
    fn block_of_ipv6_address_is_its_upper_half() {
        assert_eq!(block(address("2001:db8:1:2:3:4:5:6")), address("2001:db8:1:2::"));
        assert_eq!(block(address("::ffff:192.0.2.1")), address("192.0.2.1"));
        assert_eq!(block(address("192.0.2.1")), address("192.0.2.1"));
    }
}

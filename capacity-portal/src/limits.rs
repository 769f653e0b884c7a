//! How often somebody may ask: each caller, each address, and whoever guesses secrets.

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

/// Requests a second of one caller, unless the settings say otherwise. An allocator or a dashboard
/// asks a few; what asks a thousand is a loop.
const PER_SECOND: NonZeroU32 = NonZeroU32::new(1_000).expect("a number");

/// How many callers' worth one address may ask: there may be many behind one.
const CALLERS_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(4).expect("a number");

/// Secrets that are none, a second and at once, of one address: a person mistypes, and a program with
/// a token that was revoked tries again.
const GUESSES_PER_SECOND: NonZeroU32 = NonZeroU32::new(2).expect("a number");
const GUESSES_AT_ONCE: NonZeroU32 = NonZeroU32::new(20).expect("a number");

/// How often those are forgotten who have not asked for long.
const FORGET_EVERY: Duration = Duration::from_secs(60);

type Limiter<K> = RateLimiter<K, DashMapStateStore<K>, DefaultClock>;

/// The limits of one process.
#[derive(Debug)]
pub(crate) struct Limits {
    callers: Limiter<SecretDigest>,
    addresses: Limiter<IpAddr>,
    guesses: Limiter<IpAddr>,
}

fn forget<K: Hash + Eq + Clone>(limiter: &Limiter<K>) {
    limiter.retain_recent();
    limiter.shrink_to_fit();
}

impl Limits {
    /// Counts from now on, for as long as anybody has it.
    pub(crate) fn start(per_second: Option<NonZeroU32>) -> Arc<Limits> {
        let per_second = per_second.unwrap_or(PER_SECOND);
        let of_address = per_second.saturating_mul(CALLERS_PER_ADDRESS);
        let guesses = Quota::per_second(GUESSES_PER_SECOND).allow_burst(GUESSES_AT_ONCE);
        let limits = Arc::new(Limits {
            callers: RateLimiter::dashmap(Quota::per_second(per_second)),
            addresses: RateLimiter::dashmap(Quota::per_second(of_address)),
            guesses: RateLimiter::dashmap(guesses),
        });
        let watched = Arc::downgrade(&limits);
        tokio::spawn(async move {
            let mut ticks = interval(FORGET_EVERY);
            loop {
                ticks.tick().await;
                let Some(limits) = watched.upgrade() else { return };
                forget(&limits.callers);
                forget(&limits.addresses);
                forget(&limits.guesses);
            }
        });
        limits
    }

    /// Whether this may be asked now: by who says this secret, from this address. Without a secret an
    /// address is one caller.
    pub(crate) fn may_ask(&self, secret: Option<SecretDigest>, from: IpAddr) -> bool {
        let from = block(from);
        // A caller that is refused takes nothing from others behind its address.
        let caller = secret.unwrap_or_else(|| crate::secret::digest(&from.to_string()));
        self.callers.check_key(&caller).is_ok() && self.addresses.check_key(&from).is_ok()
    }

    /// Whether somebody there may be wrong about a secret once more.
    pub(crate) fn may_guess(&self, from: IpAddr) -> bool {
        self.guesses.check_key(&block(from)).is_ok()
    }
}

/// What one party has: of IPv6 the upper half, in which it may choose any address.
fn block(of: IpAddr) -> IpAddr {
    match of.to_canonical() {
        IpAddr::V6(of) => IpAddr::V6((of.to_bits() >> 64 << 64).into()),
        of @ IpAddr::V4(_) => of,
    }
}

#[cfg(test)]
mod tests {
    use super::{GUESSES_AT_ONCE, Limits, block};
    use std::net::IpAddr;
    use std::num::NonZeroU32;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[tokio::test]
    async fn whoever_asks_too_often_waits_and_others_do_not() {
        let limits = Limits::start(NonZeroU32::new(10));
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
    fn an_address_is_who_has_it() {
        assert_eq!(block(address("2001:db8:1:2:3:4:5:6")), address("2001:db8:1:2::"));
        assert_eq!(block(address("::ffff:192.0.2.1")), address("192.0.2.1"));
        assert_eq!(block(address("192.0.2.1")), address("192.0.2.1"));
    }
}

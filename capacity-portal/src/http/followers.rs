//! Limits on pages that follow the region: each keeps a connection open.

use super::problem::Problem;
use broker::SecretDigest;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Limit of one caller: a team that shares a token, with a few pages each. Hidden pages do not follow.
pub(crate) const PER_CALLER: usize = 50;

/// Limit of this process.
pub(crate) const IN_ALL: usize = 1_000;

/// Seconds after which a page that was turned away may try again.
const RETRY_SECONDS: u64 = 30;

/// Counts the pages that follow. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageFollowers(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    by_caller: BTreeMap<SecretDigest, usize>,
}

impl PageFollowers {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a page of this caller until the guard is dropped.
    ///
    /// # Errors
    /// 429 if the caller has too many, 503 if this process has.
    pub(crate) fn join(&self, caller: SecretDigest) -> Result<Follower, Problem> {
        let mut counts = self.counts();
        if counts.by_caller.get(&caller).is_some_and(|own| *own >= PER_CALLER) {
            let detail = format!("{PER_CALLER} pages of this caller already follow the region");
            return Err(Problem::too_often(detail, RETRY_SECONDS));
        }
        if counts.all >= IN_ALL {
            let detail = format!("{IN_ALL} pages already follow the region");
            return Err(Problem::unavailable("too_many_readers", detail));
        }
        counts.all += 1;
        *counts.by_caller.entry(caller).or_default() += 1;
        drop(counts);
        Ok(Follower { of: self.clone(), caller })
    }
}

/// A page that follows.
#[derive(Debug)]
pub(crate) struct Follower {
    of: PageFollowers,
    caller: SecretDigest,
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut counts = self.of.counts();
        counts.all -= 1;
        if let Some(own) = counts.by_caller.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                counts.by_caller.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IN_ALL, PER_CALLER, PageFollowers};
    use axum::http::StatusCode;

    #[test]
    fn followers_are_limited_by_caller_and_in_all() {
        let followers = PageFollowers::default();
        let mut held = Vec::new();
        for caller in 0..IN_ALL / PER_CALLER {
            let caller = [u8::try_from(caller).expect("few"); 32];
            held.extend((0..PER_CALLER).map(|_| followers.join(caller).expect("room")));
        }
        let status = |caller| followers.join([caller; 32]).err().map(|problem| problem.status());
        assert_eq!(status(0), Some(StatusCode::TOO_MANY_REQUESTS));
        assert_eq!(status(200), Some(StatusCode::SERVICE_UNAVAILABLE));
        held.remove(0);
        assert_eq!(status(200), None, "one has left");
        held.clear();
        assert!(followers.counts().by_caller.is_empty(), "none is left over");
    }
}

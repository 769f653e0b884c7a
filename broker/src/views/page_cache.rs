//! First pages of what reservations have, kept: whoever places containers asks for them again and again, and
//! the sums over all servers that stand on them are dear. One is as good as new as long as a follower of the
//! reservation would have been told nothing, and the clock has changed nothing.

use crate::log::trail::Seq;
use crate::views::allocator::{Header, ReservedServer};
use crate::views::invalidation::{self, Lately};
use crate::views::totals::ReservedTotals;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Mutex as AsyncMutex;

/// What is kept, in all, in bytes; beyond that everything is forgotten.
const BYTES_MAX: usize = 64 << 20;

/// A server on a page, with its six names.
const BYTES_OF_SERVER: usize = 400;

/// Larger pages are asked for once, to begin with.
const PAGE_MAX: u32 = 1_000;

/// What was read of reservations before.
#[derive(Debug, Default)]
pub(crate) struct KeptPages {
    inner: Mutex<Inner>,
    /// Held while the audit trail is read on: a publication names thousands of servers, and all who ask after
    /// it would look them up.
    reading: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct Inner {
    lately: Lately,
    of: BTreeMap<i32, Kept>,
    bytes: usize,
}

/// What was read of one reservation.
#[derive(Debug)]
pub(crate) struct Kept {
    /// All it owns, gets or borrows, by number and in order.
    own: Vec<i32>,
    totals: ReservedTotals,
    /// When the clock changes something next.
    until: Option<DateTime<Utc>>,
    /// The first page, and how much was asked for.
    page: Option<(u32, Vec<ReservedServer>)>,
    /// The promise, the last entry of the audit trail and the instant it was read as of.
    promise: i64,
    seq: Seq,
    from: DateTime<Utc>,
}

impl Kept {
    pub(crate) fn new(
        (header, promise): (&Header, i64),
        own: Vec<i32>,
        totals: ReservedTotals,
        until: Option<DateTime<Utc>>,
    ) -> Kept {
        Kept { own, totals, until, page: None, promise, seq: header.seq, from: header.now }
    }

    /// Large pages are not kept.
    fn set_page(&mut self, limit: u32, servers: &[ReservedServer]) {
        self.page = (limit <= PAGE_MAX).then(|| (limit, servers.to_vec()));
    }

    fn bytes(&self) -> usize {
        let on_page = self.page.as_ref().map_or(0, |(_, servers)| servers.len());
        size_of::<Kept>() + self.own.len() * size_of::<i32>() + on_page * BYTES_OF_SERVER
    }
}

impl Inner {
    /// What was read of the reservation of this header, if it is still so.
    fn still(&mut self, header: &Header) -> Option<&mut Kept> {
        let (id, promise, _) = header.reservation?;
        let kept = self.of.get_mut(&id)?;
        let by_clock =
            header.now < kept.from || kept.until.is_some_and(|until| until <= header.now);
        if kept.promise != promise
            || by_clock
            || self.lately.may_differ(id, &kept.own, kept.seq, header.seq)
        {
            return None;
        }
        kept.seq = header.seq;
        Some(kept)
    }
}

impl KeptPages {
    /// Nothing is left half-done under this lock.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads on in the audit trail, up to this header, which was read in the same transaction.
    pub(crate) async fn read_on(
        &self,
        db: &mut PgConnection,
        header: &Header,
    ) -> Result<(), sqlx::Error> {
        if header.seq <= self.inner().lately.to() {
            return Ok(());
        }
        let _reading = self.reading.lock().await;
        let from = self.inner().lately.to();
        if from < header.seq {
            let step = invalidation::read(db, from, header.seq).await?;
            self.inner().lately.add(header.seq, step);
        }
        Ok(())
    }

    /// The sums of the reservation of this header.
    pub(crate) fn totals(&self, header: &Header) -> Option<ReservedTotals> {
        self.inner().still(header).map(|kept| kept.totals)
    }

    /// Its first page of so many servers.
    pub(crate) fn page(
        &self,
        header: &Header,
        limit: u32,
    ) -> Option<(ReservedTotals, Vec<ReservedServer>)> {
        let mut inner = self.inner();
        let kept = inner.still(header)?;
        let (asked, servers) = kept.page.as_ref()?;
        (*asked == limit).then(|| (kept.totals, servers.clone()))
    }

    /// Keeps the first page beside the sums, if they are still so.
    pub(crate) fn set_page(&self, header: &Header, limit: u32, servers: &[ReservedServer]) {
        let mut inner = self.inner();
        let Some(kept) = inner.still(header) else { return };
        let before = kept.bytes();
        kept.set_page(limit, servers);
        let after = kept.bytes();
        inner.bytes = inner.bytes + after - before;
    }

    /// Keeps what was read of a reservation, by its number.
    pub(crate) fn keep(&self, id: i32, kept: Kept) {
        let mut inner = self.inner();
        if inner.bytes > BYTES_MAX {
            inner.of.clear();
            inner.bytes = 0;
        }
        inner.bytes += kept.bytes();
        if let Some(before) = inner.of.insert(id, kept) {
            inner.bytes -= before.bytes();
        }
    }
}

//! The cache of first pages: allocators read them again and again, and their sums over all servers are
//! expensive. A page is valid as long as a watcher of the reservation would get no change, from the trail or
//! from the clock.

use crate::log::trail::Seq;
use crate::views::invalidation::{self, InvalidationLog};
use crate::views::reserved_server::{Header, ReservedServer};
use crate::views::totals::ReservedTotals;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Mutex as AsyncMutex;

/// The size limit, in bytes. At the limit the cache is cleared.
const BYTES_MAX: usize = 64 << 20;

/// The size of a server on a page, with its six names.
const BYTES_OF_SERVER: usize = 400;

/// Larger pages are read once, at the start of an allocator, and not cached.
const PAGE_MAX: u32 = 1_000;

/// Cached pages and sums of reservations.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    inner: Mutex<Inner>,
    /// Held while new entries of the audit trail are read: a publication names thousands of servers, and
    /// otherwise every reader would look them up.
    reading: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct Inner {
    log: InvalidationLog,
    of: BTreeMap<i32, CachedReservation>,
    bytes: usize,
}

/// The cached data of one reservation.
#[derive(Debug)]
pub(crate) struct CachedReservation {
    /// All servers it owns, receives or borrows: sorted numbers.
    own: Vec<i32>,
    totals: ReservedTotals,
    /// The time when the clock changes something next.
    until: Option<DateTime<Utc>>,
    /// The first page and its limit.
    page: Option<(u32, Vec<ReservedServer>)>,
    /// The promise, the last entry of the audit trail and the instant of the read.
    promise: i64,
    seq: Seq,
    from: DateTime<Utc>,
}

impl CachedReservation {
    pub(crate) fn new(
        (header, promise): (&Header, i64),
        own: Vec<i32>,
        totals: ReservedTotals,
        until: Option<DateTime<Utc>>,
    ) -> CachedReservation {
        CachedReservation {
            own,
            totals,
            until,
            page: None,
            promise,
            seq: header.seq,
            from: header.now,
        }
    }

    /// Large pages are not cached.
    fn set_page(&mut self, limit: u32, servers: &[ReservedServer]) {
        self.page = (limit <= PAGE_MAX).then(|| (limit, servers.to_vec()));
    }

    fn bytes(&self) -> usize {
        let on_page = self.page.as_ref().map_or(0, |(_, servers)| servers.len());
        size_of::<CachedReservation>()
            + self.own.len() * size_of::<i32>()
            + on_page * BYTES_OF_SERVER
    }
}

impl Inner {
    /// The entry for this header's reservation, if it is still valid.
    fn still(&mut self, header: &Header) -> Option<&mut CachedReservation> {
        let (id, promise, _) = header.reservation?;
        let kept = self.of.get_mut(&id)?;
        let by_clock =
            header.now < kept.from || kept.until.is_some_and(|until| until <= header.now);
        if kept.promise != promise
            || by_clock
            || self.log.may_invalidate(id, &kept.own, kept.seq, header.seq)
        {
            return None;
        }
        kept.seq = header.seq;
        Some(kept)
    }
}

impl PageCache {
    /// The data under this lock is always consistent.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the audit trail up to this header, which was read in the same transaction.
    pub(crate) async fn read_on(
        &self,
        db: &mut PgConnection,
        header: &Header,
    ) -> Result<(), sqlx::Error> {
        if header.seq <= self.inner().log.to() {
            return Ok(());
        }
        let _reading = self.reading.lock().await;
        let from = self.inner().log.to();
        if from < header.seq {
            let batch = invalidation::read(db, from, header.seq).await?;
            self.inner().log.add(header.seq, batch);
        }
        Ok(())
    }

    /// The cached sums of the reservation.
    pub(crate) fn totals(&self, header: &Header) -> Option<ReservedTotals> {
        self.inner().still(header).map(|kept| kept.totals)
    }

    /// The cached first page, if it has this limit.
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

    /// Caches the first page beside the sums, if they are still valid.
    pub(crate) fn set_page(&self, header: &Header, limit: u32, servers: &[ReservedServer]) {
        let mut inner = self.inner();
        let Some(kept) = inner.still(header) else { return };
        let before = kept.bytes();
        kept.set_page(limit, servers);
        let after = kept.bytes();
        inner.bytes = inner.bytes + after - before;
    }

    /// Caches the data of a reservation.
    pub(crate) fn keep(&self, id: i32, kept: CachedReservation) {
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

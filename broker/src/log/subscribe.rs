//! Subscriptions to the audit trail. The numbers are authoritative; `NOTIFY` is a wakeup.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::log::trail::{ENTRIES_MAX, Entry, Seq, entry, sql};
use futures_util::stream::{self, Stream};
use sqlx::postgres::{PgListener, PgPool, PgPoolOptions, PgRow};
use std::collections::VecDeque;
use std::time::Duration;

/// The polling interval without a wakeup. Wakeups are lost only if a connection breaks unnoticed, so this is
/// rare work: one index lookup every few seconds.
const POLL_EVERY: Duration = Duration::from_secs(5);

/// The channel that the trigger of the audit trail notifies.
const CHANNEL: &str = "audit_trail";

/// The entries of the audit trail, each exactly once, in order.
///
/// It holds one connection of its own.
pub struct Subscription {
    pool: PgPool,
    listener: PgListener,
    last: Seq,
    read: VecDeque<Entry>,
}

impl Broker {
    /// Subscribes to the entries after `last`, existing ones first.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn subscribe(&self, last: Seq) -> Result<Subscription, DbError> {
        // A connection of its own, for the subscription's lifetime: the broker's pool is small.
        let own = PgPoolOptions::new().max_connections(1).connect_lazy_with(self.address.options());
        let mut listener = PgListener::connect_with(&own).await.doing("subscribing")?;
        // Before the first read, so that no entry falls between.
        listener.listen(CHANNEL).await.doing("subscribing")?;
        Ok(Subscription { pool: self.pool.clone(), listener, last, read: VecDeque::new() })
    }
}

impl Subscription {
    /// The number of the last returned entry: the position to subscribe from after a restart.
    pub fn last(&self) -> Seq {
        self.last
    }

    /// The next entry, if it was read together with the last one.
    pub fn ready(&mut self) -> Option<Entry> {
        let entry = self.read.pop_front()?;
        self.last = entry.seq;
        Some(entry)
    }

    /// Waits for the next entry. Cancel safe.
    ///
    /// # Errors
    /// If Postgres fails. The subscription keeps its position and can be polled again.
    pub async fn next(&mut self) -> Result<Entry, DbError> {
        loop {
            if let Some(entry) = self.ready() {
                return Ok(entry);
            }
            let rows = sqlx::query(sql::TRAIL)
                .bind(self.last.0)
                .bind(ENTRIES_MAX)
                .try_map(|row: PgRow| entry(&row))
                .fetch_all(&self.pool);
            self.read = rows.await.doing("reading on in the audit trail")?.into();
            if self.read.is_empty() {
                // Notified, reconnected or timed out: in each case, read again.
                let rung = tokio::time::timeout(POLL_EVERY, self.listener.try_recv()).await;
                rung.unwrap_or(Ok(None)).doing("waiting for the audit trail")?;
                // One read covers all notifications so far.
                while self.listener.next_buffered().is_some() {}
            }
        }
    }
}

impl Subscription {
    /// The entries as a stream; entries that were read together come as one item. A read in progress continues
    /// when the next item is polled, however often the wait is cancelled and however slow Postgres is.
    pub fn batches(self) -> impl Stream<Item = Result<Vec<Entry>, DbError>> + Send {
        stream::unfold(self, |mut trail| async move {
            let entries = trail.next().await.map(|first| {
                let mut entries = vec![first];
                entries.extend(std::iter::from_fn(|| trail.ready()));
                entries
            });
            Some((entries, trail))
        })
    }
}

/// Wakes readers of the audit trail when it may have grown. It holds one connection of its own.
pub struct TrailListener(PgListener);

impl Broker {
    /// Listens for new entries of the audit trail.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn trail_listener(&self) -> Result<TrailListener, DbError> {
        let own = PgPoolOptions::new().max_connections(1).connect_lazy_with(self.address.options());
        let mut listener = PgListener::connect_with(&own).await.doing("subscribing")?;
        listener.listen(CHANNEL).await.doing("subscribing")?;
        Ok(TrailListener(listener))
    }
}

impl TrailListener {
    /// Waits until the trail may have grown, at most `at_most`; returns whether it was notified. Cancel safe.
    pub async fn wait(&mut self, at_most: Duration) -> bool {
        let rung = tokio::time::timeout(at_most, self.0.try_recv()).await;
        if let Ok(Err(_)) = rung {
            // A broken connection counts as a notification: the reader gets the error from the database.
            tokio::time::sleep(at_most.min(Duration::from_secs(1))).await;
        }
        while self.0.next_buffered().is_some() {}
        rung.is_ok()
    }
}

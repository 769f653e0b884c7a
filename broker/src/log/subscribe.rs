//! Following the audit trail: numbers are the truth, `NOTIFY` is a doorbell.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::log::trail::{ENTRIES_MAX, Entry, Seq, entry, sql};
use futures_util::stream::{self, Stream};
use sqlx::postgres::{PgListener, PgPool, PgPoolOptions, PgRow};
use std::collections::VecDeque;
use std::time::Duration;

/// How long to wait for the doorbell before looking all the same. It is lost only when a connection
/// breaks unnoticed, so this is rare work: one look at an index every few seconds.
const LOOK_ANYWAY: Duration = Duration::from_secs(5);

/// The channel the trigger of the audit trail rings.
const DOORBELL: &str = "audit_trail";

/// Entries of the audit trail as they come, each once, in order, none left out.
///
/// It holds one connection of its own.
pub struct Subscription {
    pool: PgPool,
    doorbell: PgListener,
    last: Seq,
    read: VecDeque<Entry>,
}

impl Broker {
    /// Follows the audit trail from the entry after `last`: what is there already comes first.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn subscribe(&self, last: Seq) -> Result<Subscription, DbError> {
        // Its own connection: it is held for as long as the subscription lives, and the broker's
        // own are few.
        let own = PgPoolOptions::new().max_connections(1).connect_lazy_with(self.address.options());
        let mut doorbell = PgListener::connect_with(&own).await.doing("subscribing")?;
        // Before the first look, so that nothing falls between.
        doorbell.listen(DOORBELL).await.doing("subscribing")?;
        Ok(Subscription { pool: self.pool.clone(), doorbell, last, read: VecDeque::new() })
    }
}

impl Subscription {
    /// The number of the last entry given out: where to subscribe again after a restart.
    pub fn last(&self) -> Seq {
        self.last
    }

    /// The next entry, if it was read together with the last one given out.
    pub fn ready(&mut self) -> Option<Entry> {
        let entry = self.read.pop_front()?;
        self.last = entry.seq;
        Some(entry)
    }

    /// Waits for the next entry. Dropping the future loses nothing.
    ///
    /// # Errors
    /// If Postgres fails. The subscription stays where it is and may be asked again.
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
                // Rung, connected anew, or long silent: the answer is the same, look again.
                let rung = tokio::time::timeout(LOOK_ANYWAY, self.doorbell.try_recv()).await;
                rung.unwrap_or(Ok(None)).doing("waiting for the audit trail")?;
                // One look answers for everything that has rung until now.
                while self.doorbell.next_buffered().is_some() {}
            }
        }
    }
}

impl Subscription {
    /// The entries as they come, those that arrived together in one piece. A look that is under way goes on where
    /// the next item is asked for again: however often a wait for it is given up, and however far Postgres is.
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

/// Rings when the audit trail has grown, or seems to have: for those who read it themselves. It
/// holds one connection of its own.
pub struct TrailDoorbell(PgListener);

impl Broker {
    /// Waits at the audit trail.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn trail_doorbell(&self) -> Result<TrailDoorbell, DbError> {
        let own = PgPoolOptions::new().max_connections(1).connect_lazy_with(self.address.options());
        let mut doorbell = PgListener::connect_with(&own).await.doing("subscribing")?;
        doorbell.listen(DOORBELL).await.doing("subscribing")?;
        Ok(TrailDoorbell(doorbell))
    }
}

impl TrailDoorbell {
    /// Waits until the trail may have grown, at most so long; gives whether it rang. Dropping the
    /// future loses nothing.
    pub async fn wait(&mut self, at_most: Duration) -> bool {
        let rung = tokio::time::timeout(at_most, self.0.try_recv()).await;
        if let Ok(Err(_)) = rung {
            // Broken is like rung: who looks hears from the database what is wrong.
            tokio::time::sleep(at_most.min(Duration::from_secs(1))).await;
        }
        while self.0.next_buffered().is_some() {}
        rung.is_ok()
    }
}

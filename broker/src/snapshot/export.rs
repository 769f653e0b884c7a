//! Export: a snapshot of one instant.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::read_throttle::PriorityReaders;
use crate::log::trail::{Action, Seq, TargetVersion};
use crate::moves::pacing::HORIZON;
use crate::snapshot::region_read::{self, Stored};
use chrono::{DateTime, Utc};
use fleet::SnapshotParts;

pub(crate) mod sql {
    crate::statements! {
        /// Whether an entry of the trail or the clock has changed the region since a snapshot of $1 that ends
        /// with entry $2.
        CURRENT = "SELECT NOT EXISTS (SELECT FROM audit_trail WHERE seq > $2 AND action <> ALL ($3::text[])) \
            AND NOT EXISTS (SELECT FROM unavailability u \
                WHERE u.started_at > $1 AND u.started_at <= now() \
                    OR coalesce(u.ended_at, 'infinity'::timestamptz) > $1 \
                        AND coalesce(u.ended_at, 'infinity'::timestamptz) <= now()) \
            AND NOT EXISTS (SELECT FROM maintenance m WHERE m.open \
                AND m.starts_at > $1 + make_interval(secs => $4) \
                AND m.starts_at <= now() + make_interval(secs => $4))";
    }
}

/// A region at one instant, with what a decision based on it is checked against.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// The rows; servers are ordered by name.
    pub parts: SnapshotParts,
    /// The generation of each server, in the same order.
    pub generations: Vec<i64>,
    /// The version of the targets: the parent of decisions based on this.
    pub version: TargetVersion,
    /// The last entry of the audit trail in the snapshot.
    pub seq: Seq,
}

/// No snapshot can be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The database holds no region.
    #[error("no region is loaded")]
    NothingLoaded,
    /// Postgres failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Broker {
    /// Exports a snapshot: all rows as of one instant. Unlisted shared buffers are left out, as the format
    /// requires.
    ///
    /// `taken_at` becomes the snapshot's instant, and the snapshot contains nothing after it. Without it, the
    /// instant is the database's time, and the snapshot contains what is ahead ([`Broker::look_ahead`]).
    ///
    /// # Errors
    /// [`ExportError`].
    pub async fn export(&self, taken_at: Option<DateTime<Utc>>) -> Result<Export, ExportError> {
        self.export_for(None, taken_at).await
    }

    /// Exports at a quarter of the speed unless a caller waits for the result.
    ///
    /// # Errors
    /// [`ExportError`].
    pub async fn export_throttled(&self, waiters: &PriorityReaders) -> Result<Export, ExportError> {
        self.export_for(Some(waiters), None).await
    }

    async fn export_for(
        &self,
        waiters: Option<&PriorityReaders>,
        taken_at: Option<DateTime<Utc>>,
    ) -> Result<Export, ExportError> {
        let (stored, now) = self.stored(waiters).await?;
        let (version, seq) = (stored.version, stored.seq);
        let rows = stored.into_parts(taken_at.unwrap_or(now));
        let (mut parts, generations) = rows.ok_or(ExportError::NothingLoaded)?;
        // Not of the same instant: the mover continues, and enforces its limits in any case.
        if taken_at.is_none() {
            self.look_ahead(&mut parts, HORIZON).await?;
        }
        Ok(Export { parts, generations, version, seq })
    }

    /// Whether a snapshot taken at `taken_at` that ends with entry `seq` equals one taken now.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn is_current(&self, taken_at: DateTime<Utc>, seq: Seq) -> Result<bool, DbError> {
        let leaves = Action::ALL.into_iter().filter(|action| action.leaves_the_region());
        let leaves: Vec<&str> = leaves.map(Action::as_str).collect();
        let asked = sqlx::query_scalar(sql::CURRENT).bind(taken_at).bind(seq.0).bind(leaves);
        let asked = asked.bind(HORIZON.as_secs_f64());
        asked.fetch_one(&self.pool).await.doing("asking whether the region has changed")
    }

    /// All rows as of one instant, and the instant.
    pub(crate) async fn stored(
        &self,
        waiters: Option<&PriorityReaders>,
    ) -> Result<(Stored, DateTime<Utc>), DbError> {
        let mut tx = self.begin_reading().await.doing("beginning a transaction")?;
        let now = sqlx::query_scalar(region_read::sql::NOW).fetch_one(&mut *tx).await;
        let now = now.doing("asking for the time")?;
        let stored = Stored::read(&mut tx, waiters).await?;
        tx.commit().await.doing("ending a transaction")?;
        Ok((stored, now))
    }

    /// The version of the targets.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn version(&self) -> Result<TargetVersion, DbError> {
        let mut connection = self.pool.acquire().await.doing("connecting")?;
        crate::snapshot::region_read::head(&mut connection).await
    }
}

//! The active mover: its lease, its epoch, and the stop switch.
//!
//! One mover acts at a time, because it alone keeps the limits on concurrent moves. It holds a lease; a
//! takeover after its end increases the epoch. The lease belongs to an instance, an id that a process creates
//! at its start: two processes with one name are two instances. Every write of a mover names its epoch in the
//! writing transaction, so that a mover that was cut off writes nothing. Every order names the epoch too, so
//! that hosts can refuse orders of an earlier mover.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::lease::since_boot;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::log::trail::{Seq, TargetVersion};
use crate::queue::job::LEASE_MAX;
use fleet::pace::Limits;
use sqlx::PgConnection;
use sqlx::types::Json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

pub(crate) mod sql {
    crate::statements! {
        /// Renews the lease, or takes an expired one over. A lease longer than the longest was written by a
        /// clock that ran ahead. The renewal must not name the epoch: with a trigger on the table, Postgres
        /// takes the lock of a changed key for every key that a statement names.
        LEASE = "WITH renewed AS (UPDATE mover SET holder = $1, \
                    lease_until = clock_timestamp() + make_interval(secs => $2), \
                    lease_ms = $2 * 1000, round_trip_ms = $5, pass_ms = $6 \
                WHERE instance = $4 RETURNING epoch), \
            taken AS (UPDATE mover SET holder = $1, instance = $4, epoch = epoch + 1, \
                    lease_ms = $2 * 1000, round_trip_ms = $5, pass_ms = $6, \
                    lease_until = clock_timestamp() + make_interval(secs => $2) \
                WHERE instance IS DISTINCT FROM $4 AND lease_until NOT BETWEEN clock_timestamp() \
                    AND clock_timestamp() + make_interval(secs => $3) RETURNING epoch) \
            SELECT epoch FROM renewed UNION ALL SELECT epoch FROM taken";
        RELEASE = "UPDATE mover SET lease_until = '-infinity' WHERE epoch = $1";
        /// A takeover changes the epoch, which is a key, so it waits for the end of the transaction. A renewal
        /// does not change the key and does not wait.
        STILL_OURS = "SELECT EXISTS (SELECT FROM mover WHERE epoch = $1 FOR KEY SHARE)";
        /// Also blocks publications, like `lifecycle::hold_head`: one round trip for both.
        OURS_AND_HEAD = "SELECT EXISTS (SELECT FROM mover WHERE epoch = $1 FOR KEY SHARE), \
            (SELECT version FROM target_versions ORDER BY version DESC LIMIT 1 FOR UPDATE)";
        STATUS = "SELECT epoch, CASE WHEN lease_until >= clock_timestamp() THEN holder END, \
            stopped_by, stopped_why, give_way_after_seconds, round_trip_ms, pass_ms, lease_ms FROM mover";
        NOTE_SETTINGS = "UPDATE mover SET give_way_after_seconds = $2, limits = $3 \
            WHERE epoch = $1 AND (give_way_after_seconds, limits) IS DISTINCT FROM ($2, $3)";
        STOP = "UPDATE mover SET stopped_by = $1, stopped_why = $2 WHERE stopped_by IS NULL";
        RESUME = "UPDATE mover SET stopped_by = NULL, stopped_why = NULL WHERE stopped_by IS NOT NULL";
    }
}

/// A mover process for the lease: created once at its start.
#[derive(Clone, Debug)]
pub struct MoverInstance {
    id: Uuid,
    name: String,
    /// Measurements; clones share them.
    measured: Arc<Mutex<Measured>>,
}

/// Times measured by the mover.
#[derive(Debug, Default)]
struct Measured {
    /// The latest renewals of the lease.
    renewals: VecDeque<Duration>,
    pass: Option<Duration>,
}

/// The renewals to compare: one that first opened a connection says nothing about the distance.
const RENEWALS: usize = 3;

impl MoverInstance {
    /// A new instance. The name is for people and need not be unique.
    pub fn new(name: impl Into<String>) -> MoverInstance {
        MoverInstance { id: Uuid::now_v7(), name: name.into(), measured: Arc::default() }
    }

    /// Records the duration of a full pass.
    pub fn note_pass(&self, took: Duration) {
        self.measured().pass = Some(took);
    }

    fn note_renewal(&self, took: Duration) {
        let renewals = &mut self.measured().renewals;
        renewals.truncate(RENEWALS - 1);
        renewals.push_front(took);
    }

    fn measured(&self) -> MutexGuard<'_, Measured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instance's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The right to act as the mover, valid until another takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(pub i64);

/// A mover cannot write; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum MoverError {
    /// Another mover is active.
    #[error("another mover has taken over")]
    TakenOver,
    /// Postgres failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

/// The actor and reason of a stop or pause.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Stopped {
    /// The actor.
    pub by: String,
    /// The reason.
    pub why: String,
}

/// The row of the mover: epoch, holder, actor and reason of a stop, settings, measurements.
type StatusRow = (
    i64,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
);

/// The status of the mover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoverStatus {
    /// The epoch of the active or last mover.
    pub epoch: Epoch,
    /// The name of the active mover; `None`: no mover is active.
    pub acting: Option<String>,
    /// The stop, if the switch is set.
    pub stopped: Option<Stopped>,
    /// How long [`decisions::preemption::PREEMPTION_LOST_MIN`] MSBs must be lost before the mover lets reservations
    /// give way; `None`: only an operator does.
    pub gives_way_after: Option<Duration>,
    /// The distance to Postgres; `None`: not measured yet.
    pub distance: Option<MoverDistance>,
}

/// A mover's distance to Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoverDistance {
    /// The duration of a lease renewal.
    pub round_trip: Duration,
    /// The duration of the last full pass; `None`: the first has not ended.
    pub pass: Option<Duration>,
    /// The length of the requested lease.
    pub lease: Duration,
}

impl MoverDistance {
    /// The reason why a mover cannot act over this distance: renewals begin every third of a lease and count
    /// from their start, so one that takes two thirds comes too late.
    pub fn cannot_act(&self) -> Option<String> {
        let MoverDistance { round_trip, pass, lease } = self;
        let pass = pass.map_or("has not ended yet".to_owned(), |pass| {
            format!("takes {:.1} s", pass.as_secs_f64())
        });
        (*round_trip >= *lease * 2 / 3).then(|| {
            format!(
                "cannot act: Postgres is {} ms away; a pass {pass}, the lease is {} s",
                round_trip.as_millis(),
                lease.as_secs_f64()
            )
        })
    }
}

impl Broker {
    /// Becomes or stays the active mover; `None`: another one is active.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn lease_mover(
        &self,
        mover: &MoverInstance,
        lease: Duration,
    ) -> Result<Option<Epoch>, DbError> {
        let millis = |of: Duration| i64::try_from(of.as_millis()).unwrap_or(i64::MAX);
        let (round_trip, pass) = {
            let measured = mover.measured();
            (measured.renewals.iter().min().copied().map(millis), measured.pass.map(millis))
        };
        let leased = sqlx::query_scalar(sql::LEASE)
            .bind(&mover.name)
            .bind(lease.min(LEASE_MAX).as_secs_f64())
            .bind(LEASE_MAX.as_secs_f64())
            .bind(mover.id)
            .bind(round_trip)
            .bind(pass);
        let begun = since_boot();
        let epoch = leased.fetch_optional(&self.pool).await.doing("leasing the mover")?;
        mover.note_renewal(since_boot().saturating_sub(begun));
        Ok(epoch.map(Epoch))
    }

    /// Gives the lease back, so that another mover can act at once.
    ///
    /// # Errors
    /// If Postgres fails; the lease runs out then.
    pub async fn release_mover(&self, epoch: Epoch) -> Result<(), DbError> {
        let released = sqlx::query(sql::RELEASE).bind(epoch.0).execute(&self.pool).await;
        released.map(|_| ()).doing("releasing the mover")
    }

    /// The status of the mover.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn mover_status(&self) -> Result<MoverStatus, DbError> {
        let row: StatusRow = sqlx::query_as(sql::STATUS)
            .fetch_one(&self.pool)
            .await
            .doing("asking for the mover")?;
        let (epoch, acting, by, why, after, round_trip, pass, lease) = row;
        let stopped = by.zip(why).map(|(by, why)| Stopped { by, why });
        let gives_way_after = after.map(|seconds| Duration::from_secs(seconds.unsigned_abs()));
        let millis = |of: i64| Duration::from_millis(of.unsigned_abs());
        let distance = round_trip.zip(lease).map(|(round_trip, lease)| MoverDistance {
            round_trip: millis(round_trip),
            pass: pass.map(millis),
            lease: millis(lease),
        });
        Ok(MoverStatus { epoch: Epoch(epoch), acting, stopped, gives_way_after, distance })
    }

    /// Records the settings of the active mover, for other processes.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn note_mover_settings(
        &self,
        epoch: Epoch,
        gives_way_after: Option<Duration>,
        limits: &Limits,
    ) -> Result<(), DbError> {
        let seconds =
            gives_way_after.map(|after| i64::try_from(after.as_secs()).unwrap_or(i64::MAX));
        let noted = sqlx::query(sql::NOTE_SETTINGS).bind(epoch.0).bind(seconds).bind(Json(limits));
        noted.execute(&self.pool).await.map(drop).doing("noting the mover's settings")
    }

    /// Sets the stop switch; `None`: it was set already. Running steps end, and no further step begins.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn stop_mover(&self, actor: &str, why: &str) -> Result<Option<Seq>, DbError> {
        let mut change = AuditedTx::begin(self, actor).await?;
        let doing = "setting the stop switch";
        let stopped = sqlx::query(sql::STOP).bind(actor).bind(why);
        let stopped = stopped.execute(change.connection()).await.doing(doing)?;
        if stopped.rows_affected() == 0 {
            return change.abandon().await.map(|()| None);
        }
        change.record("mover", Event::MoverStopped { why });
        change.commit().await.map(Some)
    }

    /// Releases the stop switch; `None`: it was not set.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn resume_mover(&self, actor: &str) -> Result<Option<Seq>, DbError> {
        let mut change = AuditedTx::begin(self, actor).await?;
        let resumed = sqlx::query(sql::RESUME).execute(change.connection()).await;
        if resumed.doing("releasing the stop switch")?.rows_affected() == 0 {
            return change.abandon().await.map(|()| None);
        }
        change.record("mover", Event::MoverResumed {});
        change.commit().await.map(Some)
    }
}

/// Checks the mover's epoch and locks it until the end of the transaction.
pub(crate) async fn check_fence(db: &mut PgConnection, epoch: Epoch) -> Result<(), MoverError> {
    let ours: bool = sqlx::query_scalar(sql::STILL_OURS)
        .bind(epoch.0)
        .fetch_one(db)
        .await
        .doing("looking whether another mover has taken over")?;
    if ours { Ok(()) } else { Err(MoverError::TakenOver) }
}

/// Checks and locks the mover's epoch, then locks the head of the targets, until the end of the transaction;
/// returns the head.
pub(crate) async fn check_fence_at_head(
    db: &mut PgConnection,
    epoch: Epoch,
) -> Result<TargetVersion, MoverError> {
    let (ours, head): (bool, i64) = sqlx::query_as(sql::OURS_AND_HEAD)
        .bind(epoch.0)
        .fetch_one(db)
        .await
        .doing("holding the lease and the version of the targets")?;
    if ours { Ok(TargetVersion(head)) } else { Err(MoverError::TakenOver) }
}

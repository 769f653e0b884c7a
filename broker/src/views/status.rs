//! Counts for people and for monitoring, with typed ids and states. The answer of `/status` has the words of them instead: the
//! portal converts, because the broker writes no JSON for callers.

use crate::infra::connection::{self, Broker};
use crate::infra::error::{DbError, Doing};
use crate::infra::id::JobId;
use crate::infra::state::{self, JobState};
use crate::log::trail::{Seq, TargetVersion};
use crate::queue::job::JobKind;
use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use sqlx::{Executor, PgConnection, Row};
use std::time::Duration;
use tokio::time::timeout;

pub(crate) mod sql {
    crate::statements! {
        ANSWER = "SELECT 1";
        SERVER = "SELECT current_setting('server_version'), current_database()::text, \
            pg_database_size(current_database())";
        HEAD = "SELECT v.version, v.published_at, c.seq, (SELECT region::text FROM region) \
            FROM target_versions v, trail_clock c ORDER BY v.version DESC LIMIT 1";
        COUNTS = "SELECT count(*), count(*) FILTER (WHERE current_reservation_id IS NOT NULL), \
                count(*) FILTER (WHERE in_use), count(*) FILTER (WHERE target_pending), \
                count(*) FILTER (WHERE loan_reservation_id IS NOT NULL) FROM servers";
        RESERVATIONS = "SELECT count(*) FILTER (WHERE kind = 'guaranteed'), \
                count(*) FILTER (WHERE kind = 'shared_buffer'), \
                count(*) FILTER (WHERE kind = 'elastic') FROM reservations";
        UNAVAILABLE = "SELECT count(*) FROM servers_out_of_use(false)";
    }
}

/// The state of the store at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The region; `None`: no region is loaded.
    pub region: Option<String>,
    /// The version of the targets.
    pub version: TargetVersion,
    /// The time of its publication or import.
    pub published_at: DateTime<Utc>,
    /// The last entry of the audit trail.
    pub seq: Seq,
    /// Servers by condition.
    pub servers: ServerCounts,
    /// Reservations by kind.
    pub reservations: ReservationCounts,
    /// Jobs by kind and state, ended ones included.
    pub queue: Vec<QueueCount>,
    /// Running jobs.
    pub running: Vec<RunningJob>,
    /// The number of lost workers.
    pub leases_lost: i64,
    /// The version of Postgres, as it reports it.
    pub postgres: String,
    /// The database.
    pub database: String,
    /// The database's size on disk, in bytes.
    pub bytes: i64,
}

/// The number of jobs of one kind in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueCount {
    /// What they are.
    pub kind: JobKind,
    /// How far they are.
    pub state: JobState,
    /// How many.
    pub count: i64,
}

/// A running job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningJob {
    /// Its id.
    pub id: JobId,
    /// What it is.
    pub kind: JobKind,
    /// How often it was taken.
    pub attempt: i32,
    /// The worker.
    pub worker: String,
    /// The end of the lease.
    pub lease_until: DateTime<Utc>,
}

/// Reservations by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservationCounts {
    /// Guaranteed reservations.
    pub guaranteed: i64,
    /// Shared buffers, made ones included.
    pub shared_buffers: i64,
    /// Elastic reservations.
    pub elastic: i64,
}

/// Servers by condition; a server may count in several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// All servers.
    pub total: i64,
    /// Owned servers.
    pub held: i64,
    /// Servers in use.
    pub in_use: i64,
    /// Servers with an open move.
    pub on_the_move: i64,
    /// Servers lent to an elastic reservation.
    pub lent: i64,
    /// Servers out of use because of an event other than planned maintenance.
    pub unavailable: i64,
}

impl Broker {
    /// Checks that Postgres answers in time.
    ///
    /// # Errors
    /// If it does not, with the cause; finding out may take twice as long.
    pub async fn answers(&self, within: Duration) -> Result<(), DbError> {
        let doing = "asking whether Postgres answers";
        match timeout(within, self.pool.execute(sql::ANSWER)).await {
            Ok(answered) => answered.map(|_| ()).doing(doing),
            Err(_) => {
                // A further connection reveals the cause, if it fails too.
                let _ = connection::connect(&self.address, within).await?;
                Err(DbError::late(doing))
            }
        }
    }

    /// Reads the counts.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn status(&self) -> Result<Status, DbError> {
        let doing = "counting what there is";
        let mut tx = self.begin_reading().await.doing(doing)?;
        let (postgres, database, bytes) =
            sqlx::query_as(sql::SERVER).fetch_one(&mut *tx).await.doing(doing)?;
        let (version, published_at, seq, region): (i64, _, i64, _) =
            sqlx::query_as(sql::HEAD).fetch_one(&mut *tx).await.doing(doing)?;
        let servers = servers(&mut tx).await.doing(doing)?;
        let queue = sqlx::query(crate::queue::job::sql::QUEUE)
            .try_map(|row: PgRow| queued(&row))
            .fetch_all(&mut *tx)
            .await
            .doing(doing)?;
        let running = sqlx::query(crate::queue::job::sql::RUNNING)
            .try_map(|row: PgRow| running(&row))
            .fetch_all(&mut *tx)
            .await
            .doing(doing)?;
        let leases_lost = sqlx::query_scalar(crate::queue::job::sql::LOSSES)
            .fetch_one(&mut *tx)
            .await
            .doing(doing)?;
        let (guaranteed, shared_buffers, elastic) =
            sqlx::query_as(sql::RESERVATIONS).fetch_one(&mut *tx).await.doing(doing)?;
        tx.commit().await.doing(doing)?;
        let (version, seq) = (TargetVersion(version), Seq(seq));
        Ok(Status {
            region,
            version,
            published_at,
            seq,
            servers,
            reservations: ReservationCounts { guaranteed, shared_buffers, elastic },
            queue,
            running,
            leases_lost,
            postgres,
            database,
            bytes,
        })
    }
}

/// Counts servers.
pub(crate) async fn servers(db: &mut PgConnection) -> Result<ServerCounts, sqlx::Error> {
    let counted = sqlx::query(sql::COUNTS).try_map(|row: PgRow| counts(&row));
    let counted = counted.fetch_one(&mut *db).await?;
    let unavailable = sqlx::query_scalar(sql::UNAVAILABLE).fetch_one(db).await?;
    Ok(ServerCounts { unavailable, ..counted })
}

fn queued(row: &PgRow) -> Result<QueueCount, sqlx::Error> {
    Ok(QueueCount {
        kind: JobKind::read(row.try_get(0)?)?,
        state: state::read(row.try_get(1)?)?,
        count: row.try_get(2)?,
    })
}

fn running(row: &PgRow) -> Result<RunningJob, sqlx::Error> {
    Ok(RunningJob {
        id: row.try_get(0)?,
        kind: JobKind::read(row.try_get(1)?)?,
        attempt: row.try_get(2)?,
        worker: row.try_get(3)?,
        lease_until: row.try_get(4)?,
    })
}

fn counts(row: &PgRow) -> Result<ServerCounts, sqlx::Error> {
    Ok(ServerCounts {
        total: row.try_get(0)?,
        held: row.try_get(1)?,
        in_use: row.try_get(2)?,
        on_the_move: row.try_get(3)?,
        lent: row.try_get(4)?,
        unavailable: 0,
    })
}

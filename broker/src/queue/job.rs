//! The queue of jobs. Workers claim jobs under a lease and end them.
//!
//! A lease is a job and the number of the attempt. Every write of a worker about its job names both, so a
//! worker that was cut off and returns writes nothing: its attempt is no longer the last. No lock is held while
//! a job runs.

use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{BatchId, JobId};
use crate::infra::state::{self, JobState};
use crate::infra::words::{self, serialize_as_word};
use serde::Serialize;
use sqlx::postgres::{PgListener, PgPoolOptions, PgRow};
use sqlx::{PgConnection, Row};
use std::time::Duration;

/// The longest lease. A lease that seems longer was written by a clock that ran ahead and was set back since:
/// it is treated as expired, because its worker may be long gone.
pub const LEASE_MAX: Duration = Duration::from_secs(3600);

/// The channel that the trigger of the queue notifies.
const CHANNEL: &str = "jobs";

pub(crate) mod sql {
    crate::statements! {
        ADD = "INSERT INTO jobs (job_id, kind, batch_id, task, state) \
            SELECT w.id, $2, $3, w.task, 'waiting' \
            FROM unnest($1::uuid[], $4::jsonb[]) AS w (id, task) ON CONFLICT (job_id) DO NOTHING";
        RENEW = "UPDATE jobs SET lease_until = clock_timestamp() + make_interval(secs => $3) \
            WHERE job_id = $1 AND attempt = $2 AND state = 'running'";
        FINISH = "UPDATE jobs SET state = 'done', worker = NULL, lease_until = NULL, outcome = $3 \
            WHERE job_id = $1 AND attempt = $2 AND state = 'running'";
        FAIL = "UPDATE jobs SET state = 'failed', worker = NULL, lease_until = NULL, failure = $3 \
            WHERE job_id = $1 AND attempt = $2 AND state = 'running'";
        BATCH = "SELECT job_id, state, task, outcome, failure FROM jobs WHERE batch_id = $1 \
            ORDER BY job_id";
        QUEUE = "SELECT kind, state, count(*) FROM jobs GROUP BY kind, state ORDER BY kind, state";
        RUNNING = "SELECT job_id, kind, attempt, worker, lease_until FROM jobs \
            WHERE state = 'running' ORDER BY job_id";
        LOSSES = "SELECT coalesce(sum(losses), 0) FROM jobs";
    }
}

/// The kind of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobKind {
    /// A solve of the region, with publication.
    Solve,
    /// A past solve, run again without publication.
    Replay,
    /// A plan for requests; it changes nothing.
    Plan,
}

impl JobKind {
    /// Every kind.
    pub const ALL: [JobKind; 3] = [JobKind::Solve, JobKind::Replay, JobKind::Plan];

    /// The kind's word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            JobKind::Solve => "solve",
            JobKind::Replay => "replay",
            JobKind::Plan => "plan",
        }
    }

    pub(crate) fn read(word: &str) -> Result<JobKind, sqlx::Error> {
        words::read("jobs.kind", JobKind::ALL, JobKind::as_str, word)
    }
}

serialize_as_word! { JobKind }

/// The right to end a job: valid until another worker takes the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The job.
    pub job: JobId,
    /// How often it has been taken, this time included.
    pub attempt: i32,
}

/// A claimed job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The lease.
    pub lease: Lease,
    /// The job's kind.
    pub kind: JobKind,
    /// Those it belongs to.
    pub batch: Option<BatchId>,
    /// What is to be done.
    pub task: Document,
    /// The number of workers lost with it.
    pub losses: i32,
}

/// A job of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchJob {
    /// The job.
    pub job: JobId,
    /// How far it is.
    pub state: JobState,
    /// What was to be done.
    pub task: Document,
    /// The outcome, once it is done.
    pub outcome: Option<Document>,
    /// The failure, if it failed.
    pub failure: Option<String>,
}

/// Wakes workers when a job is added, claimed or ended. It holds one connection of its own.
pub struct JobListener(PgListener);

impl JobListener {
    /// Waits until the queue may have changed, at most `at_most`, because notifications may be lost and the end
    /// of a lease sends none. Returns whether it was notified.
    pub async fn wait(&mut self, at_most: Duration) -> bool {
        let rang = tokio::time::timeout(at_most, self.0.try_recv()).await;
        // A broken connection counts as a notification: the caller gets the error from the database.
        if let Ok(Err(_)) = rang {
            tokio::time::sleep(at_most.min(Duration::from_secs(1))).await;
        }
        while self.0.next_buffered().is_some() {}
        rang.is_ok()
    }
}

impl Broker {
    /// Listens to the queue.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn job_listener(&self) -> Result<JobListener, DbError> {
        let own = PgPoolOptions::new().max_connections(1).connect_lazy_with(self.address.options());
        let mut listener = PgListener::connect_with(&own).await.doing("listening to the queue")?;
        listener.listen(CHANNEL).await.doing("listening to the queue")?;
        Ok(JobListener(listener))
    }

    /// Adds a batch of replays. Repeated calls, as after a lost answer, leave existing jobs unchanged.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn request_replays(
        &self,
        batch: BatchId,
        jobs: &[(JobId, Document)],
    ) -> Result<(), DbError> {
        let ids: Vec<JobId> = jobs.iter().map(|(id, _)| *id).collect();
        let tasks: Vec<&Document> = jobs.iter().map(|(_, task)| task).collect();
        let added = sqlx::query(sql::ADD)
            .bind(ids)
            .bind(JobKind::Replay.as_str())
            .bind(Some(batch))
            .bind(tasks)
            .execute(&self.pool);
        added.await.map(|_| ()).doing("asking for replays")
    }

    /// Renews a lease; false: it is lost, and the work is to be dropped.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn renew(&self, lease: Lease, by: Duration) -> Result<bool, DbError> {
        let renewed = sqlx::query(sql::RENEW)
            .bind(lease.job)
            .bind(lease.attempt)
            .bind(by.min(LEASE_MAX).as_secs_f64())
            .execute(&self.pool);
        Ok(renewed.await.doing("renewing a lease")?.rows_affected() == 1)
    }

    /// Ends a replay or a plan with what came of it; false: its lease was lost, and nothing was written.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn finish_job(
        &self,
        lease: Lease,
        outcome: &impl Serialize,
    ) -> Result<bool, DbError> {
        let mut db = self.pool.acquire().await.doing("ending a job")?;
        finish(&mut db, lease, outcome).await.doing("ending a job")
    }

    /// Fails a replay or a plan; false: the lease was lost, and nothing was written.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn fail_job(&self, lease: Lease, failure: &str) -> Result<bool, DbError> {
        let mut db = self.pool.acquire().await.doing("ending a job")?;
        fail(&mut db, lease, failure).await.doing("ending a job")
    }

    /// The jobs of a batch, in order of id.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn batch(&self, batch: BatchId) -> Result<Vec<BatchJob>, DbError> {
        let rows = sqlx::query(sql::BATCH).bind(batch).try_map(|row: PgRow| {
            Ok(BatchJob {
                job: row.try_get(0)?,
                state: state::read(row.try_get(1)?)?,
                task: row.try_get(2)?,
                outcome: row.try_get(3)?,
                failure: row.try_get(4)?,
            })
        });
        rows.fetch_all(&self.pool).await.doing("looking at a batch of jobs")
    }
}

/// Ends a job within a transaction; false: the lease is lost.
pub(crate) async fn finish(
    db: &mut PgConnection,
    lease: Lease,
    outcome: &impl Serialize,
) -> Result<bool, sqlx::Error> {
    let ended =
        sqlx::query(sql::FINISH).bind(lease.job).bind(lease.attempt).bind(Document::of(outcome));
    Ok(ended.execute(db).await?.rows_affected() == 1)
}

pub(crate) async fn fail(
    db: &mut PgConnection,
    lease: Lease,
    failure: &str,
) -> Result<bool, sqlx::Error> {
    let ended = sqlx::query(sql::FAIL).bind(lease.job).bind(lease.attempt).bind(failure);
    Ok(ended.execute(db).await?.rows_affected() == 1)
}

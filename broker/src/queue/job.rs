//! The queue: jobs are taken by workers under a lease, and ended by the worker that has it.
//!
//! A lease is a job and the number of the attempt. Whatever a worker writes about its job names
//! both, so that one that was cut off and comes back writes nothing: its attempt is not the last
//! one any more. No lock is held while a job runs.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{BatchId, JobId};
use crate::infra::state::{self, JobState};
use crate::infra::words::{self, serialize_as_word};
use crate::queue::solve::{self, FailureReason};
use serde_json::Value;
use sqlx::postgres::{PgListener, PgPoolOptions, PgRow};
use sqlx::{PgConnection, Row};
use std::time::Duration;

/// How often a job's worker may be lost before the job is given up: what kills its worker three
/// times is more likely the job than the machines.
const LOSSES_MAX: i32 = 3;

/// No lease is longer. One that seems to be was written by a clock that was ahead and has been set
/// right since: what it says is worth nothing, and its worker may be long gone.
pub const LEASE_MAX: Duration = Duration::from_secs(3600);

/// The channel the trigger of the queue rings.
const DOORBELL: &str = "jobs";

pub(crate) mod sql {
    crate::statements! {
        ADD = "INSERT INTO jobs (job_id, kind, batch_id, task, state) \
            SELECT w.id, $2, $3, w.task, 'waiting' \
            FROM unnest($1::uuid[], $4::jsonb[]) AS w (id, task) ON CONFLICT (job_id) DO NOTHING";
        /// Given up: those whose workers were lost too often.
        BURY = "UPDATE jobs SET state = 'failed', worker = NULL, lease_until = NULL, \
                failure = 'its worker was lost ' || losses + 1 || ' times' \
            WHERE state = 'running' AND losses + 1 >= $1 AND lease_until NOT BETWEEN \
                clock_timestamp() AND clock_timestamp() + make_interval(secs => $2) \
            RETURNING job_id, kind";
        /// The oldest that waits or whose worker was lost. A solve waits until the one that runs
        /// has ended, or is the one whose worker was lost.
        CLAIM = "UPDATE jobs SET state = 'running', attempt = attempt + 1, worker = $1, \
                losses = losses + (state = 'running')::int, \
                lease_until = clock_timestamp() + make_interval(secs => $2) \
            WHERE job_id = (SELECT j.job_id FROM jobs j WHERE j.kind = ANY ($3) \
                AND (j.state = 'waiting' AND (j.kind <> 'solve' OR NOT EXISTS ( \
                        SELECT FROM jobs o WHERE o.kind = 'solve' AND o.state = 'running')) \
                    OR j.state = 'running' AND j.lease_until NOT BETWEEN \
                        clock_timestamp() AND clock_timestamp() + make_interval(secs => $4)) \
                ORDER BY j.requested_at, j.job_id LIMIT 1 FOR UPDATE SKIP LOCKED) \
            RETURNING job_id, attempt, kind, batch_id, task, losses";
        RENEW = "UPDATE jobs SET lease_until = clock_timestamp() + make_interval(secs => $3) \
            WHERE job_id = $1 AND attempt = $2 AND state = 'running'";
        GIVE_BACK = "UPDATE jobs SET state = 'waiting', worker = NULL, lease_until = NULL \
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

/// What a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobKind {
    /// The region is solved and its targets published.
    Solve,
    /// A solve of the past is solved again; nothing is published.
    Replay,
    /// Requests are planned for the portal; nothing is changed.
    Plan,
}

impl JobKind {
    /// Every kind.
    pub const ALL: [JobKind; 3] = [JobKind::Solve, JobKind::Replay, JobKind::Plan];

    /// The word of the table.
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

/// The right to end a job: worth something as long as nobody else has taken it since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The job.
    pub job: JobId,
    /// How often it has been taken, this time included.
    pub attempt: i32,
}

/// A job that was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The right to end it.
    pub lease: Lease,
    /// What it is.
    pub kind: JobKind,
    /// Those it belongs to.
    pub batch: Option<BatchId>,
    /// What is to be done.
    pub task: Value,
    /// How often its worker was lost before.
    pub losses: i32,
}

/// How a job of a batch stands.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchJob {
    /// The job.
    pub job: JobId,
    /// How far it is.
    pub state: JobState,
    /// What was to be done.
    pub task: Value,
    /// What came of it, once it is done.
    pub outcome: Option<Value>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// Rings when a job is asked for, taken or ended. Holds one connection of its own.
pub struct JobDoorbell(PgListener);

impl JobDoorbell {
    /// Waits until something may have changed, at most so long: the doorbell may be lost, and a
    /// lease that runs out rings no bell. Says whether it rang.
    pub async fn wait(&mut self, at_most: Duration) -> bool {
        let rang = tokio::time::timeout(at_most, self.0.try_recv()).await;
        // Broken is like rung: the caller looks, and hears from the database what is wrong.
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
    pub async fn job_doorbell(&self) -> Result<JobDoorbell, DbError> {
        let own = PgPoolOptions::new().max_connections(1).connect_lazy_with(self.address.options());
        let mut doorbell = PgListener::connect_with(&own).await.doing("listening to the queue")?;
        doorbell.listen(DOORBELL).await.doing("listening to the queue")?;
        Ok(JobDoorbell(doorbell))
    }

    /// Asks for replays that belong together. Asked again, as after an answer that was lost, those
    /// that are there stay as they are.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn request_replays(
        &self,
        batch: BatchId,
        jobs: &[(JobId, Value)],
    ) -> Result<(), DbError> {
        let ids: Vec<JobId> = jobs.iter().map(|(id, _)| *id).collect();
        let tasks: Vec<Value> = jobs.iter().map(|(_, task)| task.clone()).collect();
        let added = sqlx::query(sql::ADD)
            .bind(ids)
            .bind(JobKind::Replay.as_str())
            .bind(Some(batch))
            .bind(tasks)
            .execute(&self.pool);
        added.await.map(|_| ()).doing("asking for replays")
    }

    /// Takes the oldest job of these kinds that waits or whose worker was lost; `None`: there is
    /// none now. A solve becomes running on the version there is.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn claim(
        &self,
        worker: &str,
        kinds: &[JobKind],
        lease: Duration,
    ) -> Result<Option<Job>, DbError> {
        let doing = "taking a job";
        let mut tx = self.begin().await.doing(doing)?;
        bury(&mut tx).await.doing(doing)?;
        let words: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let claimed = sqlx::query(sql::CLAIM)
            .bind(worker)
            .bind(lease.min(LEASE_MAX).as_secs_f64())
            .bind(words)
            .bind(LEASE_MAX.as_secs_f64())
            .try_map(|row: PgRow| job(&row))
            .fetch_optional(&mut *tx)
            .await
            .doing(doing);
        let claimed = match claimed {
            // Another worker has just taken the one solve there may be.
            Err(error) if error.refused_by("jobs_one_solve") => return Ok(None),
            other => other?,
        };
        if let Some(job) = claimed.as_ref().filter(|job| job.kind == JobKind::Solve) {
            solve::begin(&mut tx, job.lease.job.into()).await.doing(doing)?;
        }
        tx.commit().await.doing(doing)?;
        Ok(claimed)
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

    /// Gives a job back for others to take; false: it was lost before.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn give_back(&self, lease: Lease) -> Result<bool, DbError> {
        let doing = "giving a job back";
        let mut tx = self.begin().await.doing(doing)?;
        let given = sqlx::query(sql::GIVE_BACK).bind(lease.job).bind(lease.attempt);
        let given = given.execute(&mut *tx).await.doing(doing)?.rows_affected() == 1;
        if given {
            solve::hand_back(&mut tx, lease.job.into()).await.doing(doing)?;
        }
        tx.commit().await.doing(doing)?;
        Ok(given)
    }

    /// Ends a replay or a plan with what came of it; false: its lease was lost, and nothing was written.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn finish_job(&self, lease: Lease, outcome: &Value) -> Result<bool, DbError> {
        let mut db = self.pool.acquire().await.doing("ending a job")?;
        finish(&mut db, lease, outcome).await.doing("ending a job")
    }

    /// Ends a replay or a plan that failed; false: its lease was lost, and nothing was written.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn fail_job(&self, lease: Lease, failure: &str) -> Result<bool, DbError> {
        let mut db = self.pool.acquire().await.doing("ending a job")?;
        fail(&mut db, lease, failure).await.doing("ending a job")
    }

    /// How the jobs of a batch stand, in order of id.
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

/// Ends a job within a transaction; false: its lease is lost.
pub(crate) async fn finish(
    db: &mut PgConnection,
    lease: Lease,
    outcome: &Value,
) -> Result<bool, sqlx::Error> {
    let ended = sqlx::query(sql::FINISH).bind(lease.job).bind(lease.attempt).bind(outcome);
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

async fn bury(db: &mut PgConnection) -> Result<(), sqlx::Error> {
    let buried: Vec<(JobId, String)> = sqlx::query_as(sql::BURY)
        .bind(LOSSES_MAX)
        .bind(LEASE_MAX.as_secs_f64())
        .fetch_all(&mut *db)
        .await?;
    for (job, kind) in buried {
        tracing::warn!(%job, kind, "a job was given up: its workers were lost");
        if JobKind::read(&kind)? == JobKind::Solve {
            solve::fail(db, job.into(), FailureReason::WorkersLost, "its workers were lost")
                .await?;
        }
    }
    Ok(())
}

fn job(row: &PgRow) -> Result<Job, sqlx::Error> {
    Ok(Job {
        lease: Lease { job: row.try_get(0)?, attempt: row.try_get(1)? },
        kind: JobKind::read(row.try_get(2)?)?,
        batch: row.try_get(3)?,
        task: row.try_get(4)?,
        losses: row.try_get(5)?,
    })
}

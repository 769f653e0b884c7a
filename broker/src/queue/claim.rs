//! Claims of jobs: workers take jobs under a lease and return them; a job whose workers are lost too often
//! fails.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::JobId;
use crate::queue::cause::FailureReason;
use crate::queue::job::{Job, JobKind, LEASE_MAX, Lease};
use crate::queue::solve;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::time::Duration;

/// The lost workers after which a job fails: a job that loses its third worker is more likely the cause than
/// the machines.
const LOSSES_MAX: i32 = 3;

pub(crate) mod sql {
    crate::statements! {
        /// Jobs whose workers were lost too often.
        DEAD_LETTER = "UPDATE jobs SET state = 'failed', worker = NULL, lease_until = NULL, \
                failure = 'its worker was lost ' || losses + 1 || ' times' \
            WHERE state = 'running' AND losses + 1 >= $1 AND lease_until NOT BETWEEN \
                clock_timestamp() AND clock_timestamp() + make_interval(secs => $2) \
            RETURNING job_id, kind";
        /// The oldest job that waits or whose worker was lost. A solve waits for the end of a running one,
        /// unless it is the one whose worker was lost.
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
        GIVE_BACK = "UPDATE jobs SET state = 'waiting', worker = NULL, lease_until = NULL \
            WHERE job_id = $1 AND attempt = $2 AND state = 'running'";
    }
}

impl Broker {
    /// Claims the oldest job of these kinds that waits or whose worker was lost; `None`: there is no such job. A
    /// claimed solve becomes running on the current version.
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
        dead_letter(&mut tx).await.doing(doing)?;
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
            // Another worker has just claimed the only solve.
            Err(error) if error.refused_by("jobs_one_solve") => return Ok(None),
            other => other?,
        };
        if let Some(job) = claimed.as_ref().filter(|job| job.kind == JobKind::Solve) {
            solve::begin(&mut tx, job.lease.job.into()).await.doing(doing)?;
        }
        tx.commit().await.doing(doing)?;
        Ok(claimed)
    }

    /// Returns a job to the queue; false: the lease was lost.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn give_back(&self, lease: Lease) -> Result<bool, DbError> {
        let doing = "giving a job back";
        let mut tx = self.begin().await.doing(doing)?;
        let given = sqlx::query(sql::GIVE_BACK).bind(lease.job).bind(lease.attempt);
        let given = given.execute(&mut *tx).await.doing(doing)?.rows_affected() == 1;
        if given {
            solve::requeue(&mut tx, lease.job.into()).await.doing(doing)?;
        }
        tx.commit().await.doing(doing)?;
        Ok(given)
    }
}

/// Fails jobs whose workers were lost too often.
async fn dead_letter(db: &mut PgConnection) -> Result<(), sqlx::Error> {
    let given_up: Vec<(JobId, String)> = sqlx::query_as(sql::DEAD_LETTER)
        .bind(LOSSES_MAX)
        .bind(LEASE_MAX.as_secs_f64())
        .fetch_all(&mut *db)
        .await?;
    for (job, kind) in given_up {
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

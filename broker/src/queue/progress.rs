//! Running solves: how far they are, and their cancellation.

use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::SolveId;
use crate::infra::words;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::queue::cause::FailureReason;
use crate::queue::job::Lease;
use crate::queue::solve;
use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::PgRow;

pub(crate) mod sql {
    crate::statements! {
        NOTE = "INSERT INTO solve_progress AS p (solve_id, step, history) \
            SELECT job_id, $3, coalesce($4::jsonb, '[]') FROM jobs \
                WHERE job_id = $1 AND attempt = $2 AND state = 'running' \
            ON CONFLICT (solve_id) DO UPDATE SET at = clock_timestamp(), step = excluded.step, \
                history = coalesce($4, p.history)";
        PROGRESS = "SELECT at, step, history FROM solve_progress WHERE solve_id = $1";
        /// The lease goes with it: the worker notices, and writes nothing any more.
        CANCEL_JOB = "UPDATE jobs SET state = 'failed', worker = NULL, lease_until = NULL, failure = $2 \
            WHERE job_id = $1 AND kind = 'solve' AND state IN ('waiting', 'running')";
        IS_CANCELLED = "SELECT EXISTS (SELECT FROM solves WHERE solve_id = $1 AND reason = 'cancelled')";
        EXISTS = "SELECT EXISTS (SELECT FROM solves WHERE solve_id = $1)";
    }
}

/// What the worker of a solve does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolveStep {
    /// It reads and archives the region.
    Export,
    /// It runs the solver.
    Solve,
    /// It checks and archives the result.
    Audit,
    /// It writes the targets.
    Publish,
}

impl SolveStep {
    /// Every step.
    pub const ALL: [SolveStep; 4] =
        [SolveStep::Export, SolveStep::Solve, SolveStep::Audit, SolveStep::Publish];

    /// The step's word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            SolveStep::Export => "export",
            SolveStep::Solve => "solve",
            SolveStep::Audit => "audit",
            SolveStep::Publish => "publish",
        }
    }
}

/// How far the last attempt at a solve is.
#[derive(Clone, Debug, PartialEq)]
pub struct SolveProgress {
    /// When its worker last reported.
    pub at: DateTime<Utc>,
    /// What the worker does.
    pub step: SolveStep,
    /// Incumbent and bound over time, as the solver reports them.
    pub history: Document,
}

/// A solve that cannot be cancelled.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    /// There is no such solve.
    #[error("there is no solve {0}")]
    Unknown(SolveId),
    /// It has ended.
    #[error("solve {0} has ended")]
    Over(SolveId),
    /// Postgres failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Broker {
    /// Notes how far a solve is; `history`: incumbent and bound over time, `None`: as noted last. Without the
    /// lease nothing is written.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn note_solve(
        &self,
        lease: Lease,
        step: SolveStep,
        history: Option<&Document>,
    ) -> Result<(), DbError> {
        let noted = sqlx::query(sql::NOTE)
            .bind(lease.job)
            .bind(lease.attempt)
            .bind(step.as_str())
            .bind(history)
            .execute(&self.pool);
        noted.await.map(|_| ()).doing("noting how far a solve is")
    }

    /// How far a solve is; `None`: nothing was noted, or it was deleted.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn solve_progress(&self, id: SolveId) -> Result<Option<SolveProgress>, DbError> {
        let read = |row: PgRow| {
            let word = row.try_get(1)?;
            let step = words::read("solve_progress.step", SolveStep::ALL, SolveStep::as_str, word)?;
            Ok(SolveProgress { at: row.try_get(0)?, step, history: row.try_get(2)? })
        };
        let row = sqlx::query(sql::PROGRESS).bind(id).try_map(read).fetch_optional(&self.pool);
        row.await.doing("reading how far a solve is")
    }

    /// Whether a solve was cancelled.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn is_cancelled(&self, id: SolveId) -> Result<bool, DbError> {
        let asked = sqlx::query_scalar(sql::IS_CANCELLED).bind(id).fetch_one(&self.pool);
        asked.await.doing("asking whether a solve was cancelled")
    }

    /// Cancels a solve that waits or runs: it fails, and its worker stops. The audit trail records it by `actor`.
    ///
    /// # Errors
    /// [`CancelError`].
    pub async fn cancel_solve(&self, actor: &str, id: SolveId) -> Result<(), CancelError> {
        let doing = "cancelling a solve";
        let failure = format!("cancelled by {actor}");
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let cancelled = sqlx::query(sql::CANCEL_JOB).bind(id).bind(&failure).execute(&mut *db);
        if cancelled.await.doing(doing)?.rows_affected() == 0 {
            let exists = sqlx::query_scalar(sql::EXISTS).bind(id).fetch_one(&mut *db);
            let exists: bool = exists.await.doing(doing)?;
            change.abandon().await?;
            return Err(if exists { CancelError::Over(id) } else { CancelError::Unknown(id) });
        }
        solve::fail(&mut *db, id, FailureReason::Cancelled, &failure).await.doing(doing)?;
        change.record(&id.to_string(), Event::SolveCancelled {});
        change.commit().await?;
        Ok(())
    }
}

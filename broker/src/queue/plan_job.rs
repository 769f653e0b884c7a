//! Plans as jobs of the queue: requested, polled, withdrawn.

use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::JobId;
use crate::infra::state::{self, JobState};
use crate::queue::job::JobKind;
use serde::Serialize;
use std::time::Duration;

/// A person waits for a plan, a minute at most. An older job was left by a process that ended.
const PLAN_JOBS_KEPT: Duration = Duration::from_secs(600);

pub(crate) mod sql {
    crate::statements! {
        ADD = "INSERT INTO jobs (job_id, kind, task, state) VALUES ($1, $2, $3, 'waiting')";
        LOOK = "SELECT state, outcome, failure FROM jobs WHERE job_id = $1 AND kind = 'plan'";
        WITHDRAW = "DELETE FROM jobs WHERE job_id = $1 AND kind = 'plan'";
        FORGET = "DELETE FROM jobs WHERE kind = 'plan' \
            AND requested_at < clock_timestamp() - make_interval(secs => $1)";
    }
}

/// The state of a requested plan.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanJob {
    /// No worker has claimed it.
    Waiting,
    /// A worker makes it.
    Running,
    /// The outcome.
    Done(Document),
    /// The permanent failure.
    Failed(String),
    /// It was withdrawn.
    Gone,
}

impl Broker {
    /// Requests a plan from the workers.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn request_plan(&self, id: JobId, task: &impl Serialize) -> Result<(), DbError> {
        let added =
            sqlx::query(sql::ADD).bind(id).bind(JobKind::Plan.as_str()).bind(Document::of(task));
        added.execute(&self.pool).await.map(|_| ()).doing("asking for a plan")
    }

    /// The state of a requested plan.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn plan_job(&self, id: JobId) -> Result<PlanJob, DbError> {
        let doing = "looking at a plan that was asked for";
        let row: Option<(String, Option<Document>, Option<String>)> =
            sqlx::query_as(sql::LOOK).bind(id).fetch_optional(&self.pool).await.doing(doing)?;
        let Some((word, outcome, failure)) = row else { return Ok(PlanJob::Gone) };
        Ok(match state::read(&word).doing(doing)? {
            JobState::Waiting => PlanJob::Waiting,
            JobState::Running => PlanJob::Running,
            JobState::Done => PlanJob::Done(outcome.unwrap_or_default()),
            JobState::Failed => PlanJob::Failed(failure.unwrap_or_default()),
        })
    }

    /// Deletes a requested plan, finished or not: its worker loses the lease.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn withdraw_plan(&self, id: JobId) -> Result<(), DbError> {
        let withdrawn = sqlx::query(sql::WITHDRAW).bind(id).execute(&self.pool).await;
        withdrawn.map(|_| ()).doing("withdrawing a plan")
    }

    /// Deletes plans that were requested by processes that have ended.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn forget_plan_jobs(&self) -> Result<(), DbError> {
        let forgotten = sqlx::query(sql::FORGET).bind(PLAN_JOBS_KEPT.as_secs_f64());
        forgotten.execute(&self.pool).await.map(|_| ()).doing("forgetting plans")
    }
}

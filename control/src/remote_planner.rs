//! Plans made by workers: large plans, and plans that would have to wait in this process.
//!
//! A plan is a job of the broker's queue. A worker plans on the region that it reads; its result is applied to
//! the region here and audited again, so that a faulty worker cannot cause a wrong grant. If no worker takes a
//! plan, this process makes it.

use crate::error::AdmissionError;
use crate::plan_deadline::PlanDeadline;
use crate::planner::Planned;
use crate::region_cache::{CachedRegion, RegionCache};
use broker::{Broker, JobId, PlanJob, Seq};
use fleet::quote::Quote;
use fleet::{CapacityRequest, ReservationName, ServerName};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A plan of more changes than this is large: each is planned on the region that the previous ones leave.
pub const LARGE: usize = 8;

/// How long to wait for an idle worker to take a plan.
const TAKEN_WITHIN: Duration = Duration::from_secs(2);

/// How long workers are not used after no worker took a plan.
const BACK_OFF: Duration = Duration::from_secs(15);

/// Timeout of a worker's plan: the answer has to begin within a minute.
const ENDED_WITHIN: Duration = Duration::from_secs(45);

/// Poll interval.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// Timeout of Postgres for one poll.
const POLL_WITHIN: Duration = Duration::from_secs(10);

/// The job sent to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanTask {
    /// The requests, in their order.
    pub requests: Vec<CapacityRequest>,
    /// How long to search. The default is left out, so that workers of an earlier version understand it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deadline: PlanDeadline,
}

fn is_default(deadline: &PlanDeadline) -> bool {
    *deadline == PlanDeadline::default()
}

/// A worker's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum PlanOutcome {
    /// A plan.
    Made(MadePlan),
    /// The requests are invalid for the region; the caller plans here to get the error.
    Refused,
}

/// A serialized plan: names instead of indices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadePlan {
    /// Last audit-trail entry contained in the region that was planned.
    pub seq: i64,
    /// Quote of each request.
    pub quotes: Vec<Quote>,
    /// Servers that change holder, and their new holders.
    pub targets: Vec<(ServerName, Option<ReservationName>)>,
    /// Whether the audit finds no reservation worse off.
    pub audit_clean: bool,
    /// Whether the search finished before it was cancelled.
    pub complete: bool,
    /// Duration of the planning.
    pub seconds: f64,
}

impl MadePlan {
    /// Serializes a plan made on the region with this audit-trail entry.
    pub fn new(planned: &Planned, seq: Seq) -> MadePlan {
        MadePlan {
            seq: seq.0,
            quotes: planned.quotes.clone(),
            targets: planned.targets(),
            audit_clean: planned.audit_clean,
            complete: planned.complete,
            seconds: planned.seconds,
        }
    }
}

/// Sends plans to workers. Clones share it.
#[derive(Clone, Debug)]
pub struct RemotePlanner {
    broker: Broker,
    region: RegionCache,
    /// Whether workers are not used for a while.
    backing_off: Arc<AtomicBool>,
}

impl RemotePlanner {
    /// `broker` has the job queue; results are applied to `region`.
    pub fn new(broker: Broker, region: RegionCache) -> RemotePlanner {
        RemotePlanner { broker, region, backing_off: Arc::default() }
    }

    /// Sends requests to a worker; returns the plan, and a region at least as new as the planned one. `None`: no
    /// worker made it, so this process must. Dropping the future cancels the job.
    ///
    /// # Errors
    /// [`AdmissionError`].
    pub async fn plan(
        &self,
        requests: &[CapacityRequest],
        deadline: PlanDeadline,
    ) -> Result<Option<(Arc<CachedRegion>, MadePlan)>, AdmissionError> {
        if self.backing_off.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let queued = QueuedPlan { broker: self.broker.clone(), id: JobId::now_v7() };
        let task = PlanTask { requests: requests.to_vec(), deadline };
        timeout(POLL_WITHIN, self.broker.request_plan(queued.id, &task)).await??;
        let taken =
            self.poll_until(queued.id, TAKEN_WITHIN, |job| *job != PlanJob::Waiting).await?;
        if taken.is_none() {
            self.back_off();
            return Ok(None);
        }
        let ended = |job: &PlanJob| !matches!(job, PlanJob::Waiting | PlanJob::Running);
        let outcome = match self.poll_until(queued.id, ENDED_WITHIN, ended).await? {
            Some(PlanJob::Done(outcome)) => outcome,
            other => {
                tracing::warn!(job = %queued.id, "workers made no plan: {other:?}");
                return Ok(None);
            }
        };
        let made = match outcome.read() {
            Ok(PlanOutcome::Made(made)) => made,
            Ok(PlanOutcome::Refused) => return Ok(None),
            Err(error) => {
                tracing::warn!(job = %queued.id, %error, "cannot read a worker's plan: it has another version");
                return Ok(None);
            }
        };
        // The worker may have seen a newer region than this process.
        let held = match self.region.latest().filter(|held| held.seq.0 == made.seq) {
            Some(held) => held,
            None => self.region.read_current().await?,
        };
        Ok(Some((held, made)))
    }

    /// Polls until the condition holds; `None`: timed out.
    async fn poll_until(
        &self,
        id: JobId,
        within: Duration,
        holds: impl Fn(&PlanJob) -> bool,
    ) -> Result<Option<PlanJob>, AdmissionError> {
        let poll = async {
            loop {
                let job = timeout(POLL_WITHIN, self.broker.plan_job(id)).await??;
                if holds(&job) {
                    return Ok::<_, AdmissionError>(job);
                }
                sleep(POLL_EVERY).await;
            }
        };
        timeout(within, poll).await.ok().transpose()
    }

    /// Stops using workers for a while.
    fn back_off(&self) {
        self.backing_off.store(true, Ordering::Relaxed);
        let backing_off = self.backing_off.clone();
        tokio::spawn(async move {
            sleep(BACK_OFF).await;
            backing_off.store(false, Ordering::Relaxed);
        });
    }
}

/// A queued job; cancelled when dropped.
struct QueuedPlan {
    broker: Broker,
    id: JobId,
}

impl Drop for QueuedPlan {
    fn drop(&mut self) {
        let (broker, id) = (self.broker.clone(), self.id);
        tokio::spawn(async move {
            // A job that cannot be cancelled is cleaned up later.
            let _ = timeout(POLL_WITHIN, broker.withdraw_plan(id)).await;
        });
    }
}

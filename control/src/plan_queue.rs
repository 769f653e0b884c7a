//! Plans made by workers: those that would have to wait in this process, and large ones.
//!
//! A plan is a job of the broker's queue. A worker plans on the region that it reads; its result is applied to
//! the region here and audited again, so that a faulty worker cannot cause a wrong grant. If no worker takes a
//! plan, this process makes it.

use crate::AdmissionError;
use crate::planner::Planned;
use crate::region::{HeldRegion, RegionKeeper};
use broker::{Broker, JobId, PlanJob, Seq};
use fleet::quote::Quote;
use fleet::{CapacityRequest, Name};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A plan of more changes than this is large: each is planned on the region that the previous ones leave.
pub const LARGE: usize = 8;

/// How long to wait for an idle worker to take a plan.
const TAKEN_WITHIN: Duration = Duration::from_secs(2);

/// How long workers are not used after none took a plan.
const NOT_ASKED_FOR: Duration = Duration::from_secs(15);

/// Timeout of a worker's plan: the answer has to begin within a minute.
const ENDED_WITHIN: Duration = Duration::from_secs(45);

/// Poll interval.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Timeout of Postgres for one poll.
const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// The job sent to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanTask {
    /// The requests, in their order.
    pub requests: Vec<CapacityRequest>,
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
    pub targets: Vec<(Name, Option<Name>)>,
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

/// Sends plans to workers. Clones share what is known about them.
#[derive(Clone, Debug)]
pub struct PlanQueue {
    broker: Broker,
    region: RegionKeeper,
    /// When a worker last failed to take a plan, if recently.
    alone: Arc<AtomicBool>,
}

impl PlanQueue {
    /// A queue in this store; results are applied to `region`.
    pub fn new(broker: Broker, region: RegionKeeper) -> PlanQueue {
        PlanQueue { broker, region, alone: Arc::default() }
    }

    /// Sends requests to a worker; returns the plan, and a region at least as new as the planned one. `None`: no
    /// worker made it, so this process must. Dropping the future cancels the job.
    ///
    /// # Errors
    /// [`AdmissionError`].
    pub async fn plan(
        &self,
        requests: &[CapacityRequest],
    ) -> Result<Option<(Arc<HeldRegion>, MadePlan)>, AdmissionError> {
        if self.alone.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let asked = Asked { broker: self.broker.clone(), id: JobId::now_v7() };
        let task = PlanTask { requests: requests.to_vec() };
        let task = serde_json::to_value(&task).expect("requests are JSON");
        timeout(LOOK_WITHIN, self.broker.request_plan(asked.id, &task)).await??;
        let taken = self.look_until(asked.id, TAKEN_WITHIN, |job| *job != PlanJob::Waiting).await?;
        if taken.is_none() {
            self.leave_alone();
            return Ok(None);
        }
        let ended = |job: &PlanJob| !matches!(job, PlanJob::Waiting | PlanJob::Running);
        let outcome = match self.look_until(asked.id, ENDED_WITHIN, ended).await? {
            Some(PlanJob::Done(outcome)) => outcome,
            other => {
                tracing::warn!(job = %asked.id, "workers made no plan: {other:?}");
                return Ok(None);
            }
        };
        let made = match serde_json::from_value(outcome) {
            Ok(PlanOutcome::Made(made)) => made,
            Ok(PlanOutcome::Refused) => return Ok(None),
            Err(error) => {
                tracing::warn!(job = %asked.id, %error, "a worker of another program made a plan");
                return Ok(None);
            }
        };
        // The worker may have seen a newer region than this process.
        let held = match self.region.latest().filter(|held| held.seq.0 == made.seq) {
            Some(held) => held,
            None => self.region.fresh().await?,
        };
        Ok(Some((held, made)))
    }

    /// Polls until the condition holds; `None`: timed out.
    async fn look_until(
        &self,
        id: JobId,
        within: Duration,
        so: impl Fn(&PlanJob) -> bool,
    ) -> Result<Option<PlanJob>, AdmissionError> {
        let look = async {
            loop {
                let job = timeout(LOOK_WITHIN, self.broker.plan_job(id)).await??;
                if so(&job) {
                    return Ok::<_, AdmissionError>(job);
                }
                sleep(LOOK_EVERY).await;
            }
        };
        timeout(within, look).await.ok().transpose()
    }

    /// Stops using workers for a while.
    fn leave_alone(&self) {
        self.alone.store(true, Ordering::Relaxed);
        let alone = self.alone.clone();
        tokio::spawn(async move {
            sleep(NOT_ASKED_FOR).await;
            alone.store(false, Ordering::Relaxed);
        });
    }
}

/// A queued job; cancelled when dropped.
struct Asked {
    broker: Broker,
    id: JobId,
}

impl Drop for Asked {
    fn drop(&mut self) {
        let (broker, id) = (self.broker.clone(), self.id);
        tokio::spawn(async move {
            // A job that stays behind is cleaned up later.
            let _ = timeout(LOOK_WITHIN, broker.withdraw_plan(id)).await;
        });
    }
}

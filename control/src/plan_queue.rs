//! Plans made by workers: what this process would make wait, and what is large.
//!
//! A plan is a job of the broker's queue. A worker plans on the region as it reads it; its answer is put on the
//! region here and audited again, so that nothing rests on a worker's word. Where no worker takes a plan, it is
//! made here.

use crate::AdmissionError;
use crate::planner::Planned;
use crate::region::{HeldRegion, RegionKeeper};
use broker::{Broker, PlanJob, Seq};
use fleet::quote::Quote;
use fleet::{CapacityRequest, Name};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

/// A plan of more changes than this is large: each is planned on the region that the ones before leave.
pub const LARGE: usize = 8;

/// A worker that is free takes a plan within this.
const TAKEN_WITHIN: Duration = Duration::from_secs(2);

/// For how long no worker is asked after none took a plan.
const NOT_ASKED_FOR: Duration = Duration::from_secs(15);

/// A plan that workers do not end within this is not waited for: the answer has to begin within a minute.
const ENDED_WITHIN: Duration = Duration::from_secs(45);

/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long Postgres may take for one look.
const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// What is asked of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanTask {
    /// The requests, in their order.
    pub requests: Vec<CapacityRequest>,
}

/// What a worker found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum PlanOutcome {
    /// A plan.
    Made(MadePlan),
    /// The requests make no sense for the region; whoever asked finds out why by itself.
    Refused,
}

/// A plan as it is sent: names instead of numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadePlan {
    /// The last entry of the audit trail that the region it was made on contains.
    pub seq: i64,
    /// What each request comes to.
    pub quotes: Vec<Quote>,
    /// Servers that change their holder, and to whom.
    pub targets: Vec<(Name, Option<Name>)>,
    /// Whether the audit finds no reservation worse off.
    pub audit_clean: bool,
    /// Whether the search ended by itself.
    pub complete: bool,
    /// How long it took.
    pub seconds: f64,
}

impl MadePlan {
    /// Of a plan that was made on the region with this entry of the trail.
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

/// Asks workers for plans. Clones share what is known of them.
#[derive(Clone, Debug)]
pub struct PlanQueue {
    broker: Broker,
    region: RegionKeeper,
    /// No worker took the last plan, a short time ago.
    alone: Arc<AtomicBool>,
}

impl PlanQueue {
    /// Plans of this store; `region` is what answers are put on.
    pub fn new(broker: Broker, region: RegionKeeper) -> PlanQueue {
        PlanQueue { broker, region, alone: Arc::default() }
    }

    /// Has a worker plan requests: the plan, and a region at least as new as the one it was made on. `None`: no
    /// worker makes it, so it is to be made here. Dropping the future withdraws the plan.
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
        let asked = Asked { broker: self.broker.clone(), id: Uuid::now_v7() };
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
        // The worker may have seen more than this process has.
        let held = match self.region.latest().filter(|held| held.seq.0 == made.seq) {
            Some(held) => held,
            None => self.region.fresh().await?,
        };
        Ok(Some((held, made)))
    }

    /// Looks until it is so; `None`: it is not so in time.
    async fn look_until(
        &self,
        id: Uuid,
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

    /// Asks no worker for a while.
    fn leave_alone(&self) {
        self.alone.store(true, Ordering::Relaxed);
        let alone = self.alone.clone();
        tokio::spawn(async move {
            sleep(NOT_ASKED_FOR).await;
            alone.store(false, Ordering::Relaxed);
        });
    }
}

/// A plan that was asked for; dropped, it is withdrawn.
struct Asked {
    broker: Broker,
    id: Uuid,
}

impl Drop for Asked {
    fn drop(&mut self) {
        let (broker, id) = (self.broker.clone(), self.id);
        tokio::spawn(async move {
            // What stays is forgotten later.
            let _ = timeout(LOOK_WITHIN, broker.withdraw_plan(id)).await;
        });
    }
}

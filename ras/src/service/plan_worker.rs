//! Makes plans queued by the portal, one at a time, beside the worker's other jobs.

use super::in_time::in_time;
use super::planner::SolvingPlanner;
use anyhow::Result;
use broker::{Broker, Job, JobKind, JobListener, LeaseTerm, keep_lease, since_boot};
use control::remote_planner::{MadePlan, PlanOutcome, PlanTask};
use control::{PlanRefused, Planner, RegionCache};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A short lease, because a person waits for a plan: if a worker is lost, another takes over soon.
const LEASE: Duration = Duration::from_secs(10);

/// Poll interval of the queue without notifications: an expired lease sends none.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A worker for plans of the queue.
pub struct PlanWorker {
    broker: Broker,
    planner: Arc<SolvingPlanner>,
    region: RegionCache,
    name: String,
}

/// Signals that a plan is no longer wanted.
#[derive(Default)]
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl PlanWorker {
    /// With a worker's name and the cached region.
    pub fn new(broker: Broker, planner: Arc<SolvingPlanner>, name: &str) -> PlanWorker {
        let region = RegionCache::standalone(broker.clone());
        PlanWorker { broker, planner, region, name: name.to_owned() }
    }

    /// Makes plans until dropped. Failures of Postgres are logged and retried.
    pub async fn run(&self) {
        loop {
            let worked = async {
                let mut listener = in_time(self.broker.job_listener()).await?;
                self.take_plans(&mut listener).await
            };
            let Err(error) = worked.await;
            tracing::warn!("cannot take plans from the queue; retrying: {error:#}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn take_plans(&self, listener: &mut JobListener) -> Result<std::convert::Infallible> {
        loop {
            let begun = since_boot();
            let claim = self.broker.claim(&self.name, &[JobKind::Plan], LEASE);
            match in_time(claim).await? {
                Some(job) => self.do_plan(&job, &LeaseTerm::new(begun, LEASE)).await?,
                None => {
                    listener.wait(LOOK_EVERY).await;
                }
            }
        }
    }

    /// Makes a plan while its lease holds; withdrawing the plan ends the lease.
    async fn do_plan(&self, job: &Job, term: &LeaseTerm) -> Result<()> {
        let (id, attempt) = (job.lease.job, job.lease.attempt);
        tracing::info!(job = %id, attempt, kind = job.kind.as_str(), "job taken");
        let renew = || self.broker.renew(job.lease, LEASE);
        let made = tokio::select! {
            made = self.plan(job) => made,
            () = keep_lease(term, LEASE, renew) => {
                tracing::info!(job = %id, attempt, "lease lost or plan withdrawn; dropping the work");
                return Ok(());
            }
        };
        let ours = match made {
            Ok(outcome) => in_time(self.broker.finish_job(job.lease, &outcome)).await?,
            Err(error) => {
                let failure = format!("{error:#}");
                tracing::warn!(job = %id, failure, "planning failed");
                in_time(self.broker.fail_job(job.lease, &failure)).await?
            }
        };
        if !ours {
            tracing::info!(job = %id, "the plan is no longer wanted");
        }
        Ok(())
    }

    async fn plan(&self, job: &Job) -> Result<PlanOutcome> {
        let task: PlanTask = job.task.read()?;
        let held = self.region.read_current().await?;
        let (planner, region) = (self.planner.clone(), held.clone());
        let gone = Gone::default();
        let left = gone.0.clone();
        let planned = tokio::task::spawn_blocking(move || {
            let must_stop = || left.load(Ordering::Relaxed);
            planner.plan(&region.snapshot, &task.requests, task.deadline, &must_stop)
        });
        let planned = planned.await?;
        drop(gone);
        match planned {
            Ok(planned) => Ok(PlanOutcome::Made(MadePlan::new(&planned, held.seq))),
            Err(PlanRefused::Region(why)) => anyhow::bail!("{why}"),
            Err(PlanRefused::Requests(_)) => Ok(PlanOutcome::Refused),
        }
    }
}

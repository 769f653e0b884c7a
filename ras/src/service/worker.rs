//! A worker: takes a job, renews its lease while running it, and completes or requeues it.

use super::archive::Archive;
use super::in_time::in_time;
use super::settings::ServiceSettings;
use super::solve::{Ended, SolveJob};
use super::{replay, retention};
use anyhow::{Context, Result};
use broker::{
    Broker, DbError, Job, JobKind, JobListener, Lease, LeaseTerm, keep_lease, since_boot,
};
use control::RegionCache;
use std::future::Future;
use std::time::Duration;
use tokio::sync::watch;
use tracing::Instrument;

/// The kinds of jobs it takes; plans are for the plan worker.
const KINDS: [JobKind; 2] = [JobKind::Solve, JobKind::Replay];

/// Poll interval of the queue without notifications: an expired lease sends none.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A worker of the queue.
pub struct Worker {
    broker: Broker,
    archive: Archive,
    settings: ServiceSettings,
    name: String,
    region: Option<RegionCache>,
}

impl Worker {
    /// Creates the worker of this process.
    ///
    /// # Errors
    /// If the archive cannot be opened.
    pub fn new(broker: Broker, settings: ServiceSettings) -> Result<Worker> {
        let archive = Archive::open(&settings.archive)?;
        let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = format!("{}:{}", machine.trim(), std::process::id());
        Ok(Worker { broker, archive, settings, name, region: None })
    }

    /// Uses the region cache of this process.
    #[must_use]
    pub fn sharing(self, region: Option<RegionCache>) -> Worker {
        Worker { region, ..self }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its archive of solves.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Runs jobs until told to stop; then requeues the current one. Failures of Postgres are logged
    /// and retried.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            let worked = async {
                let mut listener = in_time(self.broker.job_listener()).await?;
                self.take_jobs(&mut listener, &stop).await
            };
            if let Err(error) = worked.await {
                tracing::warn!("cannot reach the queue; retrying: {error:#}");
                let pause = tokio::time::sleep(LOOK_EVERY.min(self.settings.lease));
                tokio::select! { () = pause => {}, _ = stop.changed() => {} }
            }
        }
    }

    async fn take_jobs(
        &self,
        listener: &mut JobListener,
        stop: &watch::Receiver<bool>,
    ) -> Result<()> {
        let mut asked = stop.clone();
        while !*stop.borrow() {
            let begun = since_boot();
            let claim = self.broker.claim(&self.name, &KINDS, self.settings.lease);
            // If the answer is lost after the job was claimed, the lease expires.
            match in_time(claim).await? {
                Some(job) => {
                    let term = LeaseTerm::new(begun, self.settings.lease);
                    self.do_job(&job, &term, listener, stop.clone()).await;
                }
                None => {
                    let look = listener.wait(LOOK_EVERY.min(self.settings.lease));
                    tokio::select! { _ = look => {}, _ = asked.changed() => {} }
                }
            }
        }
        Ok(())
    }

    /// Runs a job until it ends, its lease is lost or the worker is stopped.
    async fn do_job(
        &self,
        job: &Job,
        term: &LeaseTerm,
        listener: &mut JobListener,
        mut stop: watch::Receiver<bool>,
    ) {
        let Lease { job: id, attempt } = job.lease;
        tracing::info!(job = %id, attempt, kind = job.kind.as_str(), "job taken");
        let span = tracing::info_span!("job", job = %id, attempt, kind = job.kind.as_str());
        let work = async {
            match job.kind {
                JobKind::Solve => self.solve(job.lease).await,
                JobKind::Replay => self.replay(job).await,
                JobKind::Plan => unreachable!("not a claimed job"),
            }
        };
        let renew = || self.broker.renew(job.lease, self.settings.lease);
        let ended = tokio::select! {
            ended = work.instrument(span) => ended,
            () = keep_lease(term, self.settings.lease, renew) => {
                tracing::warn!(job = %id, attempt, "lease lost; dropping the work");
                return;
            }
            () = self.cancelled(job.lease, listener) => {
                tracing::warn!(job = %id, attempt, "cancelled; dropping the work");
                return;
            }
            _ = stop.wait_for(|stop| *stop) => {
                tracing::info!(job = %id, attempt, "stopping; requeueing the job");
                self.give_back(job.lease).await;
                return;
            }
        };
        match ended {
            Ok(()) => {}
            Err(error) => {
                tracing::warn!(job = %id, attempt, %error, "requeueing the job");
                self.give_back(job.lease).await;
            }
        }
    }

    /// Returns once the solve is cancelled: the listener says so before the next renewal does. A job that this worker
    /// has ended has no lease either, and goes on with what follows its end.
    async fn cancelled(&self, lease: Lease, listener: &mut JobListener) {
        loop {
            let rang = listener.wait(LOOK_EVERY).await;
            if rang && matches!(self.broker.is_cancelled(lease.job.into()).await, Ok(true)) {
                return;
            }
        }
    }

    /// If it cannot be requeued, its lease expires.
    async fn give_back(&self, lease: Lease) {
        if let Err(error) = in_time(self.broker.give_back(lease)).await {
            tracing::warn!(job = %lease.job, "cannot requeue the job; its lease expires: {error:#}");
        }
    }

    async fn solve(&self, lease: Lease) -> Result<(), DbError> {
        let job = SolveJob {
            broker: &self.broker,
            region: self.region.as_ref(),
            archive: &self.archive,
            settings: &self.settings,
            worker: &self.name,
            lease,
        };
        let ended = job.run();
        let solve = lease.job;
        let ours = match ended.await? {
            Ended::Published(version) => {
                tracing::info!(%solve, %version, "solve published");
                true
            }
            Ended::Stale { detail, result_url } => {
                tracing::warn!(%solve, detail, "solve superseded");
                self.broker.end_stale_solve(lease, &detail, &result_url).await?
            }
            Ended::Failed { reason, detail } => {
                tracing::warn!(%solve, reason = reason.as_str(), detail, "solve failed");
                self.broker.fail_solve(lease, reason, &detail).await?
            }
            Ended::AwaitsApproval { in_use } => {
                tracing::warn!(%solve, in_use, "solve awaits the approval of an operator");
                true
            }
            Ended::LeaseLost => false,
        };
        if !ours {
            tracing::warn!(%solve, "lease lost; nothing was written");
        }
        if let Err(error) = retention::tidy(&self.broker, &self.archive, &self.settings).await {
            tracing::warn!("cannot delete old solves: {error:#}");
        }
        Ok(())
    }

    async fn replay(&self, job: &Job) -> Result<(), DbError> {
        let outcome = replay::run(&self.archive, &self.settings, &job.task).await;
        let ours = match outcome.context("the replay") {
            Ok(outcome) => self.broker.finish_job(job.lease, &outcome).await?,
            Err(error) => {
                let failure = format!("{error:#}");
                tracing::warn!(job = %job.lease.job, failure, "replay failed");
                self.broker.fail_job(job.lease, &failure).await?
            }
        };
        if !ours {
            tracing::warn!(job = %job.lease.job, "lease lost; nothing was written");
        }
        Ok(())
    }
}

/// Runs a worker beside another future; when that ends, the worker stops.
pub async fn beside<T>(worker: Option<&Worker>, other: impl Future<Output = T>) -> T {
    let (tell, told) = watch::channel(false);
    let work = async {
        match worker {
            Some(worker) => worker.run(told).await,
            None => drop(told),
        }
    };
    let other = async {
        let outcome = other.await;
        let _ = tell.send(true);
        outcome
    };
    tokio::join!(work, other).1
}

//! One solve of the stored region: snapshot, archive, child process, audit, archive, publication.
//! Nothing changes before the last step, which is one transaction and requires the lease. So a
//! failure of a step or of this process leaves the region unchanged.

use super::archive::Archive;
use super::child::{ChildFailure, ChildSolve};
use super::kept_policies::KeptPolicies;
use super::scratch::Scratch;
use super::settings::ServiceSettings;
use crate::nice::spawn_low_priority;
use crate::results::{read_solved, write_export};
use anyhow::{Context, Result};
use async_solver::Progress;
use broker::{
    Broker, Cause, DbError, Document, Export, ExportError, FailureReason, HORIZON, Lease,
    PriorityReaders, Publication, PublishError, Seq, SolveBasis, SolveEnd, SolveId, SolveRow,
    SolveState, SolveStep, TargetVersion,
};
use chrono::DateTime;
use control::RegionCache;
use fleet::audit::audit;
use serde_json::json;
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;
use tracing::Instrument;
use uuid::Uuid;

/// Attempts to publish if the answer is lost or there is no connection.
const PUBLISH_ATTEMPTS: u32 = 60;
const PUBLISH_PAUSE: Duration = Duration::from_secs(1);

/// Interval of notes about a running solve.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// Number of latest solves searched for a published one.
const LAST_SOLVES: u32 = 50;

/// File with the settings of the solve.
const SETTINGS: &str = "ras.toml";

/// The outcome of a solve.
#[derive(Debug)]
pub enum Ended {
    /// Published as this version of the targets.
    Published(TargetVersion),
    /// Its targets await the approval of an operator.
    AwaitsApproval {
        /// Servers in use that they move.
        in_use: u64,
    },
    /// Not published: another version came first.
    Stale {
        /// The version.
        detail: String,
        /// URL of its result.
        result_url: String,
    },
    /// Failed, without targets.
    Failed {
        /// The reason.
        reason: FailureReason,
        /// Details as text.
        detail: String,
    },
    /// The lease is lost: another worker has the job.
    LeaseLost,
}

/// Shortest and longest horizon of a solve.
const HORIZON_LIMITS: (Duration, Duration) =
    (Duration::from_secs(10 * 60), Duration::from_secs(31 * 24 * 3_600));

/// The reason for a failed step.
enum Trouble {
    /// The solve has ended with this outcome.
    Ended(Ended),
    /// Postgres fails, so the outcome cannot be stored, either.
    Db(DbError),
}

impl From<DbError> for Trouble {
    fn from(error: DbError) -> Trouble {
        Trouble::Db(error)
    }
}

fn failed(reason: FailureReason) -> impl FnOnce(anyhow::Error) -> Trouble {
    move |error| Trouble::Ended(Ended::Failed { reason, detail: format!("{error:#}") })
}

/// A solve claimed by a worker.
pub(super) struct SolveJob<'a> {
    pub(super) broker: &'a Broker,
    /// The region cache of this process, if there is one.
    pub(super) region: Option<&'a RegionCache>,
    pub(super) archive: &'a Archive,
    pub(super) settings: &'a ServiceSettings,
    pub(super) worker: &'a str,
    pub(super) lease: Lease,
}

impl SolveJob<'_> {
    /// Runs the solve.
    ///
    /// # Errors
    /// If Postgres fails; the job must then be requeued.
    pub(super) async fn run(&self) -> Result<Ended, DbError> {
        match self.steps().await {
            Ok(version) => Ok(Ended::Published(version)),
            Err(Trouble::Ended(ended)) => Ok(ended),
            Err(Trouble::Db(error)) => Err(error),
        }
    }

    async fn steps(&self) -> Result<TargetVersion, Trouble> {
        let scratch = Scratch::new().map_err(failed(FailureReason::ArchiveFailed))?;
        let step = |name: &'static str| tracing::info_span!("step", otel.name = name, step = name);
        self.note(SolveStep::Export, None).await;
        let (version, seq) = self.export(&scratch).instrument(step("export")).await?;
        let policies = self.policies(&scratch).await?;
        self.warm(&scratch).instrument(step("warm start")).await?;
        let config = self.config();
        let archive = async {
            self.keep("settings", &scratch.path("settings")).await?;
            self.keep("snapshot", &scratch.path("snapshot")).await
        };
        let snapshot_url = archive.instrument(step("archive snapshot")).await?;
        let basis =
            SolveBasis { parent: version, seq, snapshot_url, config, policies: policies.edition };
        if !self.broker.describe_solve(self.lease, &basis).await? {
            return Err(Trouble::Ended(Ended::LeaseLost));
        }
        self.note(SolveStep::Solve, Some(&[])).await;
        self.solve(&scratch, &policies).instrument(step("solve")).await?;
        self.note(SolveStep::Audit, None).await;
        let check = self.check(&scratch, policies).instrument(step("audit"));
        let (publication, report, in_use) = check.await?;
        let result = scratch.path("result");
        let keep = self.keep("result", &result).instrument(step("archive result"));
        let result_url = keep.await?;
        if self.settings.approval_above_in_use_moves.is_some_and(|most| in_use > most) {
            let end = SolveEnd { lease: self.lease, result_url, report };
            let awaits =
                self.broker.await_approval(self.worker, &publication, &end, in_use).await?;
            let ended = if awaits { Ended::AwaitsApproval { in_use } } else { Ended::LeaseLost };
            return Err(Trouble::Ended(ended));
        }
        self.note(SolveStep::Publish, None).await;
        self.publish(publication, report, result_url).instrument(step("publish")).await
    }

    /// The current region: from the portal's cache, which is refreshed if it is out of date.
    async fn read(&self) -> Result<Export, Trouble> {
        if let Some(region) = self.region {
            match region.read_low_priority().await {
                Ok(held) => {
                    let export =
                        spawn_low_priority(move || Ok::<_, Infallible>(held.export())).await;
                    let Ok(export) = export.map_err(failed(FailureReason::ArchiveFailed))?;
                    return Ok(export);
                }
                Err(error) => tracing::debug!(%error, "reading the region for this solve only"),
            }
        }
        match self.broker.export_throttled(&PriorityReaders::default()).await {
            Ok(export) => Ok(export),
            Err(ExportError::Db(error)) => Err(error.into()),
            Err(error) => Err(failed(FailureReason::Cancelled)(error.into())),
        }
    }

    /// Time until the next scheduled solve.
    async fn horizon(&self) -> Result<Duration, DbError> {
        let Some(schedule) = &self.settings.schedule else { return Ok(HORIZON) };
        let now = self.broker.clock().await?;
        let next = schedule.next_due(now).and_then(|next| (next - now).to_std().ok());
        Ok(next.map_or(HORIZON, |horizon| horizon.clamp(HORIZON_LIMITS.0, HORIZON_LIMITS.1)))
    }

    async fn export(&self, scratch: &Scratch) -> Result<(TargetVersion, Seq), Trouble> {
        let mut export = self.read().await?;
        let horizon = self.horizon().await?;
        self.broker.look_ahead(&mut export.parts, horizon).await?;
        let (version, seq) = (export.version, export.seq);
        let (snapshot, config) = (scratch.path("snapshot"), scratch.path("settings"));
        let solving = self.settings.solving.to_string();
        let write = move || -> Result<()> {
            write_export(&snapshot, export)?;
            std::fs::create_dir(&config)
                .and_then(|()| std::fs::write(config.join(SETTINGS), solving))
                .context("writing the settings of the solve")
        };
        let written = spawn_low_priority(write).await.flatten();
        written.map_err(failed(FailureReason::ArchiveFailed))?;
        Ok((version, seq))
    }

    /// The policies in force, as files beside the snapshot, where a replay finds them, too.
    async fn policies(&self, scratch: &Scratch) -> Result<KeptPolicies, Trouble> {
        let policies = self.broker.policies().await?;
        let kept = KeptPolicies::write(&policies, &scratch.path("snapshot"));
        kept.map_err(failed(FailureReason::PoliciesRefused))
    }

    /// Copies the warm start of the last published solve next to the snapshot, where a replay finds
    /// it, too. Without it the solve only takes longer.
    async fn warm(&self, scratch: &Scratch) -> Result<(), Trouble> {
        let solves = self.broker.solves(DateTime::UNIX_EPOCH, LAST_SOLVES).await?;
        let published = |row: &SolveRow| row.state == SolveState::Published;
        let last = solves.into_iter().find(published).and_then(|row| row.result_url);
        let Some(url) = last else { return Ok(()) };
        let (last, snapshot) = (scratch.path("last"), scratch.path("snapshot"));
        let brought = async {
            self.archive.get(&url, &last).await?;
            let copy = || datasets::copy_warm(&last, &snapshot);
            copy().context("cannot copy the warm start next to the snapshot")
        };
        if let Err(error) = brought.await {
            tracing::warn!(error = format!("{error:#}"), url, "no warm start from the last solve");
        }
        Ok(())
    }

    /// Requests another solve: without it, what this one was for waits for the schedule.
    async fn again(&self) {
        let id = SolveId::now_v7();
        let asked = self.broker.request_solve(self.worker, id, Cause::Event, None).await;
        if let Err(error) = asked {
            tracing::warn!(%error, "cannot ask for a solve after a change of policies");
        }
    }

    /// The settings as recorded.
    fn config(&self) -> Document {
        Document::of(&json!({
            "program": env!("CARGO_PKG_VERSION"),
            "worker": self.worker,
            "deadline_seconds": self.settings.deadline.as_secs_f64(),
            "memory_bytes": self.settings.memory,
            "settings": self.settings.solving,
        }))
    }

    /// Archives a folder; each attempt uses another name, so that an interrupted attempt does no
    /// harm.
    async fn keep(&self, what: &str, folder: &Path) -> Result<String, Trouble> {
        let name = format!("solves/{}/{}/{what}", self.lease.job, self.lease.attempt);
        let kept = self.archive.put(&name, folder).await;
        kept.context("the archive").map_err(failed(FailureReason::ArchiveFailed))
    }

    /// Notes how far the solve is. It is only shown: a failure changes nothing.
    async fn note(&self, step: SolveStep, history: Option<&[Progress]>) {
        let history = history.map(Document::of);
        if let Err(error) = self.broker.note_solve(self.lease, step, history.as_ref()).await {
            tracing::debug!(%error, "cannot note how far the solve is");
        }
    }

    /// Notes what the solver tells, without end.
    async fn follow(&self, mut told: watch::Receiver<Vec<Progress>>) -> Infallible {
        loop {
            if told.changed().await.is_err() {
                return std::future::pending().await;
            }
            let history = told.borrow_and_update().clone();
            self.note(SolveStep::Solve, Some(&history)).await;
            tokio::time::sleep(NOTE_EVERY).await;
        }
    }

    async fn solve(&self, scratch: &Scratch, policies: &KeptPolicies) -> Result<(), Trouble> {
        let (tell, told) = watch::channel(Vec::new());
        let child = ChildSolve {
            program: self.settings.solver.as_deref(),
            snapshot: &scratch.path("snapshot"),
            result: &scratch.path("result"),
            config: &scratch.path("settings").join(SETTINGS),
            policies: &policies.files,
            arguments: &[],
            deadline: self.settings.deadline,
            memory: self.settings.memory,
            progress: Some(&tell),
        };
        let ended = tokio::select! {
            ended = child.run() => ended,
            never = self.follow(told) => match never {},
        };
        ended.map_err(|ChildFailure { reason, detail }| {
            Trouble::Ended(Ended::Failed { reason, detail })
        })
    }

    /// Reads the result and audits it against the snapshot it was made from. Also returns the number of servers in use
    /// that change their holder.
    async fn check(
        &self,
        scratch: &Scratch,
        policies: KeptPolicies,
    ) -> Result<(Publication, Document, u64), Trouble> {
        let (snapshot, result) = (scratch.path("snapshot"), scratch.path("result"));
        let lease = self.lease;
        let check =
            move || -> Result<(Publication, Document, u64), (FailureReason, anyhow::Error)> {
                let unreadable = |error: anyhow::Error| (FailureReason::ResultUnreadable, error);
                let solved = read_solved(&snapshot, &result).map_err(unreadable)?;
                let basis =
                    datasets::read_basis(&snapshot, &solved.snapshot).map_err(anyhow::Error::from);
                let basis = basis.map_err(unreadable)?.expect("an export was written there");
                let claims = solved.report.claims().map_err(|error| unreadable(error.into()))?;
                let found = audit(&solved.snapshot, &solved.targets);
                let differences = found.compare(&claims);
                if !found.is_clean() || !differences.is_empty() {
                    let detail = match differences.first() {
                        Some(difference) => format!("the report differs: {difference}"),
                        None => "a rule is broken".to_owned(),
                    };
                    return Err((FailureReason::AuditRefused, anyhow::Error::msg(detail)));
                }
                policies.check(&solved.report).map_err(|e| (FailureReason::AuditRefused, e))?;
                // One publication id per attempt, so that it can be retried if its answer is lost.
                let name = format!("{} {}", lease.job, lease.attempt);
                let publication = Publication::new(
                    Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).into(),
                    TargetVersion(basis.version),
                    &basis.generations,
                    &solved.snapshot,
                    &solved.targets,
                );
                let moves = solved.targets.diff(&solved.snapshot);
                let in_use =
                    moves.filter(|of| solved.snapshot.servers[of.server.ix()].in_use).count();
                Ok((publication, Document::of(&solved.document), in_use as u64))
            };
        let checked = spawn_low_priority(check).await;
        let checked = checked.unwrap_or_else(|error| Err((FailureReason::ResultUnreadable, error)));
        checked.map_err(|(reason, error)| failed(reason)(error))
    }

    async fn publish(
        &self,
        mut publication: Publication,
        report: Document,
        result_url: String,
    ) -> Result<TargetVersion, Trouble> {
        let result_url_kept = result_url.clone();
        publication.solve = Some(SolveEnd { lease: self.lease, result_url, report });
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.broker.publish(self.worker, &publication).await {
                Ok(published) => return Ok(published.version),
                // Unknown whether it was committed: the retry is idempotent.
                Err(PublishError::Db(error))
                    if error.is_passing() && attempts < PUBLISH_ATTEMPTS =>
                {
                    tracing::warn!(%error, "cannot publish; retrying");
                    tokio::time::sleep(PUBLISH_PAUSE).await;
                }
                Err(PublishError::Db(error)) => return Err(error.into()),
                Err(PublishError::LeaseLost { .. }) => {
                    return Err(Trouble::Ended(Ended::LeaseLost));
                }
                Err(changed @ PublishError::PoliciesChanged { .. }) => {
                    self.again().await;
                    let (detail, result_url) = (changed.to_string(), result_url_kept);
                    return Err(Trouble::Ended(Ended::Stale { detail, result_url }));
                }
                Err(stale @ PublishError::Stale { .. }) => {
                    let (detail, result_url) = (stale.to_string(), result_url_kept);
                    return Err(Trouble::Ended(Ended::Stale { detail, result_url }));
                }
                Err(error @ PublishError::Refused { .. }) => {
                    return Err(failed(FailureReason::AuditRefused)(error.into()));
                }
                Err(error) => return Err(failed(FailureReason::NotPublishable)(error.into())),
            }
        }
    }
}

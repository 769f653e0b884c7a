//! Group commit of health reports: the reports of concurrent requests share transactions, so that a thousand
//! requests per second do not need a thousand commits.

use broker::{Broker, DbError, Report, Reported};
use fleet::Name;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

/// Maximum of rows in a transaction, unless a single request has more.
const ROWS_MAX: usize = 1_000;

/// How long the first report of a batch waits for others: about as long as a commit takes.
const COLLECT_FOR: Duration = Duration::from_millis(10);

/// Limit of queued requests: those of four seconds at a thousand per second. Further senders must retry later.
const WAITING_MAX: usize = 4_096;

/// Timeout of a batch.
const STORE_WITHIN: Duration = Duration::from_secs(30);

/// Reports of one request, and the channel for their outcome.
struct PendingReports {
    actor: Name,
    reports: Vec<Report>,
    outcome: oneshot::Sender<Result<Vec<Reported>, BatchError>>,
}

/// Reports were not stored, or the outcome is unknown. It is safe to send them again.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BatchError {
    /// The queue is full.
    #[error("too many reports are queued")]
    Busy,
    /// Postgres does not answer.
    #[error("Postgres does not answer in time; the reports may or may not be stored")]
    Late,
    /// Postgres failed.
    #[error(transparent)]
    Db(Arc<DbError>),
}

/// Queue of reports to store. Clones share it.
#[derive(Clone, Debug)]
pub struct EventBatcher(mpsc::Sender<PendingReports>);

impl EventBatcher {
    /// Starts the batching task, which ends when the last clone is dropped.
    pub fn start(broker: Broker) -> EventBatcher {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(run(broker, receiver));
        EventBatcher(sender)
    }

    /// Stores reports in a shared batch; returns the outcome of each.
    ///
    /// # Errors
    /// [`BatchError`].
    pub async fn report(
        &self,
        actor: &str,
        reports: Vec<Report>,
        within: Duration,
    ) -> Result<Vec<Reported>, BatchError> {
        if reports.is_empty() {
            return Ok(Vec::new());
        }
        let (outcome, received) = oneshot::channel();
        let pending = PendingReports { actor: actor.into(), reports, outcome };
        self.0.try_send(pending).map_err(|_| BatchError::Busy)?;
        match timeout(within, received).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(BatchError::Late),
        }
    }
}

async fn run(broker: Broker, mut waiting: mpsc::Receiver<PendingReports>) {
    while let Some(first) = waiting.recv().await {
        let batch = collect(first, &mut waiting).await;
        // An entry of the audit trail has one actor.
        let mut by_actor: BTreeMap<Name, Vec<PendingReports>> = BTreeMap::new();
        for pending in batch {
            // The caller has timed out and was told to retry.
            if !pending.outcome.is_closed() {
                by_actor.entry(pending.actor.clone()).or_default().push(pending);
            }
        }
        for (actor, batch) in by_actor {
            store(&broker, &actor, batch).await;
        }
    }
}

/// Collects a batch: until it is full, or [`COLLECT_FOR`] has passed.
async fn collect(
    first: PendingReports,
    waiting: &mut mpsc::Receiver<PendingReports>,
) -> Vec<PendingReports> {
    let mut rows = first.reports.len();
    let mut batch = vec![first];
    let mut deadline = std::pin::pin!(sleep(COLLECT_FOR));
    while rows < ROWS_MAX {
        tokio::select! {
            biased;
            pending = waiting.recv() => match pending {
                Some(pending) => {
                    rows += pending.reports.len();
                    batch.push(pending);
                }
                None => break,
            },
            () = &mut deadline => break,
        }
    }
    batch
}

/// Stores the reports of one actor, and sends each request its outcome.
async fn store(broker: &Broker, actor: &str, batch: Vec<PendingReports>) {
    let reports: Vec<Report> =
        batch.iter().flat_map(|pending| pending.reports.iter().cloned()).collect();
    match timeout(STORE_WITHIN, broker.report_unavailability(actor, &reports)).await {
        Ok(Ok(outcome)) => {
            let mut rows = outcome.rows.into_iter();
            for pending in batch {
                let own = rows.by_ref().take(pending.reports.len()).collect();
                // A caller that has disconnected will retry.
                let _ = pending.outcome.send(Ok(own));
            }
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, rows = reports.len(), "reports were not stored");
            if batch.len() > 1 && !error.is_passing() {
                // An invalid report must not fail the rest of its batch.
                for pending in batch {
                    Box::pin(store(broker, actor, vec![pending])).await;
                }
                return;
            }
            let error = Arc::new(error);
            for pending in batch {
                let _ = pending.outcome.send(Err(BatchError::Db(error.clone())));
            }
        }
        Err(_) => {
            for pending in batch {
                let _ = pending.outcome.send(Err(BatchError::Late));
            }
        }
    }
}

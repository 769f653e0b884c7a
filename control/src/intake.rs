//! Batches the reports of many requests into few transactions: a thousand requests a second are not
//! a thousand commits.

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
const GATHER: Duration = Duration::from_millis(10);

/// Limit of queued requests: four seconds' worth at a thousand a second; after that a sender
/// should retry later.
const WAITING_MAX: usize = 4_096;

/// Timeout of a batch.
const STORE_WITHIN: Duration = Duration::from_secs(30);

/// Reports of one request, and where to send the answer.
struct Parcel {
    actor: Name,
    reports: Vec<Report>,
    answer: oneshot::Sender<Result<Vec<Reported>, IntakeError>>,
}

/// Reports were not stored, or the outcome is unknown; it is safe to send them again.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IntakeError {
    /// The queue is full.
    #[error("too many requests wait to be stored")]
    Busy,
    /// Postgres does not answer.
    #[error("Postgres does not answer in time; whether it was stored is not known")]
    Late,
    /// Postgres failed.
    #[error(transparent)]
    Db(Arc<DbError>),
}

/// Queue of reports to store.
#[derive(Clone, Debug)]
pub struct Intake(mpsc::Sender<Parcel>);

impl Intake {
    /// Starts batching, until all senders are dropped.
    pub fn start(broker: Broker) -> Intake {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(run(broker, receiver));
        Intake(sender)
    }

    /// Stores reports in a shared batch; returns the outcome of each.
    ///
    /// # Errors
    /// [`IntakeError`].
    pub async fn report(
        &self,
        actor: &str,
        reports: Vec<Report>,
        within: Duration,
    ) -> Result<Vec<Reported>, IntakeError> {
        if reports.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, answered) = oneshot::channel();
        let parcel = Parcel { actor: actor.into(), reports, answer };
        self.0.try_send(parcel).map_err(|_| IntakeError::Busy)?;
        match timeout(within, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(IntakeError::Late),
        }
    }
}

async fn run(broker: Broker, mut waiting: mpsc::Receiver<Parcel>) {
    while let Some(first) = waiting.recv().await {
        let parcels = gather(first, &mut waiting).await;
        // An entry of the audit trail has one actor.
        let mut by_actor: BTreeMap<Name, Vec<Parcel>> = BTreeMap::new();
        for parcel in parcels {
            // The caller has timed out and was told to retry.
            if !parcel.answer.is_closed() {
                by_actor.entry(parcel.actor.clone()).or_default().push(parcel);
            }
        }
        for (actor, parcels) in by_actor {
            store(&broker, &actor, parcels).await;
        }
    }
}

async fn gather(first: Parcel, waiting: &mut mpsc::Receiver<Parcel>) -> Vec<Parcel> {
    let mut rows = first.reports.len();
    let mut parcels = vec![first];
    let mut patience = std::pin::pin!(sleep(GATHER));
    while rows < ROWS_MAX {
        tokio::select! {
            biased;
            parcel = waiting.recv() => match parcel {
                Some(parcel) => {
                    rows += parcel.reports.len();
                    parcels.push(parcel);
                }
                None => break,
            },
            () = &mut patience => break,
        }
    }
    parcels
}

async fn store(broker: &Broker, actor: &str, parcels: Vec<Parcel>) {
    let reports: Vec<Report> =
        parcels.iter().flat_map(|parcel| parcel.reports.iter().cloned()).collect();
    match timeout(STORE_WITHIN, broker.report_unavailability(actor, &reports)).await {
        Ok(Ok(outcome)) => {
            let mut rows = outcome.rows.into_iter();
            for parcel in parcels {
                let own = rows.by_ref().take(parcel.reports.len()).collect();
                // A caller that has disconnected will retry.
                let _ = parcel.answer.send(Ok(own));
            }
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, rows = reports.len(), "reports were not stored");
            if parcels.len() > 1 && !error.is_passing() {
                // An invalid report must not fail the rest of its batch.
                for parcel in parcels {
                    Box::pin(store(broker, actor, vec![parcel])).await;
                }
                return;
            }
            let error = Arc::new(error);
            for parcel in parcels {
                let _ = parcel.answer.send(Err(IntakeError::Db(error.clone())));
            }
        }
        Err(_) => {
            for parcel in parcels {
                let _ = parcel.answer.send(Err(IntakeError::Late));
            }
        }
    }
}

//! Reports from many requests gathered into few transactions: a thousand requests a second are not
//! a thousand commits.

use broker::{Broker, DbError, Report, Reported};
use fleet::Name;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

/// The most rows of one transaction, unless a single request has more.
const ROWS_MAX: usize = 1_000;

/// How long the first of a batch waits for others: a commit takes about as long.
const GATHER: Duration = Duration::from_millis(10);

/// Requests that wait: of a thousand a second those of four seconds, after which a sender does
/// better to come again.
const WAITING_MAX: usize = 4_096;

/// How long a batch may take.
const STORE_WITHIN: Duration = Duration::from_secs(30);

/// Reports of one request, and who waits for the answer.
struct Parcel {
    actor: Name,
    reports: Vec<Report>,
    answer: oneshot::Sender<Result<Vec<Reported>, IntakeError>>,
}

/// Reports were not taken, or nobody knows; sending them again does no harm.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IntakeError {
    /// Too many requests wait.
    #[error("too many requests wait to be stored")]
    Busy,
    /// Postgres says nothing.
    #[error("Postgres does not answer in time; whether it was stored is not known")]
    Late,
    /// Postgres fails.
    #[error(transparent)]
    Db(Arc<DbError>),
}

/// Where requests leave their reports.
#[derive(Clone, Debug)]
pub struct Intake(mpsc::Sender<Parcel>);

impl Intake {
    /// Starts to gather, for as long as anybody may send.
    pub fn start(broker: Broker) -> Intake {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(run(broker, receiver));
        Intake(sender)
    }

    /// Stores reports together with those of others; gives what became of each.
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
            // Nobody waits for it any more, and was told to send it again.
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
                // Whoever has gone meanwhile asks again.
                let _ = parcel.answer.send(Ok(own));
            }
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, rows = reports.len(), "reports were not stored");
            if parcels.len() > 1 && !error.is_passing() {
                // What is wrong with one shall not be held against the others.
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

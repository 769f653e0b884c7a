//! One notifier for all followers of reservations: a notified follower reads the change feed itself.

use broker::Broker;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

/// Limit of followers in one process. Each costs a few messages to Postgres for each read,
/// over the broker's few connections.
const READERS_MAX: usize = 1_000;

/// Limit of followers that read at once: the broker has eight connections, and writers go first.
const LOOKS_MAX: usize = 2;

/// How often the clock is checked: announced events begin without a notification.
const TICK: Duration = Duration::from_secs(1);

/// Timeout of Postgres to start a subscription or to return the time.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Notifies followers of possible changes.
#[derive(Clone, Debug)]
pub struct Bell {
    rings: Arc<watch::Sender<u64>>,
    places: Arc<Semaphore>,
    looks: Arc<Semaphore>,
}

impl Bell {
    /// Listens on one connection until the last clone is dropped.
    pub fn start(broker: Broker) -> Bell {
        let rings = Arc::new(watch::Sender::new(0));
        tokio::spawn(run(broker, Arc::downgrade(&rings)));
        let looks = Arc::new(Semaphore::new(LOOKS_MAX));
        Bell { rings, places: Arc::new(Semaphore::new(READERS_MAX)), looks }
    }

    /// Permit to hold during a read.
    pub fn looks(&self) -> Arc<Semaphore> {
        self.looks.clone()
    }

    /// The notifications, for a follower that reads no reservation.
    pub fn rings(&self) -> watch::Receiver<u64> {
        self.rings.subscribe()
    }

    /// Registers a follower; `None`: the limit is reached.
    pub fn listen(&self) -> Option<(watch::Receiver<u64>, OwnedSemaphorePermit)> {
        let place = self.places.clone().try_acquire_owned().ok()?;
        Some((self.rings.subscribe(), place))
    }
}

async fn run(broker: Broker, rings: std::sync::Weak<watch::Sender<u64>>) {
    let ring = || match rings.upgrade() {
        Some(rings) => {
            rings.send_modify(|rung| *rung += 1);
            true
        }
        None => false,
    };
    let trail = async {
        loop {
            match timeout(CONNECT_WITHIN, broker.trail_doorbell()).await {
                // A notification covers all changes missed so far.
                Ok(Ok(mut doorbell)) => {
                    while ring() {
                        while !doorbell.wait(10 * TICK).await && rings.strong_count() > 0 {}
                    }
                }
                Ok(Err(error)) => tracing::debug!(%error, "cannot listen to the audit trail"),
                Err(_) => tracing::debug!("Postgres does not answer the subscription"),
            }
            if rings.strong_count() == 0 {
                return;
            }
            sleep(TICK).await;
        }
    };
    let clock = async {
        let mut last = None;
        while rings.strong_count() > 0 {
            sleep(TICK).await;
            if rings.upgrade().is_none_or(|rings| rings.receiver_count() == 0) {
                // A new follower reads at once.
                last = None;
                continue;
            }
            let ticked = async {
                let since = match last {
                    Some((since, _)) => since,
                    None => broker.clock().await?,
                };
                broker.tick(since).await
            };
            match timeout(CONNECT_WITHIN, ticked).await {
                Ok(Ok(tick)) => {
                    if tick.by_clock || last.is_none_or(|(_, seq)| seq != tick.seq) {
                        ring();
                    }
                    last = Some((tick.now, tick.seq));
                }
                Ok(Err(error)) => tracing::debug!(%error, "the clock cannot be looked at"),
                Err(_) => tracing::debug!("Postgres does not say what time it is"),
            }
        }
    };
    tokio::join!(trail, clock);
}

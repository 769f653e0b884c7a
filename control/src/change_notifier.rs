//! One subscription to the audit trail for all followers: a notified follower reads the change feed itself.

use broker::Broker;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

/// Limit of followers in one process. Each costs a few messages to Postgres for each read,
/// over the broker's few connections.
const FOLLOWERS_MAX: usize = 1_000;

/// Limit of followers that read at once: the broker has eight connections, and writers go first.
const READS_MAX: usize = 2;

/// How often the clock is checked: announced events begin without a notification.
const TICK: Duration = Duration::from_secs(1);

/// Timeout of Postgres to start a subscription or to return the time.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Notifies followers of possible changes. Clones share it.
#[derive(Clone, Debug)]
pub struct ChangeNotifier {
    changes: Arc<watch::Sender<u64>>,
    followers: Arc<Semaphore>,
    reads: Arc<Semaphore>,
}

impl ChangeNotifier {
    /// Listens on one connection until the last clone is dropped.
    pub fn start(broker: Broker) -> ChangeNotifier {
        let changes = Arc::new(watch::Sender::new(0));
        tokio::spawn(run(broker, Arc::downgrade(&changes)));
        let followers = Arc::new(Semaphore::new(FOLLOWERS_MAX));
        ChangeNotifier { changes, followers, reads: Arc::new(Semaphore::new(READS_MAX)) }
    }

    /// Permits for reads: a follower holds one during each read.
    pub fn read_permits(&self) -> Arc<Semaphore> {
        self.reads.clone()
    }

    /// Subscribes without counting as a follower.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Registers a follower; `None`: the limit is reached. Dropping the permit unregisters it.
    pub fn follow(&self) -> Option<(watch::Receiver<u64>, OwnedSemaphorePermit)> {
        let permit = self.followers.clone().try_acquire_owned().ok()?;
        Some((self.changes.subscribe(), permit))
    }
}

async fn run(broker: Broker, changes: std::sync::Weak<watch::Sender<u64>>) {
    let notify = || match changes.upgrade() {
        Some(changes) => {
            changes.send_modify(|count| *count += 1);
            true
        }
        None => false,
    };
    let trail = async {
        loop {
            match timeout(CONNECT_WITHIN, broker.trail_listener()).await {
                // A notification covers all changes missed so far.
                Ok(Ok(mut listener)) => {
                    while notify() {
                        while !listener.wait(10 * TICK).await && changes.strong_count() > 0 {}
                    }
                }
                Ok(Err(error)) => tracing::debug!(%error, "cannot listen to the audit trail"),
                Err(_) => tracing::debug!("LISTEN timed out"),
            }
            if changes.strong_count() == 0 {
                return;
            }
            sleep(TICK).await;
        }
    };
    let clock = async {
        let mut last = None;
        while changes.strong_count() > 0 {
            sleep(TICK).await;
            if changes.upgrade().is_none_or(|changes| changes.receiver_count() == 0) {
                // A new follower reads at once.
                last = None;
                continue;
            }
            let ticked = async {
                let since = match last {
                    Some((since, _)) => since,
                    None => broker.clock().await?,
                };
                broker.clock_tick(since).await
            };
            match timeout(CONNECT_WITHIN, ticked).await {
                Ok(Ok(tick)) => {
                    if tick.by_clock || last.is_none_or(|(_, seq)| seq != tick.seq) {
                        notify();
                    }
                    last = Some((tick.now, tick.seq));
                }
                Ok(Err(error)) => tracing::debug!(%error, "cannot read the clock of Postgres"),
                Err(_) => tracing::debug!("Postgres did not return the time"),
            }
        }
    };
    tokio::join!(trail, clock);
}

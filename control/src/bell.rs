//! One doorbell for all who follow reservations: whoever is rung reads on by itself.

use broker::Broker;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

/// The most who follow at once in one process. Each costs a few messages to Postgres for each look,
/// through the few connections of the broker.
const READERS_MAX: usize = 1_000;

/// How many of them look at once: the broker has eight connections, and those who write come first.
const LOOKS_MAX: usize = 2;

/// How often the clock is looked at: events that were announced begin by it alone.
const TICK: Duration = Duration::from_secs(1);

/// How long Postgres may take to let somebody listen, or to say the time.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Rings when there may be something to read.
#[derive(Clone, Debug)]
pub struct Bell {
    rings: Arc<watch::Sender<u64>>,
    places: Arc<Semaphore>,
    looks: Arc<Semaphore>,
}

impl Bell {
    /// Starts to listen, on one connection, for as long as there is anybody who could be rung.
    pub fn start(broker: Broker) -> Bell {
        let rings = Arc::new(watch::Sender::new(0));
        tokio::spawn(run(broker, Arc::downgrade(&rings)));
        let looks = Arc::new(Semaphore::new(LOOKS_MAX));
        Bell { rings, places: Arc::new(Semaphore::new(READERS_MAX)), looks }
    }

    /// What to hold while looking.
    pub fn looks(&self) -> Arc<Semaphore> {
        self.looks.clone()
    }

    /// What rings, for whoever is one of a kind and reads no reservation.
    pub fn rings(&self) -> watch::Receiver<u64> {
        self.rings.subscribe()
    }

    /// A place among those who are rung; `None`: all are taken.
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
                // Whatever was missed until now is rung for.
                Ok(Ok(mut doorbell)) => {
                    while ring() {
                        while !doorbell.wait(10 * TICK).await && rings.strong_count() > 0 {}
                    }
                }
                Ok(Err(error)) => tracing::debug!(%error, "the audit trail cannot be listened to"),
                Err(_) => tracing::debug!("Postgres does not let anybody listen"),
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
                // Whoever comes looks at once.
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

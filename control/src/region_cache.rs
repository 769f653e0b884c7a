//! The region in memory, for plans, certificates and drills, which need all of it at once.
//!
//! The cache holds one whole snapshot taken by the broker; it is never patched, so it cannot drift
//! from the tables. A busy region would be read continuously, so after each read the cache
//! pauses for a multiple of the read's duration. A caller that needs current data uses
//! [`RegionCache::read_current`]: if the region has changed, that reads at once, one read for all
//! concurrent callers.

use crate::change_notifier::ChangeNotifier;
use crate::reservation_status::{ReservationStatus, statuses};
use broker::{Broker, DbError, Export, ExportError, PriorityReaders, Seq, TargetVersion};
use fleet::audit::{Certificate, certificate};
use fleet::{RegionSnapshot, ReservationName, SnapshotError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};

/// Pause after a read, as a multiple of its duration: a busy region, which is read at a
/// quarter of the speed, costs a tenth of a core.
const REST: u32 = 2;

/// Shortest pause: events arrive in batches.
const REST_LEAST: Duration = Duration::from_millis(500);

/// Longest pause: on an overloaded machine reads are slow, too.
const REST_MOST: Duration = Duration::from_secs(30);

/// Timeout of a read: Postgres has stopped answering.
const READ_WITHIN: Duration = Duration::from_secs(60);

/// Timeout of reading the number of the last audit-trail entry.
const SEQ_WITHIN: Duration = Duration::from_secs(10);

/// Pause after a failed read.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// A region at one instant, and the versions that a decision on it must be checked against.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedRegion {
    /// The region. Its `taken_at` is by the database's clock.
    pub snapshot: RegionSnapshot,
    /// Generation of each server, in the same order.
    pub generations: Vec<i64>,
    /// Version of the targets.
    pub version: TargetVersion,
    /// Last audit-trail entry that it contains.
    pub seq: Seq,
    /// Capacity that the loss of each MSB would leave.
    pub certificate: Certificate,
    /// Capacity of every reservation, by name.
    pub statuses: BTreeMap<ReservationName, ReservationStatus>,
}

impl CachedRegion {
    /// Builds it from the broker's rows.
    ///
    /// # Errors
    /// If a row breaks a rule of the snapshot format.
    pub fn of(export: Export) -> Result<CachedRegion, SnapshotError> {
        let snapshot = RegionSnapshot::new(export.parts)?;
        let certificate = certificate(&snapshot);
        Ok(CachedRegion {
            statuses: statuses(&snapshot, &certificate),
            certificate,
            snapshot,
            generations: export.generations,
            version: export.version,
            seq: export.seq,
        })
    }

    /// The rows as the broker returned them.
    pub fn export(&self) -> Export {
        Export {
            parts: self.snapshot.to_parts(),
            generations: self.generations.clone(),
            version: self.version,
            seq: self.seq,
        }
    }
}

/// No region is available.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The database holds no region.
    #[error("no region is loaded")]
    NothingLoaded,
    /// A stored row breaks a rule of the snapshot format.
    #[error("the stored region breaks a rule")]
    Rule(#[from] SnapshotError),
    /// Postgres failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// Postgres does not answer.
    #[error("Postgres does not answer in time")]
    Silent(#[from] Elapsed),
}

impl From<ExportError> for RegionError {
    fn from(error: ExportError) -> RegionError {
        match error {
            ExportError::NothingLoaded => RegionError::NothingLoaded,
            ExportError::Db(error) => RegionError::Db(error),
        }
    }
}

/// Cache of the latest region. Clones share it.
#[derive(Clone, Debug)]
pub struct RegionCache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    broker: Broker,
    latest: watch::Sender<Option<Arc<CachedRegion>>>,
    /// Whether the store has been read: `latest` is `None` because nothing is loaded.
    was_read: AtomicBool,
    /// Held during a read, so that concurrent callers share it.
    reading: Mutex<()>,
    /// Callers that wait for a read, without the background task.
    waiters: PriorityReaders,
}

impl RegionCache {
    /// A cache with a notifier of its own, for a process that serves no requests. It stops when the last clone is
    /// dropped.
    pub fn standalone(broker: Broker) -> RegionCache {
        let notifier = ChangeNotifier::start(broker.clone());
        RegionCache::start(broker, &notifier)
    }

    /// Starts the task that reads the region after changes; it stops when the last clone is dropped.
    pub fn start(broker: Broker, notifier: &ChangeNotifier) -> RegionCache {
        let inner = Inner {
            broker,
            latest: watch::Sender::new(None),
            was_read: AtomicBool::new(false),
            reading: Mutex::new(()),
            waiters: PriorityReaders::default(),
        };
        let inner = Arc::new(inner);
        tokio::spawn(follow(Arc::downgrade(&inner), notifier.subscribe()));
        RegionCache(inner)
    }

    /// The cached region; `None`: not read yet, or the store is empty.
    pub fn latest(&self) -> Option<Arc<CachedRegion>> {
        self.0.latest.borrow().clone()
    }

    /// Whether the store was read since the start, whether or not a region is loaded.
    pub fn was_read(&self) -> bool {
        self.0.was_read.load(Ordering::Acquire)
    }

    /// Subscribes to the regions that are read.
    pub fn subscribe(&self) -> watch::Receiver<Option<Arc<CachedRegion>>> {
        self.0.latest.subscribe()
    }

    /// A region that contains every audit-trail entry made, and every event begun or ended, before the
    /// call.
    ///
    /// # Errors
    /// [`RegionError`].
    pub async fn read_current(&self) -> Result<Arc<CachedRegion>, RegionError> {
        let _waiting = self.0.waiters.join();
        self.0.read_current().await
    }

    /// [`Self::read_current`] at low priority: a read for this caller alone runs at reduced speed.
    ///
    /// # Errors
    /// [`RegionError`].
    pub async fn read_low_priority(&self) -> Result<Arc<CachedRegion>, RegionError> {
        self.0.read_current().await
    }
}

impl Inner {
    async fn read_current(&self) -> Result<Arc<CachedRegion>, RegionError> {
        if let Some(held) = self.current().await? {
            return Ok(held);
        }
        let wanted = timeout(SEQ_WITHIN, self.broker.last_seq()).await??;
        let _reading = self.reading.lock().await;
        // Another caller may have read it meanwhile. Writes after the call need not be in the result.
        let held = self.latest.borrow().clone();
        if let Some(held) = held.filter(|held| held.seq >= wanted) {
            let tick =
                timeout(SEQ_WITHIN, self.broker.clock_tick(held.snapshot.taken_at)).await??;
            if !tick.by_clock {
                return Ok(held);
            }
        }
        self.read().await
    }

    /// The cached region, if it is still current.
    async fn current(&self) -> Result<Option<Arc<CachedRegion>>, RegionError> {
        let held = self.latest.borrow().clone();
        let Some(held) = held else { return Ok(None) };
        let is_current = self.broker.is_current(held.snapshot.taken_at, held.seq);
        Ok(timeout(SEQ_WITHIN, is_current).await??.then_some(held))
    }

    /// Reads the whole region.
    async fn read(&self) -> Result<Arc<CachedRegion>, RegionError> {
        let read = async {
            let export =
                timeout(READ_WITHIN, self.broker.export_throttled(&self.waiters)).await??;
            let built = tokio::task::spawn_blocking(move || CachedRegion::of(export)).await;
            Ok(built.expect("it neither panics nor is cancelled")?)
        };
        let read = read.await;
        match &read {
            Ok(_) => {}
            Err(RegionError::NothingLoaded) => {
                self.latest.send_replace(None);
                self.was_read.store(true, Ordering::Release);
            }
            Err(_) => return read.map(Arc::new),
        }
        let region = Arc::new(read?);
        self.latest.send_replace(Some(region.clone()));
        self.was_read.store(true, Ordering::Release);
        Ok(region)
    }
}

/// Reads the region after each notification, with pauses in between.
async fn follow(cache: Weak<Inner>, mut changes: watch::Receiver<u64>) {
    changes.mark_changed();
    while changes.changed().await.is_ok() {
        let Some(inner) = cache.upgrade() else { return };
        let rest = match inner.refresh().await {
            Ok(rest) => rest,
            Err(RegionError::NothingLoaded) => REST_LEAST,
            Err(error) => {
                tracing::warn!(%error, "cannot read the region");
                changes.mark_changed();
                RETRY_AFTER
            }
        };
        drop(inner);
        sleep(rest).await;
    }
}

impl Inner {
    /// Reads the region if it has changed; returns the pause.
    async fn refresh(&self) -> Result<Duration, RegionError> {
        let clock = async || Ok::<_, RegionError>(timeout(SEQ_WITHIN, self.broker.clock()).await??);
        let began = clock().await?;
        self.read_current().await?;
        let took = (clock().await? - began).to_std().unwrap_or_default();
        Ok(took.saturating_mul(REST).clamp(REST_LEAST, REST_MOST))
    }
}

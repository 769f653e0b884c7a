//! Cache of the region in memory, for plans, certificates and drills, which read all of it at once.
//!
//! The cache holds one whole snapshot taken by the broker; it is never patched, so it cannot drift
//! from the tables. A busy region would be read continuously, so after each read the cache
//! pauses for a multiple of the read's duration. A caller that needs current data uses
//! [`RegionKeeper::fresh`]: if the region has changed, that reads at once, one read for all
//! concurrent callers.

use crate::bell::Bell;
use crate::standing::{Standing, standings};
use broker::{Broker, DbError, Export, ExportError, Seq, TargetVersion, Waiters};
use fleet::audit::{Certificate, certificate};
use fleet::{Name, RegionSnapshot, SnapshotError};
use std::collections::BTreeMap;
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

/// Timeout of reading the last audit-trail entry's number.
const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// Pause after a failed read.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// A region at one instant, and the versions that a decision on it must be checked against.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldRegion {
    /// The region. Its `taken_at` is by the database's clock.
    pub snapshot: RegionSnapshot,
    /// Generation of each server, in the same order.
    pub generations: Vec<i64>,
    /// Version of the targets.
    pub version: TargetVersion,
    /// Last audit-trail entry that it contains.
    pub seq: Seq,
    /// What the loss of each MSB would leave.
    pub certificate: Certificate,
    /// Capacity of every reservation, by name.
    pub standings: BTreeMap<Name, Standing>,
}

impl HeldRegion {
    /// Builds it from the broker's rows.
    ///
    /// # Errors
    /// If a row breaks a rule of the snapshot format.
    pub fn of(export: Export) -> Result<HeldRegion, SnapshotError> {
        let snapshot = RegionSnapshot::new(export.parts)?;
        Ok(HeldRegion {
            certificate: certificate(&snapshot),
            standings: standings(&snapshot),
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

/// Keeps the latest region in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct RegionKeeper(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    broker: Broker,
    held: watch::Sender<Option<Arc<HeldRegion>>>,
    /// Held during a read, so that concurrent callers share it.
    reading: Mutex<()>,
    /// Number of callers that wait for a read, without the background task.
    waiters: Waiters,
}

impl RegionKeeper {
    /// Keeps the region in a process that serves no requests, until the last clone is dropped.
    pub fn of(broker: Broker) -> RegionKeeper {
        let bell = Bell::start(broker.clone());
        RegionKeeper::start(broker, &bell)
    }

    /// Keeps the region until the last clone is dropped.
    pub fn start(broker: Broker, bell: &Bell) -> RegionKeeper {
        let kept = Kept {
            broker,
            held: watch::Sender::new(None),
            reading: Mutex::new(()),
            waiters: Waiters::default(),
        };
        let kept = Arc::new(kept);
        tokio::spawn(keep(Arc::downgrade(&kept), bell.rings()));
        RegionKeeper(kept)
    }

    /// The region as last read; `None`: not read yet, or the store is empty.
    pub fn latest(&self) -> Option<Arc<HeldRegion>> {
        self.0.held.borrow().clone()
    }

    /// Subscribes to every region that is read.
    pub fn follow(&self) -> watch::Receiver<Option<Arc<HeldRegion>>> {
        self.0.held.subscribe()
    }

    /// A region that contains every audit-trail entry made, and every event begun or ended, before the
    /// call.
    ///
    /// # Errors
    /// [`RegionError`].
    pub async fn fresh(&self) -> Result<Arc<HeldRegion>, RegionError> {
        let _waiting = self.0.waiters.join();
        self.0.fresh().await
    }

    /// [`Self::fresh`] at low priority: a read for this caller alone leaves most processors to others.
    ///
    /// # Errors
    /// [`RegionError`].
    pub async fn unhurried(&self) -> Result<Arc<HeldRegion>, RegionError> {
        self.0.fresh().await
    }
}

impl Kept {
    async fn fresh(&self) -> Result<Arc<HeldRegion>, RegionError> {
        if let Some(held) = self.current().await? {
            return Ok(held);
        }
        let wanted = timeout(LOOK_WITHIN, self.broker.last_seq()).await??;
        let _reading = self.reading.lock().await;
        // Another caller may have read it meanwhile; later writes are no reason to read again.
        let held = self.held.borrow().clone();
        if let Some(held) = held.filter(|held| held.seq >= wanted) {
            let tick = timeout(LOOK_WITHIN, self.broker.tick(held.snapshot.taken_at)).await??;
            if !tick.by_clock {
                return Ok(held);
            }
        }
        self.read().await
    }

    /// The cached region, if it is still current.
    async fn current(&self) -> Result<Option<Arc<HeldRegion>>, RegionError> {
        let held = self.held.borrow().clone();
        let Some(held) = held else { return Ok(None) };
        let asked = self.broker.is_current(held.snapshot.taken_at, held.seq);
        Ok(timeout(LOOK_WITHIN, asked).await??.then_some(held))
    }

    /// Reads the whole region.
    async fn read(&self) -> Result<Arc<HeldRegion>, RegionError> {
        let read = async {
            let export = timeout(READ_WITHIN, self.broker.export_beside(&self.waiters)).await??;
            let built = tokio::task::spawn_blocking(move || HeldRegion::of(export)).await;
            Ok(built.expect("it neither panics nor is cancelled")?)
        };
        let read = read.await;
        match &read {
            Ok(_) => {}
            Err(RegionError::NothingLoaded) => drop(self.held.send_replace(None)),
            Err(_) => return read.map(Arc::new),
        }
        let region = Arc::new(read?);
        self.held.send_replace(Some(region.clone()));
        Ok(region)
    }
}

/// Reads the region after each notification, with pauses in between.
async fn keep(kept: Weak<Kept>, mut rings: watch::Receiver<u64>) {
    rings.mark_changed();
    while rings.changed().await.is_ok() {
        let Some(kept) = kept.upgrade() else { return };
        let rest = match kept.look().await {
            Ok(rest) => rest,
            Err(RegionError::NothingLoaded) => REST_LEAST,
            Err(error) => {
                tracing::warn!(%error, "the region cannot be kept in memory");
                rings.mark_changed();
                RETRY_AFTER
            }
        };
        drop(kept);
        sleep(rest).await;
    }
}

impl Kept {
    /// Reads the region if it has changed; returns the pause.
    async fn look(&self) -> Result<Duration, RegionError> {
        let clock =
            async || Ok::<_, RegionError>(timeout(LOOK_WITHIN, self.broker.clock()).await??);
        let began = clock().await?;
        self.fresh().await?;
        let took = (clock().await? - began).to_std().unwrap_or_default();
        Ok(took.saturating_mul(REST).clamp(REST_LEAST, REST_MOST))
    }
}

//! The region, kept in memory: for plans, certificates and drills, which read all of it at once.
//!
//! What is kept is a snapshot that the broker took whole, of one instant; it is never patched, so it
//! cannot drift from the tables. A busy region would be read without end, so after each reading the
//! keeper rests for many times as long as that took. Whoever must not be told what is past asks for
//! [`RegionKeeper::fresh`]: if something has changed since, that reads at once, one reading for all who
//! ask meanwhile.

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

/// A reading is followed by so many times its length of rest, so that a busy region, which is read at a
/// quarter of the speed, costs a tenth of a core.
const REST: u32 = 2;

/// The shortest rest: events come in batches.
const REST_LEAST: Duration = Duration::from_millis(500);

/// The longest rest: on a machine that has too much to do, readings take long for no fault of their own.
const REST_MOST: Duration = Duration::from_secs(30);

/// A reading that takes longer than this never ends: Postgres has gone without a word.
const READ_WITHIN: Duration = Duration::from_secs(60);

/// How long the trail's last number may take.
const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// How long to wait after a reading that failed.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// A region at one instant, and what a decision made on it must be checked against.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldRegion {
    /// The region. Its `taken_at` is by the database's clock.
    pub snapshot: RegionSnapshot,
    /// The generation of each server, in the same order.
    pub generations: Vec<i64>,
    /// The version of the targets.
    pub version: TargetVersion,
    /// The last entry of the audit trail that this contains.
    pub seq: Seq,
    /// What the loss of each MSB would leave of it.
    pub certificate: Certificate,
    /// What every reservation has, by name.
    pub standings: BTreeMap<Name, Standing>,
}

impl HeldRegion {
    /// Of what the broker read.
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

    /// As the broker gave it.
    pub fn export(&self) -> Export {
        Export {
            parts: self.snapshot.to_parts(),
            generations: self.generations.clone(),
            version: self.version,
            seq: self.seq,
        }
    }
}

/// The region is not there.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The database holds none.
    #[error("no region is loaded")]
    NothingLoaded,
    /// What is stored breaks a rule of the snapshot format.
    #[error("the stored region breaks a rule")]
    Rule(#[from] SnapshotError),
    /// Postgres fails.
    #[error(transparent)]
    Db(#[from] DbError),
    /// Postgres says nothing.
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
    /// Held while the region is read, so that it is read once for all who want it.
    reading: Mutex<()>,
    /// Who waits for a reading: the keeper itself does not.
    waiters: Waiters,
}

impl RegionKeeper {
    /// Keeps it in a process that serves nothing, for as long as there is a clone of this.
    pub fn of(broker: Broker) -> RegionKeeper {
        let bell = Bell::start(broker.clone());
        RegionKeeper::start(broker, &bell)
    }

    /// Starts to keep it, for as long as there is a clone of this.
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

    /// The region as it was last read; `None`: never yet, or there is none.
    pub fn latest(&self) -> Option<Arc<HeldRegion>> {
        self.0.held.borrow().clone()
    }

    /// Tells of every region that is read.
    pub fn follow(&self) -> watch::Receiver<Option<Arc<HeldRegion>>> {
        self.0.held.subscribe()
    }

    /// The region with everything in it that was in the audit trail, and every event that had begun or
    /// ended, when this was called.
    ///
    /// # Errors
    /// [`RegionError`].
    pub async fn fresh(&self) -> Result<Arc<HeldRegion>, RegionError> {
        let _waiting = self.0.waiters.join();
        self.0.fresh().await
    }

    /// The same for somebody who has time: a reading for nobody else leaves most of the processors to others.
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
        // Somebody else may have read it meanwhile; that more has been written since is no reason to read again.
        let held = self.held.borrow().clone();
        if let Some(held) = held.filter(|held| held.seq >= wanted) {
            let tick = timeout(LOOK_WITHIN, self.broker.tick(held.snapshot.taken_at)).await??;
            if !tick.by_clock {
                return Ok(held);
            }
        }
        self.read().await
    }

    /// What is held, if a reading would bring the same.
    async fn current(&self) -> Result<Option<Arc<HeldRegion>>, RegionError> {
        let held = self.held.borrow().clone();
        let Some(held) = held else { return Ok(None) };
        let asked = self.broker.is_current(held.snapshot.taken_at, held.seq);
        Ok(timeout(LOOK_WITHIN, asked).await??.then_some(held))
    }

    /// Reads all of it.
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

/// Reads the region whenever something rings, and rests in between.
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
    /// Reads what is new, if there is anything; gives how long to rest.
    async fn look(&self) -> Result<Duration, RegionError> {
        let clock =
            async || Ok::<_, RegionError>(timeout(LOOK_WITHIN, self.broker.clock()).await??);
        let began = clock().await?;
        self.fresh().await?;
        let took = (clock().await? - began).to_std().unwrap_or_default();
        Ok(took.saturating_mul(REST).clamp(REST_LEAST, REST_MOST))
    }
}

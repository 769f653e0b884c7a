//! What has changed, for pages that follow the region: one reader for all of them.
//!
//! It reads a few small rows a second while a page follows, and nothing otherwise. A page learns which [`Topic`]s have
//! changed, never what: it reads itself again, with the rights of its reader.

use crate::change_notifier::ChangeNotifier;
use crate::region_cache::{CachedRegion, RegionCache};
use broker::{Action, Broker, ClockTick, DbError, Pulse, Recorded, since_boot};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

/// Longest time between two readings. Steps of moves ring no bell.
const READ_EVERY: Duration = Duration::from_secs(1);

/// Shortest time between two readings: changes in between are read together.
const READ_PAUSE: Duration = Duration::from_millis(300);

/// Timeout of a reading.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// A part of the region that pages show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Servers, reservations, promises and settings. It changes once more when the region cache has caught up.
    Region,
    /// Moves and the mover.
    Moves,
    /// Solves.
    Solves,
    /// The progress of a running solve.
    Progress,
    /// Unavailability, outages, replacements, loans.
    Failures,
    /// Planned maintenance.
    Maintenance,
    /// Requests for capacity.
    Requests,
}

impl Topic {
    /// Every topic.
    pub const ALL: [Topic; 7] = [
        Topic::Region,
        Topic::Moves,
        Topic::Solves,
        Topic::Progress,
        Topic::Failures,
        Topic::Maintenance,
        Topic::Requests,
    ];

    /// Its word in events and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Topic::Region => "region",
            Topic::Moves => "moves",
            Topic::Solves => "solves",
            Topic::Progress => "progress",
            Topic::Failures => "failures",
            Topic::Maintenance => "maintenance",
            Topic::Requests => "requests",
        }
    }

    /// What an action of the audit trail may have changed.
    const fn of(action: Action) -> &'static [Topic] {
        match action {
            Action::SnapshotLoaded => &Topic::ALL,
            Action::TargetsPublished => &[Topic::Region, Topic::Moves, Topic::Solves],
            Action::MovesOpened | Action::ServerBound | Action::MoveEnded => {
                &[Topic::Region, Topic::Moves]
            }
            Action::MoverStopped | Action::MoverResumed => &[Topic::Moves],
            Action::UnavailabilityRecorded
            | Action::UnavailabilityCleared
            | Action::ServerReplaced
            | Action::ReplacementOwed
            | Action::ServerReturns
            | Action::SpareReturns
            | Action::OutageBegan
            | Action::OutageEnded
            | Action::ServersLent
            | Action::ServersRecalled
            | Action::ReservationsGaveWay => &[Topic::Region, Topic::Failures],
            Action::MaintenancePlanned | Action::MaintenanceChanged => {
                &[Topic::Region, Topic::Maintenance]
            }
            Action::RequestSubmitted
            | Action::RequestAwaitsApproval
            | Action::RequestApproved
            | Action::RequestRefused
            | Action::RequestCancelled => &[Topic::Requests],
            Action::PlanApplied | Action::ReservationRemoved => &[Topic::Region, Topic::Requests],
            Action::SolveRequested
            | Action::SolveCancelled
            | Action::SolveAwaitsApproval
            | Action::SolveApproved
            | Action::SolveRejected => &[Topic::Solves],
            Action::TokenCreated | Action::TokenRevoked => &[],
            Action::UsageReported
            | Action::ContractSet
            | Action::ContractRemoved
            | Action::EmergencyAsked
            | Action::EmergencyGranted
            | Action::EmergencyEnded
            | Action::QuotaSet
            | Action::AutosizeSet
            | Action::AutosizeRemoved
            | Action::BufferAutosizeSet
            | Action::BufferAutosizeRemoved
            | Action::PolicySet
            | Action::PolicyWithdrawn
            | Action::ProfileSet
            | Action::ProfileRemoved
            | Action::RegionSettingsSet
            | Action::SharedBufferSet
            | Action::ElasticSet
            | Action::ElasticEnded
            | Action::HardwareTypeAdded
            | Action::ServersRacked
            | Action::ServersDecommissioned
            | Action::ServersRelocated
            | Action::DecommissionAsked
            | Action::DecommissionCancelled
            | Action::HardwareTypeRenamed
            | Action::HardwareTypeRemoved
            | Action::HardwareOrdered
            | Action::HardwareOrderChanged
            | Action::HardwareOrderArrived
            | Action::HardwareOrderCancelled
            | Action::RolloutPaused
            | Action::RolloutResumed => &[Topic::Region],
        }
    }
}

/// How often each topic has changed, as far as this process has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveVersion {
    /// Tells processes apart: their counts are not comparable.
    process: u64,
    counts: [u64; Topic::ALL.len()],
    /// As [`since_boot`] says.
    read_at: Duration,
}

impl LiveVersion {
    /// The first version of a process, read now.
    pub fn new(process: u64) -> LiveVersion {
        LiveVersion { process, counts: [0; Topic::ALL.len()], read_at: since_boot() }
    }

    /// Counts a reading that has found these topics changed.
    pub fn note(&mut self, changed: &[Topic]) {
        self.read_at = since_boot();
        for topic in changed {
            self.counts[*topic as usize] += 1;
        }
    }

    /// The topics that have changed since an earlier version of the same process.
    pub fn changed_since(&self, earlier: &LiveVersion) -> impl Iterator<Item = Topic> {
        let counts = self.counts.into_iter().zip(earlier.counts);
        Topic::ALL.into_iter().zip(counts).filter(|(_, (now, then))| now != then).map(|of| of.0)
    }

    /// The version as a word that is equal only for equal versions.
    pub fn token(&self) -> String {
        let counts = self.counts.map(|count| count.to_string()).join(".");
        format!("{:x}.{counts}", self.process)
    }

    /// The age of the last reading.
    pub fn age(&self) -> Duration {
        since_boot().saturating_sub(self.read_at)
    }
}

/// Follows the region for pages. Clones share it.
#[derive(Clone, Debug)]
pub struct LiveFeed {
    version: Arc<watch::Sender<LiveVersion>>,
    joined: Arc<Notify>,
}

impl LiveFeed {
    /// Starts the task that reads; it stops when the last clone is dropped.
    pub fn start(broker: Broker, notifier: &ChangeNotifier, region: &RegionCache) -> LiveFeed {
        let process = uuid::Uuid::now_v7().as_u64_pair().1;
        let version = Arc::new(watch::Sender::new(LiveVersion::new(process)));
        let joined = Arc::new(Notify::new());
        let bells = Bells { trail: notifier.subscribe(), region: region.subscribe() };
        tokio::spawn(run(broker, Arc::downgrade(&version), joined.clone(), bells));
        LiveFeed { version, joined }
    }

    /// The version read last. A page takes it before it reads what it shows.
    pub fn version(&self) -> LiveVersion {
        *self.version.borrow()
    }

    /// Follows the versions.
    pub fn subscribe(&self) -> watch::Receiver<LiveVersion> {
        let receiver = self.version.subscribe();
        self.joined.notify_one();
        receiver
    }
}

/// What ends the wait for the next reading.
struct Bells {
    trail: watch::Receiver<u64>,
    region: watch::Receiver<Option<Arc<CachedRegion>>>,
}

impl Bells {
    async fn ring(&mut self) {
        let rang = tokio::select! {
            rang = self.trail.changed() => rang.is_ok(),
            rang = self.region.changed() => {
                // It is taken note of after the wait.
                self.region.mark_changed();
                rang.is_ok()
            }
        };
        if !rang {
            // The server ends.
            std::future::pending().await
        }
    }

    /// Whether the region cache was renewed since the last call.
    fn renewed(&mut self) -> bool {
        self.trail.mark_unchanged();
        let renewed = self.region.has_changed().unwrap_or(false);
        self.region.mark_unchanged();
        renewed
    }
}

/// What was read last.
struct Reading {
    tick: ClockTick,
    pulse: Pulse,
}

async fn run(
    broker: Broker,
    version: Weak<watch::Sender<LiveVersion>>,
    joined: Arc<Notify>,
    mut bells: Bells,
) {
    let mut last: Option<Reading> = None;
    loop {
        let followed = version.upgrade().is_some_and(|version| version.receiver_count() > 0);
        let waited = async {
            if followed {
                let _ = timeout(READ_EVERY, bells.ring()).await;
            } else {
                joined.notified().await;
            }
        };
        tokio::select! { () = waited => {}, () = gone(&version) => return }
        let renewed = bells.renewed();
        match timeout(READ_WITHIN, read(&broker, last.as_ref())).await {
            Ok(Ok((reading, mut changed))) => {
                last = Some(reading);
                if renewed && !changed.contains(&Topic::Region) {
                    changed.push(Topic::Region);
                }
                let Some(version) = version.upgrade() else { return };
                version.send_if_modified(|of| {
                    of.note(&changed);
                    !changed.is_empty()
                });
            }
            failed => {
                if renewed {
                    bells.region.mark_changed();
                }
                match failed {
                    Ok(Err(error)) => tracing::debug!(%error, "cannot read what has changed"),
                    _ => tracing::debug!("Postgres did not say what has changed"),
                }
            }
        }
        sleep(READ_PAUSE).await;
    }
}

/// Returns once the feed is dropped.
async fn gone(version: &Weak<watch::Sender<LiveVersion>>) {
    while version.strong_count() > 0 {
        sleep(READ_EVERY).await;
    }
}

/// Reads, and compares with what was read last.
async fn read(broker: &Broker, last: Option<&Reading>) -> Result<(Reading, Vec<Topic>), DbError> {
    let since = match last {
        Some(last) => last.tick.now,
        None => broker.clock().await?,
    };
    let reading = Reading { tick: broker.clock_tick(since).await?, pulse: broker.pulse().await? };
    let Some(last) = last else { return Ok((reading, Topic::ALL.to_vec())) };
    let mut changed = [false; Topic::ALL.len()];
    let mut mark = |topics: &[Topic]| topics.iter().for_each(|of| changed[*of as usize] = true);
    if reading.tick.seq != last.tick.seq {
        match broker.actions_between(last.tick.seq, reading.tick.seq).await? {
            None => mark(&Topic::ALL),
            Some(actions) => actions.into_iter().for_each(|action| match action {
                Recorded::Known(action) => mark(Topic::of(action)),
                Recorded::Unknown(_) => mark(&Topic::ALL),
            }),
        }
    }
    if reading.tick.by_clock {
        mark(&[Topic::Region, Topic::Failures, Topic::Maintenance]);
    }
    if reading.pulse.moves != last.pulse.moves {
        mark(&[Topic::Moves]);
    }
    if reading.pulse.solves != last.pulse.solves {
        mark(&[Topic::Solves]);
    }
    if reading.pulse.progress != last.pulse.progress {
        mark(&[Topic::Progress]);
    }
    let changed = Topic::ALL.into_iter().filter(|topic| changed[*topic as usize]).collect();
    Ok((reading, changed))
}

#[cfg(test)]
mod tests {
    use super::{LiveVersion, Topic};

    #[test]
    fn version_names_the_topics_that_changed() {
        let mut now = LiveVersion::new(7);
        now.note(&[Topic::Region]);
        let earlier = now;
        now.note(&[]);
        assert_eq!(now.changed_since(&earlier).count(), 0);
        now.note(&[Topic::Requests, Topic::Moves]);
        let changed: Vec<Topic> = now.changed_since(&earlier).collect();
        assert_eq!(changed, [Topic::Moves, Topic::Requests]);
        assert_eq!(now.token(), "7.1.1.0.0.0.0.1");
        assert_ne!(LiveVersion::new(7).token(), LiveVersion::new(8).token(), "another process");
    }

    #[test]
    fn topics_are_numbered_in_order() {
        for (position, topic) in Topic::ALL.into_iter().enumerate() {
            assert_eq!(topic as usize, position, "{}", topic.as_str());
        }
    }
}

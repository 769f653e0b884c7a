//! Queue of plans in this process: few are made at a time, because each takes a processor for seconds;
//! callers that would wait too long are rejected at once.

use crate::plan_deadline::PlanDeadline;
use crate::planner::{PlanRefused, Planned, Planner};
use crate::region_cache::CachedRegion;
use fleet::{CapacityRequest, RegionSnapshot, Targets};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Plans made at a time: each has the solver's number of threads, and its own copy of the region.
const AT_A_TIME: usize = 2;

/// Longest wait in the queue: callers give up after that.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Limit of queued plans, even if plans are short.
const WAITING_MAX: usize = 64;

/// Assumed duration of a plan before the first measurement.
const FIRST_GUESS: Duration = Duration::from_secs(1);

/// No plan was made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanQueueError {
    /// This process has no planner.
    #[error("this process has no planner")]
    NoPlanner,
    /// The queue is full.
    #[error("too many plans are queued; retry in {} s", .after.as_secs())]
    Busy {
        /// Estimated time until there is room.
        after: Duration,
    },
    /// The requests are invalid for the region.
    #[error(transparent)]
    Refused(#[from] PlanRefused),
}

/// Bounded queue of plans made in this process. Clones share it.
#[derive(Clone, Debug)]
pub struct PlanQueue(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    planner: Option<Arc<dyn Planner>>,
    /// Permits to plan.
    turns: Arc<Semaphore>,
    load: Mutex<Load>,
}

#[derive(Debug)]
struct Load {
    /// Plans under way or queued.
    plans: usize,
    /// Recent duration of a plan.
    duration: Duration,
}

impl PlanQueue {
    /// A queue for this planner; `None`: every plan is rejected.
    pub fn new(planner: Option<Arc<dyn Planner>>) -> PlanQueue {
        PlanQueue(Arc::new(Inner {
            planner,
            turns: Arc::new(Semaphore::new(AT_A_TIME)),
            load: Mutex::new(Load { plans: 0, duration: FIRST_GUESS }),
        }))
    }

    /// Plans under way or queued.
    pub fn under_way(&self) -> usize {
        self.0.with(|load| load.plans)
    }

    /// Whether a new plan would have to wait.
    pub fn is_full(&self) -> bool {
        self.0.turns.available_permits() == 0
    }

    /// Whether targets keep the policies in force.
    ///
    /// # Errors
    /// As [`Planner::keeps_policies`]; without a planner it is not known.
    pub fn keeps_policies(&self, region: &RegionSnapshot, targets: &Targets) -> Result<(), String> {
        let planner = self.0.planner.as_ref();
        planner
            .ok_or_else(|| PlanQueueError::NoPlanner.to_string())?
            .keeps_policies(region, targets)
    }

    /// Waits for a turn, then plans requests on a region. Dropping the future cancels the plan, which ends soon
    /// and frees its turn.
    ///
    /// # Errors
    /// [`PlanQueueError`].
    pub async fn plan(
        &self,
        region: Arc<CachedRegion>,
        requests: Vec<CapacityRequest>,
        deadline: PlanDeadline,
    ) -> Result<Planned, PlanQueueError> {
        let inner = &self.0;
        let planner = inner.planner.clone().ok_or(PlanQueueError::NoPlanner)?;
        let _admitted = inner.admit()?;
        let turn = timeout(WAIT_MAX, inner.turns.clone().acquire_owned()).await;
        let turn = turn.map_err(|_| PlanQueueError::Busy { after: inner.wait() })?;
        let turn = turn.expect("turns are never closed");
        let on_drop = CancelOnDrop::default();
        let cancelled = on_drop.0.clone();
        let planned = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let must_stop = || cancelled.load(Ordering::Relaxed);
            planner.plan(&region.snapshot, &requests, deadline, &must_stop)
        });
        let planned = planned.await.expect("planners do not panic")?;
        inner.record(planned.seconds);
        drop(on_drop);
        Ok(planned)
    }
}

/// Cancels the plan when the caller drops its future.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A plan in the queue, removed when dropped.
struct Admitted<'a>(&'a Inner);

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.0.with(|load| load.plans -= 1);
    }
}

impl Inner {
    fn with<T>(&self, change: impl FnOnce(&mut Load) -> T) -> T {
        change(&mut self.load.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Estimated wait of a new plan.
    fn wait(&self) -> Duration {
        self.with(|load| load.wait())
    }

    /// Adds a plan to the queue, unless it is full.
    fn admit(&self) -> Result<Admitted<'_>, PlanQueueError> {
        self.with(|load| {
            let wait = load.wait();
            if wait > WAIT_MAX || load.plans >= AT_A_TIME + WAITING_MAX {
                return Err(PlanQueueError::Busy { after: wait.max(Duration::from_secs(1)) });
            }
            load.plans += 1;
            Ok(())
        })?;
        Ok(Admitted(self))
    }

    /// Records the duration of a plan in a moving average, in which the latest plans weigh most.
    fn record(&self, seconds: f64) {
        let took = Duration::try_from_secs_f64(seconds).unwrap_or(FIRST_GUESS);
        self.with(|load| load.duration = (load.duration * 3 + took) / 4);
    }
}

impl Load {
    /// Estimated wait of a new plan.
    fn wait(&self) -> Duration {
        let before = (self.plans + 1).saturating_sub(AT_A_TIME).div_ceil(AT_A_TIME);
        self.duration * u32::try_from(before).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{PlanQueue, PlanQueueError};
    use crate::plan_deadline::PlanDeadline;
    use crate::planner::{PlanRefused, Planned, Planner};
    use crate::region_cache::CachedRegion;
    use broker::{Export, Seq, TargetVersion};
    use fleet::{CapacityRequest, RegionSnapshot, SnapshotParts, Targets, Weights};
    use futures_util::future::join_all;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::time::{sleep, timeout};

    /// Blocks until it is cancelled or released.
    #[derive(Debug, Default)]
    struct Slow {
        seconds: f64,
        at_once: AtomicUsize,
        most: AtomicUsize,
        stopped: AtomicUsize,
        endless: bool,
    }

    impl Planner for Slow {
        fn plan(
            &self,
            region: &RegionSnapshot,
            _: &[CapacityRequest],
            _: PlanDeadline,
            must_stop: &(dyn Fn() -> bool + Sync),
        ) -> Result<Planned, PlanRefused> {
            let here = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(here, Ordering::SeqCst);
            let mut turns = 0;
            while self.endless || turns < 1_000 {
                if must_stop() {
                    self.stopped.fetch_add(1, Ordering::SeqCst);
                    break;
                }
                std::thread::yield_now();
                turns += 1;
            }
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            Ok(Planned {
                quotes: Vec::new(),
                region: region.clone(),
                after: Targets::unchanged(region),
                audit_clean: true,
                complete: true,
                seconds: self.seconds,
            })
        }

        fn keeps_policies(&self, _: &RegionSnapshot, _: &Targets) -> Result<(), String> {
            Ok(())
        }
    }

    fn region() -> Arc<CachedRegion> {
        let parts = SnapshotParts {
            region: "region".into(),
            taken_at: chrono::DateTime::UNIX_EPOCH,
            weights: Weights::default(),
            shared_buffer_fraction: None,
            servers: Vec::new(),
            reservations: Vec::new(),
            rru: Vec::new(),
            affinity: Vec::new(),
            allowed_datacenters: Vec::new(),
            unavailability: Vec::new(),
            ahead: fleet::AheadParts::default(),
            crossing: fleet::PartitionParts::default(),
        };
        let export =
            Export { parts, generations: Vec::new(), version: TargetVersion(0), seq: Seq(0) };
        Arc::new(CachedRegion::of(export).expect("an empty region"))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn long_queue_rejects_new_plans_and_loses_none() {
        let slow = Arc::new(Slow { seconds: 8.0, ..Slow::default() });
        let queue = PlanQueue::new(Some(slow.clone()));
        let mut busy = 0;
        for _ in 0..5 {
            let plans = (0..30).map(|_| queue.plan(region(), Vec::new(), PlanDeadline::default()));
            for outcome in join_all(plans).await {
                match outcome {
                    Ok(_) => {}
                    Err(PlanQueueError::Busy { after }) => {
                        busy += 1;
                        assert!(after >= Duration::from_secs(1), "{after:?}");
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            assert_eq!(queue.under_way(), 0);
        }
        assert!(busy > 50, "{busy} were rejected");
        assert_eq!(slow.most.load(Ordering::SeqCst), 2);
        let unplanned =
            PlanQueue::new(None).plan(region(), Vec::new(), PlanDeadline::default()).await;
        assert_eq!(unplanned.err(), Some(PlanQueueError::NoPlanner));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn abandoned_plan_is_cancelled() {
        let slow = Arc::new(Slow { endless: true, ..Slow::default() });
        let queue = PlanQueue::new(Some(slow.clone()));
        for _ in 0..3 {
            let plan = queue.plan(region(), Vec::new(), PlanDeadline::default());
            assert!(timeout(Duration::from_millis(50), plan).await.is_err());
        }
        let stopped = async {
            while slow.stopped.load(Ordering::SeqCst) < 2 || slow.at_once.load(Ordering::SeqCst) > 0
            {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), stopped).await.expect("the plans end");
        assert_eq!(queue.under_way(), 0);
    }
}

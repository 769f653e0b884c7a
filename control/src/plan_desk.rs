//! Queue of plans in this process: few are made at a time, because each takes a processor for seconds;
//! callers that would wait too long are rejected at once.

use crate::planner::{PlanRefused, Planned, Planner};
use crate::region::HeldRegion;
use fleet::CapacityRequest;
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
pub enum DeskError {
    /// This process has no planner.
    #[error("this process has no planner")]
    NoPlanner,
    /// The queue is full.
    #[error("too many plans are being made; try again in {} s", .after.as_secs())]
    Busy {
        /// Estimated time until there is room.
        after: Duration,
    },
    /// The requests are invalid for the region.
    #[error(transparent)]
    Refused(#[from] PlanRefused),
}

/// Makes plans, a few at a time. Clones share the queue.
#[derive(Clone, Debug)]
pub struct PlanDesk(Arc<Desk>);

#[derive(Debug)]
struct Desk {
    planner: Option<Arc<dyn Planner>>,
    turns: Arc<Semaphore>,
    queue: Mutex<Queue>,
}

/// Queued plans, and the recent duration of plans.
#[derive(Debug)]
struct Queue {
    here: usize,
    takes: Duration,
}

impl PlanDesk {
    /// A queue for this planner; `None`: every plan is rejected.
    pub fn new(planner: Option<Arc<dyn Planner>>) -> PlanDesk {
        PlanDesk(Arc::new(Desk {
            planner,
            turns: Arc::new(Semaphore::new(AT_A_TIME)),
            queue: Mutex::new(Queue { here: 0, takes: FIRST_GUESS }),
        }))
    }

    /// Plans under way or queued.
    pub fn under_way(&self) -> usize {
        self.0.with(|queue| queue.here)
    }

    /// Whether a new plan would have to wait.
    pub fn is_full(&self) -> bool {
        self.0.turns.available_permits() == 0
    }

    /// Waits for a turn, then plans requests on a region. Dropping the future cancels the plan:
    /// it ends soon, and the next takes its turn then.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn plan(
        &self,
        region: Arc<HeldRegion>,
        requests: Vec<CapacityRequest>,
    ) -> Result<Planned, DeskError> {
        let desk = &self.0;
        let planner = desk.planner.clone().ok_or(DeskError::NoPlanner)?;
        let _place = desk.take_place()?;
        let turn = timeout(WAIT_MAX, desk.turns.clone().acquire_owned()).await;
        let turn = turn.map_err(|_| DeskError::Busy { after: desk.wait() })?;
        let turn = turn.expect("turns are never closed");
        let gone = Gone::default();
        let left = gone.0.clone();
        let planned = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            planner.plan(&region.snapshot, &requests, &|| left.load(Ordering::Relaxed))
        });
        let planned = planned.await.expect("planners do not panic")?;
        desk.note(planned.seconds);
        drop(gone);
        Ok(planned)
    }
}

/// Records that the caller no longer waits for the answer.
#[derive(Default)]
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A place in the queue, released when dropped.
struct Place<'a>(&'a Desk);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.with(|queue| queue.here -= 1);
    }
}

impl Desk {
    fn with<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> T {
        change(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Estimated wait of a new plan.
    fn wait(&self) -> Duration {
        self.with(|queue| queue.wait())
    }

    fn take_place(&self) -> Result<Place<'_>, DeskError> {
        self.with(|queue| {
            let wait = queue.wait();
            if wait > WAIT_MAX || queue.here >= AT_A_TIME + WAITING_MAX {
                return Err(DeskError::Busy { after: wait.max(Duration::from_secs(1)) });
            }
            queue.here += 1;
            Ok(())
        })?;
        Ok(Place(self))
    }

    /// Moving average: the last plans weigh most.
    fn note(&self, seconds: f64) {
        let took = Duration::try_from_secs_f64(seconds).unwrap_or(FIRST_GUESS);
        self.with(|queue| queue.takes = (queue.takes * 3 + took) / 4);
    }
}

impl Queue {
    fn wait(&self) -> Duration {
        let before = (self.here + 1).saturating_sub(AT_A_TIME).div_ceil(AT_A_TIME);
        self.takes * u32::try_from(before).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{DeskError, PlanDesk};
    use crate::planner::{PlanRefused, Planned, Planner};
    use crate::region::HeldRegion;
    use broker::{Export, Seq, TargetVersion};
    use fleet::{CapacityRequest, RegionSnapshot, Targets};
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
    }

    fn region() -> Arc<HeldRegion> {
        let parts = testkit::rows::parts();
        let export =
            Export { parts, generations: Vec::new(), version: TargetVersion(0), seq: Seq(0) };
        Arc::new(HeldRegion::of(export).expect("an empty region"))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn long_queue_rejects_new_plans_and_loses_none() {
        let slow = Arc::new(Slow { seconds: 8.0, ..Slow::default() });
        let desk = PlanDesk::new(Some(slow.clone()));
        let mut busy = 0;
        for _ in 0..5 {
            let plans = (0..30).map(|_| desk.plan(region(), Vec::new()));
            for outcome in join_all(plans).await {
                match outcome {
                    Ok(_) => {}
                    Err(DeskError::Busy { after }) => {
                        busy += 1;
                        assert!(after >= Duration::from_secs(1), "{after:?}");
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            assert_eq!(desk.under_way(), 0);
        }
        assert!(busy > 50, "{busy} were told to come again");
        assert_eq!(slow.most.load(Ordering::SeqCst), 2);
        let unplanned = PlanDesk::new(None).plan(region(), Vec::new()).await;
        assert_eq!(unplanned.err(), Some(DeskError::NoPlanner));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn abandoned_plan_is_cancelled() {
        let slow = Arc::new(Slow { endless: true, ..Slow::default() });
        let desk = PlanDesk::new(Some(slow.clone()));
        for _ in 0..3 {
            let plan = desk.plan(region(), Vec::new());
            assert!(timeout(Duration::from_millis(50), plan).await.is_err());
        }
        let stopped = async {
            while slow.stopped.load(Ordering::SeqCst) < 2 || slow.at_once.load(Ordering::SeqCst) > 0
            {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), stopped).await.expect("they end");
        assert_eq!(desk.under_way(), 0);
    }
}

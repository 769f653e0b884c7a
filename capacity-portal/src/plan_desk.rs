//! Where plans wait their turn: few are made at a time, for each takes a processor for seconds, and
//! whoever would wait for long is told so at once instead.

use crate::planner::{PlanRefused, Planned, Planner};
use crate::region::HeldRegion;
use fleet::CapacityRequest;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Plans made at a time: each has as many threads as the solver is given, and a region of its own.
const AT_A_TIME: usize = 2;

/// The longest wait for a turn: a person who was told nothing for longer has gone.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The most who wait, however short their plans are.
const WAITING_MAX: usize = 64;

/// How long a plan takes before any was made.
const FIRST_GUESS: Duration = Duration::from_secs(1);

/// A plan is not made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DeskError {
    /// Nobody plans here.
    #[error("nobody plans requests in this process")]
    NoPlanner,
    /// Too many wait.
    #[error("too many plans are being made; try again in {} s", .after.as_secs())]
    Busy {
        /// When there is likely to be room.
        after: Duration,
    },
    /// The requests make no sense for the region.
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

/// Who is here, and how long plans take of late.
#[derive(Debug)]
struct Queue {
    here: usize,
    takes: Duration,
}

impl PlanDesk {
    /// With somebody who plans, or nobody.
    pub fn new(planner: Option<Arc<dyn Planner>>) -> PlanDesk {
        PlanDesk(Arc::new(Desk {
            planner,
            turns: Arc::new(Semaphore::new(AT_A_TIME)),
            queue: Mutex::new(Queue { here: 0, takes: FIRST_GUESS }),
        }))
    }

    /// Plans that are made or wait for their turn.
    pub fn under_way(&self) -> usize {
        self.0.with(|queue| queue.here)
    }

    /// Plans requests on a region, when it is their turn. Dropping the future takes the plan back:
    /// it ends soon, and the next has its turn then.
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

/// Says that nobody waits for an answer any more.
#[derive(Default)]
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A place in the queue, given back when dropped.
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

    /// How long whoever comes now is likely to wait.
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

    /// The last plans count most.
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

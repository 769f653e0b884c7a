//! What a plan may use, as arguments: a clock, a deadline, a stop signal and a place where HiGHS runs.

use crate::lp::{Backend, LpJob, LpProblem, LpRequest, LpSolution};
use std::time::Duration;

/// Interval at which a plan that waits for HiGHS looks at the clock.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What a plan may use.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// Where HiGHS runs.
    pub backend: &'a (dyn Backend + Sync),
    /// Time since the question was asked.
    pub elapsed: &'a (dyn Fn() -> Duration + Sync),
    /// When the answer is due, on the same clock. `None`: the search ends by itself, so that the same
    /// question has the same answer on every machine.
    pub deadline: Option<Duration>,
    /// Whether the caller no longer waits for the answer.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
}

impl Means<'_> {
    /// Whether time is up.
    pub fn must_stop(&self) -> bool {
        (self.interrupted)() || self.time_left() == Some(Duration::ZERO)
    }

    /// Time until the deadline.
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|end| end.saturating_sub((self.elapsed)()))
    }

    /// These means with a deadline after a share of the time that is left.
    #[must_use]
    pub fn with_share(&self, share: f64) -> Self {
        let deadline = self.time_left().map(|left| (self.elapsed)() + left.mul_f64(share));
        Means { deadline, ..*self }
    }

    /// Runs HiGHS; `None` if it failed or time is up.
    pub(crate) fn solve(&self, problem: LpProblem, request: LpRequest) -> Option<LpSolution> {
        let columns = problem.cost.len();
        self.wait(self.start(problem, request)?, columns)
    }

    /// Starts HiGHS; `None` if there is nothing to solve or time is up.
    pub(crate) fn start(&self, problem: LpProblem, request: LpRequest) -> Option<Box<dyn LpJob>> {
        let is_empty = problem.cost.is_empty();
        (!is_empty && !self.must_stop()).then(|| self.backend.start(problem, request))
    }

    /// Waits for HiGHS, which solves a problem of this many columns; `None` if it failed or time is up.
    pub(crate) fn wait(&self, mut job: Box<dyn LpJob>, columns: usize) -> Option<LpSolution> {
        let outcome = loop {
            if let Some(outcome) = job.wait(LOOK_EVERY) {
                break outcome;
            }
            if self.must_stop() {
                return None;
            }
        };
        match outcome {
            Ok(solution) => {
                let finite = solution.columns.iter().all(|value| value.is_finite());
                (solution.columns.len() == columns && finite).then_some(solution)
            }
            Err(failure) => {
                tracing::debug!(%failure, "HiGHS failed; the plan continues without it");
                None
            }
        }
    }
}

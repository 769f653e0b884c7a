//! What a solve needs from the outside world, as arguments: a clock, a stop signal,
//! listeners, and a place where HiGHS runs.
//!
//! The solver itself reads no clock and starts no process. `ras` passes a wall clock and a HiGHS
//! in a child process that can be killed; tests pass [`crate::backend::InProcess`].

use crate::backend::{LpProblem, LpRequest, LpSolution};
use crate::warm::Warm;
use fleet::Targets;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The world around a solve.
pub struct Control<'a> {
    /// Time since the solve began.
    pub elapsed: &'a (dyn Fn() -> Duration + Sync),
    /// When the solve must have returned, on the same clock. The solver leaves itself a margin.
    pub deadline: Option<Duration>,
    /// Whether an early end was requested (Ctrl-C): the incumbent is returned.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Told of each step, each new incumbent and each better bound.
    pub progress: &'a (dyn Fn(&Progress) + Sync),
    /// Handed each better assignment as it is found, so that it can be kept outside.
    pub incumbent: &'a (dyn Fn(&Targets) + Sync),
    /// Where HiGHS runs.
    pub backend: &'a (dyn Backend + Sync),
    /// What the last solve left.
    pub warm: Option<&'a Warm>,
}

impl Control<'_> {
    /// Whether it is time to stop, with `reserve` still needed afterwards.
    pub fn must_stop(&self, reserve: Duration) -> bool {
        (self.interrupted)() || self.deadline.is_some_and(|end| (self.elapsed)() + reserve >= end)
    }
}

/// Runs HiGHS.
pub trait Backend {
    /// Starts a solve of `problem` and returns at once.
    fn start(&self, problem: LpProblem, request: LpRequest) -> Box<dyn LpJob>;
}

/// A HiGHS run under way. Dropping it ends the run in any state of HiGHS.
pub trait LpJob {
    /// Waits for the outcome, at most this long; `None` while HiGHS is at work, and after it was given.
    fn wait(&mut self, at_most: Duration) -> Option<Result<LpSolution, LpFailure>>;
}

/// Why a HiGHS run gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LpFailure {
    /// HiGHS returned, without a usable point.
    #[error("HiGHS ended with status {0}")]
    Status(String),
    /// The process it ran in ended or could not be started.
    #[error("the HiGHS process failed: {0}")]
    Process(String),
}

/// Where a solve stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Seconds since the solve began.
    pub seconds: f64,
    /// The phase: 1 places on MSBs, 2 on racks.
    pub phase: u8,
    /// What is being done, in the words of RAS figure 8: "ras build", "solver build", "initial
    /// state", "mip".
    pub step: String,
    /// Objective of the incumbent of phase 1, shortfalls included.
    pub primal: Option<f64>,
    /// Proved lower bound of phase 1.
    pub dual_bound: Option<f64>,
}

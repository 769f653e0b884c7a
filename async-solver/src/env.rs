//! What a solve needs from the outside world, as arguments: a clock, a stop signal,
//! listeners, and a place where HiGHS runs.
//!
//! The solver itself reads no clock.

use crate::lp::Backend;
use crate::warm::WarmStart;
use fleet::Targets;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The environment of a solve.
pub struct SolveEnv<'a> {
    /// Time since the solve began.
    pub elapsed: &'a (dyn Fn() -> Duration + Sync),
    /// When the solve must have returned, on the same clock. The solver leaves itself a margin.
    pub deadline: Option<Duration>,
    /// Whether an early end was requested (Ctrl-C): the incumbent is returned.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Told of each step, each new incumbent and each better bound.
    pub progress: &'a (dyn Fn(&Progress) + Sync),
    /// Called with each better assignment, so that the caller can keep it.
    pub on_incumbent: &'a (dyn Fn(&Targets) + Sync),
    /// Where HiGHS runs.
    pub backend: &'a (dyn Backend + Sync),
    /// What the last solve left.
    pub warm: Option<&'a WarmStart>,
}

impl<'a> SolveEnv<'a> {
    /// Nothing ends a solve early, and only its result is told.
    pub fn untimed(backend: &'a (dyn Backend + Sync)) -> SolveEnv<'a> {
        SolveEnv {
            elapsed: &|| Duration::ZERO,
            deadline: None,
            interrupted: &|| false,
            progress: &|_| (),
            on_incumbent: &|_| (),
            backend,
            warm: None,
        }
    }

    /// Whether it is time to stop, with `reserve` still needed afterwards.
    pub fn must_stop(&self, reserve: Duration) -> bool {
        (self.interrupted)() || self.deadline.is_some_and(|end| (self.elapsed)() + reserve >= end)
    }
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

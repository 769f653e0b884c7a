//! How long a plan may search, as its caller asks.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a plan may search, from [`PlanDeadline::LEAST`] to [`PlanDeadline::MOST`] seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct PlanDeadline(f64);

/// A deadline is out of range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "a plan may search for {least} to {most} seconds, not {given}",
    least = PlanDeadline::LEAST,
    most = PlanDeadline::MOST,
    given = .0
)]
pub struct PlanDeadlineOutOfRange(f64);

impl PlanDeadline {
    /// The shortest, in seconds: less finds next to nothing in a large region.
    pub const LEAST: f64 = 0.5;
    /// The longest, in seconds: the answer has to begin within a minute, and the plan may have to wait for its turn.
    pub const MOST: f64 = 30.0;

    /// As a duration.
    pub fn duration(self) -> Duration {
        Duration::from_secs_f64(self.0)
    }
}

impl Default for PlanDeadline {
    /// 5 s: a person waits for it.
    fn default() -> PlanDeadline {
        PlanDeadline(5.0)
    }
}

impl TryFrom<f64> for PlanDeadline {
    type Error = PlanDeadlineOutOfRange;

    fn try_from(seconds: f64) -> Result<PlanDeadline, PlanDeadlineOutOfRange> {
        if (PlanDeadline::LEAST..=PlanDeadline::MOST).contains(&seconds) {
            Ok(PlanDeadline(seconds))
        } else {
            Err(PlanDeadlineOutOfRange(seconds))
        }
    }
}

impl From<PlanDeadline> for f64 {
    fn from(deadline: PlanDeadline) -> f64 {
        deadline.0
    }
}

#[cfg(test)]
mod tests {
    use super::PlanDeadline;

    #[test]
    fn deadlines_are_bounded() {
        for seconds in [0.5, 5.0, 30.0] {
            let deadline = PlanDeadline::try_from(seconds).expect("in range");
            assert_eq!(f64::from(deadline), seconds);
        }
        for seconds in [0.0, 0.49, 30.5, -1.0, f64::NAN, f64::INFINITY] {
            let refused = PlanDeadline::try_from(seconds).expect_err("out of range");
            assert!(refused.to_string().contains("0.5 to 30 seconds"), "{refused}");
        }
    }
}

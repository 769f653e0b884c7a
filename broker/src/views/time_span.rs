//! Times of the history.

use chrono::{DateTime, Utc};
use std::time::Duration;

/// A span of time: what is later than `from`, up to and with `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    /// Its beginning, not included.
    pub from: DateTime<Utc>,
    /// Its end.
    pub until: DateTime<Utc>,
}

/// The time between two samples of the region.
pub const SAMPLE_EVERY: Duration = Duration::from_secs(300);

//! What a churn contract says: a share, a window and quiet times.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A daily span, from one minute of the day up to, but not including, another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuietTime {
    from: u16,
    until: u16,
}

impl QuietTime {
    /// A span by minutes of the day, 0 to 1,440; an end before the start lies on the next day. `None`: the span
    /// is empty or a minute is out of range.
    pub fn new(from: u16, until: u16) -> Option<QuietTime> {
        let from = if from == 1_440 { 0 } else { from };
        let until = if until == 0 { 1_440 } else { until };
        (from < 1_440 && until <= 1_440 && from != until).then_some(QuietTime { from, until })
    }

    /// The first minute, and the one after the last.
    pub const fn minutes(self) -> (u16, u16) {
        (self.from, self.until)
    }
}

impl fmt::Display for QuietTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QuietTime { from, until } = self;
        write!(out, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, until / 60, until % 60)
    }
}

/// The churn contract of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredContract", into = "StoredContract")]
pub struct Contract {
    /// The share of its servers in use that may leave within the window, in millionths.
    pub in_use_micro: u32,
    /// The length of the window, in whole seconds.
    pub window: Duration,
    /// The quiet times.
    pub quiet: Vec<QuietTime>,
    /// The time zone of the quiet times, such as `Europe/Berlin`.
    pub zone: String,
}

/// The stored form of a contract: quiet times are pairs of minutes of the day.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredContract {
    in_use_micro: u32,
    window_seconds: u64,
    zone: String,
    quiet: Vec<(u16, u16)>,
}

impl From<Contract> for StoredContract {
    fn from(contract: Contract) -> StoredContract {
        StoredContract {
            in_use_micro: contract.in_use_micro,
            window_seconds: contract.window.as_secs(),
            zone: contract.zone,
            quiet: contract.quiet.iter().map(|quiet| (quiet.from, quiet.until)).collect(),
        }
    }
}

impl TryFrom<StoredContract> for Contract {
    type Error = &'static str;

    fn try_from(document: StoredContract) -> Result<Contract, &'static str> {
        let quiet = document.quiet.into_iter().map(|(from, until)| QuietTime::new(from, until));
        let quiet: Option<Vec<QuietTime>> = quiet.collect();
        Ok(Contract {
            in_use_micro: document.in_use_micro,
            window: Duration::from_secs(document.window_seconds),
            quiet: quiet.ok_or("a quiet time is from a minute of the day to another, 0 to 1440")?,
            zone: document.zone,
        })
    }
}

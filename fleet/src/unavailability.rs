//! Events that take servers out of use.

use crate::id::Name;
use crate::topology::Scope;
use chrono::{DateTime, Utc};
use serde::Serialize;

/// Why servers are unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnavailabilityKind {
    /// Announced work; the servers still count as capacity.
    PlannedMaintenance,
    /// A server or its rack switch failed.
    RandomFailure,
    /// A software fault.
    Software,
    /// A shared device failed.
    CorrelatedFailure,
}

impl UnavailabilityKind {
    /// Every kind.
    pub const ALL: [UnavailabilityKind; 4] = [
        UnavailabilityKind::PlannedMaintenance,
        UnavailabilityKind::RandomFailure,
        UnavailabilityKind::Software,
        UnavailabilityKind::CorrelatedFailure,
    ];

    /// The word of the snapshot format.
    pub const fn as_str(self) -> &'static str {
        match self {
            UnavailabilityKind::PlannedMaintenance => "planned_maintenance",
            UnavailabilityKind::RandomFailure => "random_failure",
            UnavailabilityKind::Software => "software",
            UnavailabilityKind::CorrelatedFailure => "correlated_failure",
        }
    }

    /// Reads the word of the snapshot format.
    pub fn parse(word: &str) -> Option<UnavailabilityKind> {
        UnavailabilityKind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Whether servers under this event still count as capacity (RAS section 3.3.1).
    pub const fn is_planned(self) -> bool {
        matches!(self, UnavailabilityKind::PlannedMaintenance)
    }
}

/// Work that can be recalled within this many minutes counts as back 30 minutes after the loss of an MSB
/// (RAS section 3.3.1).
pub const RECALL_WITHIN_MINUTES: u32 = 30;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct UnavailabilityEvent {
    /// Its name.
    pub id: Name,
    /// What it covers: a scope and the name of one member of it.
    pub scope: Scope,
    /// The covered server, rack, MSB or datacenter.
    pub scope_id: Name,
    /// Why.
    pub kind: UnavailabilityKind,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended; `None`: still active.
    pub ended_at: Option<DateTime<Utc>>,
    /// How many minutes planned work takes to give its servers back when it is recalled; `None`: it
    /// cannot be recalled.
    pub recall_minutes: Option<u32>,
}

impl UnavailabilityEvent {
    /// Whether the event covers its scope at an instant: from its start, up to but not including
    /// its end.
    pub fn is_active(&self, at: DateTime<Utc>) -> bool {
        self.started_at <= at && self.ended_at.is_none_or(|end| at < end)
    }

    /// Whether it is planned work whose servers are back within [`RECALL_WITHIN_MINUTES`] of a recall.
    pub fn is_recalled_in_time(&self) -> bool {
        let in_time = |minutes: u32| minutes <= RECALL_WITHIN_MINUTES;
        self.kind.is_planned() && self.recall_minutes.is_some_and(in_time)
    }
}

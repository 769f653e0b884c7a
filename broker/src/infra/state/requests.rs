//! States of what owners ask for, of what they wait for, and of plans.

use super::{HOUR, State};
use std::time::Duration;

/// How far a capacity request is; of one in force, how its reservation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestState {
    /// Written down, not asked yet.
    Draft,
    /// Asked; it is decided within seconds, or when its time has come.
    Submitted,
    /// A plan grants it, and is about to be applied.
    Planned,
    /// Promised in full.
    Granted,
    /// Less is promised than was asked, within what its grant policy allows.
    PartiallyGranted,
    /// It was promised, and what the reservation has does not keep the promise now.
    Degraded,
    /// Servers that it does not need any more are leaving.
    Shrinking,
    /// It holds no more: its time is over, or a later request took its place.
    Expired,
    /// Taken back before it was granted.
    Cancelled,
    /// Not granted; what was promised before holds.
    Refused,
}

impl RequestState {
    /// Whether it is what its reservation is promised by.
    pub const fn is_in_force(self) -> bool {
        use RequestState::{Degraded, Granted, PartiallyGranted, Shrinking};
        matches!(self, Granted | PartiallyGranted | Degraded | Shrinking)
    }
}

impl State for RequestState {
    const MACHINE: &'static str = "capacity_requests";
    const ALL: &'static [RequestState] = &[
        RequestState::Draft,
        RequestState::Submitted,
        RequestState::Planned,
        RequestState::Granted,
        RequestState::PartiallyGranted,
        RequestState::Degraded,
        RequestState::Shrinking,
        RequestState::Expired,
        RequestState::Cancelled,
        RequestState::Refused,
    ];

    fn as_str(self) -> &'static str {
        match self {
            RequestState::Draft => "draft",
            RequestState::Submitted => "submitted",
            RequestState::Planned => "planned",
            RequestState::Granted => "granted",
            RequestState::PartiallyGranted => "partially_granted",
            RequestState::Degraded => "degraded",
            RequestState::Shrinking => "shrinking",
            RequestState::Expired => "expired",
            RequestState::Cancelled => "cancelled",
            RequestState::Refused => "refused",
        }
    }

    /// Whoever asks waits; servers leave as fast as moves are carried out.
    fn longest_stay(self) -> Option<Duration> {
        match self {
            RequestState::Submitted | RequestState::Planned => Some(HOUR / 12),
            RequestState::Shrinking => Some(24 * HOUR),
            _ => None,
        }
    }

    fn may_follow(self, source: Option<RequestState>) -> bool {
        use RequestState::{
            Cancelled, Draft, Expired, Granted, PartiallyGranted, Planned, Refused, Shrinking,
            Submitted,
        };
        match source {
            None => matches!(self, Draft | Submitted | Planned),
            Some(Draft) => matches!(self, Submitted | Cancelled),
            Some(Submitted) => matches!(self, Planned | Refused | Cancelled | Expired),
            // Back to submitted: the region moved, or whoever decided it was lost.
            Some(Planned) => matches!(
                self,
                Submitted | Granted | PartiallyGranted | Shrinking | Refused | Cancelled
            ),
            Some(source) if source.is_in_force() => {
                self != source && (self.is_in_force() || self == Expired)
            }
            Some(_) => false,
        }
    }
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationState {
    /// It is worked on, or waits for that.
    Running,
    /// It ended as was asked.
    Done,
    /// It ended otherwise; its result says why.
    Failed,
}

impl State for OperationState {
    const MACHINE: &'static str = "operations";
    const ALL: &'static [OperationState] =
        &[OperationState::Running, OperationState::Done, OperationState::Failed];

    fn as_str(self) -> &'static str {
        match self {
            OperationState::Running => "running",
            OperationState::Done => "done",
            OperationState::Failed => "failed",
        }
    }

    /// Whoever asked waits.
    fn longest_stay(self) -> Option<Duration> {
        (self == OperationState::Running).then_some(HOUR / 12)
    }

    fn may_follow(self, source: Option<OperationState>) -> bool {
        match source {
            None => self == OperationState::Running,
            Some(source) => source == OperationState::Running && self != source,
        }
    }
}

/// What became of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlanState {
    /// It can be applied.
    Made,
    /// It was.
    Applied,
    /// The region moved beyond what it tolerates.
    Stale,
    /// Nobody applied it in time.
    Expired,
}

impl State for PlanState {
    const MACHINE: &'static str = "plans";
    const ALL: &'static [PlanState] =
        &[PlanState::Made, PlanState::Applied, PlanState::Stale, PlanState::Expired];

    fn as_str(self) -> &'static str {
        match self {
            PlanState::Made => "made",
            PlanState::Applied => "applied",
            PlanState::Stale => "stale",
            PlanState::Expired => "expired",
        }
    }

    /// It expires by itself.
    fn longest_stay(self) -> Option<Duration> {
        None
    }

    fn may_follow(self, source: Option<PlanState>) -> bool {
        match source {
            None => self == PlanState::Made,
            Some(source) => source == PlanState::Made && self != source,
        }
    }
}

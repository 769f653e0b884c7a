//! States of capacity requests, of operations and of stored plans.

use super::{HOUR, State};
use std::time::Duration;

/// The state of a capacity request; of one in force, the standing of its reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestState {
    /// A draft, not submitted.
    Draft,
    /// Submitted; decided within seconds, or when its start time is reached.
    Submitted,
    /// Its plan moves many servers in use of others: an operator decides.
    AwaitingApproval,
    /// A plan grants it and is about to be applied.
    Planned,
    /// Granted in full.
    Granted,
    /// Granted in part, within its grant policy.
    PartiallyGranted,
    /// Granted, but the reservation's servers do not fulfil the promise now.
    Degraded,
    /// Surplus servers are leaving.
    Shrinking,
    /// Not in force any more: its time is over, or a later request replaced it.
    Expired,
    /// Withdrawn before it was granted.
    Cancelled,
    /// Not granted; the previous promise holds.
    Refused,
}

impl RequestState {
    /// Whether the current promise rests on it.
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
        RequestState::AwaitingApproval,
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
            RequestState::AwaitingApproval => "awaiting_approval",
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

    /// A caller waits for the decision; servers leave as fast as moves are executed.
    fn longest_stay(self) -> Option<Duration> {
        match self {
            RequestState::Submitted | RequestState::Planned => Some(HOUR / 12),
            RequestState::Shrinking => Some(24 * HOUR),
            _ => None,
        }
    }

    fn may_follow(self, source: Option<RequestState>) -> bool {
        use RequestState::{
            AwaitingApproval, Cancelled, Draft, Expired, Granted, PartiallyGranted, Planned,
            Refused, Shrinking, Submitted,
        };
        match source {
            None => matches!(self, Draft | Submitted | Planned),
            Some(Draft) => matches!(self, Submitted | Cancelled),
            Some(Submitted) => {
                matches!(self, AwaitingApproval | Planned | Refused | Cancelled | Expired)
            }
            // Approved: it is planned again.
            Some(AwaitingApproval) => matches!(self, Submitted | Refused | Cancelled | Expired),
            // Back to submitted: the region changed, or the deciding worker was lost.
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

/// The state of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationState {
    /// In progress, or waiting for its turn.
    Running,
    /// It succeeded.
    Done,
    /// It failed; the result has the reason.
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

    /// A caller waits for it.
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

/// The state of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlanState {
    /// It can be applied.
    Made,
    /// Applied.
    Applied,
    /// The region changed beyond what the plan tolerates.
    Stale,
    /// Not applied in time.
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

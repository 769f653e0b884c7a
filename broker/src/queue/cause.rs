//! Causes of solves, and of their failures.

use crate::infra::words::{self, serialize_as_word};

/// The cause of a solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The schedule.
    Schedule,
    /// A request by an operator.
    Demand,
    /// A sudden loss of many servers.
    Event,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Cause; 3] = [Cause::Schedule, Cause::Demand, Cause::Event];

    /// The cause's word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Cause::Schedule => "schedule",
            Cause::Demand => "demand",
            Cause::Event => "event",
        }
    }
}

/// The reason for the failure of a solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureReason {
    /// The process ended with an error.
    Crashed,
    /// The process exceeded the deadline.
    OutOfTime,
    /// The process exceeded its memory limit.
    OutOfMemory,
    /// The audit rejected the targets.
    AuditRefused,
    /// The policies in force do not fit the region, or the worker cannot read them.
    PoliciesRefused,
    /// The result is missing or unreadable.
    ResultUnreadable,
    /// The snapshot or the result could not be archived.
    ArchiveFailed,
    /// The broker refused the targets.
    NotPublishable,
    /// Too many workers were lost.
    WorkersLost,
    /// The solve was cancelled.
    Cancelled,
}

impl FailureReason {
    /// Every reason.
    pub const ALL: [FailureReason; 10] = [
        FailureReason::Crashed,
        FailureReason::OutOfTime,
        FailureReason::OutOfMemory,
        FailureReason::AuditRefused,
        FailureReason::PoliciesRefused,
        FailureReason::ResultUnreadable,
        FailureReason::ArchiveFailed,
        FailureReason::NotPublishable,
        FailureReason::WorkersLost,
        FailureReason::Cancelled,
    ];

    /// The reason's word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            FailureReason::Crashed => "crashed",
            FailureReason::OutOfTime => "out_of_time",
            FailureReason::OutOfMemory => "out_of_memory",
            FailureReason::AuditRefused => "audit_refused",
            FailureReason::PoliciesRefused => "policies_refused",
            FailureReason::ResultUnreadable => "result_unreadable",
            FailureReason::ArchiveFailed => "archive_failed",
            FailureReason::NotPublishable => "not_publishable",
            FailureReason::WorkersLost => "workers_lost",
            FailureReason::Cancelled => "cancelled",
        }
    }

    /// Reads the reason's word.
    ///
    /// # Errors
    /// [`words::unknown`].
    pub(crate) fn read(word: &str) -> Result<FailureReason, sqlx::Error> {
        words::read("solves.reason", FailureReason::ALL, FailureReason::as_str, word)
    }
}

serialize_as_word! { Cause, FailureReason }

//! The queue of jobs under leases: solves, replays, plans.

pub(crate) mod cause;
pub(crate) mod claim;
pub(crate) mod job;
pub(crate) mod plan_job;
pub(crate) mod progress;
pub(crate) mod solve;

pub use cause::{Cause, FailureReason};
pub use job::{BatchJob, Job, JobKind, JobListener, LEASE_MAX, Lease};
pub use plan_job::PlanJob;
pub use progress::{CancelError, SolveProgress, SolveStep};
pub use solve::{SolveBasis, SolveRow};

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] =
    &[claim::sql::ALL, job::sql::ALL, plan_job::sql::ALL, progress::sql::ALL, solve::sql::ALL];

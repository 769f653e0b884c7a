use crate::admission::revalidate::PlanInvalid;
use crate::plan_queue::PlanQueueError;
use crate::region_cache::RegionError;
use broker::{ApplyError, DbError, SubmitError};
use tokio::time::error::Elapsed;

/// A change was not planned or not applied.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// The region cannot be read.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// No plan was made.
    #[error(transparent)]
    Queue(#[from] PlanQueueError),
    /// The request is incompatible with promised capacity.
    #[error(transparent)]
    Ask(#[from] SubmitError),
    /// The plan was not applied.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// Postgres failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// Postgres does not answer.
    #[error("Postgres does not answer in time")]
    Silent(#[from] Elapsed),
    /// The region has changed and the plan no longer holds.
    #[error("the plan is out of date: {0}")]
    Stale(#[from] PlanInvalid),
}

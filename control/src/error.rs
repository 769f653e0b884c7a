use crate::plan_desk::DeskError;
use crate::region::RegionError;
use broker::{ApplyError, AskError, DbError};
use tokio::time::error::Elapsed;

/// A change is not planned or not applied.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// The region cannot be read.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// No plan is made.
    #[error(transparent)]
    Desk(#[from] DeskError),
    /// The request does not fit what is promised.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The plan is not applied.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// Postgres fails.
    #[error(transparent)]
    Db(#[from] DbError),
    /// Postgres says nothing.
    #[error("Postgres does not answer in time")]
    Silent(#[from] Elapsed),
    /// The region moved beyond what the plan tolerates.
    #[error("the region moved, and the plan does not do any more what it said: {0}")]
    Moved(String),
}

//! Errors of planned maintenance.

use crate::infra::error::DbError;
use crate::infra::id::MaintenanceId;
use decisions::maintenance::refusal::MaintenanceRefusal;

/// Maintenance cannot be planned, ended or cancelled; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum MaintenanceError {
    #[error(transparent)]
    Refused(#[from] MaintenanceRefusal),
    #[error("there is no maintenance {id}")]
    Unknown { id: MaintenanceId },
    #[error("maintenance {id} is over")]
    Over { id: MaintenanceId },
    #[error("maintenance {id} has not begun; it can be cancelled")]
    NotActive { id: MaintenanceId },
    #[error(transparent)]
    Db(#[from] DbError),
}

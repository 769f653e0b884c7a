//! Decisions of operators on solves and requests that await approval.

use serde::{Deserialize, Serialize};

/// Rejects the targets of a solve, or a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Rejection {
    /// Why; the audit trail keeps it.
    pub why: String,
}

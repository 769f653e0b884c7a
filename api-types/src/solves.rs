//! `/ops/v1/solves`: solves of the region.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A solve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Solve {
    /// Its id.
    pub solve: Uuid,
    /// Why it was queued.
    pub cause: String,
    /// Its state.
    pub state: String,
    /// When it reached that state.
    pub state_at: DateTime<Utc>,
    /// When it was requested.
    pub requested_at: DateTime<Utc>,
    /// When a worker leased it.
    pub started_at: Option<DateTime<Utc>>,
    /// The version of the targets that it is based on.
    pub parent: i64,
    /// The version of its own targets; null: not published.
    pub version: Option<i64>,
    /// Why it ended without a version, for programs.
    pub reason: Option<String>,
    /// Why it was not published, as text.
    pub failure: Option<String>,
}

/// Solves, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SolvesPage {
    /// The solves of this page.
    pub solves: Vec<Solve>,
    /// Null: this is the last page.
    pub next_page_token: Option<String>,
}

/// A solve that was requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SolveAsked {
    /// Its id.
    pub solve: Uuid,
    /// false: a solve was already queued, and is the answer.
    pub new: bool,
}

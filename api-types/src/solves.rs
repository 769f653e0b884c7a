//! `/ops/v1/solves`: solves of the region.

use chrono::{DateTime, Utc};
use fleet::audit::{ClaimedMoves, Objective};
use serde::{Deserialize, Serialize};
use serde_json::Value;
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
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub started_at: Option<DateTime<Utc>>,
    /// The version of the targets that it is based on.
    pub parent: i64,
    /// The version of its own targets; null: not published.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub version: Option<i64>,
    /// Why it ended without a version, for programs.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub reason: Option<String>,
    /// Why it was not published, as text.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub failure: Option<String>,
}

/// Solves, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SolvesPage {
    /// The solves of this page.
    pub solves: Vec<Solve>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
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

/// A solve and its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SolveDetail {
    /// The solve.
    #[serde(flatten)]
    pub solve: Solve,
    /// Results; null: not published, or deleted.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub figures: Option<SolveFigures>,
    /// How far its last attempt is, or was when it ended; null: not begun, or deleted.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub progress: Option<SolveProgress>,
    /// Settings of the solver.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>, required))]
    pub config: Option<Value>,
}

/// How far a solve is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SolveProgress {
    /// When its worker last reported.
    pub at: DateTime<Utc>,
    /// What the worker does.
    pub step: String,
    /// Primal and dual bound over time; of a long solve some points are left out.
    pub history: Vec<GapPoint>,
}

/// Results of a solve, from its report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SolveFigures {
    /// Why the search ended; null: there was no search.
    pub termination: Option<String>,
    /// How the process ended.
    pub ending: Option<String>,
    /// Audited terms of the objective.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub objective: Option<Objective>,
    /// Primal, dual bound and gap of the search, before servers are placed on racks.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub phase1: Option<Value>,
    /// Primal and gap of the whole objective, racks included; null in reports of older versions.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub whole: Option<Value>,
    /// The fewest servers worth all shortfalls before.
    #[serde(default)]
    pub initial_shortfall_servers: Option<usize>,
    /// The fewest servers worth all shortfalls after; null in reports of older versions.
    #[serde(default)]
    pub shortfall_servers: Option<usize>,
    /// Servers that change owner, in use and idle.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub moves: Option<ClaimedMoves>,
    /// Seconds of each part of the run.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub seconds: Option<Value>,
    /// Seconds of each step, in order.
    #[serde(default)]
    pub steps: Vec<StepSeconds>,
    /// Primal and dual bound over time.
    #[serde(default)]
    pub history: Vec<GapPoint>,
    /// Servers, classes, reservations, columns, rows, nonzeros.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub sizes: Option<Value>,
    /// Largest memory of the process.
    pub peak_memory_bytes: Option<u64>,
}

/// Duration of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StepSeconds {
    /// 1: assigns to MSBs; 2: assigns to racks.
    pub phase: u8,
    /// The step.
    pub step: String,
    /// Its duration.
    pub seconds: f64,
}

/// Progress of a solve at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GapPoint {
    /// Since the start.
    pub seconds: f64,
    /// 1: assigns to MSBs; 2: assigns to racks.
    pub phase: u8,
    /// The step.
    pub step: String,
    /// Cost of the incumbent.
    pub primal: Option<f64>,
    /// Proved lower bound.
    pub dual_bound: Option<f64>,
}

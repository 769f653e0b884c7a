//! `/ops/v1/moves/under-way` and `/ops/v1/mover`: moves under way, and the mover that executes them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The stop switch: the caller that set it, or paused a roll-out, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StopSwitch {
    /// The caller.
    pub by: String,
    /// The reason.
    pub why: String,
}

/// A move under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MoveUnderWay {
    /// Its id.
    #[serde(rename = "move")]
    pub id: Uuid,
    /// The server.
    pub server: String,
    /// The rack of the server.
    pub rack: String,
    /// The MSB of the server.
    pub msb: String,
    /// The reservation that owns it; null: no reservation.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub from: Option<String>,
    /// The reservation that will own it; null: no reservation.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub to: Option<String>,
    /// The version of the targets that it executes.
    pub version: i64,
    /// Its state.
    pub state: String,
    /// When it reached that state.
    pub state_at: DateTime<Utc>,
    /// When it was opened.
    pub opened_at: DateTime<Utc>,
    /// Why it was opened.
    pub origin: String,
    /// Whether containers ran on the server when the move was opened.
    pub in_use: bool,
    /// Whether it has been in its state for too long. A move that waits for a churn contract has not.
    pub stuck: bool,
    /// Why a pending move does not begin; null: it may.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub waits_for: Option<String>,
}

/// Number of moves that ended in one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EndedMoves {
    /// The state.
    pub state: String,
    /// Why they were not bound; null: they were.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub reason: Option<String>,
    /// Number of moves.
    pub count: i64,
}

/// An object that has been in its state for too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StuckThing {
    /// The kind of object: moves, solves, jobs, replacements, maintenance or emergencies.
    pub machine: String,
    /// Its id, or the name of its server.
    pub subject: String,
    /// Its state.
    pub state: String,
    /// When it reached that state.
    pub since: DateTime<Utc>,
}

/// Moves under way, and the mover that executes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MovesUnderWay {
    /// The acting mover; null: no mover acts.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub acting: Option<String>,
    /// The stop switch, if it is set: no step begins.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub stopped: Option<StopSwitch>,
    /// Why the acting mover is too far from Postgres to act; null: it is near enough.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub cannot_act: Option<String>,
    /// Number of moves under way.
    pub under_way: usize,
    /// Number of them that are stuck.
    pub stuck: usize,
    /// Moves that ended, by state and reason.
    pub ended: Vec<EndedMoves>,
    /// Moves under way, the oldest first, up to the limit.
    pub moves: Vec<MoveUnderWay>,
    /// Other objects that are stuck.
    pub also_stuck: Vec<StuckThing>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// The mover that executes moves, and whether any may begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MoverView {
    /// The acting mover; null: no mover acts.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub acting: Option<String>,
    /// The stop switch, if it is set: no step begins.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub stopped: Option<StopSwitch>,
    /// How long two MSBs must be lost before it preempts by itself; null: an operator must do so.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub give_way_after_seconds: Option<u64>,
    /// Duration of a renewal of the mover's lease; null: not measured yet.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub round_trip_seconds: Option<f64>,
    /// Duration of the mover's last pass over all moves; null: none has ended.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub pass_seconds: Option<f64>,
    /// The lease that the mover asks for.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub lease_seconds: Option<f64>,
    /// Why the mover is too far from Postgres to act; null: it is near enough.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub cannot_act: Option<String>,
}

/// A move of a server to another owner, open or ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Move {
    /// Its id.
    #[serde(rename = "move")]
    #[cfg_attr(feature = "schema", schema(format = Uuid))]
    pub id: String,
    /// The server.
    pub server: String,
    /// Previous owner; null: none.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub from: Option<String>,
    /// Next owner; null: none.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub to: Option<String>,
    /// Version of the targets that it executes.
    pub version: i64,
    /// Its state.
    pub state: String,
    /// When it reached that state.
    pub state_at: DateTime<Utc>,
    /// When it was opened.
    pub opened_at: DateTime<Utc>,
    /// Why it was opened.
    pub origin: String,
    /// Whether the server was in use when the move was opened.
    pub in_use: bool,
    /// Why it ended before the server was bound.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub reason: Option<String>,
    /// Message of the host agent.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub detail: Option<String>,
}

/// Moves, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MovesPage {
    /// The moves of this page.
    pub moves: Vec<Move>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// Reason of a stop or pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StopAsked {
    /// Why, as text.
    #[cfg_attr(feature = "schema", schema(min_length = 1))]
    pub why: String,
}

/// Stuck objects, longest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StuckThings {
    /// The objects.
    pub stuck: Vec<StuckThing>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// Progress of a change of the host profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Rollout {
    /// Servers that had another profile when it began.
    pub servers: i64,
    /// Servers that have the new profile, or have left the reservation.
    pub done: i64,
    /// Servers whose hosts refused to be reconfigured. They are not retried until the profile changes.
    pub refused: i64,
    /// Progress as text: `120 of 500`.
    pub progress: String,
    /// Who paused it, and why: no further server is reconfigured. Null: not paused.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub paused: Option<StopSwitch>,
}

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
    pub from: Option<String>,
    /// The reservation that will own it; null: no reservation.
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
    pub waits_for: Option<String>,
}

/// Number of moves that ended in one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EndedMoves {
    /// The state.
    pub state: String,
    /// Why they were not bound; null: they were.
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
    pub acting: Option<String>,
    /// The stop switch, if it is set: no step begins.
    pub stopped: Option<StopSwitch>,
    /// Why the acting mover is too far from Postgres to act; null: it is near enough.
    pub cannot_act: Option<String>,
    /// The server's time.
    pub now: DateTime<Utc>,
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
}

/// The mover that executes moves, and whether any may begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MoverView {
    /// The acting mover; null: no mover acts.
    pub acting: Option<String>,
    /// The stop switch, if it is set: no step begins.
    pub stopped: Option<StopSwitch>,
    /// How long two MSBs must be lost before it preempts by itself; null: an operator must do so.
    pub give_way_after_seconds: Option<u64>,
    /// Duration of a renewal of the mover's lease; null: not measured yet.
    pub round_trip_seconds: Option<f64>,
    /// Duration of the mover's last pass over all moves; null: none has ended.
    pub pass_seconds: Option<f64>,
    /// The lease that the mover asks for.
    pub lease_seconds: Option<f64>,
    /// Why the mover is too far from Postgres to act; null: it is near enough.
    pub cannot_act: Option<String>,
}

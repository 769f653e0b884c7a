//! `/status`: the stored region, counted at one instant.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The stored region, counted at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RegionStatus {
    /// Name of the region; null: none is loaded.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub region: Option<String>,
    /// Version of the targets.
    pub version: i64,
    /// When that version was published or loaded.
    pub published_at: DateTime<Utc>,
    /// Last audit-trail entry.
    pub seq: i64,
    /// Its servers.
    pub servers: StatusServers,
    /// Its reservations.
    pub reservations: StatusReservations,
    /// Jobs by kind and state, including those that ended.
    pub queue: Vec<StatusQueue>,
    /// Jobs that run.
    pub running: Vec<StatusJob>,
    /// How often a worker lost its lease.
    pub leases_lost: i64,
    /// The version of Postgres.
    pub postgres: String,
    /// Name of the database.
    pub database: String,
    /// Size of the database on disk.
    pub bytes: i64,
}

/// Numbers of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StatusServers {
    /// All servers.
    pub total: i64,
    /// Servers that a reservation owns.
    pub held: i64,
    /// Servers with running containers.
    pub in_use: i64,
    /// Servers with a move under way.
    pub on_the_move: i64,
    /// Servers lent to an elastic reservation.
    pub lent: i64,
    /// Servers out of use because of an event other than planned maintenance.
    pub unavailable: i64,
}

/// Numbers of reservations, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StatusReservations {
    /// Guaranteed reservations.
    pub guaranteed: i64,
    /// Shared buffers.
    pub shared_buffers: i64,
    /// Elastic reservations.
    pub elastic: i64,
}

/// Number of jobs of one kind in one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StatusQueue {
    /// The kind.
    pub kind: String,
    /// The state.
    pub state: String,
    /// Number of jobs.
    pub count: i64,
}

/// A job that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StatusJob {
    /// Its id.
    pub id: Uuid,
    /// Its kind.
    pub kind: String,
    /// Number of times it was leased.
    pub attempt: i32,
    /// The worker that runs it.
    pub worker: String,
    /// End of the worker's lease, unless it is renewed.
    pub lease_until: DateTime<Utc>,
}

/// Result of a check of the stored region's invariants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Checked {
    /// Invariants that are broken, with the number of rows that break each.
    pub broken: Vec<String>,
}

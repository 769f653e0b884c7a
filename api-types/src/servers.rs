//! `/ops/v1/servers/{name}`, `/ops/v1/unavailability` and `/ops/v1/trail`: a server, events, and the audit trail.

use crate::moves::Move;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An unavailability event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventView {
    /// Its name.
    pub event: String,
    /// What it covers.
    pub scope: String,
    /// Name of the server, rack, MSB or datacenter.
    pub scope_id: String,
    /// Its kind.
    pub kind: String,
    /// When it began or begins.
    pub started_at: DateTime<Utc>,
    /// Null: not known.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub ended_at: Option<DateTime<Utc>>,
    /// Whether it is active now.
    pub active: bool,
}

/// Events, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventsPage {
    /// The events of this page.
    pub events: Vec<EventView>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// A server, at one instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Server {
    /// Its name.
    pub server: String,
    /// Its datacenter.
    pub datacenter: String,
    /// Its MSB.
    pub msb: String,
    /// Its rack.
    pub rack: String,
    /// Its hardware type.
    pub hardware_type: String,
    /// Its owner; null: none.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub reservation: Option<String>,
    /// Its next owner; null: it stays.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub target: Option<ServerTarget>,
    /// Version of the targets that decided it; null: it stays.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub target_version: Option<i64>,
    /// Cause of the target, if it was decided between two solves.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub target_origin: Option<String>,
    /// The elastic reservation that borrows it.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub loaned_to: Option<String>,
    /// Whether it is known to run containers.
    pub in_use: bool,
    /// Typical draw under load, in watts.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub power_watts: Option<f64>,
    /// Counter of its changes that invalidate decisions.
    pub generation: i64,
    /// Whether it is in service, or only in planned maintenance.
    pub available: bool,
    /// Open events that cover it, oldest first.
    pub events: Vec<EventView>,
    /// Open windows of planned maintenance.
    pub maintenance: Vec<ServerMaintenance>,
    /// Its open move.
    #[serde(rename = "move")]
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub moving: Option<Move>,
}

/// The next owner of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServerTarget {
    /// Null: it becomes free.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub reservation: Option<String>,
}

/// A window of maintenance of a server or its rack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServerMaintenance {
    /// Its id.
    #[cfg_attr(feature = "schema", schema(format = Uuid))]
    pub window: String,
    /// server or rack.
    pub scope: String,
    /// Its state.
    pub state: String,
    /// Its start.
    pub starts_at: DateTime<Utc>,
    /// Its end.
    pub ends_at: DateTime<Utc>,
}

/// An entry of the history of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServerPast {
    /// When it happened.
    pub at: DateTime<Utc>,
    /// target: its target in a version; move: a move was opened; event: an event began; trail: an entry of the audit
    /// trail.
    pub kind: String,
    /// What it is, within its kind: the version, move, event or entry.
    pub key: String,
    /// Further data, by kind.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub detail: Value,
}

/// History of a server, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServerHistory {
    /// The entries of this page.
    pub history: Vec<ServerPast>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// An entry of the audit trail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TrailEntry {
    /// 1, 2, 3, ... in the order in which entries became visible.
    pub seq: i64,
    /// When it was written.
    pub at: DateTime<Utc>,
    /// The caller, or the part of the program, that acted.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// The object, by name or id.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub subject: Option<String>,
    /// Further data, by action.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub detail: Value,
}

/// Entries, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TrailPage {
    /// The entries of this page.
    pub entries: Vec<TrailEntry>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

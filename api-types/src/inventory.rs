//! `/ops/v1/servers` and `/ops/v1/drained-servers`: servers that are racked, moved and decommissioned.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A server that is drained, and removed when it is free.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServerDrained {
    /// The server.
    pub server: String,
    /// Its owner; null: it is free.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub reservation: Option<String>,
    /// Progress as text.
    pub progress: String,
    /// State of its open move; null: none.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub step: Option<String>,
    /// The caller that requested the removal.
    pub asked_by: String,
    /// When it was requested.
    pub asked_at: DateTime<Utc>,
    /// Why it could not be removed although it is free.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub refused: Option<String>,
}

/// Drained servers, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServersDrained {
    /// The servers.
    pub servers: Vec<ServerDrained>,
}

/// Change of the number of servers of a type in an MSB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServersChange {
    /// The hardware type.
    pub hardware_type: String,
    /// The MSB.
    pub msb: String,
    /// Servers added, or removed if negative.
    pub servers: i64,
}

/// Effect of a change, done or previewed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServersEdited {
    /// Whether it was done; false: previewed.
    pub applied: bool,
    /// Number of servers.
    pub servers: usize,
    /// Racks that did not exist.
    pub new_racks: Vec<String>,
    /// MSBs that did not exist.
    pub new_msbs: Vec<String>,
    /// By hardware type and MSB.
    pub change: Vec<ServersChange>,
    /// Owned servers that move or are drained, by reservation.
    pub held: BTreeMap<String, usize>,
    /// Servers to drain first.
    pub draining: Vec<String>,
}

//! `/ops/v1/servers`, `/ops/v1/racks`, `/ops/v1/msbs` and `/ops/v1/drained-servers`: what the region has, and servers that are
//! racked, moved and decommissioned.

use crate::servers::ServerTarget;
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
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
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

/// A server, in the list of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RegionServer {
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
    /// What it is used for: `in_use`, `idle`, `shared_buffer`, `free` or `unavailable`. While a move of it is open it counts
    /// for its next owner.
    #[serde(rename = "use")]
    pub used_for: String,
    /// Its owner; null: it is free.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub reservation: Option<String>,
    /// Whether a move of it is open.
    pub moving: bool,
    /// Its next owner; null: it stays.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub target: Option<ServerTarget>,
    /// The elastic reservation that borrows it.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub loaned_to: Option<String>,
    /// Whether it is known to run containers.
    pub in_use: bool,
    /// Whether it is in service, or only in planned maintenance.
    pub available: bool,
    /// Typical draw under load, in watts.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub power_watts: Option<f64>,
    /// Counter of its changes that invalidate decisions.
    pub generation: i64,
}

/// Servers of the region, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RegionServers {
    /// The instant of the list, some seconds ago in a busy region.
    pub taken_at: DateTime<Utc>,
    /// The servers of this page.
    pub servers: Vec<RegionServer>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// A rack and its servers, counted. Each server counts once, and again in `moving` and `lent`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Rack {
    /// Its name.
    pub rack: String,
    /// Its MSB.
    pub msb: String,
    /// Its datacenter.
    pub datacenter: String,
    /// Its servers.
    pub servers: usize,
    /// Owned or arriving, and running containers.
    pub in_use: usize,
    /// Owned or arriving, without containers.
    pub idle: usize,
    /// Held by shared buffers.
    pub shared_buffer: usize,
    /// Held by no reservation.
    pub free: usize,
    /// Out of service.
    pub unavailable: usize,
    /// With an open move.
    pub moving: usize,
    /// Lent to elastic reservations.
    pub lent: usize,
}

/// Racks, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Racks {
    /// The instant of the list, some seconds ago in a busy region.
    pub taken_at: DateTime<Utc>,
    /// The racks of this page.
    pub racks: Vec<Rack>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// An MSB and its servers, counted. Each server counts once, and again in `moving` and `lent`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Msb {
    /// Its name.
    pub msb: String,
    /// Its datacenter.
    pub datacenter: String,
    /// Its racks.
    pub racks: usize,
    /// Its servers.
    pub servers: usize,
    /// Owned or arriving, and running containers.
    pub in_use: usize,
    /// Owned or arriving, without containers.
    pub idle: usize,
    /// Held by shared buffers.
    pub shared_buffer: usize,
    /// Held by no reservation.
    pub free: usize,
    /// Out of service.
    pub unavailable: usize,
    /// With an open move.
    pub moving: usize,
    /// Lent to elastic reservations.
    pub lent: usize,
    /// Reservations with an embedded buffer whose promise its loss would break.
    pub loss_breaks: usize,
}

/// MSBs, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Msbs {
    /// The instant of the list, some seconds ago in a busy region.
    pub taken_at: DateTime<Utc>,
    /// The MSBs of this page.
    pub msbs: Vec<Msb>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

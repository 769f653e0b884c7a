//! `/ops/v1/shared-buffers` and `/ops/v1/headroom`: warm capacity for failures and for growth.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The shared buffer of a hardware type beside the failures of its servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BufferNeed {
    /// The hardware type.
    pub hardware_type: String,
    /// Its servers.
    pub servers: u64,
    /// Servers that the shared buffer is to have; null: the type has none.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub wanted: Option<u64>,
    /// Servers that it has now; null: the type has none.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub held: Option<u64>,
    /// Whether its size is a fixed number of servers; else the region's fraction determines it. Null: the type has none.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub listed: Option<bool>,
    /// The fewest servers that keep the chance; null: no failure of any server is known.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub recommended: Option<u64>,
    /// The chance that at an instant more servers are down than `wanted`, if none were added meanwhile; null: no failure of
    /// any server is known.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub chance_short: Option<f64>,
    /// Servers that are down at an instant, on average; null: no failure of any server is known.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub mean_down: Option<f64>,
    /// Servers that are down now by unplanned events of servers and racks.
    pub down_now: u64,
    /// Their failures in the history, each from its beginning to its end.
    pub failures: u64,
    /// Whether the shared buffer follows failures.
    pub follows: bool,
    /// The last decision and its reason; null: nothing was decided yet.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub decision: Option<String>,
}

/// The shared buffers of a region, by hardware type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BufferNeeds {
    /// The accepted chance that more servers are down at an instant than the buffer has.
    pub chance: f64,
    /// When it was computed; null: no region is loaded.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub computed_at: Option<DateTime<Utc>>,
    /// Days of failures that are known.
    pub known_days: f64,
    /// A row for each hardware type.
    pub shared_buffers: Vec<BufferNeed>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// Servers of a hardware type in a datacenter that wait for growth within the next hour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Headroom {
    /// The hardware type.
    pub hardware_type: String,
    /// The datacenter.
    pub datacenter: String,
    /// Servers with running containers.
    pub used: u64,
    /// Servers of reservations without running containers, not lent; shared buffers are not counted.
    pub idle: u64,
    /// Servers of no reservation.
    pub free: u64,
    /// Servers that use may grow by within the next hour, at the chance; null: less than a day of use is known.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub growth: Option<u64>,
    /// Of these, servers that are neither idle nor free; null: as above.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub missing: Option<u64>,
}

/// The headroom of a region, by hardware type and datacenter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HeadroomPage {
    /// The accepted chance that use grows by more.
    pub chance: f64,
    /// When it was computed; null: no region is loaded.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub computed_at: Option<DateTime<Utc>>,
    /// A row for each hardware type in each datacenter.
    pub headroom: Vec<Headroom>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// How a shared buffer is to follow failures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BufferAutosizeAsked {
    /// Accepted chance that more servers are down at an instant than the buffer has, from 0.0001 to 0.5.
    pub chance: f64,
    /// The buffer never falls below it, in servers.
    pub min_servers: u32,
    /// The buffer never rises above it, in servers.
    pub max_servers: u32,
    /// Seconds after a change before the buffer may shrink, from an hour to 31 days; absent: a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown_seconds: Option<u32>,
}

/// How a shared buffer follows failures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BufferAutosizeSettings {
    /// Accepted chance that more servers are down at an instant than the buffer has.
    pub chance: f64,
    /// The buffer never falls below it, in servers.
    pub min_servers: u32,
    /// The buffer never rises above it, in servers.
    pub max_servers: u32,
    /// Seconds after a change before the buffer may shrink.
    pub cooldown_seconds: u64,
    /// Who set it.
    pub set_by: String,
    /// When.
    pub set_at: DateTime<Utc>,
}

/// Whether the shared buffer of a hardware type follows failures, and what was decided last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BufferAutosize {
    /// The hardware type.
    pub hardware_type: String,
    /// How it follows failures; null: it does not.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub settings: Option<BufferAutosizeSettings>,
    /// The last decision; null: nothing was decided yet.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub decision: Option<BufferDecision>,
}

/// A decision, made every ten minutes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BufferDecision {
    /// When it was made.
    pub at: DateTime<Utc>,
    /// keep, grow or shrink.
    pub action: String,
    /// The size decided, in servers; null: the buffer stays.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub to_servers: Option<u32>,
    /// Why.
    pub reason: String,
}

/// The shared buffer of a hardware type no longer follows failures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BufferAutosizeRemoved {
    /// The hardware type.
    pub removed: String,
}

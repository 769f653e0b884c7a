//! `/ops/v1/region`, `/ops/v1/hardware-types`, `/ops/v1/shared-buffers`, `/ops/v1/elastic-reservations` and
//! `/ops/v1/rru-profiles`: settings of the region.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Prices of the model, default limits, and the buffer fraction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RegionSettings {
    /// Name of the region.
    pub region: String,
    /// Price of moving a server in use: M of expression 1.
    pub move_in_use: f64,
    /// Price of moving an idle server: M of expression 1.
    pub move_idle: f64,
    /// Price per RRU beyond a spread limit: beta of expressions 2 and 3.
    pub spread_beta: f64,
    /// Price per RRU of the largest MSB share: tau of expression 4.
    pub buffer_tau: f64,
    /// Largest desired share in one MSB, of reservations without their own; null: the default rule.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub msb_alpha: Option<f64>,
    /// Largest desired share in one rack, of reservations without their own; null: the default rule.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub rack_alpha: Option<f64>,
    /// Tolerance of datacenter shares: theta of eq. 7, of reservations without their own.
    pub affinity_theta: f64,
    /// Share of each hardware type that is its shared buffer, if no size is set.
    pub shared_buffer_fraction: f64,
}

/// The shared buffer of a hardware type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SharedBuffer {
    /// Its reservation.
    pub reservation: String,
    /// Promised servers.
    pub servers: u64,
    /// Held servers.
    pub held: u64,
    /// Whether its size is set; otherwise it follows from the region's fraction.
    pub listed: bool,
}

/// A hardware type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HardwareType {
    /// Its name.
    pub hardware_type: String,
    /// Servers of this type.
    pub servers: u64,
    /// Null: no shared buffer.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub shared_buffer: Option<SharedBuffer>,
}

/// Hardware types, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HardwareTypes {
    /// The types.
    pub hardware_types: Vec<HardwareType>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// Hardware types to add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HardwareTypesAsked {
    /// Names.
    pub hardware_types: Vec<String>,
}

/// Added hardware types.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HardwareTypesAdded {
    /// Their names.
    pub added: Vec<String>,
}

/// A new name of a hardware type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HardwareTypeRenamed {
    /// The new name.
    pub name: String,
}

/// A hardware type that was removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HardwareTypeRemoved {
    /// Its name.
    pub removed: String,
}

/// Size of a shared buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SharedBufferAsked {
    /// Whole servers, at most all servers of the type.
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub servers: f64,
}

/// An elastic reservation: it owns no servers and borrows idle buffers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ElasticAsked {
    /// The business unit.
    pub owner: String,
    /// RRU of a server of each eligible hardware type.
    #[serde(default)]
    pub rru: BTreeMap<String, f64>,
    /// Further eligible hardware types, 1 RRU for each server.
    #[serde(default)]
    pub hardware_types: Vec<String>,
    /// 0 is the highest priority; 5 by default.
    #[serde(default = "default_priority")]
    pub priority: i32,
    /// OS configuration of its servers; null: any.
    #[serde(default)]
    pub host_profile: Option<String>,
    /// Its weight against other borrowers; null: that of the mover's settings, or 1.
    #[serde(default)]
    pub share: Option<f64>,
}

/// An elastic reservation and the servers that it borrows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ElasticReservation {
    /// Its name.
    pub reservation: String,
    /// The business unit.
    pub owner: String,
    /// RRU of a server of each eligible hardware type.
    pub rru: BTreeMap<String, f64>,
    /// 0 is the highest priority.
    pub priority: i32,
    /// OS configuration of its servers; null: any.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub host_profile: Option<String>,
    /// Its weight against other borrowers; null: that of the mover's settings, or 1.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub share: Option<f64>,
    /// Whether it was ended; it is removed when it borrows no servers.
    pub ending: bool,
    /// Servers it borrows.
    pub borrows: u64,
    /// Version of its promise.
    pub promise_version: i32,
}

/// Elastic reservations, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ElasticReservations {
    /// The reservations.
    pub elastic_reservations: Vec<ElasticReservation>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// An ended elastic reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ElasticEnded {
    /// Its name.
    pub ended: String,
    /// Servers to return first; 0: it is removed.
    pub returning: u64,
}

/// An RRU profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RruProfile {
    /// Its name.
    pub profile: String,
    /// RRU of one server of each eligible hardware type.
    pub rru: BTreeMap<String, f64>,
    /// The caller that changed it last.
    pub set_by: String,
    /// When it was changed last.
    pub set_at: DateTime<Utc>,
}

/// RRU profiles, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RruProfiles {
    /// The profiles.
    pub profiles: Vec<RruProfile>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// Values of an RRU profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RruProfileAsked {
    /// RRU of one server of each eligible hardware type, with at most six decimal places.
    pub rru: BTreeMap<String, f64>,
}

/// A removed profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RruProfileRemoved {
    /// Its name.
    pub removed: String,
}

/// Settings to change. Absent members keep their value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RegionSettingsAsked {
    /// Price of moving a server in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub move_in_use: Option<f64>,
    /// Price of moving an idle server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub move_idle: Option<f64>,
    /// Price per RRU beyond a spread limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub spread_beta: Option<f64>,
    /// Price per RRU of the largest MSB share.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub buffer_tau: Option<f64>,
    /// Largest desired share in one MSB; null: the default rule.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(
        feature = "schema",
        schema(value_type = Option<f64>, exclusive_minimum = 0, maximum = 1)
    )]
    pub msb_alpha: Option<Option<f64>>,
    /// Largest desired share in one rack; null: the default rule.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(
        feature = "schema",
        schema(value_type = Option<f64>, exclusive_minimum = 0, maximum = 1)
    )]
    pub rack_alpha: Option<Option<f64>>,
    /// Tolerance of datacenter shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub affinity_theta: Option<f64>,
    /// Share of each hardware type that is its shared buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 0, exclusive_maximum = 1))]
    pub shared_buffer_fraction: Option<f64>,
}

/// Tells a member that is null from one that is not there.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

fn default_priority() -> i32 {
    fleet::PRIORITY_DEFAULT
}

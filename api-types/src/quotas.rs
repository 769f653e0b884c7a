//! `/ops/v1/quotas`: limits on what may be promised to an owner.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A limit, and the promised amount.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuotaLimit {
    /// `rru` or `servers`.
    pub unit: String,
    /// Profile of the RRU; null: it counts servers.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub profile: Option<String>,
    /// Hardware type of the servers; null: all, or it counts RRU.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub hardware_type: Option<String>,
    /// Largest sum of the promises of its guaranteed reservations.
    pub limit: f64,
    /// Sum of the promises, each at its largest possible amount in this measure.
    pub promised: f64,
    /// The caller that set it.
    pub set_by: String,
    /// When it was set.
    pub set_at: DateTime<Utc>,
}

/// Quota of an owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Quota {
    /// The owner.
    pub owner: String,
    /// All limits apply; empty: no limit.
    pub limits: Vec<QuotaLimit>,
    /// The most important priority that the owner may request, 0 being the most important of all; null: 5, the default.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub max_priority: Option<i32>,
    /// Number of its guaranteed reservations.
    pub reservations: usize,
}

/// Quotas, by owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Quotas {
    /// The quotas.
    pub quotas: Vec<Quota>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// Limits of an owner, to set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct QuotaAsked {
    /// All limits apply; empty: no limit.
    pub limits: Option<Vec<QuotaLimitAsked>>,
    /// The most important priority that the owner may request, 0 being the most important of all; null: 5, the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub max_priority: Option<i32>,
    /// No longer accepted: RRU of different profiles cannot be added.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(deprecated))]
    pub capacity_rru: Option<Value>,
}

/// One limit: RRU of a profile, or servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct QuotaLimitAsked {
    /// The RRU profile in which `rru` counts.
    pub profile: Option<String>,
    /// Largest RRU in that profile.
    #[cfg_attr(feature = "schema", schema(minimum = 0, maximum = 1_000_000_000))]
    pub rru: Option<f64>,
    /// Largest number of servers.
    #[cfg_attr(feature = "schema", schema(minimum = 0, maximum = 1_000_000_000))]
    pub servers: Option<f64>,
    /// Hardware type of the servers; null: all.
    pub hardware_type: Option<String>,
}

/// A removed quota.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuotaRemoved {
    /// The owner that has no quota any more.
    pub removed: String,
}

//! `/ops/v1/contracts`: churn contracts, which limit how many servers in use may leave a reservation.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A churn contract to set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ContractAsked {
    /// Percent of the reservation's servers in use that may leave it within the window.
    #[cfg_attr(feature = "schema", schema(minimum = 0, maximum = 100))]
    pub in_use_percent: f64,
    /// The window, from a minute to 31 days.
    #[cfg_attr(feature = "schema", schema(minimum = 60, maximum = 2_678_400))]
    pub window_seconds: u64,
    /// Time zone of the quiet times, such as Europe/Berlin; UTC by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Times of day at which no server in use may leave it, such as 08:00-18:00.
    #[serde(default)]
    pub quiet: Vec<String>,
}

/// A churn contract and its current use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Contract {
    /// The reservation.
    pub reservation: String,
    /// Percent of its servers in use that may leave it within the window.
    pub in_use_percent: f64,
    /// The window.
    pub window_seconds: u64,
    /// Time zone of the quiet times.
    pub zone: String,
    /// Times of day at which no server in use may leave it.
    pub quiet: Vec<String>,
    /// The caller that set it.
    pub set_by: String,
    /// When it was set.
    pub set_at: DateTime<Utc>,
    /// Its servers in use now.
    pub in_use: u64,
    /// Servers in use that may leave it within the window.
    pub allowed: u64,
    /// Servers in use that left it within the window.
    pub left: u64,
    /// Servers in use that are leaving it.
    pub leaving: u64,
    /// Whether servers in use may leave it now: `open`, `quiet` or `used_up`.
    pub state: String,
    /// Its ETag.
    pub version: String,
}

/// Churn contracts, by reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Contracts {
    /// The contracts.
    pub contracts: Vec<Contract>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// A churn contract that was removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ContractRemoved {
    /// The reservation that had it.
    pub removed: String,
}

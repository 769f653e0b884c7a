//! `/v1/reservations/{name}/autosize`: requests that follow demand.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a request is to follow demand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AutosizeAsked {
    /// The demand; absent: `used_rru`, the RRU of the reservation's servers with running containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The share of hours whose peak of demand the request must cover, from 0.5 to 0.9999.
    pub quantile: f64,
    /// The request never falls below it.
    pub min_rru: f64,
    /// The request never rises above it.
    pub max_rru: f64,
    /// Seconds after a change before the request may shrink, from an hour to 31 days; absent: a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown_seconds: Option<u32>,
}

/// How a request follows demand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AutosizeSettings {
    /// The demand.
    pub metric: String,
    /// The share of hours whose peak of demand the request must cover.
    pub quantile: f64,
    /// The request never falls below it.
    pub min_rru: f64,
    /// The request never rises above it.
    pub max_rru: f64,
    /// Seconds after a change before the request may shrink.
    pub cooldown_seconds: u64,
    /// Who set it.
    pub set_by: String,
    /// When.
    pub set_at: DateTime<Utc>,
}

/// Whether the request of a reservation follows demand, and what was decided last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Autosize {
    /// The reservation.
    pub reservation: String,
    /// How it follows demand; null: it does not.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub settings: Option<AutosizeSettings>,
    /// The last decision; null: nothing was decided yet.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub decision: Option<AutosizeDecision>,
    /// The last request that was submitted for it; null: no request was.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub request: Option<AutosizeRequest>,
}

/// A decision, made every ten minutes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AutosizeDecision {
    /// When it was made.
    pub at: DateTime<Utc>,
    /// keep, grow or shrink.
    pub action: String,
    /// The size decided; null: the request stays.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub to_rru: Option<f64>,
    /// Why.
    pub reason: String,
}

/// A request that was submitted to follow demand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AutosizeRequest {
    /// The request.
    pub request: String,
    /// Its state.
    pub state: String,
    /// Since when.
    pub state_at: DateTime<Utc>,
    /// Its answer: the plan, or why it is refused and what would be possible instead; null: it is not answered yet.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required, value_type = Object))]
    pub answer: Option<Value>,
}

/// The request of a reservation no longer follows demand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AutosizeRemoved {
    /// The reservation.
    pub removed: String,
}

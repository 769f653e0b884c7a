//! `/ops/v1/emergencies`: capacity that is granted at once.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Requests capacity at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EmergencyAsked {
    /// Its id, which makes retries safe; absent: a new one.
    #[cfg_attr(feature = "schema", schema(format = Uuid))]
    pub emergency: Option<String>,
    /// The reservation.
    pub reservation: String,
    /// Additional RRU.
    pub rru: f64,
    /// Why, as text.
    pub why: String,
    /// The most servers that it may take, as the preview shows them.
    pub max_servers: u32,
    /// Whether the limits of emergencies and quotas do not apply; needs the role `operator`, too.
    #[serde(default)]
    pub beyond_limits: bool,
}

/// What an emergency would be granted now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EmergencyPreview {
    /// The reservation.
    pub reservation: String,
    /// Additional RRU requested.
    pub asked_rru: f64,
    /// RRU that would be granted.
    pub grantable_rru: f64,
    /// Servers that would be taken.
    pub servers: u32,
    /// Of these, servers from shared buffers.
    pub from_shared: u32,
    /// Limits of policies that the grant would exceed; the next solve mends that.
    pub exceeds: Vec<String>,
    /// Code of the refusal; null: it would be granted.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub refusal: Option<String>,
    /// Reason of the refusal, as text.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub refused_because: Option<String>,
}

/// An emergency request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Emergency {
    /// Its id.
    pub emergency: String,
    /// The reservation.
    pub reservation: String,
    /// Additional RRU requested.
    pub asked_rru: f64,
    /// Why, as text.
    pub why: String,
    /// The caller that requested it.
    pub asked_by: String,
    /// When it was requested.
    pub asked_at: DateTime<Utc>,
    /// Its state.
    pub state: String,
    /// Null: not granted.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub granted: Option<EmergencyGrant>,
    /// Code of the refusal.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub refusal: Option<String>,
    /// Reason of the refusal, as text.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub refused_because: Option<String>,
    /// Whether it still waits for a solve to spread and buffer it.
    pub debt: bool,
    /// The most servers that it may take; null: requested before there was such a limit.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub max_servers: Option<u32>,
    /// Whether the limits of emergencies and quotas do not apply to it.
    pub beyond_limits: bool,
}

/// Granted capacity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EmergencyGrant {
    /// Granted RRU.
    pub rru: f64,
    /// When it was granted.
    pub at: DateTime<Utc>,
    /// Number of servers.
    pub servers: i32,
    /// Of these, servers from shared buffers.
    pub from_shared: i32,
}

/// Emergencies, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Emergencies {
    /// The emergencies.
    pub emergencies: Vec<Emergency>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// An ended emergency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EmergencyEnded {
    /// Its id.
    pub ended: String,
}

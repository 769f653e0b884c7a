//! `/ops/v1/maintenance`: windows of planned maintenance.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Requests planned maintenance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MaintenanceAsked {
    /// For an MSB, windows are planned rack by rack.
    pub scope: String,
    /// Name of the server, rack or MSB.
    pub scope_id: String,
    /// Absent: right after the drain.
    pub starts_at: Option<DateTime<Utc>>,
    /// Length of a window.
    pub length_seconds: u32,
    /// Drain: how long before the start no new containers are placed.
    #[serde(default)]
    pub drain_seconds: u32,
    /// Largest share of its MSB that may be under maintenance at once during the window; a quarter by default.
    #[cfg_attr(feature = "schema", schema(minimum = 0.0, maximum = 1.0))]
    pub share: Option<f64>,
    /// Minutes until the servers are back if the work is recalled because an MSB is lost. Absent: it cannot be
    /// recalled, and its servers count as lost.
    pub recall_minutes: Option<u32>,
    /// Why, as text.
    pub why: String,
    /// Reservations that may fall below their promise meanwhile. The audit trail has them, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_short: Option<AcceptShort>,
}

/// What an operator accepts for the sake of maintenance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AcceptShort {
    /// The reservations that may be short.
    pub reservations: Vec<String>,
    /// Why that is accepted.
    pub why: String,
}

/// A window of planned maintenance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MaintenanceWindow {
    /// Its id.
    pub window: String,
    /// Id of the plan that several windows belong to; of a single window, its own id.
    pub plan: String,
    /// Scope of the plan.
    pub asked_for: String,
    /// Scope of the window: server or rack.
    pub scope: String,
    /// Name of the server or rack.
    pub scope_id: String,
    /// Its MSB.
    pub msb: String,
    /// Start of the drain.
    pub drains_at: DateTime<Utc>,
    /// Start of the window.
    pub starts_at: DateTime<Utc>,
    /// End of the window.
    pub ends_at: DateTime<Utc>,
    /// Length of the drain.
    pub drain_seconds: u64,
    /// Largest share of its MSB that may be under maintenance at once during the window.
    pub share: f64,
    /// Minutes until the servers are back after a recall; null: it cannot be recalled.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub recall_minutes: Option<u32>,
    /// Why, as text.
    pub why: String,
    /// The caller that planned it.
    pub requested_by: String,
    /// When it was planned.
    pub requested_at: DateTime<Utc>,
    /// Its state.
    pub state: String,
    /// Whether it is planned or under way.
    pub open: bool,
    /// When it reached that state.
    pub state_at: DateTime<Utc>,
    /// Why it is paused, or was cancelled or ended early.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub reason: Option<String>,
    /// Details of the reason, as text.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub detail: Option<String>,
    /// Its servers; 0 after its end.
    pub servers: u64,
    /// Of these, in use or lent.
    pub in_use: u64,
    /// Progress of its recall; null: not recalled.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub recall: Option<MaintenanceRecall>,
    /// What an operator has accepted for it; null: nothing.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub accept_short: Option<AcceptShort>,
}

/// Progress of a recall, after the loss of an MSB elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MaintenanceRecall {
    /// When it was ordered.
    pub ordered_at: DateTime<Utc>,
    /// When all servers must be back.
    pub due_at: DateTime<Utc>,
    /// When the last server came back; null: none yet.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub back_at: Option<DateTime<Utc>>,
    /// Servers recalled.
    pub servers: u64,
    /// Of these, back.
    pub returned: u64,
    /// Of these, refused by their hosts: they stay out until the window ends.
    pub refused: u64,
}

/// A list of windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MaintenanceWindows {
    /// Open windows first.
    pub windows: Vec<MaintenanceWindow>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// Windows of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MaintenancePlan {
    /// Its id.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub plan: Option<String>,
    /// Sorted by start.
    pub windows: Vec<MaintenanceWindow>,
}

/// Ended windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MaintenanceEnded {
    /// Their ids.
    pub ended: Vec<String>,
}

/// Cancelled windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MaintenanceCancelled {
    /// Their ids.
    pub cancelled: Vec<String>,
}

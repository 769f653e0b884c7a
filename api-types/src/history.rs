//! `/ops/v1/history`: figures of the region over time.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The figures of the region in one period of five minutes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RegionSample {
    /// The beginning of the five minutes.
    pub at: DateTime<Utc>,
    /// Servers of reservations with running containers.
    pub servers_in_use: i32,
    /// Servers of reservations without containers.
    pub servers_idle: i32,
    /// Servers of shared buffers.
    pub servers_shared_buffer: i32,
    /// Servers of no reservation.
    pub servers_free: i32,
    /// Servers out of service, of a reservation or not.
    pub servers_unavailable: i32,
    /// Promised capacity of all guaranteed reservations.
    pub promised_rru: f64,
    /// What they held of it.
    pub held_rru: f64,
    /// What they would have had after the loss of one more MSB, for each its worst.
    pub guaranteed_rru: f64,
}

/// Samples of the region, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HistoryPage {
    /// The samples of this page.
    pub samples: Vec<RegionSample>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

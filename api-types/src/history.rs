//! `/ops/v1/history`: figures of the region over time; `/v1/history/usage`: capacity and servers as series.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

/// Promised capacity and servers over time, as series of equal steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsageHistory {
    /// The length of a step in seconds. Steps begin at its multiples since 1970.
    pub step_seconds: u32,
    /// One for each reservation, owner, hardware type, datacenter or combination, in order of name.
    pub series: Vec<UsageSeries>,
}

/// A series. Each list has one value for each step: the largest of its samples; null: no sample was taken in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsageSeries {
    /// What it is of, such as `{"hardware_type": "C1", "datacenter": "dc1"}`.
    pub of: BTreeMap<String, String>,
    /// The beginning of its first step.
    pub start: DateTime<Utc>,
    /// Promised capacity; 0 in series by hardware type or datacenter, which promises do not have.
    pub promised_rru: Vec<Option<f64>>,
    /// Servers in service that reservations own.
    pub held: Vec<Option<i64>>,
    /// What they are worth to their reservations.
    pub held_rru: Vec<Option<f64>>,
    /// Of these, servers with running containers.
    pub used: Vec<Option<i64>>,
    /// What they are worth.
    pub used_rru: Vec<Option<f64>>,
    /// Of these, servers lent to elastic reservations.
    pub lent: Vec<Option<i64>>,
    /// Servers in service of no reservation.
    pub free: Vec<Option<i64>>,
}

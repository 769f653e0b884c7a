//! `/ops/v1/replacements`, `/ops/v1/outages` and `/ops/v1/loans`: what the mover decided between two solves.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A failed server and its replacement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Replacement {
    /// The failed server.
    pub server: String,
    /// The reservation that lost it.
    pub reservation: String,
    /// The event.
    pub event: String,
    /// When the event began, by its own time.
    pub started_at: DateTime<Utc>,
    /// When the failure was recorded.
    pub recorded_at: DateTime<Utc>,
    /// State of the replacement.
    pub state: String,
    /// When it reached that state.
    pub state_at: DateTime<Utc>,
    /// The server that replaces it; null: no spare was found.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub spare: Option<String>,
    /// When the failed server was back in the reservation, repaired; null: it is not.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub returned_at: Option<DateTime<Utc>>,
}

/// Number of failures that were replaced within a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReplacedWithin {
    /// The time.
    pub seconds: f64,
    /// Number of failures.
    pub count: usize,
}

/// Seconds from failures to the binding of their spares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReplacementSeconds {
    /// Half of the spares were bound within this time; null: no spare was bound.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub p50: Option<f64>,
    /// 99 % of them were bound within this time.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub p99: Option<f64>,
    /// The longest time.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub most: Option<f64>,
    /// Failures replaced within each of several times, in ascending order.
    pub at_most: Vec<ReplacedWithin>,
    /// Number of failures replaced.
    pub count: usize,
}

/// Failed servers and their replacements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Replacements {
    /// The newest first.
    pub replacements: Vec<Replacement>,
    /// Number of all failures, by state.
    pub counts: BTreeMap<String, i64>,
    /// Times of all replacements.
    pub seconds: ReplacementSeconds,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// An MSB that is or was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LostMsb {
    /// The MSB.
    pub msb: String,
    /// Why it counts as lost.
    pub reason: String,
    /// When the mover noticed the loss.
    pub began_at: DateTime<Utc>,
    /// When the mover detected its end; null: still lost.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub ended_at: Option<DateTime<Utc>>,
    /// Servers out of service in it when it began.
    pub servers: i32,
    /// Lent servers of guaranteed reservations when it began.
    pub lent: i32,
}

/// Lost MSBs, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Outages {
    /// The outages.
    pub outages: Vec<LostMsb>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// Servers that an elastic reservation borrows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Borrowed {
    /// The elastic reservation.
    pub borrower: String,
    /// The reservation that owns them.
    pub owner: String,
    /// Their MSB.
    pub msb: String,
    /// Their hardware type.
    pub hardware_type: String,
    /// Number of servers.
    pub servers: u64,
}

/// Servers lent to elastic reservations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Loans {
    /// By borrower, owner, MSB and hardware type.
    pub loans: Vec<Borrowed>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

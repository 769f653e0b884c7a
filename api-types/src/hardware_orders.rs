//! `/ops/v1/hardware-orders`: servers on order.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

/// Servers to order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HardwareOrderAsked {
    /// A hardware type of the region.
    pub hardware_type: String,
    /// The datacenter of the region where they will be racked.
    pub datacenter: String,
    /// How many.
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 1_000_000))]
    pub servers: u32,
    /// The day on which they are expected to be in service, in UTC.
    pub expected_on: NaiveDate,
}

/// Orders to enter: all or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HardwareOrdersAsked {
    /// The orders.
    pub orders: Vec<HardwareOrderAsked>,
}

/// A change of an open order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HardwareOrderPatch {
    /// Servers that have not arrived; absent: as many as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 1_000_000))]
    pub servers: Option<u32>,
    /// The day on which they are expected; absent: the same as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_on: Option<NaiveDate>,
}

/// An order of hardware.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HardwareOrder {
    /// Its id.
    pub order: String,
    /// What was ordered.
    pub hardware_type: String,
    /// Where it will be racked.
    pub datacenter: String,
    /// How many servers; of an order that arrives in parts, those that have not arrived.
    pub servers: u32,
    /// The day on which they are expected to be in service, in UTC.
    pub expected_on: NaiveDate,
    /// `open`: they are on their way; `arrived`: they are racked; `cancelled`: they will not come.
    pub state: String,
    /// Since when.
    pub state_at: DateTime<Utc>,
    /// Whether it is open and its day has passed: no forecast counts it until it has another day.
    pub late: bool,
    /// Who entered it.
    pub ordered_by: String,
    /// When.
    pub ordered_at: DateTime<Utc>,
}

/// A page of orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HardwareOrders {
    /// The orders.
    pub orders: Vec<HardwareOrder>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// Orders that were entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HardwareOrdersAdded {
    /// The orders.
    pub orders: Vec<HardwareOrder>,
}

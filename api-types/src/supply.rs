//! `/ops/v1/supply`: how long the servers of each hardware type last in each datacenter.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

/// How long the servers of a hardware type last in a datacenter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TypeSupply {
    /// Its position by how soon more servers are needed than there are, from 1 on.
    pub rank: usize,
    /// The hardware type.
    pub hardware_type: String,
    /// The datacenter.
    pub datacenter: String,
    /// `runs_out`: demand exceeds what is there on a day of the forecast; `lasts`: on none; `out`: no server is free now,
    /// and demand may be larger than can be seen; `unknown`: too few days of demand are known.
    pub state: String,
    /// The first day on which demand exceeds what is there.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub runs_out_on: Option<NaiveDate>,
    /// Days from the last day known until then; 0 if no server is free now.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub days_left: Option<usize>,
    /// The same as a sentence.
    pub sentence: String,
    /// Servers in service, held or free, on the last day known; of a type that was added since, now.
    pub servers: i64,
    /// Of these, servers that reservations own, shared buffers included.
    pub held: i64,
    /// The others.
    pub free: i64,
    /// Servers of open orders whose day has not passed: they count from that day on.
    pub on_order: i64,
    /// The first day on which some of these are expected; null: none are on order.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_arrival_on: Option<NaiveDate>,
    /// Servers of open orders whose day has passed: they do not count until the order has another day, or has arrived.
    pub late: i64,
    /// The highest demand that is forecast, in servers; null: `unknown`.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub highest: Option<f64>,
    /// Days of demand that are known.
    pub known_days: usize,
    /// The method of the forecast, which the past of the series has chosen; null: there is no forecast.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub method: Option<String>,
    /// Sum of the errors of its Q50 over the sum of the demand, on days that had no say in the choice; null: too few days
    /// are known.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub error: Option<f64>,
    /// Why to doubt the forecast.
    pub doubts: Vec<String>,
}

/// How long the servers of a region last, what runs out first first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SupplyPage {
    /// The quantile of demand: the chance that demand stays below it.
    pub quantile: f64,
    /// How many days are forecast.
    pub days: usize,
    /// The last day known: the forecast begins on the next one. Null: no day of the history has ended.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub last_day: Option<NaiveDate>,
    /// Each hardware type in each datacenter that has servers of it.
    pub supply: Vec<TypeSupply>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

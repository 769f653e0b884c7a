//! `/v1/reservations`: promised and owned capacity.

use crate::moves::Rollout;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A condition of a reservation, beside its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Condition {
    /// One of `promise_kept`, `servers_arriving`, `servers_leaving`, `servers_out_of_use`, `request_open`.
    pub condition: String,
    /// Whether it holds.
    pub holds: bool,
    /// Details as text.
    pub detail: String,
}

/// A number of servers and their RRU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReservationPart {
    /// Number of servers.
    pub servers: usize,
    /// Their RRU for the reservation.
    pub rru: f64,
}

/// Terms of a churn contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ContractTerms {
    /// Percent of the servers in use that may leave the reservation within the window.
    pub in_use_percent: f64,
    /// The window.
    pub window_seconds: u64,
    /// Time zone of the quiet times.
    pub zone: String,
    /// Times of day at which no server in use may leave it.
    pub quiet: Vec<String>,
}

/// A reservation: promised and owned capacity, and open requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reservation {
    /// Its name.
    pub reservation: String,
    /// Its owner.
    pub owner: String,
    /// Its kind.
    pub kind: String,
    /// Its state.
    pub state: String,
    /// Conditions beside the state; only of guaranteed reservations.
    pub conditions: Vec<Condition>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Capacity of the last request, in RRU: more than promised if only a part was granted.
    pub requested_rru: f64,
    /// C: promised capacity in RRU; of a shared buffer, servers.
    pub promised_rru: f64,
    /// What it has now: RRU of owned servers in service, less those in maintenance.
    pub held_rru: f64,
    /// RRU of the promise that are guaranteed now: with an embedded buffer, after one more MSB loss.
    pub guaranteed_rru: f64,
    /// RRU of the promise that are missing now.
    pub missing_now_rru: f64,
    /// RRU of the promise that are missing now or would be missing after one more MSB loss.
    pub missing_after_loss_rru: f64,
    /// How the promise stands now: `guaranteed`; `at_risk` (it has everything now, and would not after one more MSB
    /// loss); `short` (it has less than promised now).
    pub standing: String,
    /// The MSB with the largest share of it.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub worst_msb: Option<String>,
    /// Embedded buffer: RRU in that MSB; null: none.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub embedded_buffer_rru: Option<f64>,
    /// Owned and in service.
    pub owned: ReservationPart,
    /// Owned and out of service.
    pub out_of_use: ReservationPart,
    /// Pending moves to it.
    pub arriving: ReservationPart,
    /// Pending moves from it.
    pub leaving: ReservationPart,
    /// Owned servers by hardware type.
    pub by_hardware_type: BTreeMap<String, ReservationPart>,
    /// Owned servers by MSB.
    pub by_msb: BTreeMap<String, ReservationPart>,
    /// Owned servers by datacenter.
    pub by_datacenter: BTreeMap<String, ReservationPart>,
    /// Whether it has an embedded buffer.
    pub msb_buffer: bool,
    /// 0 is the highest priority.
    pub priority: i32,
    /// Largest desired share in one MSB; null: the region's.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub msb_alpha: Option<f64>,
    /// Largest desired share in one rack; null: the region's.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub rack_alpha: Option<f64>,
    /// Tolerance of datacenter shares; null: the region's.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub affinity_theta: Option<f64>,
    /// OS configuration of its servers; null: any.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub host_profile: Option<String>,
    /// Progress of the last change of its host profile; null: never changed.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub rollout: Option<Rollout>,
    /// RRU of one server of each eligible hardware type.
    pub rru: BTreeMap<String, f64>,
    /// Desired share of each datacenter.
    pub affinity: BTreeMap<String, f64>,
    /// The only datacenters of its servers; empty: all.
    pub allowed_datacenters: Vec<String>,
    /// Partitions of which it survives the loss of any one domain, besides that of an MSB.
    #[serde(default)]
    pub survives: Vec<String>,
    /// Replicas of its data; null: no replica rule.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub replicas: Option<u32>,
    /// Replicas that one MSB may hold.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub replicas_per_msb: Option<u32>,
    /// Null: no churn contract.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub churn_contract: Option<ContractTerms>,
    /// Version of its promise.
    pub promise_version: i32,
    /// When that version was promised.
    pub promised_at: DateTime<Utc>,
    /// When it ends without a request.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub ends_at: Option<DateTime<Utc>>,
    /// The request that was granted; null: loaded from a snapshot.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub request: Option<String>,
    /// The request that waits for its answer.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub open_request: Option<String>,
    /// Its ETag.
    pub version: String,
}

/// A page of reservations, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reservations {
    /// The reservations of this page.
    pub reservations: Vec<Reservation>,
    /// Token of the next page; null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// What the loss of any one domain of the partitions that a reservation survives would leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DomainsLeft {
    /// The partitions.
    pub partitions: Vec<String>,
    /// Largest amount that it owns in one domain, servers in maintenance included.
    pub largest_rru: f64,
    /// Least capacity left within 30 minutes of the loss of any one domain.
    pub left_rru: f64,
    /// Least capacity left at once.
    pub left_at_once_rru: f64,
    /// Whether both are as much as was promised for a loss.
    pub holds: bool,
}

/// What one MSB holds of a reservation, and what its loss would leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MsbLeft {
    /// The MSB.
    pub msb: String,
    /// Its datacenter.
    pub datacenter: String,
    /// Capacity in service that it owns there.
    pub rru: f64,
    /// Of that, in maintenance.
    pub in_maintenance_rru: f64,
    /// Capacity left within 30 minutes of its loss: servers in maintenance elsewhere that can be recalled by then
    /// count.
    pub left_rru: f64,
    /// Capacity left at once: no server in maintenance counts.
    pub left_at_once_rru: f64,
    /// Whether both are as much as was promised for a loss.
    pub holds: bool,
}

/// Capacity of a reservation after the loss of each MSB: servers that it owns and that are in service, less those in
/// maintenance. Targets of moves count once they are bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReservationCertificate {
    /// The reservation.
    pub reservation: String,
    /// Time of the region, by the database's clock.
    pub taken_at: DateTime<Utc>,
    /// Last audit-trail entry at that time.
    pub seq: i64,
    /// Promised capacity.
    pub promised_rru: f64,
    /// Whether it has an embedded buffer, to survive the loss of any one MSB.
    pub msb_buffer: bool,
    /// Owned capacity in service, servers in maintenance included.
    pub owned_rru: f64,
    /// Of that, in maintenance.
    pub in_maintenance_rru: f64,
    /// What it has now: owned capacity in service, less what is in maintenance.
    pub held_rru: f64,
    /// Capacity of the promise that is guaranteed now: with an embedded buffer, after one more MSB loss.
    pub guaranteed_rru: f64,
    /// Capacity of the promise that is missing now.
    pub missing_now_rru: f64,
    /// How the promise stands now: `guaranteed`, `at_risk` or `short`.
    pub standing: String,
    /// Whether the promise holds: without a loss, and after any loss at once and within 30 minutes.
    pub holds: bool,
    /// Capacity that is missing now or would be missing after one more MSB loss: the worst of these cases.
    pub missing_after_loss_rru: f64,
    /// The MSB whose loss leaves least; null: it owns no server.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub worst_msb: Option<String>,
    /// Capacity left within 30 minutes of that loss.
    pub left_rru: f64,
    /// Least capacity that the loss of any MSB leaves at once.
    pub left_at_once_rru: f64,
    /// Capacity required at once: the promise less a quarter of the embedded buffer.
    pub needed_at_once_rru: f64,
    /// Limit of one MSB by its replica rule; null: no replica rule.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub msb_max_rru: Option<f64>,
    /// Whether every MSB is within it; null: no replica rule.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub replicas_hold: Option<bool>,
    /// Capacity that the rule requires after the loss of any one MSB; null: no replica rule.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub quorum_rru: Option<f64>,
    /// Absent: it survives the loss of no domain but an MSB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<DomainsLeft>,
    /// Every MSB in which it owns servers.
    pub msbs: Vec<MsbLeft>,
}

/// A reservation after its worst MSB loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReservationSurvives {
    /// The reservation.
    pub reservation: String,
    /// Its owner.
    pub owner: String,
    /// 0 is the highest priority.
    pub priority: i32,
    /// Promised capacity.
    pub promised_rru: f64,
    /// Whether it has an embedded buffer, to survive the loss of any one MSB.
    pub msb_buffer: bool,
    /// Owned capacity in service, servers in maintenance included.
    pub owned_rru: f64,
    /// Of that, in maintenance.
    pub in_maintenance_rru: f64,
    /// What it has now: owned capacity in service, less what is in maintenance.
    pub held_rru: f64,
    /// Capacity of the promise that is guaranteed now: with an embedded buffer, after one more MSB loss.
    pub guaranteed_rru: f64,
    /// Capacity of the promise that is missing now.
    pub missing_now_rru: f64,
    /// How the promise stands now: `guaranteed`, `at_risk` or `short`.
    pub standing: String,
    /// The MSB whose loss leaves least; null: it owns no server.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub worst_msb: Option<String>,
    /// Capacity left within 30 minutes of that loss.
    pub left_rru: f64,
    /// Least capacity that the loss of any MSB leaves at once.
    pub left_at_once_rru: f64,
    /// Capacity required at once: the promise less a quarter of the embedded buffer.
    pub needed_at_once_rru: f64,
    /// Whether the promise holds: without a loss, and after any loss at once and within 30 minutes.
    pub holds: bool,
    /// Capacity that is missing now or would be missing after one more MSB loss: the worst of these cases.
    pub missing_after_loss_rru: f64,
    /// Absent: it survives the loss of no domain but an MSB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<DomainsLeft>,
}

/// Capacity of every guaranteed reservation after its worst MSB loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RegionCertificate {
    /// Time of the region, by the database's clock.
    pub taken_at: DateTime<Utc>,
    /// Last audit-trail entry at that time.
    pub seq: i64,
    /// Number of reservations that have less than promised now, listed or not.
    pub short: usize,
    /// Number of reservations that have everything now, and would not after one more MSB loss.
    pub at_risk: usize,
    /// The fewest servers worth what is missing now, of all reservations: their units of RRU may differ.
    pub missing_now_servers: usize,
    /// The fewest servers worth what is missing now or would be missing after one more MSB loss; for each reservation
    /// its worst loss.
    pub missing_after_loss_servers: usize,
    /// Number of guaranteed reservations.
    pub of: usize,
    /// Sorted by name.
    pub reservations: Vec<ReservationSurvives>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

// Names are shared with the store: a page has many thousands of them.
/// A server of a reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServerOfReservation {
    /// Its name.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub server: Arc<str>,
    /// Whether containers may be placed on it.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub state: Cow<'static, str>,
    /// Whether the reservation owns it.
    pub bound: bool,
    /// Whether it is known to run containers.
    pub in_use: bool,
    /// Its datacenter.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub datacenter: Arc<str>,
    /// Its MSB.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub msb: Arc<str>,
    /// Its rack.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub rack: Arc<str>,
    /// Its hardware type.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub hardware_type: Arc<str>,
    /// Its RRU for the reservation.
    pub rru: f64,
    /// The elastic reservation that borrows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub loaned_to: Option<Arc<str>>,
}

/// A page of the servers of a reservation, at one instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServersPage {
    /// Last audit-trail entry at that instant: where to follow changes from.
    pub seq: i64,
    /// Promised RRU; only on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_rru: Option<f64>,
    /// RRU of servers on which containers may be placed: available and borrowed; only on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_rru: Option<f64>,
    /// RRU of its servers in service in the MSB with most of them; only on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded_buffer_rru: Option<f64>,
    /// Sorted by name.
    pub servers: Vec<ServerOfReservation>,
    /// Value of `after` for the next page; null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next: Option<String>,
}

//! A snapshot as rows: what readers produce, writers take and `RegionSnapshot::new` checks.
//!
//! Rows mirror the tables of the public format one to one, names and all. Nothing here is known
//! to be valid; [`crate::RegionSnapshot`] is.

use crate::id::{
    DatacenterName, HardwareTypeName, MsbName, Name, OwnerName, RackName, ReservationName,
    ServerName,
};
use crate::partition::PartitionParts;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Prices and limits of the model. Field names are those of `region.json`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Weights {
    /// Price of moving a server with running containers out of a reservation: M of eq. 1.
    pub move_in_use: f64,
    /// Price of moving an idle server out of a reservation: M of eq. 1.
    pub move_idle: f64,
    /// Price per RRU beyond a spread limit: beta of eq. 2 and 3.
    pub spread_beta: f64,
    /// Price per RRU of the largest MSB share: tau of eq. 4.
    pub buffer_tau: f64,
    /// Largest share of a reservation wanted in one MSB: alpha^F of eq. 3. `None`: the default
    /// rule of [`crate::Reservation`].
    pub msb_alpha: Option<f64>,
    /// Largest share of a reservation wanted in one rack: alpha^K of eq. 2. `None`: the default
    /// rule of [`crate::Reservation`].
    pub rack_alpha: Option<f64>,
    /// Tolerance of a datacenter's share: theta of eq. 7.
    pub affinity_theta: f64,
}

/// RAS (SOSP'21) gives the ratio of the two movement costs (section 4.6: ten to one) and no other
/// number; the rest are the values of the snapshot format's example.
impl Default for Weights {
    fn default() -> Self {
        Weights {
            move_in_use: 10.0,
            move_idle: 1.0,
            spread_beta: 2.0,
            buffer_tau: 5.0,
            msb_alpha: None,
            rack_alpha: None,
            affinity_theta: 0.05,
        }
    }
}

/// Share of each hardware type's servers kept as its shared random-failure buffer where the
/// snapshot does not say: RAS (SOSP'21) section 3.3.1, "currently 2 % of the region".
pub const SHARED_BUFFER_FRACTION_DEFAULT: f64 = 0.02;

/// A whole snapshot as rows.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotParts {
    /// The region's name.
    pub region: Name,
    /// The instant all rows speak of.
    pub taken_at: DateTime<Utc>,
    /// Prices and limits.
    pub weights: Weights,
    /// Share of each hardware type for its shared buffer; `None`: the default.
    pub shared_buffer_fraction: Option<f64>,
    /// `servers.parquet`
    pub servers: Vec<ServerRow>,
    /// `reservations.parquet`
    pub reservations: Vec<ReservationRow>,
    /// `rru.parquet`
    pub rru: Vec<RruRow>,
    /// `affinity.parquet`
    pub affinity: Vec<AffinityRow>,
    /// `allowed_datacenters.parquet`
    pub allowed_datacenters: Vec<AllowedDatacenterRow>,
    /// `unavailability.parquet`
    pub unavailability: Vec<UnavailabilityRow>,
    /// What the mover is held to until the next solve.
    pub ahead: AheadParts,
    /// Fault domains that cross MSBs.
    pub crossing: PartitionParts,
}

/// A row of `servers.parquet`; the columns are described in the snapshot format.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the columns of the public format, described there")]
pub struct ServerRow {
    pub server_id: ServerName,
    pub datacenter: DatacenterName,
    pub msb: MsbName,
    pub rack: RackName,
    pub hardware_type: HardwareTypeName,
    pub current_reservation: Option<ReservationName>,
    pub target_reservation: Option<ReservationName>,
    pub target_pending: bool,
    pub in_use: bool,
    pub loaned_to: Option<ReservationName>,
    pub power_watts: Option<f64>,
}

/// A row of `reservations.parquet`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the columns of the public format, described there")]
pub struct ReservationRow {
    pub reservation_id: ReservationName,
    pub owner: OwnerName,
    pub kind: Name,
    pub capacity_rru: f64,
    pub msb_buffer: bool,
    pub priority: i32,
    pub msb_alpha: Option<f64>,
    pub rack_alpha: Option<f64>,
    pub affinity_theta: Option<f64>,
    pub host_profile: Option<Name>,
    pub replicas: Option<i32>,
    pub replicas_per_msb: Option<i32>,
}

/// A row of `rru.parquet`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the columns of the public format, described there")]
pub struct RruRow {
    pub reservation_id: ReservationName,
    pub hardware_type: HardwareTypeName,
    pub rru: f64,
}

/// A row of `affinity.parquet`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the columns of the public format, described there")]
pub struct AffinityRow {
    pub reservation_id: ReservationName,
    pub datacenter: DatacenterName,
    pub share: f64,
}

/// A row of `allowed_datacenters.parquet`: a reservation with rows is held to the datacenters they
/// name.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the columns of the public format, described there")]
pub struct AllowedDatacenterRow {
    pub reservation_id: ReservationName,
    pub datacenter: DatacenterName,
}

/// A row of `unavailability.parquet`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the columns of the public format, described there")]
pub struct UnavailabilityRow {
    pub event_id: Name,
    pub scope: Name,
    pub scope_id: Name,
    pub kind: Name,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    pub recall_minutes: Option<i32>,
}

/// The horizon and the move budgets, as rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AheadParts {
    /// Minutes from the snapshot's instant to the next solve: `horizon_minutes` of `region.json`. Zero: not
    /// known, and planned maintenance counts as capacity (RAS section 3.3.1).
    pub horizon_minutes: u32,
    /// `move_budgets.parquet`
    pub budgets: Vec<MoveBudgetRow>,
}

/// A row of `move_budgets.parquet`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns of the public format, described there")]
pub struct MoveBudgetRow {
    pub scope: Name,
    pub scope_id: Name,
    pub in_use: Option<bool>,
    pub moves: i64,
    pub because: Name,
}

//! The immutable, validated state of a region at one instant: the only input of a solve.

mod build;
mod check;
mod rows;

use crate::error::SnapshotError;
use crate::id::{DatacenterIx, HardwareTypeName, MsbIx, Name, ReservationIx, ServerIx};
use crate::move_budget::MoveBudget;
use crate::partition::Partition;
use crate::parts::{SnapshotParts, Weights};
use crate::reservation::Reservation;
use crate::rru::{MICRO, Rru};
use crate::server::Server;
use crate::topology::{Datacenter, Msb, Rack};
use crate::unavailability::UnavailabilityEvent;
use build::Builder;
pub(crate) use check::region_errors;
use chrono::{DateTime, Utc};

/// Ids of shared buffers that the snapshot does not list begin with this.
pub const SHARED_BUFFER_PREFIX: &str = "shared-buffer/";

/// What all servers together may be worth to any one reservation, and what all reservations
/// together may ask for: 1e12 RRU. Sums of a few such amounts still fit 63 bits of micro-RRU, so
/// no sum over a region overflows.
pub(crate) const SUM_MAX: Rru = Rru(1_000_000_000_000 * MICRO);

/// A region at one instant.
///
/// Invariants that code elsewhere relies on:
/// - every table is ordered bytewise by id, so the order of input rows reaches no output;
/// - every index points into its table; a rack lies in one MSB, an MSB in one datacenter;
/// - each hardware type has exactly one shared buffer, listed or made, unless the fraction is zero
///   and none is listed or referred to;
/// - amounts are finite and not negative; a value V is positive.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionSnapshot {
    /// The region's name.
    pub region: Name,
    /// The instant.
    pub taken_at: DateTime<Utc>,
    /// Prices and limits of the model.
    pub weights: Weights,
    /// Share of each hardware type's servers kept in made shared buffers.
    pub shared_buffer_fraction: f64,
    /// Psi^D
    pub datacenters: Vec<Datacenter>,
    /// Psi^F
    pub msbs: Vec<Msb>,
    /// Psi^K
    pub racks: Vec<Rack>,
    /// Names of the hardware types.
    pub hardware_types: Vec<HardwareTypeName>,
    /// S
    pub servers: Vec<Server>,
    /// R, made shared buffers included.
    pub reservations: Vec<Reservation>,
    /// All events, active or not.
    pub unavailability: Vec<UnavailabilityEvent>,
    /// Minutes to the next solve.
    pub horizon_minutes: u32,
    /// How many servers may begin to move until then.
    pub move_budgets: Vec<MoveBudget>,
    /// Fault domains that cross MSBs.
    pub partitions: Vec<Partition>,
}

impl RegionSnapshot {
    /// Checks every rule of the snapshot format and builds the snapshot.
    ///
    /// # Errors
    /// The first broken rule, with its file and row.
    pub fn new(parts: SnapshotParts) -> Result<RegionSnapshot, SnapshotError> {
        Builder::default().build(parts)
    }

    /// The MSB of a server.
    pub fn msb_of(&self, server: &Server) -> MsbIx {
        self.racks[server.rack.ix()].msb
    }

    /// The datacenter of a server.
    pub fn datacenter_of(&self, server: &Server) -> DatacenterIx {
        self.msbs[self.msb_of(server).ix()].datacenter
    }

    /// V_{s,r}, zero where the type is not eligible or the datacenter not allowed.
    pub fn value(&self, server: &Server, reservation: ReservationIx) -> Rru {
        let of = &self.reservations[reservation.ix()];
        // Most reservations are held to no datacenter: the lookup is spared.
        if !of.allowed_datacenters.is_empty() && !of.allows(self.datacenter_of(server)) {
            return Rru::ZERO;
        }
        of.value(server.hardware_type).unwrap_or(Rru::ZERO)
    }

    /// The first reservation that survives the loss of a domain other than an MSB, where there is one: what cannot do
    /// with such a reservation refuses the region.
    pub fn crossing_reservation(&self) -> Option<&Reservation> {
        self.reservations.iter().find(|of| !of.survives.is_empty())
    }

    /// Finds a reservation by name.
    pub fn reservation(&self, id: &str) -> Option<ReservationIx> {
        let found = self.reservations.binary_search_by(|r| r.id.as_ref().cmp(id)).ok()?;
        Some(ReservationIx::new(found))
    }

    /// Finds a server by name.
    pub fn server(&self, id: &str) -> Option<ServerIx> {
        let found = self.servers.binary_search_by(|s| s.id.as_ref().cmp(id)).ok()?;
        Some(ServerIx::new(found))
    }
}

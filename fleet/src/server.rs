//! A server of the region.

use crate::id::{HardwareTypeIx, RackIx, ReservationIx, ServerName};

/// One server at the snapshot's instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its name.
    pub id: ServerName,
    /// The rack it is in.
    pub rack: RackIx,
    /// Its hardware type.
    pub hardware_type: HardwareTypeIx,
    /// Who owns it now; `None`: free.
    pub current: Option<ReservationIx>,
    /// The move under way, if any.
    pub pending: Option<PendingMove>,
    /// Whether containers of a guaranteed reservation run on it.
    pub in_use: bool,
    /// The elastic reservation that borrows it.
    pub loaned_to: Option<ReservationIx>,
    /// Typical draw, in watts.
    pub power_watts: Option<f64>,
    /// Whether the solver may count on it: no event other than planned maintenance covers it
    /// (RAS, SOSP'21, section 3.3.1).
    pub available: bool,
    /// Whether it stays with its holder until the next solve ([`RegionSnapshot::ahead`]).
    ///
    /// [`RegionSnapshot::ahead`]: crate::RegionSnapshot::ahead
    pub pinned: bool,
}

/// A move decided earlier and still under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingMove {
    /// Where the server goes; `None`: to free.
    pub target: Option<ReservationIx>,
}

impl Server {
    /// Who holds the server for the purposes of a solve: the target of a move under way, else the
    /// current owner. This is X of eq. 1 (RAS section 3.5.1: keep a move generated before).
    pub fn holder(&self) -> Option<ReservationIx> {
        self.pending.map_or(self.current, |pending| pending.target)
    }
}

//! The certificate: what the loss of each single MSB would leave of every reservation, as things are.
//!
//! A promise is kept by servers, not by plans: what counts is what a reservation owns now. Targets of moves under way count for nothing until they are bound, and
//! servers that something other than planned maintenance takes out of use count for nothing at all. So a
//! guarantee may be broken here while the last solve's report says that it holds: something has
//! happened since.

use super::holdings::Holdings;
use crate::id::{MsbIx, Name, ReservationIx};
use crate::reservation::ReservationKind;
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;

/// What single losses would leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Guaranteed reservations, in the snapshot's order.
    pub rows: Vec<Certified>,
}

/// What the loss of each MSB would leave of one reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certified {
    /// Which of the snapshot's reservations it is.
    pub reservation: ReservationIx,
    /// Its name.
    pub reservation_id: Name,
    /// The business unit that asked for it.
    pub owner: Name,
    /// 0 is the most important.
    pub priority: i32,
    /// Whether its capacity is to survive the loss of any one MSB.
    pub msb_buffer: bool,
    /// C.
    pub capacity: Rru,
    /// What it owns and is not out of use.
    pub owned: Rru,
    /// Servers of that.
    pub servers: usize,
    /// The MSB whose loss takes most, the first by name of equals; `None`: it owns nothing.
    pub worst: Option<MsbIx>,
    /// What is left then.
    pub left: Rru,
    /// RRU in each MSB, by [`MsbIx`].
    pub by_msb: Vec<Rru>,
}

impl Certified {
    /// What is left when an MSB is lost.
    pub fn after_loss(&self, msb: MsbIx) -> Rru {
        self.owned - self.by_msb[msb.ix()]
    }

    /// What must be there: C after the worst loss, or C while there is none where no more was promised.
    pub fn kept(&self) -> Rru {
        if self.msb_buffer { self.left } else { self.owned }
    }

    /// Whether what was promised holds.
    pub fn holds(&self) -> bool {
        self.kept() >= self.capacity
    }

    /// What is missing to it.
    pub fn missing(&self) -> Rru {
        (self.capacity - self.kept()).or_zero()
    }
}

impl Certificate {
    /// The row of a reservation, by name.
    pub fn row(&self, id: &str) -> Option<&Certified> {
        let found = self.rows.binary_search_by(|row| row.reservation_id.as_ref().cmp(id));
        Some(&self.rows[found.ok()?])
    }

    /// Those whose promise does not hold.
    pub fn broken(&self) -> impl Iterator<Item = &Certified> {
        self.rows.iter().filter(|row| !row.holds())
    }
}

/// Sums what every guaranteed reservation owns.
pub fn certificate(snapshot: &RegionSnapshot) -> Certificate {
    let owners: Vec<Option<ReservationIx>> =
        snapshot.servers.iter().map(|server| server.current).collect();
    let owned = Holdings::sum(snapshot, &owners);
    let reservations = snapshot.reservations.iter().enumerate();
    let guaranteed = reservations.filter(|(_, of)| of.kind == ReservationKind::Guaranteed);
    let rows = guaranteed.map(|(position, of)| {
        let ix = ReservationIx::new(position);
        let holding = owned.holding(snapshot, ix);
        let by_msb = owned.by_msb(ix).to_vec();
        let largest = |amount: &Rru| *amount == holding.largest_msb && *amount > Rru::ZERO;
        Certified {
            reservation: ix,
            reservation_id: of.id.clone(),
            owner: of.owner.clone(),
            priority: of.priority,
            msb_buffer: of.msb_buffer,
            capacity: of.capacity,
            owned: holding.assigned,
            servers: holding.servers,
            worst: by_msb.iter().position(largest).map(MsbIx::new),
            left: holding.assigned - holding.largest_msb,
            by_msb,
        }
    });
    Certificate { rows: rows.collect() }
}

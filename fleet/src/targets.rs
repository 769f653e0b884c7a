//! The solver's output: who should hold each server.

use crate::id::{Name, ReservationIx, ServerIx};
use crate::parts::SnapshotParts;
use crate::snapshot::RegionSnapshot;

/// One wanted holder per server, in the snapshot's order of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    holders: Vec<Option<ReservationIx>>,
}

/// One server that changes its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The server.
    pub server: ServerIx,
    /// Who holds it before; `None`: free.
    pub source: Option<ReservationIx>,
    /// Who holds it after; `None`: free.
    pub target: Option<ReservationIx>,
    /// Whether containers run on it.
    pub in_use: bool,
}

impl Targets {
    /// Nothing changes: every server stays with its holder (moves under way go on).
    pub fn unchanged(snapshot: &RegionSnapshot) -> Targets {
        Targets { holders: snapshot.servers.iter().map(|server| server.holder()).collect() }
    }

    /// Takes one wanted holder per server, in the snapshot's order.
    ///
    /// # Panics
    /// If the lengths differ: a target list is made for one snapshot.
    pub fn new(snapshot: &RegionSnapshot, holders: Vec<Option<ReservationIx>>) -> Targets {
        assert_eq!(holders.len(), snapshot.servers.len(), "one target per server");
        Targets { holders }
    }

    /// The wanted holder of each server.
    pub fn holders(&self) -> &[Option<ReservationIx>] {
        &self.holders
    }

    /// The servers whose holder changes, in order of id. A server whose move is under way counts
    /// as held by that move's target.
    pub fn diff<'a>(&'a self, snapshot: &'a RegionSnapshot) -> impl Iterator<Item = Move> + 'a {
        (snapshot.servers.iter().zip(&self.holders).enumerate()).filter_map(
            |(position, (server, &target))| {
                let source = server.holder();
                (source != target).then_some(Move {
                    server: ServerIx::new(position),
                    source,
                    target,
                    in_use: server.in_use,
                })
            },
        )
    }

    /// The snapshot after every target is carried out: rows, so that the caller may change
    /// requests before they become the next snapshot. Moved servers are idle and not on loan;
    /// made shared buffers are listed from now on only through the servers that name them.
    pub fn apply(&self, snapshot: &RegionSnapshot) -> SnapshotParts {
        let mut parts = snapshot.to_parts();
        for (server, (row, &target)) in
            snapshot.servers.iter().zip(parts.servers.iter_mut().zip(&self.holders))
        {
            let moved = server.current != target;
            row.current_reservation = target.map(|r| snapshot.reservations[r.ix()].id.clone());
            row.target_reservation = None;
            row.target_pending = false;
            if moved {
                row.in_use = false;
                row.loaned_to = None;
            }
        }
        parts
    }
}

/// The name of a holder as people read it: `free` for none.
pub fn holder_name(snapshot: &RegionSnapshot, holder: Option<ReservationIx>) -> Name {
    holder.map_or_else(|| "free".into(), |r| snapshot.reservations[r.ix()].id.clone().into())
}

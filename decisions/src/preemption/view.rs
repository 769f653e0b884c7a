//! The view of a decision about preemption.

use crate::place::PlaceLimits;
use crate::region::Region;
use fleet::audit::Maintained;
use fleet::{
    HardwareTypeIx, HardwareTypeName, MoveOrigin, MsbIx, MsbName, Reservation, ReservationKind,
    ReservationName, Rru,
};
use std::collections::BTreeMap;

/// A guaranteed reservation and its demand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its name.
    pub reservation: ReservationName,
    /// 0 is the most important.
    pub priority: i32,
    /// C.
    pub capacity: Rru,
    /// V, by hardware type.
    pub values: BTreeMap<HardwareTypeName, Rru>,
    /// Its placement rules.
    pub place: PlaceLimits,
}

/// Servers of one holder, MSB, hardware type and use that work, or that a recall returns from
/// maintenance in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldGroup {
    /// The reservation that holds them; `None`: they are free.
    pub holder: Option<ReservationName>,
    /// Whether the holder is a shared buffer.
    pub shared: bool,
    /// Their MSB.
    pub msb: MsbName,
    /// Their hardware type.
    pub hardware_type: HardwareTypeName,
    /// Whether containers run on them.
    pub in_use: bool,
    /// Number of servers.
    pub held: u64,
    /// Servers that have no open move, or are on their way back from a borrower.
    pub takable: u64,
}

/// The view of a decision about preemption: the holders of working servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionHeld {
    /// Guaranteed reservations, by name.
    pub holders: Vec<Holder>,
    /// Working servers, ordered by holder, MSB, hardware type and use; free servers last.
    pub groups: Vec<HeldGroup>,
}

impl RegionHeld {
    /// The view of a region. Maintenance is recalled only while an MSB is lost.
    pub fn of(region: &Region) -> RegionHeld {
        let snapshot = region.snapshot;
        let name = |ty: HardwareTypeIx| snapshot.hardware_types[ty.ix()].clone();
        let guaranteed = |of: &&Reservation| of.kind == ReservationKind::Guaranteed;
        let holder = |of: &Reservation| Holder {
            reservation: of.id.clone(),
            priority: of.priority,
            capacity: of.capacity,
            values: of.rru.iter().map(|&(ty, value)| (name(ty), value)).collect(),
            place: PlaceLimits::of(snapshot, of),
        };
        let recalled = !region.lost.is_empty();
        let mut groups: BTreeMap<(bool, _, MsbIx, HardwareTypeIx, bool), HeldGroup> =
            BTreeMap::new();
        for (server, state, msb) in region.servers() {
            let back = match state.maintained {
                Maintained::InService => true,
                Maintained::Recallable => recalled,
                Maintained::Stays => false,
            };
            if state.down.is_some() || !back {
                continue;
            }
            let holder = state.holder();
            let key = (holder.is_none(), holder, msb, server.hardware_type, state.in_use);
            let group = groups.entry(key).or_insert_with(|| HeldGroup {
                holder: holder.map(|ix| region.reservation(ix).id.clone()),
                shared: region.is(holder, ReservationKind::SharedBuffer),
                msb: snapshot.msbs[msb.ix()].id.clone(),
                hardware_type: name(server.hardware_type),
                in_use: state.in_use,
                held: 0,
                takable: 0,
            });
            let recall = state.staying_move.is_none_or(|origin| origin == MoveOrigin::Recall);
            group.held += 1;
            group.takable += u64::from(state.target.is_none() && recall);
        }
        RegionHeld {
            holders: snapshot.reservations.iter().filter(guaranteed).map(holder).collect(),
            groups: groups.into_values().collect(),
        }
    }
}

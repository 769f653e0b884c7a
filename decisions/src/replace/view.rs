//! The view of a decision about replacements.

use crate::domains::{Domain, Shares, survived};
use crate::place::PlaceLimits;
use crate::region::{Region, ServerState};
use chrono::{DateTime, Utc};
use fleet::{
    HardwareTypeIx, HardwareTypeName, MoveOrigin, MsbIx, MsbName, PartitionName, RegionSnapshot,
    ReservationIx, ReservationKind, ReservationName, Rru, Server, ServerIx, ServerName,
};
use std::collections::{BTreeMap, BTreeSet};

/// A failed server that a reservation is short of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The server.
    pub server: ServerName,
    /// The reservation that held it.
    pub reservation: ReservationName,
    /// The priority of the reservation; 0 is the most important.
    pub priority: i32,
    /// The hardware type of the server.
    pub hardware_type: HardwareTypeName,
    /// When it failed.
    pub since: DateTime<Utc>,
}

impl Failed {
    /// A server that failed while a reservation held it.
    pub fn of(
        snapshot: &RegionSnapshot,
        server: &Server,
        reservation: ReservationIx,
        since: DateTime<Utc>,
    ) -> Failed {
        let of = &snapshot.reservations[reservation.ix()];
        Failed {
            server: server.id.clone(),
            reservation: of.id.clone(),
            priority: of.priority,
            hardware_type: snapshot.hardware_types[server.hardware_type.ix()].clone(),
            since,
        }
    }
}

/// A server of a shared buffer that can replace a failed one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spare {
    /// The server.
    pub server: ServerName,
    /// Its MSB.
    pub msb: MsbName,
    /// Its domains of the partitions that a reservation short of a server survives.
    pub domains: Vec<Domain>,
    /// Its hardware type.
    pub hardware_type: HardwareTypeName,
    /// Whether it is lent to an elastic reservation or in use.
    pub lent: bool,
}

impl Spare {
    /// The spares of a region outside lost MSBs, ordered by name; of each MSB, hardware type, use and domains of
    /// `partitions` at most `most`, the first by name. A server that its owner takes back from a borrower is a spare.
    pub fn all(region: &Region, partitions: &BTreeSet<PartitionName>, most: usize) -> Vec<Spare> {
        let snapshot = region.snapshot;
        let mut taken: BTreeMap<(MsbIx, HardwareTypeIx, bool, Vec<Domain>), usize> =
            BTreeMap::new();
        let spare = |(at, (server, state, msb)): (usize, (&Server, &ServerState, MsbIx))| {
            let recalled = state.staying_move.is_none_or(|origin| origin == MoveOrigin::Recall);
            let takable = state.target.is_none()
                && recalled
                && state.is_in_service()
                && region.is(state.owner, ReservationKind::SharedBuffer)
                && !region.lost.contains(&msb);
            if !takable {
                return None;
            }
            let lent = state.in_use || state.borrower.is_some();
            let domains = Domain::of(snapshot, ServerIx::new(at), partitions);
            let kind = (msb, server.hardware_type, lent, domains.clone());
            let taken = taken.entry(kind).or_default();
            if *taken >= most {
                return None;
            }
            *taken += 1;
            Some(Spare {
                server: server.id.clone(),
                msb: snapshot.msbs[msb.ix()].id.clone(),
                domains,
                hardware_type: snapshot.hardware_types[server.hardware_type.ix()].clone(),
                lent,
            })
        };
        region.servers().enumerate().filter_map(spare).collect()
    }
}

/// The reservations that get servers: what hardware is worth to them, what they hold, and where they
/// may have servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpareContext {
    /// V, by reservation and hardware type.
    pub values: BTreeMap<(ReservationName, HardwareTypeName), Rru>,
    /// RRU that they hold, without servers out of service.
    pub held: Shares,
    /// The placement rules of the reservations that have any.
    pub places: BTreeMap<ReservationName, PlaceLimits>,
    /// Those that keep C when any one MSB is lost.
    pub buffered: BTreeSet<ReservationName>,
}

impl SpareContext {
    /// The values, holdings and rules of some reservations of a region. Servers on their way to a
    /// reservation are part of what it holds; servers that leave it are not.
    pub fn of(region: &Region, reservations: &BTreeSet<ReservationIx>) -> SpareContext {
        let snapshot = region.snapshot;
        let mut worth = SpareContext::default();
        for ix in reservations {
            let of = region.reservation(*ix);
            for (ty, value) in &of.rru {
                let ty = snapshot.hardware_types[ty.ix()].clone();
                worth.values.insert((of.id.clone(), ty), *value);
            }
            let limits = PlaceLimits::of(snapshot, of);
            if limits.has_rule() {
                worth.places.insert(of.id.clone(), limits);
            }
            if of.msb_buffer {
                worth.buffered.insert(of.id.clone());
            }
            let survives = survived(snapshot, of);
            if !survives.is_empty() {
                worth.held.survives.insert(of.id.clone(), survives);
            }
        }
        let partitions = worth.partitions();
        let mut held: BTreeMap<(ReservationIx, MsbIx, Vec<Domain>), Rru> = BTreeMap::new();
        for (at, (server, state, msb)) in region.servers().enumerate() {
            let holder = state.holder().filter(|ix| reservations.contains(ix));
            let Some(holder) = holder.filter(|_| state.down.is_none()) else { continue };
            let value = snapshot.value(server, holder);
            if value > Rru::ZERO {
                let domains = Domain::of(snapshot, ServerIx::new(at), &partitions);
                *held.entry((holder, msb, domains)).or_default() += value;
            }
        }
        for ((holder, msb, domains), amount) in held {
            let (of, msb) = (&region.reservation(holder).id, &snapshot.msbs[msb.ix()].id);
            worth.held.add(of, msb, &domains, amount);
        }
        worth
    }

    /// The partitions that any of the reservations survives.
    pub fn partitions(&self) -> BTreeSet<PartitionName> {
        self.held.survives.values().flatten().cloned().collect()
    }

    /// Whether a reservation keeps C when an MSB or a domain of a partition is lost.
    pub fn survives_a_loss(&self, of: &ReservationName) -> bool {
        self.buffered.contains(of) || self.held.survives.contains_key(of)
    }

    /// Whether a reservation may hold this much in an MSB.
    pub fn fits(&self, reservation: &ReservationName, msb: &MsbName, amount: Rru) -> bool {
        self.places.get(reservation).is_none_or(|place| place.fits(msb, amount))
    }
}

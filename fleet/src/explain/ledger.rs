//! Who holds what, by hardware type and MSB: counted once, asked often.

use super::grant::{Offer, OfferMsb};
use crate::audit::{smallest_buffer, unit};
use crate::id::{DatacenterIx, HardwareTypeIx, MsbIx, ReservationIx};
use crate::reservation::{Reservation, ReservationKind};
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;
use crate::targets::Targets;
use crate::topology::Msb;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Available servers of one type in one MSB with one holder by the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// `None`: free.
    pub(super) holder: Option<ReservationIx>,
    pub(super) msb: MsbIx,
    pub(super) servers: usize,
    /// How many of them the same holder has today.
    pub(super) kept: usize,
}

/// The region by hardware type.
pub(super) struct Ledger<'a> {
    pub(super) snapshot: &'a RegionSnapshot,
    /// By type, ordered by holder and MSB.
    held: Vec<Vec<Held>>,
    /// Available servers by type and MSB.
    available: Vec<Vec<usize>>,
    /// Unavailable servers by type and MSB.
    unavailable: Vec<Vec<usize>>,
    /// Reservations with a capacity by their set of eligible types.
    families: BTreeMap<Vec<HardwareTypeIx>, Vec<ReservationIx>>,
    /// Smallest embedded buffer of each reservation alone in the region.
    buffers: Vec<Rru>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(snapshot: &'a RegionSnapshot, targets: &Targets) -> Ledger<'a> {
        let (types, msbs) = (snapshot.hardware_types.len(), snapshot.msbs.len());
        let mut available = vec![vec![0; msbs]; types];
        let mut unavailable = vec![vec![0; msbs]; types];
        let mut single = Vec::with_capacity(snapshot.servers.len());
        for (server, &holder) in snapshot.servers.iter().zip(targets.holders()) {
            let msb = snapshot.msb_of(server);
            if server.available {
                available[server.hardware_type.ix()][msb.ix()] += 1;
                single.push((server.hardware_type, holder, msb, server.holder() == holder));
            } else {
                unavailable[server.hardware_type.ix()][msb.ix()] += 1;
            }
        }
        single.sort_unstable();
        let mut held: Vec<Vec<Held>> = vec![Vec::new(); types];
        for (ty, holder, msb, kept) in single {
            let kept = usize::from(kept);
            match held[ty.ix()].last_mut() {
                Some(last) if (last.holder, last.msb) == (holder, msb) => {
                    last.servers += 1;
                    last.kept += kept;
                }
                _ => held[ty.ix()].push(Held { holder, msb, servers: 1, kept }),
            }
        }
        let mut families: BTreeMap<Vec<HardwareTypeIx>, Vec<ReservationIx>> = BTreeMap::new();
        for (position, reservation) in snapshot.reservations.iter().enumerate() {
            if reservation.kind != ReservationKind::Elastic && reservation.capacity > Rru::ZERO {
                let types = eligible_types(reservation);
                families.entry(types).or_default().push(ReservationIx::new(position));
            }
        }
        let alone = |reservation: &Reservation| {
            if !reservation.msb_buffer {
                return Rru::ZERO;
            }
            let mut worth = vec![Rru::ZERO; msbs];
            for &(ty, value) in &reservation.rru {
                let there = snapshot.msbs.iter().zip(&available[ty.ix()]);
                for (worth, (msb, &servers)) in worth.iter_mut().zip(there) {
                    if reservation.allows(msb.datacenter) {
                        *worth += value.times(servers);
                    }
                }
            }
            smallest_buffer(&worth, reservation.capacity, unit(reservation)).unwrap_or_default()
        };
        let buffers = snapshot.reservations.iter().map(alone).collect();
        Ledger { snapshot, held, available, unavailable, families, buffers }
    }

    /// Available servers of a type, free ones included.
    pub(super) fn held(&self, ty: HardwareTypeIx) -> &[Held] {
        &self.held[ty.ix()]
    }

    /// Available servers of a type that this reservation holds.
    pub(super) fn held_by(&self, ix: ReservationIx, ty: HardwareTypeIx) -> &[Held] {
        let held = self.held(ty);
        let start = held.partition_point(|entry| entry.holder < Some(ix));
        let end = held.partition_point(|entry| entry.holder <= Some(ix));
        &held[start..end]
    }

    /// Free available servers of a type.
    pub(super) fn free(&self, ty: HardwareTypeIx) -> &[Held] {
        let held = self.held(ty);
        &held[..held.partition_point(|entry| entry.holder.is_none())]
    }

    /// Available servers of a type, by MSB.
    pub(super) fn available(&self, ty: HardwareTypeIx) -> &[usize] {
        &self.available[ty.ix()]
    }

    /// Unavailable servers of a type, by MSB.
    pub(super) fn unavailable(&self, ty: HardwareTypeIx) -> &[usize] {
        &self.unavailable[ty.ix()]
    }

    /// Smallest embedded buffer of a reservation alone in the region.
    pub(super) fn buffer_alone(&self, ix: ReservationIx) -> Rru {
        self.buffers[ix.ix()]
    }

    /// Reservations with a capacity, by their set of eligible types.
    pub(super) fn families(&self) -> &BTreeMap<Vec<HardwareTypeIx>, Vec<ReservationIx>> {
        &self.families
    }

    /// What a reservation of these values could have if no other reservation gave up a server: its
    /// own and free servers, in the datacenters it is allowed in.
    pub(super) fn within_reach(
        &self,
        ix: ReservationIx,
        values: &[(HardwareTypeIx, Rru)],
    ) -> Offer {
        let allowed = &self.snapshot.reservations[ix.ix()].allowed_datacenters;
        self.within_reach_in(ix, values, allowed)
    }

    /// What a reservation of these values could have of its own and free servers if it were allowed
    /// in these datacenters (in all, if the list is empty).
    pub(super) fn within_reach_in(
        &self,
        ix: ReservationIx,
        values: &[(HardwareTypeIx, Rru)],
        allowed: &[DatacenterIx],
    ) -> Offer {
        self.offer(values, allowed, |ty| {
            let entries = self.free(ty).iter().chain(self.held_by(ix, ty));
            entries.map(|entry| (entry.msb, entry.servers))
        })
    }

    /// Whether servers in an MSB count for a reservation.
    pub(super) fn allows(&self, ix: ReservationIx, msb: MsbIx) -> bool {
        self.snapshot.reservations[ix.ix()].allows(self.snapshot.msbs[msb.ix()].datacenter)
    }

    /// Servers of these types in these datacenters (in all, if the list is empty), counted by MSB, as
    /// an offer to choose from.
    pub(super) fn offer<I>(
        &self,
        values: &[(HardwareTypeIx, Rru)],
        allowed: &[DatacenterIx],
        servers: impl Fn(HardwareTypeIx) -> I,
    ) -> Offer
    where
        I: Iterator<Item = (MsbIx, usize)>,
    {
        let snapshot = self.snapshot;
        let msb = |msb: &Msb| OfferMsb { datacenter: msb.datacenter.ix(), servers: Vec::new() };
        let mut msbs: Vec<OfferMsb> = snapshot.msbs.iter().map(msb).collect();
        let mut values = values.to_vec();
        values.sort_unstable_by_key(|&(ty, value)| (Reverse(value), ty));
        for (ty, value) in values {
            let mut counts = vec![0; msbs.len()];
            for (msb, count) in servers(ty) {
                let datacenter = &snapshot.msbs[msb.ix()].datacenter;
                if allowed.is_empty() || allowed.contains(datacenter) {
                    counts[msb.ix()] += count;
                }
            }
            for (msb, count) in msbs.iter_mut().zip(counts).filter(|&(_, count)| count > 0) {
                msb.servers.push((value, count));
            }
        }
        Offer { msbs, datacenters: snapshot.datacenters.len() }
    }
}

/// The types of a reservation, ordered.
pub(super) fn eligible_types(reservation: &Reservation) -> Vec<HardwareTypeIx> {
    reservation.rru.iter().map(|&(ty, _)| ty).collect()
}

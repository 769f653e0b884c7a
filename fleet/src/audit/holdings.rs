//! What each reservation holds on available servers, by MSB, datacenter and rack.

use super::number::as_rru;
use super::partitions::ByDomain;
use crate::id::{DatacenterIx, MsbName, RackIx, ReservationIx};
use crate::reservation::ReservationKind;
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;
use serde::Serialize;

/// What a reservation holds on available servers, and what of it is guaranteed (eq. 6).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Holding {
    /// Servers.
    pub servers: usize,
    /// Their RRU.
    #[serde(rename = "assigned_rru", serialize_with = "as_rru")]
    pub assigned: Rru,
    /// RRU in the MSB that holds most of it.
    #[serde(rename = "largest_msb_rru", serialize_with = "as_rru")]
    pub largest_msb: Rru,
    /// That MSB, the first by name of equals; `None` if it holds nothing.
    #[serde(rename = "largest_msb")]
    pub largest_msb_id: Option<MsbName>,
    /// What is left after the loss of any one MSB, and of any one domain of the partitions that it survives; all of it
    /// without embedded buffer.
    #[serde(rename = "guaranteed_rru", serialize_with = "as_rru")]
    pub guaranteed: Rru,
    /// What is missing to C.
    #[serde(rename = "shortfall_rru", serialize_with = "as_rru")]
    pub shortfall: Rru,
    /// The fewest servers worth the shortfall.
    pub shortfall_servers: usize,
}

/// Exact sums over one list of holders. Unavailable servers do not count; a server of a type
/// that is not eligible counts as a server of value zero.
pub(super) struct Holdings {
    msbs: usize,
    servers: Vec<usize>,
    /// Reservation by reservation, one amount per MSB.
    by_msb: Vec<Rru>,
    /// Of guaranteed reservations, ordered by reservation and rack; racks without value left out.
    by_rack: Vec<(ReservationIx, RackIx, Rru)>,
    /// Of reservations that survive more than MSBs.
    by_domain: ByDomain,
}

impl Holdings {
    pub(super) fn sum(snapshot: &RegionSnapshot, holders: &[Option<ReservationIx>]) -> Holdings {
        let msbs = snapshot.msbs.len();
        let mut servers = vec![0; snapshot.reservations.len()];
        let mut by_msb = vec![Rru::ZERO; snapshot.reservations.len() * msbs];
        let mut on_rack = Vec::new();
        for (server, &holder) in snapshot.servers.iter().zip(holders) {
            let (Some(ix), true) = (holder, server.available) else { continue };
            servers[ix.ix()] += 1;
            let value = snapshot.value(server, ix);
            by_msb[ix.ix() * msbs + snapshot.msb_of(server).ix()] += value;
            let kind = snapshot.reservations[ix.ix()].kind;
            if kind == ReservationKind::Guaranteed && value > Rru::ZERO {
                on_rack.push((ix, server.rack, value));
            }
        }
        on_rack.sort_unstable_by_key(|&(ix, rack, _)| (ix, rack));
        let mut by_rack: Vec<(ReservationIx, RackIx, Rru)> = Vec::new();
        for (ix, rack, value) in on_rack {
            match by_rack.last_mut() {
                Some(last) if (last.0, last.1) == (ix, rack) => last.2 += value,
                _ => by_rack.push((ix, rack, value)),
            }
        }
        let by_domain = ByDomain::sum(snapshot, holders);
        Holdings { msbs, servers, by_msb, by_rack, by_domain }
    }

    /// The amounts in domains of partitions.
    pub(super) fn by_domain(&self) -> &ByDomain {
        &self.by_domain
    }

    /// The amount in each MSB.
    pub(super) fn by_msb(&self, ix: ReservationIx) -> &[Rru] {
        &self.by_msb[ix.ix() * self.msbs..][..self.msbs]
    }

    /// The amount on each rack that holds any, for guaranteed reservations.
    pub(super) fn by_rack(&self, ix: ReservationIx) -> &[(ReservationIx, RackIx, Rru)] {
        let start = self.by_rack.partition_point(|&(other, _, _)| other < ix);
        let end = self.by_rack.partition_point(|&(other, _, _)| other <= ix);
        &self.by_rack[start..end]
    }

    /// The amount in a datacenter.
    pub(super) fn in_datacenter(
        &self,
        snapshot: &RegionSnapshot,
        ix: ReservationIx,
        datacenter: DatacenterIx,
    ) -> Rru {
        let msbs = snapshot.msbs.iter().zip(self.by_msb(ix));
        msbs.filter(|(msb, _)| msb.datacenter == datacenter).map(|(_, &amount)| amount).sum()
    }

    /// The figures of eq. 4 and 6. Of equally large MSBs the first by name is the largest.
    pub(super) fn holding(&self, snapshot: &RegionSnapshot, ix: ReservationIx) -> Holding {
        let reservation = &snapshot.reservations[ix.ix()];
        let by_msb = self.by_msb(ix);
        let assigned: Rru = by_msb.iter().copied().sum();
        let mut largest: Option<usize> = None;
        for (position, &amount) in by_msb.iter().enumerate() {
            if amount > largest.map_or(Rru::ZERO, |best| by_msb[best]) {
                largest = Some(position);
            }
        }
        let largest_msb = largest.map_or(Rru::ZERO, |best| by_msb[best]);
        let lost = if reservation.msb_buffer { largest_msb } else { Rru::ZERO };
        let guaranteed = assigned - lost.max(self.by_domain.largest(snapshot, ix));
        // Elastic reservations have no capacity, so they are never short.
        let shortfall = (reservation.capacity - guaranteed).or_zero();
        Holding {
            servers: self.servers[ix.ix()],
            assigned,
            largest_msb,
            largest_msb_id: largest.map(|best| snapshot.msbs[best].id.clone()),
            guaranteed,
            shortfall,
            shortfall_servers: reservation.largest_value().servers_for(shortfall),
        }
    }
}

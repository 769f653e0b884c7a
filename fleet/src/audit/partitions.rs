//! Domains of partitions that cross MSBs: what a reservation holds in each, server by server.

use super::number::as_rru;
use crate::id::{DomainName, PartitionIx, PartitionName, ReservationIx};
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;
use serde::Serialize;
use std::collections::BTreeMap;

/// What the loss of a domain of one partition takes from a reservation, in the worst case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartitionLoss {
    /// The partition.
    pub partition: PartitionName,
    /// The domain that has most of the reservation, the first by name of equals; `None` if none has any.
    pub domain: Option<DomainName>,
    /// RRU there.
    #[serde(rename = "lost_rru", serialize_with = "as_rru")]
    pub lost: Rru,
    /// RRU that are left.
    #[serde(rename = "left_rru", serialize_with = "as_rru")]
    pub left: Rru,
    /// RRU that were left of what is held today.
    #[serde(rename = "initial_left_rru", serialize_with = "as_rru")]
    pub initial_left: Rru,
    /// Whether the capacity is left.
    pub survives: bool,
}

/// RRU of reservations in the domains of the partitions that they survive; only available servers count.
pub(crate) struct ByDomain(BTreeMap<(ReservationIx, PartitionIx), BTreeMap<u32, Rru>>);

impl ByDomain {
    pub(crate) fn sum(snapshot: &RegionSnapshot, holders: &[Option<ReservationIx>]) -> ByDomain {
        let mut sums = BTreeMap::new();
        if snapshot.crossing_reservation().is_none() {
            return ByDomain(sums);
        }
        for (at, (server, &holder)) in snapshot.servers.iter().zip(holders).enumerate() {
            let (Some(ix), true) = (holder, server.available) else { continue };
            for &partition in &snapshot.reservations[ix.ix()].survives {
                if let Some(domain) = snapshot.partitions[partition.ix()].of_servers[at] {
                    let of: &mut BTreeMap<u32, Rru> = sums.entry((ix, partition)).or_default();
                    *of.entry(domain).or_default() += snapshot.value(server, ix);
                }
            }
        }
        ByDomain(sums)
    }

    /// The domain that has most of a reservation, the first of equals, and what it has.
    pub(crate) fn worst(&self, ix: ReservationIx, partition: PartitionIx) -> Option<(u32, Rru)> {
        let mut worst: Option<(u32, Rru)> = None;
        for (&domain, &amount) in self.0.get(&(ix, partition))? {
            if amount > worst.map_or(Rru::ZERO, |worst| worst.1) {
                worst = Some((domain, amount));
            }
        }
        worst
    }

    /// The most that the loss of one domain takes, of all partitions that a reservation survives.
    pub(super) fn largest(&self, snapshot: &RegionSnapshot, ix: ReservationIx) -> Rru {
        let partitions = snapshot.reservations[ix.ix()].survives.iter();
        let amounts = partitions.filter_map(|&of| Some(self.worst(ix, of)?.1));
        amounts.max().unwrap_or(Rru::ZERO)
    }

    /// What a reservation has in the domains of a partition in which it has anything.
    pub(super) fn shares(
        &self,
        ix: ReservationIx,
        of: PartitionIx,
    ) -> impl Iterator<Item = (u32, Rru)> {
        let shares = self.0.get(&(ix, of)).into_iter().flatten();
        shares.map(|(domain, amount)| (*domain, *amount))
    }

    /// What a reservation has in a domain of a partition that it survives.
    pub(super) fn share(&self, ix: ReservationIx, of: PartitionIx, domain: u32) -> Rru {
        let shares = self.0.get(&(ix, of));
        shares.and_then(|shares| shares.get(&domain)).copied().unwrap_or_default()
    }

    /// The worst loss of each partition that a reservation survives. `assigned`: all that it has, now and `before`.
    pub(super) fn losses(
        &self,
        snapshot: &RegionSnapshot,
        ix: ReservationIx,
        assigned: Rru,
        (before, assigned_before): (&ByDomain, Rru),
    ) -> Vec<PartitionLoss> {
        let reservation = &snapshot.reservations[ix.ix()];
        let loss = |&of: &PartitionIx| {
            let partition = &snapshot.partitions[of.ix()];
            let worst = self.worst(ix, of);
            let lost = worst.map_or(Rru::ZERO, |worst| worst.1);
            let lost_before = before.worst(ix, of).map_or(Rru::ZERO, |worst| worst.1);
            PartitionLoss {
                partition: partition.name.clone(),
                domain: worst.map(|(domain, _)| partition.domains[domain as usize].clone()),
                lost,
                left: assigned - lost,
                initial_left: assigned_before - lost_before,
                survives: assigned - lost >= reservation.capacity,
            }
        };
        reservation.survives.iter().map(loss).collect()
    }
}

//! Servers outside of the fault domains whose loss a reservation must survive, counted.

use super::text::amounts;
use crate::id::{DomainName, PartitionIx, PartitionName, ReservationIx};
use crate::partition::Partition;
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;

/// Servers outside of one domain.
pub(super) struct Outside {
    partition: PartitionName,
    domain: DomainName,
    /// RRU of them.
    pub(super) rru: Rru,
}

/// Of the domains whose loss a reservation must survive, those that leave it the fewest servers to choose from.
pub(super) struct Narrowest {
    /// Of its own and the free servers.
    pub(super) within_reach: Outside,
    /// Of all servers that count for it.
    in_region: Outside,
}

impl Narrowest {
    /// `None` if there are no domains.
    pub(super) fn of(
        snapshot: &RegionSnapshot,
        holders: &[Option<ReservationIx>],
        ix: ReservationIx,
    ) -> Option<Narrowest> {
        let outside = |is_there: fn(Option<ReservationIx>, ReservationIx) -> bool| {
            Narrowest::outside(snapshot, &snapshot.reservations[ix.ix()].survives, |at| {
                let server = &snapshot.servers[at];
                let counts = server.available && is_there(holders[at], ix);
                if counts { snapshot.value(server, ix) } else { Rru::ZERO }
            })
        };
        let within_reach = outside(|holder, ix| holder.is_none_or(|holder| holder == ix))?;
        Some(Narrowest { within_reach, in_region: outside(|_, _| true)? })
    }

    /// The domain of these partitions with the least RRU outside of it. `value`: of a server, by its position.
    pub(super) fn outside(
        snapshot: &RegionSnapshot,
        survives: &[PartitionIx],
        value: impl Fn(usize) -> Rru,
    ) -> Option<Outside> {
        let partitions: Vec<&Partition> =
            survives.iter().map(|of| &snapshot.partitions[of.ix()]).collect();
        let mut inside: Vec<Vec<Rru>> =
            partitions.iter().map(|of| vec![Rru::ZERO; of.domains.len()]).collect();
        let mut all = Rru::ZERO;
        for at in 0..snapshot.servers.len() {
            let value = value(at);
            all += value;
            for (of, sums) in partitions.iter().zip(&mut inside) {
                if let Some(domain) = of.of_servers[at] {
                    sums[domain as usize] += value;
                }
            }
        }
        let outside = partitions.iter().zip(&inside).flat_map(|(of, sums)| {
            of.domains.iter().zip(sums).map(|(domain, &sum)| Outside {
                partition: of.name.clone(),
                domain: domain.clone(),
                rru: all - sum,
            })
        });
        outside.min_by_key(|of| of.rru)
    }

    /// Why no search can grant a capacity: no servers, or none that no other reservation holds.
    pub(super) fn in_the_way(&self, capacity: Rru, is_others: bool) -> Option<String> {
        let is_counted =
            self.in_region.rru < capacity || self.within_reach.rru < capacity && !is_others;
        is_counted.then(|| self.sentence(capacity))
    }

    /// The servers outside, counted.
    pub(super) fn sentence(&self, capacity: Rru) -> String {
        let (of, whose) = if self.in_region.rru < capacity {
            (&self.in_region, "all its servers in the region")
        } else {
            (&self.within_reach, "its own and the free servers")
        };
        let [rru, capacity] = amounts([of.rru, capacity]);
        format!(
            "of {whose}, {rru} RRU are outside of {} {:?}, whose loss must leave {capacity}",
            of.partition, &*of.domain
        )
    }
}

//! The fault domain whose loss takes most of a reservation that survives more than the loss of MSBs.

use super::Explainer;
use super::text::amounts;
use crate::audit::ByDomain;
use crate::id::{Name, PartitionIx, ReservationIx};
use crate::partition::Partition;
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;
use crate::targets::Targets;
use std::collections::BTreeMap;

/// What the worst loss of a domain takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorstDomain {
    partition: Name,
    domain: Name,
    lost: Rru,
    assigned: Rru,
}

impl Explainer<'_> {
    /// What is guaranteed where the loss of a domain other than an MSB leaves less.
    pub(super) fn after_domains(&self, ix: ReservationIx, guaranteed: Rru) -> Rru {
        self.domains.get(&ix).map_or(guaranteed, |worst| guaranteed.min(worst.left()))
    }
}

/// Servers outside of one domain.
pub(super) struct Outside {
    partition: Name,
    domain: Name,
    /// RRU of them.
    pub(super) rru: Rru,
}

/// Of the domains whose loss a reservation must survive, those that leave it the fewest servers to choose from.
pub(super) struct Narrowest {
    /// Of its own and the free servers.
    within_reach: Outside,
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

impl WorstDomain {
    /// Of each reservation that survives the loss of domains and has servers in one.
    pub(super) fn of_all(
        snapshot: &RegionSnapshot,
        targets: &Targets,
    ) -> BTreeMap<ReservationIx, WorstDomain> {
        let mut worst: BTreeMap<ReservationIx, WorstDomain> = BTreeMap::new();
        let sums = ByDomain::sum(snapshot, targets.holders());
        for (position, reservation) in snapshot.reservations.iter().enumerate() {
            let ix = ReservationIx::new(position);
            for &of in &reservation.survives {
                let Some((domain, lost)) = sums.worst(ix, of) else { continue };
                if lost > worst.get(&ix).map_or(Rru::ZERO, |known| known.lost) {
                    let of = &snapshot.partitions[of.ix()];
                    let (partition, domain) =
                        (of.name.clone(), of.domains[domain as usize].clone());
                    let assigned = Rru::ZERO;
                    worst.insert(ix, WorstDomain { partition, domain, lost, assigned });
                }
            }
        }
        if worst.is_empty() {
            return worst;
        }
        for (server, holder) in snapshot.servers.iter().zip(targets.holders()) {
            if let (Some(ix), true) = (holder, server.available)
                && let Some(of) = worst.get_mut(ix)
            {
                of.assigned += snapshot.value(server, *ix);
            }
        }
        worst
    }

    /// What is left after it.
    fn left(&self) -> Rru {
        self.assigned - self.lost
    }

    /// Why that leaves a reservation short.
    pub(super) fn sentence(&self, capacity: Rru) -> String {
        let [lost, assigned, left, capacity] =
            amounts([self.lost, self.assigned, self.left(), capacity]);
        format!(
            "the loss of {} {:?} would take {lost} of its {assigned} RRU and leave {left} of {capacity}; no \
             assignment was found that survives it",
            self.partition, &*self.domain
        )
    }
}

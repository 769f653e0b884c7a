//! The fault domain whose loss takes most of a reservation that survives more than the loss of MSBs.

use super::Explainer;
use super::text::amounts;
use crate::id::{Name, ReservationIx};
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

impl WorstDomain {
    /// Of each reservation that survives the loss of domains and has servers in one.
    pub(super) fn of_all(
        snapshot: &RegionSnapshot,
        targets: &Targets,
    ) -> BTreeMap<ReservationIx, WorstDomain> {
        let mut worst: BTreeMap<ReservationIx, WorstDomain> = BTreeMap::new();
        for (position, reservation) in snapshot.reservations.iter().enumerate() {
            let ix = ReservationIx::new(position);
            for partition in reservation.survives.iter().map(|of| &snapshot.partitions[of.ix()]) {
                let (mut assigned, mut sums) =
                    (Rru::ZERO, vec![Rru::ZERO; partition.domains.len()]);
                let servers = snapshot.servers.iter().zip(targets.holders());
                for ((server, holder), domain) in servers.zip(&partition.of_servers) {
                    if *holder == Some(ix) && server.available {
                        let value = snapshot.value(server, ix);
                        assigned += value;
                        if let Some(domain) = domain {
                            sums[*domain as usize] += value;
                        }
                    }
                }
                for (domain, &lost) in partition.domains.iter().zip(&sums) {
                    if lost > worst.get(&ix).map_or(Rru::ZERO, |known| known.lost) {
                        let (partition, domain) = (partition.name.clone(), domain.clone());
                        worst.insert(ix, WorstDomain { partition, domain, lost, assigned });
                    }
                }
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

//! The fault domain whose loss takes most of a reservation that survives more than the loss of MSBs.

use super::Explainer;
use super::limits::{Limit, LimitName};
use super::text::amounts;
use crate::audit::ByDomain;
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

impl Explainer<'_> {
    /// The limit that the loss of a domain is, where no loss of an MSB leaves less.
    pub(super) fn limit_of_domains(&self, ix: ReservationIx) -> Option<Limit> {
        let capacity = self.ledger.snapshot.reservations[ix.ix()].capacity;
        let without = self.after_msb(ix).min(capacity);
        let worst = self.domains.get(&ix).filter(|worst| worst.left() <= without)?;
        Some(Limit { limit: LimitName::FaultDomains, without, sentence: worst.loss(capacity) })
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
    pub(super) fn left(&self) -> Rru {
        self.assigned - self.lost
    }

    /// Why that leaves a reservation short.
    pub(super) fn sentence(&self, capacity: Rru) -> String {
        format!("{}; no assignment was found that survives it", self.loss(capacity))
    }

    /// What it takes and leaves.
    fn loss(&self, capacity: Rru) -> String {
        let [lost, assigned, left, capacity] =
            amounts([self.lost, self.assigned, self.left(), capacity]);
        format!(
            "the loss of {} {:?} would take {lost} of its {assigned} RRU and leave {left} of {capacity}",
            self.partition, &*self.domain
        )
    }
}

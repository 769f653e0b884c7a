//! The fault domain whose loss takes most of a reservation that survives more than the loss of MSBs.

use super::limits::{Limit, LimitName};
use super::outside::Narrowest;
use super::reason::ShortfallReason;
use super::relax::{self, Relaxation};
use super::text::amounts;
use super::{Explainer, Shortfall};
use crate::audit::ByDomain;
use crate::id::{DomainName, PartitionName, ReservationIx};
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;
use crate::targets::Targets;
use std::collections::BTreeMap;

/// What the worst loss of a domain takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorstDomain {
    partition: PartitionName,
    domain: DomainName,
    lost: Rru,
    assigned: Rru,
}

impl Explainer<'_> {
    /// Why a domain is in the way: too few servers are outside of it, or what is held survives the loss of any MSB.
    /// `reason`: what is in the way as far as MSBs go.
    pub(super) fn domain_in_the_way(
        &self,
        ix: ReservationIx,
        reason: ShortfallReason,
        after_msb: Rru,
    ) -> Option<String> {
        let is_others = matches!(reason, ShortfallReason::NoRegress | ShortfallReason::Priority);
        if !is_others && reason != ShortfallReason::NotFoundInTime {
            return None;
        }
        let capacity = self.ledger.snapshot.reservations[ix.ix()].capacity;
        let counted = self.narrowest(ix).and_then(|of| of.in_the_way(capacity, is_others));
        let worst = self.domains.get(&ix).filter(|_| after_msb >= capacity && !is_others);
        counted.or_else(|| Some(worst?.sentence(capacity)))
    }

    fn narrowest(&self, ix: ReservationIx) -> Option<Narrowest> {
        Narrowest::of(self.ledger.snapshot, self.holders.as_ref()?, ix)
    }

    /// Every single relaxation that would grant a reservation that is short. Where too few of its own and the free servers
    /// are outside of a domain, that is to ask for less.
    pub(super) fn relaxations(&self, ix: ReservationIx, guaranteed: Rru) -> Vec<Relaxation> {
        let found = relax::relaxations(&self.ledger, ix, guaranteed);
        let capacity = self.ledger.snapshot.reservations[ix.ix()].capacity;
        let outside = self.narrowest(ix).map(|of| of.within_reach.rru);
        let Some(outside) = outside.filter(|outside| *outside < capacity) else { return found };
        let less = found.into_iter().find_map(|of| match of {
            Relaxation::FewerRru { grantable } => Some(grantable),
            _ => None,
        });
        let grantable = less.map_or(outside, |less| less.min(outside)).max(guaranteed);
        let some = (grantable > Rru::ZERO).then_some(Relaxation::FewerRru { grantable });
        some.into_iter().collect()
    }

    /// What is guaranteed where the loss of a domain other than an MSB leaves less.
    pub(super) fn after_domains(&self, ix: ReservationIx, guaranteed: Rru) -> Rru {
        self.domains.get(&ix).map_or(guaranteed, |worst| guaranteed.min(worst.left()))
    }
}

/// The limit that a domain is where the search found no assignment that survives its loss.
pub(super) fn limit(of: Shortfall) -> Option<Limit> {
    let (limit, without) = (LimitName::FaultDomains, of.evidence.within_affinity);
    let is_blamed = of.reason == ShortfallReason::FaultDomain;
    is_blamed.then_some(Limit { limit, without, sentence: of.sentence })
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

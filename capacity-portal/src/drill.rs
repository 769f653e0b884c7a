//! The simulated loss of an MSB or of a fault domain that crosses MSBs: what it takes from each reservation.

use crate::region_summary::LostServers;
use fleet::audit::{Certified, OwnedInDomain, owned_in_domain};
use fleet::{MsbIx, PartitionIx, RegionSnapshot, Rru};

/// What is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    Msb(MsbIx),
    /// A domain of a partition, by position.
    Domain(PartitionIx, u32),
}

impl Lost {
    /// An MSB by name.
    pub(crate) fn msb(region: &RegionSnapshot, name: &str) -> Option<Lost> {
        let found = region.msbs.iter().position(|msb| *msb.id == *name);
        found.map(MsbIx::new).map(Lost::Msb)
    }

    /// A domain of a partition by name.
    pub(crate) fn domain(region: &RegionSnapshot, partition: &str, name: &str) -> Option<Lost> {
        let at = region.partitions.iter().position(|of| *of.name == *partition)?;
        let domain = region.partitions[at].domains.iter().position(|of| **of == *name)?;
        Some(Lost::Domain(PartitionIx::new(at), u32::try_from(domain).ok()?))
    }

    /// The MSB, if it is one.
    pub(crate) fn as_msb(self) -> Option<MsbIx> {
        match self {
            Lost::Msb(msb) => Some(msb),
            Lost::Domain(..) => None,
        }
    }
}

/// A region after a loss.
#[derive(Debug)]
pub(crate) struct Drilled<'a> {
    region: &'a RegionSnapshot,
    pub(crate) lost: Lost,
    /// What each reservation owns in the lost domain; empty for an MSB.
    shares: Vec<OwnedInDomain>,
}

impl<'a> Drilled<'a> {
    pub(crate) fn of(region: &'a RegionSnapshot, lost: Lost) -> Drilled<'a> {
        let shares = match lost {
            Lost::Msb(_) => Vec::new(),
            Lost::Domain(partition, domain) => owned_in_domain(region, partition, domain),
        };
        Drilled { region, lost, shares }
    }

    fn share(&self, row: &Certified) -> OwnedInDomain {
        self.shares.get(row.reservation.ix()).copied().unwrap_or_default()
    }

    /// Whether a reservation owns anything there.
    pub(crate) fn touches(&self, row: &Certified) -> bool {
        match self.lost {
            Lost::Msb(msb) => row.by_msb[msb.ix()] > Rru::ZERO,
            Lost::Domain(..) => self.share(row).owned > Rru::ZERO,
        }
    }

    /// What is left within 30 minutes.
    pub(crate) fn left(&self, row: &Certified) -> Rru {
        match self.lost {
            Lost::Msb(msb) => row.after_loss(msb),
            Lost::Domain(..) => {
                let share = self.share(row);
                row.owned - row.not_recallable - (share.owned - share.not_recallable)
            }
        }
    }

    /// What is left at once.
    pub(crate) fn left_at_once(&self, row: &Certified) -> Rru {
        match self.lost {
            Lost::Msb(msb) => row.at_once_after_loss(msb),
            Lost::Domain(..) => {
                let share = self.share(row);
                row.held() - (share.owned - share.maintained)
            }
        }
    }

    /// Whether the capacity is to survive this loss.
    pub(crate) fn is_covered(&self, row: &Certified) -> bool {
        match self.lost {
            Lost::Msb(_) => row.msb_buffer,
            Lost::Domain(partition, _) => {
                self.region.reservations[row.reservation.ix()].survives.contains(&partition)
            }
        }
    }

    /// Whether what is promised for this loss is kept, at once and within 30 minutes.
    pub(crate) fn keeps(&self, row: &Certified) -> bool {
        match self.lost {
            Lost::Msb(msb) => row.survives(msb),
            Lost::Domain(..) => {
                !self.is_covered(row)
                    || (self.left(row) >= row.capacity
                        && self.left_at_once(row) >= row.needed_at_once())
            }
        }
    }

    /// What is missing to the promise within 30 minutes, guaranteed for this case or not.
    pub(crate) fn missing(&self, row: &Certified) -> Rru {
        (row.capacity - self.left(row)).or_zero()
    }

    /// The servers that are lost.
    pub(crate) fn gone(&self) -> LostServers {
        match self.lost {
            Lost::Msb(msb) => {
                LostServers::of(self.region, |_, server| self.region.msb_of(server) == msb)
            }
            Lost::Domain(partition, domain) => {
                let domains = &self.region.partitions[partition.ix()].of_servers;
                LostServers::of(self.region, |at, _| domains[at] == Some(domain))
            }
        }
    }
}

//! Fault domains that cross MSBs, such as switches and power feeds, and what reservations hold in them.
//!
//! A reservation chooses partitions of which it survives the loss of any one domain, besides that of an MSB. Its
//! embedded buffer is its largest share of any of these (eq. 4, 6). So a decision that spreads servers over MSBs
//! spreads them over these domains, too.

use fleet::{
    DomainName, MsbName, PartitionName, RegionSnapshot, Reservation, ReservationName, Rru, ServerIx,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A fault domain of a partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Domain {
    /// The partition, such as `switch`.
    pub partition: PartitionName,
    /// The domain.
    pub name: DomainName,
}

impl Domain {
    /// The domains of a server of some partitions, in order.
    pub fn of(
        snapshot: &RegionSnapshot,
        server: ServerIx,
        partitions: &BTreeSet<PartitionName>,
    ) -> Vec<Domain> {
        if partitions.is_empty() {
            return Vec::new();
        }
        let wanted = snapshot.partitions.iter().filter(|of| partitions.contains(&of.name));
        let domain = wanted.filter_map(|of| {
            let at = of.of_servers[server.ix()]?;
            Some(Domain { partition: of.name.clone(), name: of.domains[at as usize].clone() })
        });
        domain.collect()
    }
}

/// What may be lost at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// An MSB.
    Msb(MsbName),
    /// A domain of another partition.
    Domain(Domain),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Msb(msb) => write!(f, "MSB {msb:?}"),
            Loss::Domain(Domain { partition, name }) => write!(f, "{partition} {name:?}"),
        }
    }
}

/// The partitions whose domains a reservation survives the loss of.
pub fn survived(snapshot: &RegionSnapshot, of: &Reservation) -> BTreeSet<PartitionName> {
    of.survives.iter().map(|at| snapshot.partitions[at.ix()].name.clone()).collect()
}

/// RRU that reservations hold in each MSB, and in each domain of the partitions that they survive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// By reservation and MSB.
    pub by_msb: BTreeMap<ReservationName, BTreeMap<MsbName, Rru>>,
    /// By reservation and domain.
    pub by_domain: BTreeMap<ReservationName, BTreeMap<Domain, Rru>>,
    /// The partitions that each reservation survives; only those that survive any.
    pub survives: BTreeMap<ReservationName, BTreeSet<PartitionName>>,
}

impl Shares {
    /// Adds RRU to a reservation in an MSB and in those of the `domains` that count for it.
    pub fn add(&mut self, of: &ReservationName, msb: &MsbName, domains: &[Domain], amount: Rru) {
        *self.by_msb.entry(of.clone()).or_default().entry(msb.clone()).or_default() += amount;
        for domain in counting(self.survives.get(of), domains) {
            let shares = self.by_domain.entry(of.clone()).or_default();
            *shares.entry(domain.clone()).or_default() += amount;
        }
    }

    /// What a reservation holds in an MSB.
    pub fn in_msb(&self, of: &ReservationName, msb: &MsbName) -> Rru {
        self.by_msb.get(of).and_then(|shares| shares.get(msb)).copied().unwrap_or_default()
    }

    /// The largest share that a reservation holds in an MSB or in one of the `domains` that count for it.
    pub fn at(&self, of: &ReservationName, msb: &MsbName, domains: &[Domain]) -> Rru {
        let shares = self.by_domain.get(of);
        let domains = counting(self.survives.get(of), domains);
        let domains = domains.filter_map(|at| shares?.get(at).copied());
        domains.fold(self.in_msb(of, msb), Rru::max)
    }

    /// All that a reservation holds.
    pub fn total(&self, of: &ReservationName) -> Rru {
        self.by_msb.get(of).into_iter().flat_map(BTreeMap::values).copied().sum()
    }

    /// The most that a reservation holds in one MSB.
    pub fn largest_in_msb(&self, of: &ReservationName) -> Rru {
        largest(self.by_msb.get(of))
    }

    /// The most that a reservation holds in one of the domains that count for it.
    pub fn largest_in_domain(&self, of: &ReservationName) -> Rru {
        largest(self.by_domain.get(of))
    }
}

impl FromIterator<((ReservationName, MsbName), Rru)> for Shares {
    fn from_iter<T: IntoIterator<Item = ((ReservationName, MsbName), Rru)>>(shares: T) -> Shares {
        let mut all = Shares::default();
        for ((of, msb), amount) in shares {
            all.add(&of, &msb, &[], amount);
        }
        all
    }
}

fn largest<K>(shares: Option<&BTreeMap<K, Rru>>) -> Rru {
    shares.into_iter().flat_map(BTreeMap::values).copied().max().unwrap_or_default()
}

fn counting<'a>(
    survives: Option<&BTreeSet<PartitionName>>,
    domains: &'a [Domain],
) -> impl Iterator<Item = &'a Domain> {
    let counts = move |at: &&Domain| survives.is_some_and(|of| of.contains(&at.partition));
    domains.iter().filter(counts)
}

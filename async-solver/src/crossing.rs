//! Domains of partitions that cross MSBs, in the pooled problem.
//!
//! A reservation that survives the loss of any one domain needs eq. 6 for each of them: the RRU outside the domain are at
//! least C. Pools are told apart by the domains of such partitions, for hardware that counts for such a reservation; so
//! the counts of items say what is in each domain.

use crate::symmetry::Partition as Classes;
use fleet::{Partition, RegionSnapshot};

/// A partition as a reservation sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The domain of each item's servers, numbered among those that have any; `None`: none is lost with them.
    pub domain: Vec<Option<u32>>,
    /// Those that have items, by their positions in the partition.
    pub ids: Vec<u32>,
    /// Position of the price of the first of them among all prices.
    pub first: usize,
}

impl Crossing {
    /// The domains of items, each given by one of its servers.
    pub fn of(partition: &Partition, servers: impl Iterator<Item = u32>) -> Crossing {
        let mut number = vec![None; partition.domains.len()];
        let mut ids = Vec::new();
        let domain = servers.map(|server| {
            let domain = partition.of_servers[server as usize]?;
            Some(*number[domain as usize].get_or_insert_with(|| {
                ids.push(domain);
                ids.len() as u32 - 1
            }))
        });
        let domain = domain.collect();
        Crossing { domain, ids, first: 0 }
    }

    /// The same domains, of some of the items.
    pub fn of_items(&self, items: &[usize]) -> Crossing {
        let domain = items.iter().map(|&item| self.domain[item]).collect();
        Crossing { domain, ids: self.ids.clone(), first: self.first }
    }

    /// How many domains have items.
    pub fn domains(&self) -> usize {
        self.ids.len()
    }

    /// The positions of their prices among all prices.
    pub fn positions(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.domains()
    }

    /// What each domain has, of these RRU by item.
    pub fn amounts(&self, items: &[i64]) -> Vec<i64> {
        let mut amounts = vec![0; self.domains()];
        for (domain, rru) in self.domain.iter().zip(items) {
            if let Some(domain) = domain {
                amounts[*domain as usize] += rru;
            }
        }
        amounts
    }
}

/// Tells servers apart by their domains, where that matters to a reservation.
pub fn refine(classes: &mut Classes, snapshot: &RegionSnapshot) {
    for (number, partition) in snapshot.partitions.iter().enumerate() {
        let mut counts = vec![false; snapshot.hardware_types.len()];
        let survivors = snapshot.reservations.iter();
        for of in survivors.filter(|of| of.survives.iter().any(|of| of.ix() == number)) {
            of.rru.iter().for_each(|(hardware_type, _)| counts[hardware_type.ix()] = true);
        }
        if counts.contains(&true) {
            classes.refine(|server| {
                let hardware_type = snapshot.servers[server as usize].hardware_type;
                partition.of_servers[server as usize].filter(|_| counts[hardware_type.ix()])
            });
        }
    }
}

//! Domains of partitions that cross MSBs, in the pooled problem.
//!
//! A reservation that survives the loss of any one domain needs eq. 6 for each of them: the RRU outside the domain are at
//! least C. Pools are told apart by the domains of such partitions, for hardware that counts for such a reservation; so
//! the counts of items say what is in each domain.
//!
//! In the bound each of these rows has a price. A row is about one reservation, so with its price in the place of the row
//! the reservations separate as before ([`crate::bound`]).

use crate::model::{Term, rru};
use crate::symmetry::Partition as Classes;
use fleet::{Partition, RegionSnapshot};

/// A partition as a reservation sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The domain of each item's servers, numbered among those that have any; `None`: none is lost with them.
    pub domain: Vec<Option<u32>>,
    /// How many domains have items.
    pub domains: usize,
    /// Position of the price of the first of them among all prices.
    pub first: usize,
}

/// What prices of its domains make of a reservation.
#[derive(Clone, Debug, Default)]
pub struct DomainPrices {
    /// What an RRU of each item costs more; empty: nothing.
    rru: Vec<f64>,
    /// What an RRU of demand costs: a missing one costs that much less.
    pub demand: f64,
}

impl DomainPrices {
    /// What an RRU of an item costs more.
    pub fn of(&self, item: usize) -> f64 {
        self.rru.get(item).copied().unwrap_or(0.0)
    }
}

impl Term {
    /// The prices of its rows of eq. 6 for domains, by item. A row is `all - domain + missing >= capacity`: what is outside of
    /// the domain earns its price. Where they would make what is missing a gain, they are made smaller: any prices give
    /// a bound.
    pub fn domain_prices(&self, prices: &[f64]) -> DomainPrices {
        if self.crossing.is_empty() {
            return DomainPrices::default();
        }
        let of = |of: &Crossing| prices[of.first..of.first + of.domains].iter().sum::<f64>();
        let demand: f64 = self.crossing.iter().map(of).sum();
        let most = if self.short_max > 0 { self.short_price } else { f64::INFINITY };
        let scale = if demand > most { most / demand } else { 1.0 };
        let price = |item: usize| {
            let domains = self.crossing.iter().filter_map(|of| Some((of, of.domain[item]?)));
            let inside = domains.map(|(of, domain)| prices[of.first + domain as usize]);
            scale * (inside.sum::<f64>() - demand)
        };
        let rru = (0..self.items.len()).map(price).collect();
        DomainPrices { rru, demand: scale * demand }
    }

    /// How far each of these rows is from being kept with so many servers of each item, in RRU: above zero it is not.
    /// `largest`: the largest MSB share with them.
    pub fn missing_after_domains(
        &self,
        servers: &[f64],
        largest: i64,
    ) -> impl Iterator<Item = (usize, f64)> {
        let amounts =
            self.items.iter().zip(servers).map(|(item, servers)| servers * rru(item.value));
        let amounts: Vec<f64> = amounts.collect();
        let all: f64 = amounts.iter().sum();
        let buffer = if self.buffered { rru(largest) } else { 0.0 };
        let short = (rru(self.capacity) + buffer - all).clamp(0.0, rru(self.short_max));
        let open = rru(self.capacity) - all - short;
        self.crossing.iter().flat_map(move |of| {
            let mut sums = vec![open; of.domains];
            for (domain, amount) in of.domain.iter().zip(&amounts) {
                if let Some(domain) = domain {
                    sums[*domain as usize] += amount;
                }
            }
            (of.first..).zip(sums)
        })
    }
}

impl Crossing {
    /// The domains of items, each given by one of its servers.
    pub fn of(partition: &Partition, servers: impl Iterator<Item = u32>) -> Crossing {
        let mut number = vec![None; partition.domains.len()];
        let mut domains = 0;
        let domain = servers.map(|server| {
            let domain = partition.of_servers[server as usize]?;
            Some(*number[domain as usize].get_or_insert_with(|| {
                domains += 1;
                domains - 1
            }))
        });
        let domain = domain.collect();
        Crossing { domain, domains: domains as usize, first: 0 }
    }

    /// What each domain has, of these RRU by item.
    pub fn amounts(&self, items: &[i64]) -> Vec<i64> {
        let mut amounts = vec![0; self.domains];
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

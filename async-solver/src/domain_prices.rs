//! Prices of domains that cross MSBs, for the bound.
//!
//! A reservation that survives the loss of a domain has a row of eq. 6 for it. The row is about one reservation, so with its
//! price in the place of the row the reservations separate as before ([`crate::bound`]).

use crate::crossing::Crossing;
use crate::model::{Term, rru};

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
        let of = |of: &Crossing| prices[of.positions()].iter().sum::<f64>();
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

    /// How far each of these rows is from being kept with these servers of each item, in RRU: above zero it is not.
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
            let mut sums = vec![open; of.domains()];
            for (domain, amount) in of.domain.iter().zip(&amounts) {
                if let Some(domain) = domain {
                    sums[*domain as usize] += amount;
                }
            }
            (of.first..).zip(sums)
        })
    }
}

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
    /// By how much that is more than what a missing one costs. Then all that may be missing is.
    given_up: f64,
}

impl DomainPrices {
    /// What an RRU of an item costs more.
    pub fn of(&self, item: usize) -> f64 {
        self.rru.get(item).copied().unwrap_or(0.0)
    }

    /// What a missing RRU costs then.
    pub fn short_price(&self, term: &Term) -> f64 {
        let less = if term.short_max > 0 { self.demand } else { 0.0 };
        (term.short_price - less).max(0.0)
    }

    /// What the demand costs, with any servers.
    pub fn constant(&self, term: &Term) -> f64 {
        self.demand * rru(term.capacity) - self.given_up * rru(term.short_max)
    }

    /// How large the parts of that are.
    pub fn magnitude(&self, term: &Term) -> f64 {
        self.demand * rru(term.capacity) + self.given_up * rru(term.short_max)
    }

    /// Whether all that may be missing is.
    pub fn is_given_up(&self) -> bool {
        self.given_up > 0.0
    }
}

impl Term {
    /// The prices of its rows of eq. 6 for domains, by item. A row is `all - domain + missing >= capacity`: what is outside of
    /// the domain earns its price.
    pub fn domain_prices(&self, prices: &[f64]) -> DomainPrices {
        if self.crossing.is_empty() {
            return DomainPrices::default();
        }
        let of = |of: &Crossing| prices[of.positions()].iter().sum::<f64>();
        let demand: f64 = self.crossing.iter().map(of).sum();
        let price = |item: usize| {
            let domains = self.crossing.iter().filter_map(|of| Some((of, of.domain[item]?)));
            let inside = domains.map(|(of, domain)| prices[of.first + domain as usize]);
            inside.sum::<f64>() - demand
        };
        let rru = (0..self.items.len()).map(price).collect();
        let given_up = if self.short_max > 0 { (demand - self.short_price).max(0.0) } else { 0.0 };
        DomainPrices { rru, demand, given_up }
    }

    /// How far each of these rows is from being kept with these servers of each item, in RRU: above zero it is not.
    /// `largest`: the largest MSB share with them; `is_given_up`: whether all that may be missing is.
    pub fn missing_after_domains(
        &self,
        servers: &[f64],
        largest: i64,
        is_given_up: bool,
    ) -> impl Iterator<Item = (usize, f64)> {
        let amounts =
            self.items.iter().zip(servers).map(|(item, servers)| servers * rru(item.value));
        let amounts: Vec<f64> = amounts.collect();
        let all: f64 = amounts.iter().sum();
        let buffer = if self.buffered { rru(largest) } else { 0.0 };
        let most = rru(self.short_max);
        let least = if is_given_up { most } else { 0.0 };
        let short = (rru(self.capacity) + buffer - all).clamp(least, most);
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

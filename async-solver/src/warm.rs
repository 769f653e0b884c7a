//! What a solve leaves for the next one: a price per server of each MSB and hardware type, of limits of groups, and of the
//! domains whose loss a reservation survives.
//!
//! An hour later the prices are nearly right, so the ascent to good ones is shorter. A bound holds at
//! any prices ([`crate::bound`]), so they may be old, partial or of another region: that costs time or
//! gap, never correctness.

use crate::group_limits::GroupLimits;
use crate::model::Model;
use fleet::{
    DomainName, HardwareTypeIx, HardwareTypeName, MsbIx, MsbName, PartitionName, RegionSnapshot,
    ReservationName,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Prices of servers, as a solve ended with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmStart {
    /// One for each MSB and hardware type that had available servers, in order of names.
    pub prices: Vec<WarmPrice>,
    /// Prices of limits of groups that have one, in order of names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<WarmLimit>,
    /// Prices of domains that have one, in order of names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<WarmDomain>,
}

/// What one RRU more outside of a domain would have been worth to a reservation that survives its loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmDomain {
    /// The reservation.
    pub reservation: ReservationName,
    /// The partition.
    pub partition: PartitionName,
    /// The domain of it.
    pub domain: DomainName,
    /// Objective units per RRU, at least zero.
    pub price: f64,
}

impl WarmDomain {
    fn key(&self) -> (&str, &str, &str) {
        (&self.reservation, &self.partition, &self.domain)
    }
}

/// What one unit more of a limit would have been worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmLimit {
    /// Its name.
    pub name: String,
    /// Objective units per unit of the limit, at least zero.
    pub price: f64,
}

/// What one more server of an MSB and hardware type would have been worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmPrice {
    /// The MSB.
    pub msb: MsbName,
    /// The hardware type.
    pub hardware_type: HardwareTypeName,
    /// Objective units per server, at least zero.
    pub price: f64,
}

impl WarmStart {
    /// Writes the prices of pools, limits and domains down by name.
    pub(crate) fn of(
        snapshot: &RegionSnapshot,
        limits: &GroupLimits,
        model: &Model,
        prices: &[f64],
    ) -> WarmStart {
        let mut pools = pools_by_place(snapshot, model);
        // Where limits tell pools of a place apart, the most expensive of them is kept.
        pools.sort_by(|a, b| {
            a.0.cmp(&b.0).then(prices[b.1 as usize].total_cmp(&prices[a.1 as usize]))
        });
        pools.dedup_by_key(|of| of.0);
        let mut kept: Vec<WarmPrice> = pools
            .into_iter()
            .map(|((msb, hardware_type), pool)| WarmPrice {
                msb: snapshot.msbs[msb.ix()].id.clone(),
                hardware_type: snapshot.hardware_types[hardware_type.ix()].clone(),
                price: prices[pool as usize],
            })
            .collect();
        kept.sort_by(|a, b| (&a.msb, &a.hardware_type).cmp(&(&b.msb, &b.hardware_type)));
        let rows = model.limits.rows.iter().zip(&prices[model.pools.len()..]);
        let mut limits: Vec<WarmLimit> = rows
            .filter(|(_, price)| **price > 0.0)
            .map(|(row, price)| {
                let name = limits.limits()[row.limit].name.clone();
                WarmLimit { name, price: price / row.unit as f64 }
            })
            .collect();
        limits.sort_by(|a, b| a.name.cmp(&b.name));
        let mut domains: Vec<WarmDomain> = domains_by_name(snapshot, model)
            .filter(|(_, position)| prices[*position] > 0.0)
            .map(|((reservation, partition, domain), position)| WarmDomain {
                reservation: reservation.clone(),
                partition: partition.clone(),
                domain: domain.clone(),
                price: prices[position],
            })
            .collect();
        domains.sort_by(|a, b| a.key().cmp(&b.key()));
        WarmStart { prices: kept, limits, domains }
    }

    /// A price for each pool, then for each limit and each domain; a pool that is not known costs as much as its hardware type does on the
    /// mean, or nothing. `None`: nothing is known of the region.
    pub(crate) fn prices_of(
        &self,
        snapshot: &RegionSnapshot,
        limits: &GroupLimits,
        model: &Model,
    ) -> Option<Vec<f64>> {
        let valid = |of: &&WarmPrice| of.price.is_finite() && of.price >= 0.0;
        let mut known: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        let mut means: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
        for of in self.prices.iter().filter(valid) {
            known.insert((&of.msb, &of.hardware_type), of.price);
            let mean = means.entry(&of.hardware_type).or_default();
            *mean = (mean.0 + of.price, mean.1 + 1);
        }
        let mut prices = vec![0.0; model.prices()];
        let mut found = false;
        for ((msb, hardware_type), pool) in pools_by_place(snapshot, model) {
            let msb: &str = &snapshot.msbs[msb.ix()].id;
            let hardware_type: &str = &snapshot.hardware_types[hardware_type.ix()];
            let mean = || means.get(hardware_type).map(|(sum, count)| sum / f64::from(*count));
            let exact = known.get(&(msb, hardware_type)).copied();
            found |= exact.is_some();
            prices[pool as usize] = exact.or_else(mean).unwrap_or(0.0);
        }
        let valid = |of: &&WarmLimit| of.price.is_finite() && of.price >= 0.0;
        let known: BTreeMap<&str, f64> =
            self.limits.iter().filter(valid).map(|of| (of.name.as_str(), of.price)).collect();
        for (row, price) in model.limits.rows.iter().zip(&mut prices[model.pools.len()..]) {
            let name = limits.limits()[row.limit].name.as_str();
            *price = known.get(name).map_or(0.0, |price| price * row.unit as f64);
        }
        let valid = |of: &&WarmDomain| of.price.is_finite() && of.price >= 0.0;
        let known: BTreeMap<(&str, &str, &str), f64> =
            self.domains.iter().filter(valid).map(|of| (of.key(), of.price)).collect();
        for ((reservation, partition, domain), position) in domains_by_name(snapshot, model) {
            let name: (&str, &str, &str) = (reservation, partition, domain);
            prices[position] = known.get(&name).copied().unwrap_or(0.0);
        }
        found.then_some(prices)
    }
}

/// Each reservation with a domain whose loss it survives, and where its price stands.
fn domains_by_name<'a>(
    snapshot: &'a RegionSnapshot,
    model: &'a Model,
) -> impl Iterator<Item = ((&'a ReservationName, &'a PartitionName, &'a DomainName), usize)> {
    model.terms.iter().flat_map(move |term| {
        let reservation = &snapshot.reservations[term.reservation.ix()];
        reservation.survives.iter().zip(&term.crossing).flat_map(move |(partition, of)| {
            let partition = &snapshot.partitions[partition.ix()];
            of.ids.iter().zip(of.positions()).map(move |(&id, position)| {
                ((&reservation.id, &partition.name, &partition.domains[id as usize]), position)
            })
        })
    })
}

/// The pools of each MSB's available servers of each hardware type, in order. No reservation competes for pinned ones: they
/// have no price.
fn pools_by_place(snapshot: &RegionSnapshot, model: &Model) -> Vec<((MsbIx, HardwareTypeIx), u32)> {
    let servers = snapshot.servers.iter().zip(&model.pool_of);
    let pools = servers.filter(|(server, _)| server.available && !server.pinned);
    let pools =
        pools.map(|(server, &pool)| ((snapshot.msb_of(server), server.hardware_type), pool));
    pools.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::generate::{GenerateOptions, Profile, generate};

    #[test]
    fn prices_of_domains_are_found_again_by_name() {
        let options = GenerateOptions {
            reservations: 6,
            msbs: 6,
            switches: Some(7),
            ..GenerateOptions::of(Profile::Ras, Some(1_000))
        };
        let region = generate(&options).expect("valid options");
        let snapshot = RegionSnapshot::new(region).expect("a valid region");
        let limits = GroupLimits::default();
        let model = Model::new(&snapshot);
        let prices: Vec<f64> = (0..model.prices()).map(|number| (number % 5) as f64).collect();
        let domains = model.shared_prices()..model.prices();
        assert!(domains.len() >= 2 * 7, "{domains:?}");

        let mut kept = WarmStart::of(&snapshot, &limits, &model, &prices);
        assert!(kept.domains.is_sorted_by(|a, b| a.key() < b.key()));
        assert!(kept.domains.iter().all(|of| of.price > 0.0), "what costs nothing is left out");
        kept.domains.reverse();
        let found = kept.prices_of(&snapshot, &limits, &model).expect("of this region");
        assert_eq!(found[domains.clone()], prices[domains.clone()]);
        kept.domains.clear();
        let found = kept.prices_of(&snapshot, &limits, &model).expect("of this region");
        assert!(found[domains].iter().all(|price| *price == 0.0));
    }
}

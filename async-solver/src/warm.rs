//! What a solve leaves for the next one: a price per server of each MSB and hardware type.
//!
//! An hour later the prices are nearly right, so the ascent to good ones is shorter. A bound holds at
//! any prices ([`crate::bound`]), so they may be old, partial or of another region: that costs time or
//! gap, never correctness.

use crate::model::Model;
use fleet::{HardwareTypeIx, HardwareTypeName, MsbIx, MsbName, RegionSnapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Prices of servers, as a solve ended with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmStart {
    /// One for each MSB and hardware type that had available servers, in order of names.
    pub prices: Vec<WarmPrice>,
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
    /// Writes the prices of pools down by name.
    pub(crate) fn of(snapshot: &RegionSnapshot, model: &Model, prices: &[f64]) -> WarmStart {
        let mut kept: Vec<WarmPrice> = pools_by_place(snapshot, model)
            .into_iter()
            .map(|((msb, hardware_type), pool)| WarmPrice {
                msb: snapshot.msbs[msb.ix()].id.clone(),
                hardware_type: snapshot.hardware_types[hardware_type.ix()].clone(),
                price: prices[pool as usize],
            })
            .collect();
        kept.sort_by(|a, b| (&a.msb, &a.hardware_type).cmp(&(&b.msb, &b.hardware_type)));
        WarmStart { prices: kept }
    }

    /// A price for each pool; what is not known costs as much as its hardware type does on the
    /// mean, or nothing. `None`: nothing is known of the region.
    pub(crate) fn pool_prices(&self, snapshot: &RegionSnapshot, model: &Model) -> Option<Vec<f64>> {
        let valid = |of: &&WarmPrice| of.price.is_finite() && of.price >= 0.0;
        let mut known: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        let mut means: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
        for of in self.prices.iter().filter(valid) {
            known.insert((&of.msb, &of.hardware_type), of.price);
            let mean = means.entry(&of.hardware_type).or_default();
            *mean = (mean.0 + of.price, mean.1 + 1);
        }
        let mut prices = vec![0.0; model.pools.len()];
        let mut found = false;
        for ((msb, hardware_type), pool) in pools_by_place(snapshot, model) {
            let msb: &str = &snapshot.msbs[msb.ix()].id;
            let hardware_type: &str = &snapshot.hardware_types[hardware_type.ix()];
            let mean = || means.get(hardware_type).map(|(sum, count)| sum / f64::from(*count));
            let exact = known.get(&(msb, hardware_type)).copied();
            found |= exact.is_some();
            prices[pool as usize] = exact.or_else(mean).unwrap_or(0.0);
        }
        found.then_some(prices)
    }
}

/// The pool of each MSB's available servers of each hardware type. No reservation competes for pinned ones: they
/// have no price.
fn pools_by_place(
    snapshot: &RegionSnapshot,
    model: &Model,
) -> BTreeMap<(MsbIx, HardwareTypeIx), u32> {
    let servers = snapshot.servers.iter().zip(&model.pool_of);
    let pools = servers.filter(|(server, _)| server.available && !server.pinned);
    pools.map(|(server, &pool)| ((snapshot.msb_of(server), server.hardware_type), pool)).collect()
}

//! Servers that would help reservations that are short.

use super::answer::{Fewest, Helps, Short};
use fleet::explain::ShortfallReason;
use fleet::{RegionSnapshot, Reservation, ReservationIx, Rru};
use forecast::orders::types::{Demand, Offer, translate};
use std::collections::BTreeSet;

/// Nodes of the program that looks for the fewest servers.
const NODES: u64 = 50_000;

/// How many more servers of each type, each type alone, would cover a shortfall; the fewest first. An embedded buffer
/// needs more than is missing: of new servers spread over n MSBs, (n - 1)/n count. None if servers are not what is
/// missing.
pub(super) fn helps(
    region: &RegionSnapshot,
    of: ReservationIx,
    missing: Rru,
    reason: ShortfallReason,
) -> Vec<Helps> {
    if reason == ShortfallReason::NotFoundInTime {
        return Vec::new();
    }
    let reservation = &region.reservations[of.ix()];
    let needed = needed(region, reservation, missing.to_f64());
    let mut helps: Vec<Helps> = (reservation.rru.iter())
        .filter(|(_, value)| *value > Rru::ZERO)
        .map(|(of, value)| Helps {
            hardware_type: region.hardware_types[of.ix()].to_string(),
            servers: (needed / value.to_f64() - 1e-9).ceil().max(1.0) as u64,
        })
        .collect();
    helps.sort_by_key(|help| help.servers);
    helps
}

/// RRU of new servers that cover so much missing.
fn needed(region: &RegionSnapshot, of: &Reservation, missing: f64) -> f64 {
    let allowed = region.msbs.iter().filter(|msb| of.allows(msb.datacenter)).count();
    if of.msb_buffer && allowed > 1 {
        missing * allowed as f64 / (allowed - 1) as f64
    } else {
        missing
    }
}

/// The fewest servers that cover all shortfalls together, each type counted alike, and a proved bound on them.
pub(super) fn fewest(region: &RegionSnapshot, short: &[Short]) -> Option<Fewest> {
    let types: BTreeSet<&str> =
        short.iter().flat_map(|of| &of.helps).map(|help| help.hardware_type.as_str()).collect();
    let types: Vec<&str> = types.into_iter().collect();
    let demands: Vec<Demand> = (short.iter().filter(|of| !of.helps.is_empty()))
        .filter_map(|of| {
            let reservation = &region.reservations[region.reservation(&of.reservation)?.ix()];
            let value = |name: &&str| {
                let known = region.hardware_types.iter().position(|known| **known == **name);
                let value = known.and_then(|at| reservation.value(fleet::HardwareTypeIx::new(at)));
                value.map_or(0.0, Rru::to_f64)
            };
            let rru = needed(region, reservation, of.missing_rru);
            Some(Demand { rru, value: types.iter().map(value).collect() })
        })
        .collect();
    if demands.is_empty() {
        return None;
    }
    let offers = vec![Offer { cost: 1.0, free: 0, limit: u64::from(u32::MAX) }; types.len()];
    let plan = translate(&offers, &demands, NODES).ok()?;
    let servers = (types.iter().zip(&plan.order))
        .filter(|(_, servers)| **servers > 0)
        .map(|(name, servers)| Helps { hardware_type: (*name).to_owned(), servers: *servers })
        .collect();
    Some(Fewest { servers, total: plan.order.iter().sum(), at_least: plan.bound.ceil() as u64 })
}

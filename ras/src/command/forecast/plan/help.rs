//! Servers that would help reservations that are short.

use super::answer::{Fewest, Helps, Short};
use fleet::explain::ShortfallReason;
use fleet::{HardwareTypeIx, RegionSnapshot, Reservation, ReservationIx, Rru};
use forecast::orders::types::{Demand, Offer, translate};
use std::collections::BTreeSet;

/// Nodes of the program that looks for the fewest servers.
const NODES: u64 = 50_000;

/// How many more servers of each type, each type alone, would cover a shortfall; the fewest first. Empty if servers are
/// not what is missing.
pub(super) fn helps(
    region: &RegionSnapshot,
    of: ReservationIx,
    missing: Rru,
    reason: ShortfallReason,
) -> Vec<Helps> {
    if reason == ShortfallReason::NotFoundInTime {
        return Vec::new();
    }
    let mut helps: Vec<Helps> = (worth(region, &region.reservations[of.ix()]).into_iter())
        .map(|(of, worth)| Helps {
            hardware_type: region.hardware_types[of.ix()].to_string(),
            servers: (missing.to_f64() / worth - 1e-9).ceil().max(1.0) as u64,
        })
        .collect();
    helps.sort_by_key(|help| help.servers);
    helps
}

/// What a new server of each type adds to what a reservation is guaranteed, in RRU. With an embedded buffer less than
/// its value: new servers arrive in the n MSBs that have their type, evenly, and (n - 1)/n of them are left after the
/// loss of one. A type in a single MSB adds nothing for certain.
fn worth(region: &RegionSnapshot, of: &Reservation) -> Vec<(HardwareTypeIx, f64)> {
    let msbs = |kind: HardwareTypeIx| {
        let servers = region.servers.iter().filter(|server| server.hardware_type == kind);
        let msbs: BTreeSet<_> = servers.map(|server| region.msb_of(server)).collect();
        msbs.into_iter().filter(|msb| of.allows(region.msbs[msb.ix()].datacenter)).count()
    };
    let worth = |(kind, value): &(HardwareTypeIx, Rru)| {
        let left = if of.msb_buffer { 1.0 - 1.0 / msbs(*kind).max(1) as f64 } else { 1.0 };
        let worth = left * value.to_f64();
        (worth > 0.0).then_some((*kind, worth))
    };
    of.rru.iter().filter_map(worth).collect()
}

/// The fewest servers that cover all shortfalls together, each type counted alike, and a proved bound on them.
pub(super) fn fewest(region: &RegionSnapshot, short: &[Short]) -> Option<Fewest> {
    let types = region.hardware_types.len();
    let demands: Vec<Demand> = (short.iter().filter(|of| !of.helps.is_empty()))
        .filter_map(|of| {
            let reservation = &region.reservations[region.reservation(&of.reservation)?.ix()];
            let mut value = vec![0.0; types];
            for (kind, worth) in worth(region, reservation) {
                value[kind.ix()] = worth;
            }
            Some(Demand { rru: of.missing_rru, value })
        })
        .collect();
    if demands.is_empty() {
        return None;
    }
    let offers = vec![Offer { cost: 1.0, free: 0, limit: u64::from(u32::MAX) }; types];
    let plan = translate(&offers, &demands, NODES).ok()?;
    let servers = (region.hardware_types.iter().zip(&plan.order))
        .filter(|(_, servers)| **servers > 0)
        .map(|(name, servers)| Helps { hardware_type: name.to_string(), servers: *servers })
        .collect();
    // Rounding must not raise the bound by a server.
    let at_least = (plan.bound - 1e-6).ceil() as u64;
    Some(Fewest { servers, total: plan.order.iter().sum(), at_least })
}

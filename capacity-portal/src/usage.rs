//! Promised capacity and servers of a region at an instant, and their series as the API shows them: those of a running region and
//! of archived snapshots are the same.

use api_types::history::UsageSeries;
use broker::{UsageCell, UsageCount, UsageFigures, UsageKey};
use fleet::RegionSnapshot;
use std::collections::BTreeMap;

/// What each reservation is promised, and its servers in service by hardware type and datacenter; free servers, too. Takes
/// as long as a pass over all servers: not for an async thread.
pub fn counted(region: &RegionSnapshot) -> Vec<(UsageCell, UsageCount)> {
    let mut servers: BTreeMap<_, UsageCount> = BTreeMap::new();
    for server in region.servers.iter().filter(|server| server.available) {
        let cell = (server.current, server.hardware_type, region.datacenter_of(server));
        let count = servers.entry(cell).or_default();
        count.held += 1;
        count.used += i32::from(server.in_use);
        count.lent += i32::from(server.loaned_to.is_some());
    }
    let promises = region.reservations.iter().map(|of| {
        let (reservation, owner) = (of.id.to_string(), of.owner.to_string());
        let cell = UsageCell { reservation, owner, ..UsageCell::default() };
        (cell, UsageCount { promised: of.capacity, ..UsageCount::default() })
    });
    let servers = servers.into_iter().map(|((owner, ty, datacenter), count)| {
        let mut cell = UsageCell {
            hardware_type: region.hardware_types[ty.ix()].to_string(),
            datacenter: region.datacenters[datacenter.ix()].id.to_string(),
            ..UsageCell::default()
        };
        if let Some(owner) = owner {
            let of = &region.reservations[owner.ix()];
            (cell.reservation, cell.owner) = (of.id.to_string(), of.owner.to_string());
            cell.value = of.value(ty).unwrap_or_default();
        }
        (cell, count)
    });
    promises.chain(servers).collect()
}

/// A series as the API shows it.
pub fn view(of: broker::UsageSeries, by: &[UsageKey]) -> UsageSeries {
    fn list<T>(of: &broker::UsageSeries, pick: impl Fn(&UsageFigures) -> T) -> Vec<Option<T>> {
        of.figures.iter().map(|figures| figures.as_ref().map(&pick)).collect()
    }
    UsageSeries {
        of: by.iter().map(|key| key.as_str().to_owned()).zip(of.names.iter().cloned()).collect(),
        start: of.start,
        promised_rru: list(&of, |of| of.promised.to_f64()),
        held: list(&of, |of| of.held),
        held_rru: list(&of, |of| of.held_rru.to_f64()),
        used: list(&of, |of| of.used),
        used_rru: list(&of, |of| of.used_rru.to_f64()),
        lent: list(&of, |of| of.lent),
        free: list(&of, |of| of.free),
        in_service: list(&of, |of| of.in_service),
    }
}

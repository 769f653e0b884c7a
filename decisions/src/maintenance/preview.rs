//! Previews of planned maintenance: the windows, and the reservations that they touch.

use super::capacity::{Promised, View};
use super::planning::{Batch, MaintenancePlan, MaintenanceRequest};
use chrono::{DateTime, TimeDelta, Utc};
use fleet::{MsbName, Name, ReservationName, Rru, Scope};
use std::collections::{BTreeMap, BTreeSet};

/// The windows of a request and the reservations that they touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenancePreview {
    /// The MSB of the servers.
    pub msb: MsbName,
    /// All servers of the MSB.
    pub msb_servers: u64,
    /// The share of the MSB that may be under maintenance at once, in millionths.
    pub share_micro: u32,
    /// In order of time.
    pub windows: Vec<PreviewedWindow>,
    /// Servers of all windows.
    pub servers: u64,
    /// Of these, servers that are in use or lent.
    pub in_use: u64,
    /// The most servers that are out at once.
    pub at_once: u64,
    /// Guaranteed reservations that hold some of the servers, in order of name.
    pub holders: Vec<MaintenanceHolder>,
}

/// A window of a preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewedWindow {
    /// A server or a rack.
    pub scope: Scope,
    /// The name of the server or rack.
    pub name: Name,
    /// The start of the drain.
    pub drains_at: DateTime<Utc>,
    /// The start of the work.
    pub starts_at: DateTime<Utc>,
    /// The end of the work.
    pub ends_at: DateTime<Utc>,
}

/// A reservation that holds servers under maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceHolder {
    /// The reservation.
    pub reservation: ReservationName,
    /// The number of its servers in all windows.
    pub servers: u64,
    /// The most RRU that are out at once.
    pub at_once: Rru,
    /// C.
    pub capacity: Rru,
    /// RRU that it holds and that have not failed.
    pub available: Rru,
}

/// The preview of a plan. `in_use`: servers of the plan that are in use or lent.
pub fn preview(
    view: &View,
    plan: &MaintenancePlan,
    request: &MaintenanceRequest,
    in_use: u64,
) -> MaintenancePreview {
    let MaintenancePlan { msb, batches } = plan;
    let drain = TimeDelta::from_std(request.drain).unwrap_or(TimeDelta::zero());
    let window = |batch: &Batch, (scope, name): &(Scope, Name)| PreviewedWindow {
        scope: *scope,
        name: name.clone(),
        drains_at: batch.out.from - drain,
        starts_at: batch.out.from,
        ends_at: batch.out.until,
    };
    let windows =
        batches.iter().flat_map(|batch| batch.parts.iter().map(move |part| window(batch, part)));
    let all: BTreeSet<i32> = batches.iter().flat_map(|batch| &batch.out.servers).copied().collect();
    let mut holders: BTreeMap<ReservationName, MaintenanceHolder> = BTreeMap::new();
    for batch in batches {
        for (reservation, (servers, rru, promised)) in holders_of(view, &batch.out.servers) {
            let holder = holders.entry(reservation.clone()).or_insert_with(|| MaintenanceHolder {
                reservation: reservation.clone(),
                servers: 0,
                at_once: Rru::ZERO,
                capacity: promised.capacity,
                available: promised.available(),
            });
            holder.servers += servers;
            holder.at_once = holder.at_once.max(rru);
        }
    }
    MaintenancePreview {
        msb: msb.clone(),
        msb_servers: view.msbs.get(msb).copied().unwrap_or_default(),
        share_micro: request.share(),
        windows: windows.collect(),
        servers: all.len() as u64,
        in_use,
        at_once: batches.iter().map(|batch| batch.out.servers.len() as u64).max().unwrap_or(0),
        holders: holders.into_values().collect(),
    }
}

/// Guaranteed reservations that hold some of these servers: the number of servers, their value, the promise.
fn holders_of<'a>(
    view: &'a View,
    servers: &BTreeSet<i32>,
) -> BTreeMap<&'a ReservationName, (u64, Rru, &'a Promised)> {
    let mut holders = BTreeMap::new();
    for site in servers.iter().filter_map(|server| view.sites.get(server)) {
        let Some((holder, value)) = site.holder() else { continue };
        let Some(promised) = view.reservations.get(holder) else { continue };
        let (count, rru, _) = holders.entry(holder).or_insert((0_u64, Rru::ZERO, promised));
        *count += 1;
        *rru += *value;
    }
    holders
}

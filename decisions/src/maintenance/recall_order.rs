//! The order in which active maintenance is recalled when an MSB is lost.

use crate::maintenance::capacity::View;
use fleet::{MsbName, Name, ReservationName, Rru};
use std::collections::{BTreeMap, BTreeSet};

/// Active maintenance that can be recalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The event under which its servers are out of service.
    pub event: Name,
    /// Its servers, by number.
    pub servers: BTreeSet<i32>,
    /// Minutes from the recall until they are back.
    pub recall_minutes: u32,
}

/// Orders work for recall after the loss of MSBs. Each next piece restores the most of the RRU that the most
/// important reservations still miss; among equals the one that is back earlier comes first.
///
/// - `priority`: of the reservations; 0 is the most important.
/// - `stays`: servers under other work as well, which is not recalled.
pub fn recall_order(
    view: &View,
    lost: &BTreeSet<MsbName>,
    priority: &BTreeMap<ReservationName, i32>,
    stays: &BTreeSet<i32>,
    mut work: Vec<Work>,
) -> Vec<Work> {
    // Pieces of work on each server.
    let mut under: BTreeMap<i32, usize> = stays.iter().map(|server| (*server, 1)).collect();
    for server in work.iter().flat_map(|of| &of.servers) {
        *under.entry(*server).or_default() += 1;
    }
    let works = |server: &i32| -> Option<(&ReservationName, Rru)> {
        let site = view.sites.get(server).filter(|site| !lost.contains(&site.msb))?;
        site.held[0].as_ref().map(|(owner, value)| (owner, *value))
    };
    let mut missing: BTreeMap<&ReservationName, Rru> = BTreeMap::new();
    for (name, promised) in &view.reservations {
        let there = promised.by_msb[0].iter().filter(|(msb, _)| !lost.contains(*msb));
        missing.insert(name, promised.capacity - there.map(|(_, has)| *has).sum());
    }
    for (owner, value) in under.keys().filter_map(works) {
        *missing.entry(owner).or_default() += value;
    }
    // RRU that a piece of work restores, by owner.
    let back = |of: &Work, under: &BTreeMap<i32, usize>| {
        let mut back: BTreeMap<&ReservationName, Rru> = BTreeMap::new();
        let alone = of.servers.iter().filter(|server| under.get(server) == Some(&1));
        for (owner, value) in alone.filter_map(works) {
            *back.entry(owner).or_default() += value;
        }
        back
    };
    let mut order = Vec::with_capacity(work.len());
    while !work.is_empty() {
        let rank = |of: &Work| {
            let mut levels: BTreeMap<i32, Rru> = [(i32::MAX, Rru::ZERO)].into();
            for (owner, value) in back(of, &under) {
                let helps = value.min(missing.get(owner).copied().unwrap_or_default()).or_zero();
                if helps > Rru::ZERO {
                    let level = priority.get(owner).copied().unwrap_or(i32::MAX);
                    *levels.entry(level).or_default() -= helps;
                }
            }
            let levels: Vec<(i32, Rru)> = levels.into_iter().collect();
            (levels, of.recall_minutes, of.event.clone())
        };
        let best = (0..work.len()).min_by_key(|at| rank(&work[*at]));
        let next = work.swap_remove(best.expect("some are left"));
        for (owner, value) in back(&next, &under) {
            *missing.entry(owner).or_default() -= value;
        }
        for server in &next.servers {
            under.entry(*server).and_modify(|count| *count -= 1);
        }
        order.push(next);
    }
    order
}

#[cfg(test)]
mod tests;

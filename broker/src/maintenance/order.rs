//! In which order work under way is recalled when an MSB is lost. Pure.

use super::rules::View;
use fleet::{Name, Rru};
use std::collections::{BTreeMap, BTreeSet};

/// Work under way that is recalled when an MSB is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    /// The event that has its servers out of use.
    pub(crate) event: Name,
    pub(crate) servers: BTreeSet<i32>,
    pub(crate) recall_minutes: u32,
}

/// In which order work is recalled after the loss of MSBs: at each turn what gives most back of what the
/// most important reservations are missing then; of equals, what is back sooner. Servers in `stays` are
/// under other work as well, which is not recalled. `priority`: how important a reservation is, 0 most.
pub(crate) fn recall_order(
    view: &View,
    lost: &BTreeSet<Name>,
    priority: &BTreeMap<Name, i32>,
    stays: &BTreeSet<i32>,
    mut work: Vec<Work>,
) -> Vec<Work> {
    // By server, how much work is under way there.
    let mut under: BTreeMap<i32, usize> = stays.iter().map(|server| (*server, 1)).collect();
    for server in work.iter().flat_map(|of| &of.servers) {
        *under.entry(*server).or_default() += 1;
    }
    let works = |server: &i32| -> Option<(&Name, Rru)> {
        let site = view.sites.get(server).filter(|site| !lost.contains(&site.msb))?;
        site.held[0].as_ref().map(|(owner, value)| (owner, *value))
    };
    let mut missing: BTreeMap<&Name, Rru> = BTreeMap::new();
    for (name, promised) in &view.reservations {
        let there = promised.by_msb[0].iter().filter(|(msb, _)| !lost.contains(*msb));
        missing.insert(name, promised.capacity - there.map(|(_, has)| *has).sum());
    }
    for (owner, value) in under.keys().filter_map(works) {
        *missing.entry(owner).or_default() += value;
    }
    // What comes back with a piece of work, by owner.
    let back = |of: &Work, under: &BTreeMap<i32, usize>| {
        let mut back: BTreeMap<&Name, Rru> = BTreeMap::new();
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
mod tests {
    use super::super::rules::Promised;
    use super::super::rules::tests::even;
    use super::*;

    #[test]
    fn what_restores_most_is_recalled_first() {
        let mut view = even();
        for (id, site) in view.sites.iter_mut().filter(|(id, _)| **id < 16) {
            let owner: Name = if id % 8 < 4 { "ads".into() } else { "web".into() };
            site.held[0] = Some((owner, Rru::units(1)));
        }
        let by_msb = BTreeMap::from([("m0".into(), Rru::units(4)), ("m1".into(), Rru::units(4))]);
        let ads = Promised {
            capacity: Rru::units(8),
            msb_buffer: true,
            by_msb: [by_msb.clone(), by_msb],
        };
        view.reservations.insert("ads".into(), ads);
        let work = |event: &str, servers: &[i32], recall_minutes| Work {
            event: event.into(),
            servers: servers.iter().copied().collect(),
            recall_minutes,
        };
        let all = vec![
            work("free", &[99], 1),
            work("small", &[4], 5),
            work("ads", &[0, 1], 5),
            work("large", &[12, 13, 14], 25),
            work("quick", &[20, 21, 22], 20),
            work("gone", &[56, 57], 1),
        ];
        let order = |web, ads| {
            let priority = [("web".into(), web), ("ads".into(), ads)].into();
            let lost = ["m7".into()].into();
            let order = recall_order(&view, &lost, &priority, &BTreeSet::new(), all.clone());
            order.into_iter().map(|of| of.event.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(order(0, 1), ["quick", "large", "small", "ads", "free", "gone"]);
        assert_eq!(order(1, 0), ["ads", "quick", "large", "small", "free", "gone"]);
    }
}

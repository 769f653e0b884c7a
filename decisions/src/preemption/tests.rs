use super::{Due, HeldGroup, Holder, RegionHeld, due, plan};
use crate::place::PlaceLimits;
use fleet::{ReplicaRule, Rru};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

fn holder(name: &str, priority: i32, capacity: usize) -> Holder {
    let values = BTreeMap::from([("a".into(), Rru::units(1)), ("b".into(), Rru::units(2))]);
    let (reservation, capacity) = (name.into(), Rru::units(capacity));
    Holder { reservation, priority, capacity, values, place: PlaceLimits::default() }
}

fn group(holder: Option<&str>, hardware_type: &str, in_use: bool, held: u64) -> HeldGroup {
    HeldGroup {
        holder: holder.map(Into::into),
        shared: holder.is_some_and(|name| name.starts_with("shared")),
        msb: "m".into(),
        hardware_type: hardware_type.into(),
        in_use,
        held,
        takable: held,
    }
}

#[test]
fn preemption_is_due_after_two_msbs_were_lost_for_the_delay() {
    let at = |seconds| chrono::DateTime::from_timestamp(seconds, 0).expect("an instant");
    let due = |began: &[i64], now| {
        due(began.iter().map(|began| at(*began)).collect(), at(now), Duration::from_secs(60))
    };
    assert_eq!(due(&[], 100), Due::No);
    assert_eq!(due(&[0], 1_000), Due::No, "one lost MSB is what embedded buffers are for");
    assert_eq!(due(&[50, 10], 100), Due::At(at(110)), "the second began at 50");
    assert_eq!(due(&[50, 10], 110), Due::Now(at(50)));
    assert_eq!(due(&[90, 50, 10], 110), Due::Now(at(50)), "a third changes nothing");
    assert_eq!(super::due(vec![at(0); 2], at(9), Duration::MAX), Due::No);
}

fn rows(held: &RegionHeld) -> Vec<(String, String, bool, u64)> {
    let name = |name: &Option<fleet::ReservationName>| name.as_deref().unwrap_or("-").to_owned();
    let row =
        |of: &super::Preemption| (name(&of.source), of.target.to_string(), of.in_use, of.count);
    plan(held).0.iter().map(row).collect()
}

fn row(source: &str, target: &str, in_use: bool, count: u64) -> (String, String, bool, u64) {
    (source.into(), target.into(), in_use, count)
}

#[test]
fn least_important_reservation_is_preempted_first() {
    let held = RegionHeld {
        holders: vec![holder("ads", 1, 10), holder("batch", 5, 10), holder("web", 0, 20)],
        groups: vec![
            group(None, "a", false, 1),
            group(Some("ads"), "a", false, 4),
            group(Some("ads"), "a", true, 6),
            group(Some("batch"), "a", false, 3),
            group(Some("batch"), "a", true, 7),
            group(Some("shared/a"), "a", false, 2),
            group(Some("web"), "a", true, 2),
        ],
    };
    // Web lacks 18: one free server, two of the buffer, all ten of batch, and five of ads, who has
    // no reservation below it left to take from.
    let expected = [
        row("-", "web", false, 1),
        row("shared/a", "web", false, 2),
        row("batch", "web", false, 3),
        row("batch", "web", true, 7),
        row("ads", "web", false, 4),
        row("ads", "web", true, 1),
    ];
    assert_eq!(rows(&held), expected);
    let standings = plan(&held).1;
    let after: Vec<_> = standings.iter().map(|of| (&*of.reservation, of.after)).collect();
    let units = Rru::units;
    assert_eq!(after, [("web", units(20)), ("ads", units(5)), ("batch", units(0))]);
}

#[test]
fn equal_priority_and_full_reservations_preempt_nothing() {
    let held = RegionHeld {
        holders: vec![holder("ads", 1, 4), holder("web", 1, 10)],
        groups: vec![group(Some("ads"), "a", false, 9), group(Some("web"), "a", true, 2)],
    };
    assert_eq!(rows(&held), []);
    let held = RegionHeld { holders: vec![holder("web", 0, 2)], groups: held.groups };
    assert_eq!(rows(&held), []);
}

/// A reservation that can use these types alone.
fn using(name: &str, priority: i32, capacity: usize, types: &[&str]) -> Holder {
    let values = types.iter().map(|ty| ((*ty).into(), Rru::units(1))).collect();
    Holder { values, ..holder(name, priority, capacity) }
}

#[test]
fn equal_priority_exchanges_servers_it_can_spare() {
    let held = RegionHeld {
        holders: vec![
            using("web", 0, 1, &["a", "b"]),
            using("ads", 1, 1, &["b"]),
            using("idle", 1, 0, &[]),
        ],
        groups: vec![group(Some("ads"), "b", false, 1), group(Some("idle"), "a", false, 1)],
    };
    assert_eq!(rows(&held), [row("idle", "web", false, 1)], "ads keeps what only it can use");
    let held = RegionHeld {
        holders: vec![
            using("web", 0, 1, &["b"]),
            using("ads", 1, 1, &["a", "b"]),
            using("bus", 1, 1, &["b"]),
            using("idle", 2, 0, &[]),
        ],
        groups: vec![
            group(None, "b", false, 1),
            group(Some("ads"), "b", false, 1),
            group(Some("idle"), "a", false, 1),
        ],
    };
    // What is free goes to bus, web has that of ads, and ads that of idle.
    let expected =
        [row("ads", "web", false, 1), row("idle", "ads", false, 1), row("-", "bus", false, 1)];
    assert_eq!(rows(&held), expected);
}

/// The least that can be missing by priority, the most important first, over every way to hand
/// servers one by one to a reservation that may take them.
fn least_missing(held: &RegionHeld, servers: &[(usize, u64)], got: &mut [i64]) -> Vec<i64> {
    let Some((&(g, count), rest)) = servers.split_first() else {
        let mut missing = vec![0; 3];
        for (holder, got) in held.holders.iter().zip(got.iter()) {
            let priority = usize::try_from(holder.priority).expect("0 to 2");
            missing[priority] += (holder.capacity.0 - got).max(0);
        }
        return missing;
    };
    let group = &held.groups[g];
    let owner = held.holders.iter().position(|of| group.holder.as_ref() == Some(&of.reservation));
    let rest_of: Vec<(usize, u64)> = if count > 1 {
        std::iter::once((g, count - 1)).chain(rest.iter().copied()).collect()
    } else {
        rest.to_vec()
    };
    let mut best: Option<Vec<i64>> = None;
    for target in 0..held.holders.len() {
        let may = match owner {
            None => true,
            Some(owner) if owner == target => true,
            Some(owner) => held.holders[owner].priority > held.holders[target].priority,
        };
        let worth = super::value(&held.holders[target], group).0;
        if may && (worth > 0 || owner == Some(target)) {
            got[target] += worth;
            let found = least_missing(held, &rest_of, got);
            got[target] -= worth;
            best = Some(best.map_or(found.clone(), |best| best.min(found)));
        }
    }
    let nobody = || least_missing(held, &rest_of, &mut got.to_vec());
    best.unwrap_or_else(nobody)
}

#[test]
fn preemption_keeps_to_allowed_datacenters() {
    let mut web = holder("web", 0, 9);
    web.place.msbs = Some(["n".into()].into());
    let there = |msb: &str, held| HeldGroup { msb: msb.into(), ..group(None, "a", false, held) };
    let mut held = RegionHeld { holders: vec![web], groups: vec![there("m", 20), there("n", 4)] };
    assert_eq!(rows(&held), [row("-", "web", false, 4)]);
    // With one of three replicas in an MSB, 3 of 9 are all that may be there.
    held.holders[0].place.rule = Some(ReplicaRule { replicas: 3, per_msb: 1 });
    held.holders[0].place.capacity = Rru::units(9);
    assert_eq!(rows(&held), [row("-", "web", false, 3)]);
}

proptest! {
    /// As little is missing as possible, the more important first, for any values of types.
    #[test]
    fn preemption_minimizes_shortage_by_priority(
        holders in prop::collection::vec((0_i32..3, 0_usize..4, any::<[bool; 3]>()), 1..5),
        groups in prop::collection::vec((0_usize..6, 0_usize..3, 0_u64..3), 0..5),
    ) {
        let names = ["r0", "r1", "r2", "r3"];
        let count = holders.len();
        let holders: Vec<Holder> = (holders.iter().zip(names))
            .map(|((priority, capacity, can), name)| Holder {
                values: (["a", "b", "c"].into_iter().zip(can))
                    .filter(|(_, can)| **can)
                    .map(|(ty, _)| (ty.into(), Rru::units(1)))
                    .collect(),
                ..holder(name, *priority, *capacity)
            })
            .collect();
        let mut unique = BTreeMap::new();
        for (who, ty, held) in groups {
            let who = match who {
                4 => None,
                5 => Some("shared/a"),
                n => Some(names[n % count]),
            };
            unique.insert((who, ty), group(who, ["a", "b", "c"][ty], false, held));
        }
        let held = RegionHeld { holders, groups: unique.into_values().collect() };
        let servers: Vec<(usize, u64)> = (held.groups.iter().enumerate())
            .map(|(g, group)| (g, group.held))
            .filter(|&(_, count)| count > 0)
            .collect();
        prop_assume!(servers.iter().map(|of| of.1).sum::<u64>() <= 6);
        let least = least_missing(&held, &servers, &mut vec![0; held.holders.len()]);
        let mut missing = vec![0; 3];
        for of in plan(&held).1 {
            missing[usize::try_from(of.priority).expect("0 to 2")] +=
                (of.capacity - of.after).0.max(0);
        }
        prop_assert_eq!(missing, least);
    }

    /// No reservation gives to a less important one or gives what it does not have, and afterwards no
    /// short reservation is left beside a less important one that has what it could use.
    #[test]
    fn preemption_takes_from_lower_priority_only(
        holders in prop::collection::vec((0_i32..3, 0_usize..20), 1..5),
        groups in prop::collection::vec((0_usize..7, 0_usize..2, any::<bool>(), 0_u64..12), 0..12),
    ) {
        let names = ["r0", "r1", "r2", "r3", "r4"];
        let count = holders.len();
        let holders: Vec<Holder> =
            (holders.iter().zip(names)).map(|(of, name)| holder(name, of.0, of.1)).collect();
        let mut unique = BTreeMap::new();
        for (who, ty, in_use, held) in groups {
            let who = match who {
                5 => None,
                6 => Some("shared/a"),
                n => Some(names[n % count]),
            };
            unique.insert((who, ty, in_use), group(who, ["a", "b"][ty], in_use, held));
        }
        let held = RegionHeld { holders, groups: unique.into_values().collect() };
        let (rows, standings) = plan(&held);
        let priority = |name: &fleet::ReservationName| {
            held.holders.iter().find(|of| of.reservation == *name).map(|of| of.priority)
        };
        let mut groups = held.groups.clone();
        for row in &rows {
            if let Some(source) = row.source.as_ref().and_then(priority) {
                prop_assert!(source > priority(&row.target).expect("guaranteed"));
            }
            let from = groups.iter_mut().find(|of| of.holder == row.source
                && of.hardware_type == row.hardware_type && of.in_use == row.in_use);
            let from = from.expect("it is there");
            prop_assert!(from.held >= row.count);
            from.held -= row.count;
        }
        for short in standings.iter().filter(|of| of.after < of.capacity) {
            for group in groups.iter().filter(|group| group.held > 0) {
                let below = group.holder.as_ref().and_then(priority).is_none_or(|p| p > short.priority);
                prop_assert!(!below, "{short:?} could have {group:?}");
            }
        }
    }
}

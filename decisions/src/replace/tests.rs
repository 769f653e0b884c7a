use super::{Failed, Repaired, Spare, SpareContext, Swap};
use crate::domains::Domain;
use crate::limits::Room;
use crate::place::PlaceLimits;
use chrono::{DateTime, TimeDelta};
use fleet::{ReplicaRule, Rru};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn rru(value: usize) -> Rru {
    Rru::units(value)
}

fn failed(number: u32, reservation: &str, priority: i32, ty: &str) -> Failed {
    Failed {
        server: format!("f{number}").into(),
        reservation: reservation.into(),
        priority,
        hardware_type: ty.into(),
        since: DateTime::UNIX_EPOCH + TimeDelta::seconds(number.into()),
    }
}

fn spare(name: &str, msb: &str, ty: &str, lent: bool) -> Spare {
    Spare {
        server: name.into(),
        msb: msb.into(),
        domains: Vec::new(),
        hardware_type: ty.into(),
        lent,
    }
}

fn worth(values: &[(&str, &str, usize)], held: &[(&str, &str, usize)]) -> SpareContext {
    let values = values.iter().map(|(of, ty, v)| (((*of).into(), (*ty).into()), rru(*v)));
    let held = held.iter().map(|(of, msb, v)| (((*of).into(), (*msb).into()), rru(*v)));
    SpareContext { values: values.collect(), held: held.collect(), ..SpareContext::default() }
}

/// Without limits.
fn choose(failed: &[Failed], spares: &[Spare], worth: &SpareContext) -> Vec<Swap> {
    super::choose(failed, spares, worth, &mut Room::default())
}

fn returning<'a>(repaired: &'a [Repaired], context: &SpareContext) -> Vec<&'a Repaired> {
    super::returning(repaired, context, &mut Room::default())
}

fn pairs(swaps: &[Swap]) -> Vec<(&str, &str)> {
    swaps.iter().map(|swap| (&*swap.failed, &*swap.spare)).collect()
}

#[test]
fn best_spare_is_unlent_well_spread_and_least_valuable() {
    let worth = worth(
        &[("web", "old", 2), ("web", "new", 3), ("web", "weak", 1)],
        &[("web", "m1", 9), ("web", "m2", 4)],
    );
    let one = [failed(1, "web", 1, "old")];
    let chosen =
        |spares: &[Spare]| choose(&one, spares, &worth).first().map(|swap| swap.spare.to_string());
    let (weak, foreign) = (spare("w", "m2", "weak", false), spare("x", "m2", "gpu", false));
    assert_eq!(chosen(&[weak.clone(), foreign.clone()]), None);
    let near = spare("a", "m1", "old", false);
    let far = spare("b", "m2", "new", false);
    let third = spare("c", "m3", "new", false);
    assert_eq!(chosen(&[weak, foreign, near.clone(), far.clone()]).as_deref(), Some("b"));
    assert_eq!(chosen(&[near.clone(), far.clone(), third]).as_deref(), Some("c"));
    let lent = spare("b", "m2", "new", true);
    assert_eq!(chosen(&[near, lent]).as_deref(), Some("a"), "one that is not lent");
    // Within one MSB: the least valuable, then the first by name.
    let (d, e, f) = (
        spare("d", "m2", "new", false),
        spare("f", "m2", "old", false),
        spare("e", "m2", "old", false),
    );
    assert_eq!(chosen(&[d, e, f]).as_deref(), Some("e"));
}

#[test]
fn spare_outside_the_allowed_datacenters_is_not_chosen() {
    let mut worth = worth(&[("web", "t", 1)], &[("web", "m1", 3)]);
    let one = [failed(1, "web", 1, "t")];
    let spares = [spare("a", "m1", "t", true), spare("b", "m2", "t", false)];
    assert_eq!(pairs(&choose(&one, &spares, &worth)), [("f1", "b")]);
    let held_to = |msbs: &[&str]| Some(msbs.iter().map(|msb| (*msb).into()).collect());
    let place = PlaceLimits { msbs: held_to(&["m1"]), ..PlaceLimits::default() };
    worth.places.insert("web".into(), place.clone());
    assert_eq!(pairs(&choose(&one, &spares, &worth)), [("f1", "a")]);
    assert_eq!(pairs(&choose(&one, &spares[1..], &worth)), []);
    // With one of three replicas per MSB, m1 holds its part of 9 RRU already.
    let rule = Some(ReplicaRule { replicas: 3, per_msb: 1 });
    let full = PlaceLimits { rule, capacity: rru(9), ..place };
    worth.places.insert("web".into(), full.clone());
    assert_eq!(pairs(&choose(&one, &spares, &worth)), []);
    worth.places.insert("web".into(), PlaceLimits { capacity: rru(12), ..full });
    assert_eq!(pairs(&choose(&one, &spares, &worth)), [("f1", "a")]);
}

#[test]
fn failures_are_served_by_priority_then_age() {
    let worth = worth(&[("web", "t", 1), ("ads", "t", 1)], &[]);
    let three = [failed(1, "web", 2, "t"), failed(2, "ads", 1, "t"), failed(3, "ads", 1, "t")];
    let spares = [spare("a", "m1", "t", false), spare("b", "m1", "t", false)];
    assert_eq!(pairs(&choose(&three, &spares, &worth)), [("f2", "a"), ("f3", "b")]);
    // Chosen spares count for the next choice, so they spread.
    let spares =
        [spare("a", "m1", "t", false), spare("b", "m1", "t", false), spare("c", "m2", "t", false)];
    assert_eq!(pairs(&choose(&three, &spares, &worth)), [("f2", "a"), ("f3", "c"), ("f1", "b")]);
}

/// The fewest failures without a spare, by priority, over every assignment of spares.
fn fewest(
    of: &[Failed],
    spares: &[Spare],
    used: &mut Vec<bool>,
    fits: &dyn Fn(&Failed, &Spare) -> bool,
) -> Vec<usize> {
    let Some((first, rest)) = of.split_first() else { return vec![0; 3] };
    let mut without = fewest(rest, spares, used, fits);
    without[usize::try_from(first.priority).expect("0 to 2")] += 1;
    let mut best = without;
    for number in 0..spares.len() {
        if !used[number] && fits(first, &spares[number]) {
            used[number] = true;
            best = best.min(fewest(rest, spares, used, fits));
            used[number] = false;
        }
    }
    best
}

proptest! {
    /// At each priority as many servers are replaced as possible.
    #[test]
    fn replacements_are_maximal_at_each_priority(
        rows in prop::collection::vec((0_usize..4, 0_usize..3, 0_i32..3), 0..6),
        spares in prop::collection::vec((0_usize..2, 0_usize..3, any::<bool>()), 0..6),
    ) {
        let types = ["t0", "t1", "t2"];
        let worth = worth(
            &[
                ("r0", "t0", 1), ("r0", "t1", 2), ("r1", "t1", 1), ("r1", "t2", 1), ("r2", "t2", 5),
                ("r3", "t0", 3), ("r3", "t1", 2), ("r3", "t2", 1),
            ],
            &[("r0", "m0", 3), ("r1", "m1", 2)],
        );
        let failed: Vec<Failed> = (0..).zip(&rows)
            .map(|(n, (r, ty, p))| failed(n, &format!("r{r}"), *p, types[*ty])).collect();
        let spares: Vec<Spare> = (0..).zip(&spares)
            .map(|(n, (m, ty, lent))| spare(&format!("s{n}"), &format!("m{m}"), types[*ty], *lent))
            .collect();
        let value = |r: &str, ty: &str| worth.values.get(&(r.into(), ty.into())).copied();
        let fits = |of: &Failed, spare: &Spare| {
            let least = value(&of.reservation, &of.hardware_type).unwrap_or(Rru::ZERO);
            value(&of.reservation, &spare.hardware_type).is_some_and(|v| v >= least)
        };
        let swaps = choose(&failed, &spares, &worth);
        let mut without = vec![0; 3];
        for of in failed.iter().filter(|of| !swaps.iter().any(|swap| swap.failed == of.server)) {
            without[usize::try_from(of.priority).expect("0 to 2")] += 1;
        }
        let least = fewest(&failed, &spares, &mut vec![false; spares.len()], &fits);
        prop_assert_eq!(without, least);
    }

    /// Each spare is used once and fits, and no failed server is left out while a spare that fits is left.
    #[test]
    fn each_spare_is_used_once_and_is_worth_enough(
        rows in prop::collection::vec((0_usize..3, 0_usize..3, 0_i32..3), 0..12),
        spares in prop::collection::vec((0_usize..3, 0_usize..3, any::<bool>()), 0..12),
    ) {
        let types = ["t0", "t1", "t2"];
        let worth = worth(
            &[("r0", "t0", 1), ("r0", "t1", 2), ("r1", "t1", 1), ("r1", "t2", 1), ("r2", "t2", 5)],
            &[("r0", "m0", 3), ("r1", "m1", 2)],
        );
        let failed: Vec<Failed> = (0..).zip(&rows)
            .map(|(n, (r, ty, p))| failed(n, &format!("r{r}"), *p, types[*ty])).collect();
        let spares: Vec<Spare> = (0..).zip(&spares)
            .map(|(n, (m, ty, lent))| spare(&format!("s{n}"), &format!("m{m}"), types[*ty], *lent))
            .collect();
        let swaps = choose(&failed, &spares, &worth);
        let value = |r: &str, ty: &str| worth.values.get(&(r.into(), ty.into())).copied();
        let fits = |of: &Failed, spare: &Spare| {
            let least = value(&of.reservation, &of.hardware_type).unwrap_or(Rru::ZERO);
            value(&of.reservation, &spare.hardware_type).is_some_and(|v| v >= least)
        };
        let used: BTreeSet<_> = swaps.iter().map(|swap| &swap.spare).collect();
        let served: BTreeSet<_> = swaps.iter().map(|swap| &swap.failed).collect();
        prop_assert_eq!((used.len(), served.len()), (swaps.len(), swaps.len()));
        for swap in &swaps {
            let of = failed.iter().find(|of| of.server == swap.failed).expect("asked for");
            let spare = spares.iter().find(|s| s.server == swap.spare).expect("there");
            prop_assert!(fits(of, spare));
        }
        for of in failed.iter().filter(|of| !served.contains(&of.server)) {
            for spare in spares.iter().filter(|s| !used.contains(&s.server)) {
                prop_assert!(!fits(of, spare), "{} could have {}", of.server, spare.server);
            }
        }
    }
}

/// A server repaired in `msb`, with a spare in another MSB in its place.
fn repaired(name: &str, msb: &str, spare_msb: &str, spare_type: &str) -> Repaired {
    Repaired {
        server: name.into(),
        msb: msb.into(),
        domains: Vec::new(),
        hardware_type: "old".into(),
        reservation: "web".into(),
        capacity: rru(8),
        msb_buffer: true,
        spare: format!("spare of {name}").into(),
        spare_msb: spare_msb.into(),
        spare_domains: Vec::new(),
        spare_hardware_type: spare_type.into(),
    }
}

fn who_returns(repaired: &[Repaired], context: &SpareContext) -> Vec<String> {
    returning(repaired, context).into_iter().map(|of| of.server.to_string()).collect()
}

#[test]
fn repaired_server_returns_unless_the_reservation_has_less_then() {
    let values = [("web", "old", 2), ("web", "new", 3)];
    // After the loss of m2, 6 of 8 are left.
    let held = [("web", "m1", 4), ("web", "m2", 12), ("web", "m3", 2), ("other", "m1", 20)];
    let context = worth(&values, &held);
    // Out of the largest share, and between shares below it.
    assert_eq!(who_returns(&[repaired("a", "m1", "m2", "old")], &context), ["a"]);
    assert_eq!(who_returns(&[repaired("a", "m3", "m1", "old")], &context), ["a"]);
    assert_eq!(who_returns(&[repaired("a", "m1", "m1", "old")], &context), ["a"]);
    // Into the largest share the loss of that MSB would leave less. In place of a better one below it there is less.
    assert!(who_returns(&[repaired("a", "m2", "m1", "old")], &context).is_empty());
    assert!(who_returns(&[repaired("a", "m3", "m1", "new")], &context).is_empty());
    // Each counts for the next: without an embedded buffer what is left over does not matter.
    let all = ["a", "b", "c"].map(|name| repaired(name, "m2", "m1", "old"));
    let context = worth(&values, &[("web", "m1", 6), ("web", "m2", 4), ("web", "m3", 7)]);
    assert_eq!(who_returns(&all, &context), ["a", "b"]);
    let unbuffered = all.map(|of| Repaired { msb_buffer: false, ..of });
    assert_eq!(who_returns(&unbuffered, &context), ["a", "b", "c"]);
}

#[test]
fn repaired_server_does_not_return_where_it_may_not_be() {
    let mut context = worth(&[("web", "old", 2)], &[("web", "m1", 2), ("web", "m2", 4)]);
    let home = [repaired("a", "m1", "m2", "old")];
    assert_eq!(who_returns(&home, &context), ["a"]);
    let rule = Some(ReplicaRule { replicas: 2, per_msb: 1 });
    let limits = PlaceLimits { rule, capacity: rru(6), ..PlaceLimits::default() };
    context.places.insert("web".into(), limits);
    assert!(who_returns(&home, &context).is_empty());
}

fn in_switch(switch: &str, spare: Spare) -> Spare {
    Spare { domains: vec![Domain { partition: "switch".into(), name: switch.into() }], ..spare }
}

/// What web survives and what it holds in each switch.
fn survives_switches(context: &mut SpareContext, held: &[(&str, usize)]) {
    context.held.survives.insert("web".into(), ["switch".into()].into());
    let domain = |name: &str| Domain { partition: "switch".into(), name: name.into() };
    let shares = held.iter().map(|(name, of)| (domain(name), rru(*of)));
    context.held.by_domain.insert("web".into(), shares.collect());
}

#[test]
fn spare_in_the_domain_with_the_smallest_share_is_best() {
    // By MSBs `a` is better; by switches `b`, where web holds less.
    let mut context = worth(&[("web", "t", 1)], &[("web", "m1", 2), ("web", "m2", 3)]);
    let one = [failed(1, "web", 1, "t")];
    let spares = [
        in_switch("s1", spare("a", "m1", "t", false)),
        in_switch("s2", spare("b", "m2", "t", false)),
    ];
    assert_eq!(pairs(&choose(&one, &spares, &context)), [("f1", "a")], "it survives MSBs alone");
    survives_switches(&mut context, &[("s1", 4), ("s2", 1)]);
    assert_eq!(pairs(&choose(&one, &spares, &context)), [("f1", "b")]);
    // The share grows with each spare, so the second one goes elsewhere.
    survives_switches(&mut context, &[("s1", 2), ("s2", 2)]);
    let two = [failed(1, "web", 1, "t"), failed(2, "web", 1, "t")];
    let spares = [
        in_switch("s1", spare("a", "m3", "t", false)),
        in_switch("s1", spare("b", "m4", "t", false)),
        in_switch("s2", spare("c", "m5", "t", false)),
    ];
    assert_eq!(pairs(&choose(&two, &spares, &context)), [("f1", "a"), ("f2", "c")]);
}

#[test]
fn repaired_server_returns_only_if_as_much_survives_a_domain() {
    // Four servers; the repaired one is in the switch that has two of them already, its spare in another.
    let mut context = worth(
        &[("web", "old", 1)],
        &[("web", "m1", 1), ("web", "m2", 1), ("web", "m3", 1), ("web", "m4", 1)],
    );
    let domain = |name: &str| vec![Domain { partition: "switch".into(), name: name.into() }];
    let home = [Repaired {
        domains: domain("s1"),
        spare_domains: domain("s2"),
        capacity: rru(3),
        ..repaired("a", "m5", "m4", "old")
    }];
    assert_eq!(who_returns(&home, &context), ["a"], "by MSBs it is as good");
    survives_switches(&mut context, &[("s1", 2), ("s2", 1)]);
    assert!(who_returns(&home, &context).is_empty(), "three of four in one switch");
    survives_switches(&mut context, &[("s1", 1), ("s2", 2)]);
    assert_eq!(who_returns(&home, &context), ["a"]);
}

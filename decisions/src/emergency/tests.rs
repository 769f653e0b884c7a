use super::{Stock, StockGroup, choose, exceeds_promise, takable_of_buffer};
use crate::limits::Room;
use crate::place::PlaceLimits;
use crate::replace::SpareContext;
use fleet::{ReplicaRule, Rru};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn group(msb: &str, hardware_type: &str, shared: bool, count: u64) -> StockGroup {
    let name = |number| format!("{msb}-{hardware_type}-{shared}-{number}").into();
    let servers = (0..count).map(name).collect();
    StockGroup {
        msb: msb.into(),
        domains: Vec::new(),
        hardware_type: hardware_type.into(),
        shared,
        servers,
    }
}

fn stock(asked: usize, groups: Vec<StockGroup>) -> Stock {
    let values =
        [(("web".into(), "a".into()), Rru::units(1)), (("web".into(), "b".into()), Rru::units(3))];
    let held = [(("web".into(), "m1".into()), Rru::units(5))];
    let worth = SpareContext {
        values: values.into(),
        held: held.into_iter().collect(),
        ..SpareContext::default()
    };
    let (most, shared_most) = (None, BTreeMap::new());
    Stock { reservation: "web".into(), asked: Rru::units(asked), groups, most, shared_most, worth }
}

/// MSB, type, whether shared, and how many.
fn picks(stock: &Stock) -> Vec<(String, String, bool, u64)> {
    let row = |of: &StockGroup| {
        (of.msb.to_string(), of.hardware_type.to_string(), of.shared, of.servers.len() as u64)
    };
    choose(stock, &mut Room::default()).groups.iter().map(row).collect()
}

fn row(msb: &str, hardware_type: &str, shared: bool, count: u64) -> (String, String, bool, u64) {
    (msb.into(), hardware_type.into(), shared, count)
}

#[test]
fn free_servers_come_first_and_spread_over_msbs() {
    let groups = vec![
        group("m1", "a", false, 9),
        group("m2", "a", false, 2),
        group("m3", "a", false, 2),
        group("m3", "a", true, 9),
        group("m3", "x", false, 9),
    ];
    let few = stock(4, groups.clone());
    assert_eq!(picks(&few), [row("m2", "a", false, 2), row("m3", "a", false, 2)]);
    let all = stock(100, groups);
    let expected = [
        row("m1", "a", false, 9),
        row("m2", "a", false, 2),
        row("m3", "a", false, 2),
        row("m3", "a", true, 9),
    ];
    assert_eq!(picks(&all), expected, "the whole stock, and no unusable type");
    let none = stock(1, vec![group("m1", "x", false, 9)]);
    assert_eq!(picks(&none), []);
}

#[test]
fn no_server_is_picked_against_placement_rules() {
    let groups = vec![group("m1", "a", false, 9), group("m2", "a", false, 9)];
    let mut stock = stock(4, groups);
    let place = PlaceLimits { msbs: Some(["m1".into()].into()), ..PlaceLimits::default() };
    stock.worth.places.insert("web".into(), place.clone());
    assert_eq!(picks(&stock), [row("m1", "a", false, 4)]);
    // One of two replicas per MSB: m1 holds 5 of 10. With 14 promised it may hold 7, but then only 2 are
    // granted; with 12 it may hold 6, and 1 is granted; and so on to none.
    let rule = Some(ReplicaRule { replicas: 2, per_msb: 1 });
    let capacity = Rru::units(10);
    stock.worth.places.insert("web".into(), PlaceLimits { rule, capacity, ..place });
    assert_eq!(picks(&stock), []);
    let both = PlaceLimits { rule, capacity, msbs: None };
    stock.worth.places.insert("web".into(), both);
    assert_eq!(picks(&stock), [row("m2", "a", false, 4)]);
}

#[test]
fn no_more_servers_are_picked_than_confirmed_and_half_a_buffer_stays() {
    let groups =
        vec![group("m2", "a", false, 3), group("m3", "a", true, 9), group("m4", "a", true, 9)];
    let mut stock = stock(100, groups);
    stock.shared_most.insert("a".into(), 5);
    let taken = |stock: &Stock| -> (u64, u64) {
        let rows = picks(stock);
        let shared = rows.iter().filter(|of| of.2).map(|of| of.3).sum();
        (rows.iter().map(|of| of.3).sum(), shared)
    };
    assert_eq!(taken(&stock), (8, 5));
    stock.most = Some(4);
    assert_eq!(taken(&stock), (4, 1));
    let of = |promised, owned| takable_of_buffer(Rru::units(promised), owned);
    assert_eq!((of(9, 9), of(10, 9), of(10, 5), of(10, 0)), (4, 4, 0, 0));
    let exceeds = |promised, open, asked| {
        exceeds_promise(Rru::units(promised), Rru::units(open), Rru::units(asked))
    };
    assert!(!exceeds(10, 4, 6) && exceeds(10, 4, 7) && exceeds(0, 0, 1));
}

proptest! {
    /// The grant is enough if the stock is, has no surplus server, and never exceeds the stock.
    #[test]
    fn grant_covers_the_request_without_surplus_servers(
        asked in 1_usize..40,
        rows in prop::collection::vec((0_usize..3, 0_usize..2, any::<bool>(), 0_u64..8), 0..8),
    ) {
        let mut groups: Vec<StockGroup> = Vec::new();
        for (msb, ty, shared, count) in rows {
            let new = group(["m1", "m2", "m3"][msb], ["a", "b"][ty], shared, count);
            if !groups.iter().any(|of| (&of.msb, &of.hardware_type, of.shared) == (&new.msb, &new.hardware_type, new.shared)) {
                groups.push(new);
            }
        }
        let stock = stock(asked, groups);
        let worth = |ty: &str| if ty == "a" { 1 } else { 3 };
        let all = |groups: &[StockGroup]| -> u64 {
            groups.iter().map(|of| of.servers.len() as u64 * worth(&of.hardware_type)).sum()
        };
        let picks = choose(&stock, &mut Room::default()).groups;
        let (there, got) = (all(&stock.groups), all(&picks));
        let asked = asked as u64;
        prop_assert!(got >= asked.min(there), "{got} of {asked}, {there} there");
        prop_assert!(got < asked + 3);
        let in_stock = |of: &StockGroup, server| stock.groups.iter().any(|group| {
            (&group.msb, &group.hardware_type, group.shared) == (&of.msb, &of.hardware_type, of.shared)
                && group.servers.contains(server)
        });
        prop_assert!(picks.iter().all(|of| of.servers.iter().all(|server| in_stock(of, server))));
        let each: BTreeSet<_> = picks.iter().flat_map(|of| &of.servers).collect();
        prop_assert_eq!(each.len(), picks.iter().map(|of| of.servers.len()).sum::<usize>());
    }
}

#[test]
fn servers_come_from_the_domains_with_the_smallest_shares() {
    use crate::domains::Domain;
    let domain = |name: &str| Domain { partition: "switch".into(), name: name.into() };
    let within = |msb: &str, switch: &str, count| StockGroup {
        domains: vec![domain(switch)],
        ..group(msb, "a", false, count)
    };
    let mut stock = stock(3, vec![within("m2", "s1", 9), within("m3", "s2", 9)]);
    assert_eq!(picks(&stock), [row("m2", "a", false, 2), row("m3", "a", false, 1)], "by MSB");
    stock.worth.held.survives.insert("web".into(), ["switch".into()].into());
    stock.worth.held.by_domain.insert("web".into(), [(domain("s1"), Rru::units(5))].into());
    assert_eq!(picks(&stock), [row("m3", "a", false, 3)]);
}

//! Fault domains that cross MSBs: their rules, and the audit of small regions by hand.

use crate::world::{World, find, targets};
use fleet::audit::{audit, certificate};
use fleet::edit::{ServerEdit, plan_servers};
use fleet::explain::{Explainer, LimitName, Relaxation, ShortfallReason, explain};
use fleet::{CapacityRequest, PartitionColumn, RegionSnapshot, Rru, SurvivesRow, Table};
use std::collections::BTreeSet;

/// A column of servers by prefix of their ids; those without a prefix have no domain.
fn column(world: &World, name: &str, domains: &[(&str, &str)]) -> PartitionColumn {
    let domain = |id: &str| domains.iter().find(|of| id.starts_with(of.0)).map(|of| of.1.into());
    let servers = world.parts.servers.iter();
    let domains = servers.filter_map(|row| Some((row.server_id.clone(), domain(&row.server_id)?)));
    PartitionColumn { name: name.into(), domains: domains.collect() }
}

fn survives(id: &str, partition: &str) -> SurvivesRow {
    SurvivesRow { reservation_id: id.into(), partition: partition.into() }
}

/// Three MSBs of four servers; one switch has all of `m0` and half of `m1`, one the rest of `m1`, and `m2` has none.
fn switched(capacity: f64) -> World {
    let mut world = World::new()
        .servers("dc0/m0", "t0", 4)
        .servers("dc0/m1", "t0", 4)
        .servers("dc1/m2", "t0", 4)
        .reservation("web", capacity, &["t0"])
        .valued("lent", "elastic", 0.0, &[]);
    let domains = [("m0", "s0"), ("m1-t0-000", "s0"), ("m1-t0-001", "s0"), ("m1", "s1")];
    world.parts.crossing.partitions.push(column(&world, "switch", &domains));
    world.parts.crossing.survives.push(survives("web", "switch"));
    world
}

#[test]
fn the_worst_loss_of_either_kind_decides() {
    let snapshot = switched(4.0).hold("web", "m").build();
    let report = audit(&snapshot, &targets(&snapshot, &[]));
    let row = report.reservation("web").expect("it is there");
    // Twelve, of which six are behind s0 and four in the largest MSB.
    assert_eq!((row.holding.assigned, row.holding.largest_msb), (Rru::units(12), Rru::units(4)));
    assert_eq!((row.holding.guaranteed, row.holding.shortfall), (Rru::units(6), Rru::ZERO));
    let loss = &row.partitions[0];
    assert_eq!((&*loss.partition, loss.domain.as_deref()), ("switch", Some("s0")));
    assert_eq!((loss.lost, loss.left, loss.survives), (Rru::units(6), Rru::units(6), true));
    assert!(report.is_clean());
}

/// Maintenance inside of the lost domain is lost once, not twice.
#[test]
fn the_certificate_counts_maintenance_by_domain() {
    let worked_on = |servers: &[(&str, Option<i32>)]| {
        let mut world = switched(4.0).hold("web", "m");
        for (server, recall_minutes) in servers {
            world = world.event("server", server, "planned_maintenance");
            world.parts.unavailability.last_mut().expect("an event").recall_minutes =
                *recall_minutes;
        }
        let snapshot = world.build();
        let of = certificate(&snapshot).rows[0].domains.expect("it survives switches");
        let (partition, domain) = of.worst.expect("it has servers behind switches");
        let domain = &snapshot.partitions[partition.ix()].domains[domain as usize];
        (domain.to_string(), of.left_at_once.to_f64(), of.left.to_f64(), of.largest.to_f64())
    };
    let s0 = |at_once, left| ("s0".to_owned(), at_once, left, 6.0);
    assert_eq!(worked_on(&[]), s0(6.0, 6.0));
    assert_eq!(worked_on(&[("m0-t0-000", None)]), s0(6.0, 6.0), "behind the switch itself");
    assert_eq!(worked_on(&[("m2-t0-000", None)]), s0(5.0, 5.0));
    assert_eq!(worked_on(&[("m2-t0-000", Some(20)), ("m0-t0-000", None)]), s0(5.0, 6.0));
}

#[test]
fn a_reservation_may_survive_switches_and_not_msbs() {
    let without = |world: World| world.change("web", |row| row.msb_buffer = false);
    let snapshot = without(switched(8.0)).hold("web", "m").build();
    let report = audit(&snapshot, &targets(&snapshot, &[]));
    let row = report.reservation("web").expect("it is there");
    assert_eq!((row.holding.guaranteed, row.holding.shortfall), (Rru::units(6), Rru::units(2)));
    // Servers in no domain are lost with none.
    let snapshot = without(switched(4.0)).hold("web", "m2").build();
    let report = audit(&snapshot, &targets(&snapshot, &[]));
    let row = report.reservation("web").expect("it is there");
    assert_eq!((row.holding.guaranteed, row.partitions[0].domain.clone()), (Rru::units(4), None));
}

#[test]
fn targets_that_a_domain_breaks_are_worse_than_today() {
    let snapshot = switched(4.0).hold("web", "m1").hold("web", "m2").build();
    // Eight over two MSBs and both switches; then eight over two MSBs, six of them behind s0.
    let moved = targets(&snapshot, &[("m2", "free"), ("m0", "web")]);
    let report = audit(&snapshot, &moved);
    let row = report.reservation("web").expect("it is there");
    assert_eq!((row.initial.shortfall, row.holding.shortfall), (Rru::ZERO, Rru::units(2)));
    let said: Vec<String> = report.violations.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["reservation \"web\" would be 2 RRU short; today it is 0"]);
}

#[test]
fn a_domain_is_the_reason_where_msbs_leave_enough() {
    let snapshot = switched(4.0).hold("web", "m0").hold("web", "m1").build();
    let found = explain(&snapshot, &targets(&snapshot, &[]), find(&snapshot, "web"));
    let short = found.shortfall.expect("two are left of four");
    assert_eq!((short.missing, short.reason), (Rru::units(2), ShortfallReason::FaultDomain));
    let said = "the loss of switch \"s0\" would take 6 of its 8 RRU and leave 2 of 4; no assignment was \
                found that survives it";
    assert_eq!(short.sentence, said);
    assert_eq!(found.guaranteed, Rru::units(2));
}

#[test]
fn limits_count_what_domains_leave() {
    let limits = |capacity: f64| {
        let snapshot = switched(capacity).hold("web", "m").build();
        let today = targets(&snapshot, &[]);
        let explainer = Explainer::new(&snapshot, &today);
        let web = find(&snapshot, "web");
        let reason = explainer.shortfall_of(web).expect("it is short").reason;
        let named = explainer.limits(web).into_iter();
        (reason, named.map(|of| (of.limit, of.without, of.sentence)).collect::<Vec<_>>())
    };
    // Twelve: eight without an MSB, six without s0.
    let why = "of all its servers in the region, 6 RRU are outside of switch \"s0\", whose loss must leave 8";
    let snapshot = switched(8.0).hold("web", "m").build();
    let found = explain(&snapshot, &targets(&snapshot, &[]), find(&snapshot, "web"));
    assert_eq!(found.relaxations, [Relaxation::FewerRru { grantable: Rru::units(6) }]);
    let of_domain = (LimitName::FaultDomains, Rru::units(8), why.to_owned());
    assert_eq!(limits(8.0), (ShortfallReason::FaultDomain, vec![of_domain]));
    // Both are in the way of ten. That MSBs alone are lifted leaves what switches leave.
    let (reason, named) = limits(10.0);
    assert_eq!(reason, ShortfallReason::MsbBuffer);
    let [(LimitName::MsbBuffer, without, _)] = &named[..] else { panic!("{named:?}") };
    assert_eq!(*without, Rru::units(6));
}

#[test]
fn rows_come_back() {
    let world = switched(4.0);
    let again = world.clone().build().to_parts();
    assert_eq!(again.crossing, world.parts.crossing);
    assert_eq!(RegionSnapshot::new(again).expect("valid"), world.build());
}

#[test]
fn requests_say_what_is_survived() {
    let snapshot = switched(4.0).build();
    let of = |snapshot: &RegionSnapshot| {
        let web = snapshot.reservation("web").expect("it is there");
        CapacityRequest::of(snapshot, web).survives.expect("said").len()
    };
    let apply = |survives: Option<&[&str]>| {
        let survives = survives.map(|of| of.iter().map(|name| (*name).into()).collect());
        let request = CapacityRequest {
            reservation_id: "web".into(),
            survives,
            ..CapacityRequest::default()
        };
        request.apply(&snapshot).map(|(region, _)| region)
    };
    assert_eq!(of(&apply(None).expect("fits")), 1);
    let none = apply(Some(&[])).expect("fits");
    assert_eq!((of(&none), none.partitions.len()), (0, 1));
    assert_eq!(of(&apply(Some(&["switch"])).expect("fits")), 1);
    let error = apply(Some(&["feed"])).expect_err("unknown");
    assert_eq!(error.to_string(), "survives: the region has no partition \"feed\"; it has switch");
}

#[test]
fn servers_that_are_removed_leave_their_domains() {
    let mut parts = switched(4.0).parts;
    let gone = vec![parts.servers[0].server_id.clone()];
    let known = ["t0".into()].into();
    plan_servers(&mut parts, &ServerEdit::Remove(gone), &known, &BTreeSet::new()).expect("free");
    assert_eq!(parts.crossing.partitions[0].domains.len(), 7);
    RegionSnapshot::new(parts).expect("a snapshot");
}

#[track_caller]
fn refuses(change: impl FnOnce(&mut World), table: Table, row: &str, rule: &str) {
    let mut world = switched(4.0);
    change(&mut world);
    let error = RegionSnapshot::new(world.parts).expect_err("a rule is broken");
    assert_eq!((error.table, error.row.as_str()), (table, row), "{error}");
    assert!(error.rule.to_string().contains(rule), "{error} should say {rule:?}");
}

#[test]
fn broken_rules_are_named() {
    refuses(
        |world| world.parts.crossing.survives.push(survives("web", "feed")),
        Table::Survives,
        "web/feed",
        "\"domain:feed\" is not there",
    );
    refuses(
        |world| world.parts.crossing.survives.push(survives("shop", "switch")),
        Table::Survives,
        "shop/switch",
        "not in reservations.parquet",
    );
    refuses(
        |world| world.parts.crossing.survives.push(survives("lent", "switch")),
        Table::Survives,
        "lent/switch",
        "only a guaranteed reservation",
    );
    refuses(
        |world| world.parts.crossing.survives.push(survives("web", "switch")),
        Table::Survives,
        "web/switch",
        "more than one row",
    );
    refuses(
        |world| world.parts.crossing.survives.push(survives("web", "msb")),
        Table::Survives,
        "web/msb",
        "msb_buffer",
    );
    refuses(
        |world| world.parts.crossing.partitions[0].name = "msb".into(),
        Table::Servers,
        "domain:msb",
        "msb_buffer",
    );
    refuses(
        |world| {
            let column = world.parts.crossing.partitions[0].clone();
            world.parts.crossing.partitions.push(column);
        },
        Table::Servers,
        "domain:switch",
        "more than one row",
    );
    refuses(
        |world| world.parts.crossing.partitions[0].domains[0].1 = "".into(),
        Table::Servers,
        "m0-t0-000",
        "1 to 128 characters",
    );
}

//! Every rule of the snapshot format, each broken once: the error names file, row and rule.

use crate::world::{self, World, hours, noon};
use fleet::{RegionSnapshot, Rule, SnapshotParts, Table};

/// A valid region that has a row in every table.
fn valid() -> World {
    World::new()
        .servers("dc0/m0", "t0", 2)
        .servers("dc1/m1", "t0", 2)
        .servers("dc1/m1", "t1", 1)
        .reservation("web", 1.0, &["t0", "t1"])
        .valued("lent", "elastic", 0.0, &[])
        .valued("spare", "shared_buffer", 1.0, &[("t1", 1.0)])
        .affinity("web", "dc0", 0.5)
        .event("msb", "m0", "planned_maintenance")
}

#[test]
fn the_world_that_each_test_breaks_is_valid() {
    let snapshot = valid().build();
    assert_eq!(snapshot.servers.len(), 5);
    assert!(snapshot.servers.iter().all(|server| server.available));
}

/// Breaks one thing and expects one error. The message must name file and row.
#[track_caller]
fn refuses(break_it: impl FnOnce(&mut SnapshotParts), table: Table, row: &str, rule: &str) {
    let mut parts = valid().parts;
    break_it(&mut parts);
    let error = RegionSnapshot::new(parts).expect_err("a rule is broken");
    assert_eq!((error.table, error.row.as_str()), (table, row), "{error}");
    let message = error.to_string();
    assert!(message.contains(table.file()) && message.contains(row), "{message}");
    assert!(error.rule.to_string().contains(rule), "{message} should say {rule:?}");
}

#[track_caller]
fn accepts(change: impl FnOnce(&mut SnapshotParts)) -> RegionSnapshot {
    let mut parts = valid().parts;
    change(&mut parts);
    RegionSnapshot::new(parts).expect("no rule is broken")
}

#[test]
fn ids_have_1_to_128_characters() {
    let long = "x".repeat(129);
    refuses(|p| p.region = "".into(), Table::Region, "", "1 to 128 characters, not 0");
    refuses(
        |p| p.servers[0].server_id = long.as_str().into(),
        Table::Servers,
        &long,
        "1 to 128 characters, not 129",
    );
    refuses(|p| p.servers[0].server_id = "".into(), Table::Servers, "", "server_id");
    refuses(|p| p.servers[0].rack = "".into(), Table::Servers, "m0-t0-000", "rack");
    refuses(|p| p.servers[0].msb = "".into(), Table::Servers, "m0-t0-000", "msb");
    refuses(|p| p.servers[0].datacenter = "".into(), Table::Servers, "m0-t0-000", "datacenter");
    refuses(|p| p.servers[0].hardware_type = "".into(), Table::Servers, "m0-t0-000", "hardware_t");
    refuses(
        |p| p.reservations[0].reservation_id = "".into(),
        Table::Reservations,
        "",
        "reservation_id",
    );
    refuses(|p| p.unavailability[0].event_id = "".into(), Table::Unavailability, "", "event_id");
    refuses(|p| p.rru[0].hardware_type = "".into(), Table::RruValues, "web/", "hardware_type");
    refuses(|p| p.affinity[0].datacenter = "".into(), Table::Affinity, "web/", "datacenter");
    // Characters, not bytes.
    let wide: String = "\u{fc}".repeat(128);
    accepts(|p| p.servers[0].server_id = wide.as_str().into());
    // Owner and host profile are no ids.
    accepts(|p| {
        p.reservations[0].owner = "".into();
        p.reservations[0].host_profile = Some(long.as_str().into());
    });
}

#[test]
fn ids_are_unique_within_their_table() {
    let again = "more than one row";
    refuses(
        |p| p.servers[1].server_id = p.servers[0].server_id.clone(),
        Table::Servers,
        "m0-t0-000",
        again,
    );
    refuses(|p| p.reservations[1].reservation_id = "web".into(), Table::Reservations, "web", again);
    refuses(|p| p.rru.push(p.rru[0].clone()), Table::RruValues, "web/t0", again);
    refuses(|p| p.affinity.push(p.affinity[0].clone()), Table::Affinity, "web/dc0", again);
    refuses(
        |p| p.unavailability.push(p.unavailability[0].clone()),
        Table::Unavailability,
        "event-0",
        again,
    );
}

#[test]
fn places_are_nested() {
    refuses(
        |p| p.servers[4].rack = "m0-rack".into(),
        Table::Servers,
        "m1-t1-000",
        "rack \"m0-rack\" lies in MSB \"m0\" and in MSB \"m1\"",
    );
    refuses(
        |p| p.servers[4].datacenter = "dc0".into(),
        Table::Servers,
        "m1-t1-000",
        "MSB \"m1\" lies in datacenter \"dc1\" and in datacenter \"dc0\"",
    );
}

#[test]
fn names_must_be_known() {
    let unknown = "names \"absent\", which is not in reservations.parquet";
    let absent = || Some("absent".into());
    let server = "m0-t0-000";
    refuses(|p| p.servers[0].current_reservation = absent(), Table::Servers, server, unknown);
    refuses(
        |p| {
            p.servers[0].target_reservation = absent();
            p.servers[0].target_pending = true;
        },
        Table::Servers,
        server,
        unknown,
    );
    refuses(|p| p.servers[0].loaned_to = absent(), Table::Servers, server, unknown);
    refuses(|p| p.rru[0].reservation_id = "absent".into(), Table::RruValues, "absent/t0", unknown);
    refuses(
        |p| p.affinity[0].reservation_id = "absent".into(),
        Table::Affinity,
        "absent/dc0",
        unknown,
    );
    for scope in ["server", "rack", "msb", "datacenter"] {
        refuses(
            |p| {
                p.unavailability[0].scope = scope.into();
                p.unavailability[0].scope_id = "nowhere".into();
            },
            Table::Unavailability,
            "event-0",
            "scope_id names \"nowhere\"",
        );
    }
    refuses(
        |p| p.servers[0].current_reservation = Some("shared-buffer/t9".into()),
        Table::Servers,
        server,
        "shared-buffer/t9",
    );
}

#[test]
fn words_are_of_their_lists() {
    refuses(
        |p| p.reservations[0].kind = "best_effort".into(),
        Table::Reservations,
        "web",
        "guaranteed, shared_buffer, elastic",
    );
    refuses(
        |p| p.unavailability[0].scope = "row".into(),
        Table::Unavailability,
        "event-0",
        "server, rack, msb, datacenter",
    );
    refuses(
        |p| p.unavailability[0].kind = "flood".into(),
        Table::Unavailability,
        "event-0",
        "planned_maintenance, random_failure, software, correlated_failure",
    );
}

#[test]
fn a_target_needs_a_move_under_way() {
    refuses(
        |p| p.servers[0].target_reservation = Some("web".into()),
        Table::Servers,
        "m0-t0-000",
        "target_pending is false",
    );
}

#[test]
fn only_elastic_reservations_borrow() {
    for lender in ["web", "spare"] {
        refuses(
            |p| p.servers[0].loaned_to = Some(lender.into()),
            Table::Servers,
            "m0-t0-000",
            "not an elastic reservation",
        );
    }
    accepts(|p| p.servers[0].loaned_to = Some("lent".into()));
}

#[test]
fn numbers_are_finite_and_in_range() {
    for bad in [f64::NAN, f64::INFINITY, -1.0, -1e-9] {
        refuses(
            |p| p.reservations[0].capacity_rru = bad,
            Table::Reservations,
            "web",
            "capacity_rru",
        );
        refuses(|p| p.rru[0].rru = bad, Table::RruValues, "web/t0", "rru");
        refuses(|p| p.affinity[0].share = bad, Table::Affinity, "web/dc0", "share");
        refuses(
            |p| p.reservations[0].affinity_theta = Some(bad),
            Table::Reservations,
            "web",
            "affinity_theta",
        );
        refuses(
            |p| p.servers[0].power_watts = Some(bad),
            Table::Servers,
            "m0-t0-000",
            "power_watts",
        );
        refuses(|p| p.weights.move_in_use = bad, Table::Region, "region-a", "weights.move_in_use");
        refuses(|p| p.weights.move_idle = bad, Table::Region, "region-a", "weights.move_idle");
        refuses(|p| p.weights.spread_beta = bad, Table::Region, "region-a", "weights.spread_beta");
        refuses(|p| p.weights.buffer_tau = bad, Table::Region, "region-a", "weights.buffer_tau");
        refuses(
            |p| p.weights.affinity_theta = bad,
            Table::Region,
            "region-a",
            "weights.affinity_theta",
        );
        refuses(
            |p| p.shared_buffer_fraction = Some(bad),
            Table::Region,
            "region-a",
            "shared_buffer_fraction",
        );
    }
    refuses(|p| p.rru[0].rru = 0.0, Table::RruValues, "web/t0", "rru is 0");
    // Not zero, but nothing to the nearest 1e-6.
    refuses(|p| p.rru[0].rru = 4e-7, Table::RruValues, "web/t0", "at least 0.000001");
    refuses(|p| p.affinity[0].share = 1.01, Table::Affinity, "web/dc0", "0 to 1");
    refuses(|p| p.reservations[0].priority = -1, Table::Reservations, "web", "priority is -1");
}

#[test]
fn alphas_are_above_0_and_at_most_1() {
    for bad in [f64::NAN, 0.0, -0.5, 1.5] {
        refuses(|p| p.weights.msb_alpha = Some(bad), Table::Region, "region-a", "msb_alpha");
        refuses(|p| p.weights.rack_alpha = Some(bad), Table::Region, "region-a", "rack_alpha");
        refuses(
            |p| p.reservations[0].msb_alpha = Some(bad),
            Table::Reservations,
            "web",
            "msb_alpha",
        );
        refuses(
            |p| p.reservations[0].rack_alpha = Some(bad),
            Table::Reservations,
            "web",
            "rack_alpha",
        );
    }
    accepts(|p| p.weights.msb_alpha = Some(1.0));
}

#[test]
fn amounts_are_held_to_the_nearest_millionth() {
    let snapshot = accepts(|p| {
        p.rru[0].rru = 1.234_567_8;
        p.reservations[0].capacity_rru = 0.000_000_4;
    });
    let web = &snapshot.reservations[world::find(&snapshot, "web").ix()];
    assert_eq!(web.rru[0].1, fleet::Rru(1_234_568));
    assert_eq!(web.capacity, fleet::Rru::ZERO);
}

/// Sums over the region must fit, so that no later sum can overflow.
#[test]
fn sums_of_amounts_are_bounded() {
    refuses(
        |p| p.reservations[0].capacity_rru = 1e9 + 1.0,
        Table::Reservations,
        "web",
        "at most 1e9",
    );
    refuses(|p| p.rru[0].rru = 1e9 + 1.0, Table::RruValues, "web/t0", "at most 1e9");
    refuses(
        |p| {
            for number in 0..1001 {
                let mut row = p.reservations[0].clone();
                row.reservation_id = format!("huge-{number:04}").into();
                row.capacity_rru = 1e9;
                p.reservations.push(row);
            }
        },
        Table::Reservations,
        "huge-1000",
        "add up to at most 1e12",
    );
    refuses(
        |p| {
            let row = p.servers[0].clone();
            p.servers.extend((0..2000).map(|number| {
                let server_id = format!("more-{number}").into();
                fleet::ServerRow { server_id, ..row.clone() }
            }));
            p.rru[0].rru = 1e9;
        },
        Table::RruValues,
        "web/t0",
        "add up to at most 1e12",
    );
}

#[test]
fn the_capacity_of_an_elastic_reservation_is_ignored() {
    let snapshot = accepts(|p| p.reservations[1].capacity_rru = 1e15);
    let lent = &snapshot.reservations[world::find(&snapshot, "lent").ix()];
    assert_eq!(lent.capacity, fleet::Rru::ZERO);
}

#[test]
fn a_shared_buffer_is_of_one_type_counted_in_servers() {
    let table = Table::Reservations;
    refuses(|p| p.rru.retain(|row| &*row.reservation_id != "spare"), table, "spare", "has 0 rows");
    refuses(
        |p| {
            let mut row = p.rru[2].clone();
            row.hardware_type = "t0".into();
            p.rru.push(row);
        },
        table,
        "spare",
        "has 2 rows",
    );
    refuses(|p| p.rru[2].rru = 2.0, table, "spare", "the value 2");
    refuses(
        |p| {
            let mut row = p.reservations[2].clone();
            row.reservation_id = "spare-too".into();
            p.reservations.push(row);
            let mut value = p.rru[2].clone();
            value.reservation_id = "spare-too".into();
            p.rru.push(value);
        },
        table,
        "spare-too",
        "two shared buffers",
    );
}

#[test]
fn reserved_ids_belong_to_shared_buffers_of_that_type() {
    let rename = |p: &mut SnapshotParts, from: &str, to: &str| {
        for row in p.reservations.iter_mut().filter(|row| &*row.reservation_id == from) {
            row.reservation_id = to.into();
        }
        for row in p.rru.iter_mut().filter(|row| &*row.reservation_id == from) {
            row.reservation_id = to.into();
        }
        p.affinity.clear();
    };
    refuses(
        |p| rename(p, "web", "shared-buffer/t0"),
        Table::Reservations,
        "shared-buffer/t0",
        "reserved for shared buffers",
    );
    refuses(
        |p| rename(p, "spare", "shared-buffer/t0"),
        Table::Reservations,
        "shared-buffer/t0",
        "of \"t1\"",
    );
    accepts(|p| rename(p, "spare", "shared-buffer/t1"));
}

/// Shares are of the capacity, with an embedded buffer or without: REST says the same.
#[test]
fn shares_add_up_to_at_most_1() {
    let share = |p: &mut SnapshotParts, datacenter: &str, share: f64| {
        let mut row = p.affinity[0].clone();
        (row.datacenter, row.share) = (datacenter.into(), share);
        p.affinity.push(row);
    };
    accepts(|p| share(p, "dc1", 0.5));
    for msb_buffer in [true, false] {
        refuses(
            |p| {
                p.reservations[0].msb_buffer = msb_buffer;
                share(p, "dc1", 0.6);
            },
            Table::Affinity,
            "web",
            "may add up to at most 1",
        );
    }
}

#[test]
fn an_event_ends_after_it_began() {
    refuses(
        |p| p.unavailability[0].ended_at = Some(noon() - hours(2)),
        Table::Unavailability,
        "event-0",
        "ended_at lies before started_at",
    );
    accepts(|p| p.unavailability[0].ended_at = Some(p.unavailability[0].started_at));
}

/// A region with nothing in it breaks no rule.
#[test]
fn an_empty_region_is_valid() {
    let snapshot = World::new().build();
    assert!(snapshot.servers.is_empty() && snapshot.msbs.is_empty());
}

#[test]
fn an_error_is_a_value_that_programs_can_match() {
    let parts = valid().servers("dc9/m0", "t0", 1).parts;
    let error = RegionSnapshot::new(parts).expect_err("an id stands twice");
    assert_eq!(error.rule, Rule::Duplicate);
}

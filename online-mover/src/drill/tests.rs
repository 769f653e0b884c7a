//! Tiny towns in which servers fail.

use super::{Downtime, DrillReport, DrillSettings, drill};
use crate::outage::StormGuard;
use chrono::{DateTime, TimeDelta, Utc};
use fleet::{RegionSnapshot, ReservationRow, RruRow, ServerRow, SnapshotParts, Targets, Weights};
use std::time::Duration;

fn at(minutes: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
}

/// Web has 9 servers in three MSBs and wants 6 of them; the shared buffer has so many more.
fn region(spares: usize) -> RegionSnapshot {
    let server = |n: usize| ServerRow {
        server_id: format!("s{n:02}").into(),
        datacenter: "dc".into(),
        msb: format!("m{}", n % 3).into(),
        rack: format!("r{n}").into(),
        hardware_type: "t".into(),
        current_reservation: Some(if n < 9 { "web" } else { "shared-buffer/t" }.into()),
        target_reservation: None,
        target_pending: false,
        in_use: false,
        loaned_to: None,
        power_watts: None,
    };
    let web = ReservationRow {
        reservation_id: "web".into(),
        owner: "web".into(),
        kind: "guaranteed".into(),
        capacity_rru: 6.0,
        msb_buffer: true,
        priority: 0,
        msb_alpha: None,
        rack_alpha: None,
        affinity_theta: None,
        host_profile: None,
        replicas: None,
        replicas_per_msb: None,
    };
    let parts = SnapshotParts {
        region: "r".into(),
        taken_at: at(0),
        weights: Weights::default(),
        shared_buffer_fraction: Some(0.1),
        servers: (0..9 + spares).map(server).collect(),
        reservations: vec![web],
        rru: vec![RruRow { reservation_id: "web".into(), hardware_type: "t".into(), rru: 1.0 }],
        affinity: Vec::new(),
        allowed_datacenters: Vec::new(),
        unavailability: Vec::new(),
    };
    RegionSnapshot::new(parts).expect("a region")
}

/// Servers that fail at a minute, and for how many.
fn run(spares: usize, rows: &[(&str, i64, i64)], solve_every: Option<Duration>) -> DrillReport {
    let region = region(spares);
    let downtime = |(server, from, minutes): &(&str, i64, i64)| Downtime {
        server: region.server(server).expect("there"),
        from: at(*from),
        until: Some(at(from + minutes)),
    };
    let downtimes: Vec<Downtime> = rows.iter().map(downtime).collect();
    let settings = DrillSettings {
        until: at(600),
        settle: Duration::from_secs(60),
        move_takes: Duration::from_secs(120),
        storm_guard: StormGuard::default(),
        solve_every,
    };
    drill(&region, &downtimes, &settings, Targets::unchanged)
}

#[test]
fn a_spare_takes_the_place_and_the_repaired_server_becomes_one() {
    let report = run(1, &[("s00", 10, 60), ("s03", 100, 60)], None);
    assert_eq!((report.failures, report.replaced, report.returned), (2, 2, 2));
    // Settled for a minute, on the way for two.
    assert_eq!(report.waits, [180.0, 180.0]);
    assert_eq!(report.spares, (1, 0));
    let web = &report.reservations[0];
    assert!((web.missing - 0.1).abs() < 1e-9, "{web:?}");
    // Nine servers, three in each MSB: without any one of them the guarantee is five of six.
    assert!((web.unguaranteed - 0.1).abs() < 1e-9 && web.short == 0.0, "{web:?}");
}

#[test]
fn an_empty_buffer_owes_until_somebody_comes_back() {
    let report = run(0, &[("s00", 10, 60), ("s01", 20, 60)], None);
    assert_eq!((report.replaced, report.recovered, report.owed_most), (0, 2, 2));
    assert!((report.reservations[0].missing - 2.0).abs() < 1e-9);
    let report = run(1, &[("s00", 10, 60), ("s01", 20, 300)], None);
    // The second waits for the first to be repaired and moved: until 72, settled at 73, bound at 75.
    assert_eq!((report.replaced, report.waits[1]), (2, 55.0 * 60.0));
}

#[test]
fn a_spare_that_fails_on_its_way_is_replaced_in_turn() {
    let report = run(2, &[("s00", 10, 60), ("s09", 12, 60)], None);
    assert_eq!((report.failures, report.replaced), (1, 1));
    // Failed at 10, its spare at 12; settled at 13, bound at 15.
    assert_eq!(report.waits, [300.0]);
    assert!((report.reservations[0].missing - 5.0 / 60.0).abs() < 1e-9, "{report:?}");
}

#[test]
fn what_a_solve_has_seen_is_owed_no_more() {
    let hourly = Some(Duration::from_secs(3600));
    let report = run(0, &[("s00", 10, 600)], hourly);
    assert_eq!((report.paid, report.owed, report.solves), (1, 0, 9));
    assert!((report.reservations[0].missing - 50.0 / 60.0).abs() < 1e-9);
    assert_eq!(run(0, &[("s00", 10, 600)], None).owed, 1);
}

use super::{Downtime, ReplayReport, ReplaySettings, replay};
use crate::outage::StormGuard;
use chrono::{DateTime, TimeDelta, Utc};
use fleet::{
    PartitionColumn, RegionSnapshot, ServerRow, SnapshotParts, SurvivesRow, Targets,
    UnavailabilityKind,
};
use std::time::Duration;
use testkit::rows::{parts, reservation, rru, server, snapshot};

fn at(minutes: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
}

/// Web holds 9 servers in three MSBs and has a capacity of 6; the shared buffer has `spares` more.
fn region(spares: usize) -> RegionSnapshot {
    let servers = (0..9 + spares).map(|n| ServerRow {
        current_reservation: Some(if n < 9 { "web" } else { "shared-buffer/t" }.into()),
        ..server(&format!("s{n:02}"), ("dc", &format!("m{}", n % 3), &format!("r{n}")), "t")
    });
    snapshot(&SnapshotParts {
        taken_at: at(0),
        shared_buffer_fraction: Some(0.1),
        servers: servers.collect(),
        reservations: vec![reservation("web", 6.0)],
        rru: vec![rru("web", "t", 1.0)],
        ..parts()
    })
}

/// Replays servers that fail at a minute, for a number of minutes.
fn run(spares: usize, rows: &[(&str, i64, i64)], solve_every: Option<Duration>) -> ReplayReport {
    let region = region(spares);
    let downtime = |(server, from, minutes): &(&str, i64, i64)| Downtime {
        server: region.server(server).expect("there"),
        kind: UnavailabilityKind::RandomFailure,
        from: at(*from),
        until: Some(at(from + minutes)),
    };
    let downtimes: Vec<Downtime> = rows.iter().map(downtime).collect();
    let settings = ReplaySettings {
        until: at(600),
        settle: Duration::from_secs(60),
        move_takes: Duration::from_secs(120),
        storm_guard: StormGuard::default(),
        solve_every,
    };
    replay(&region, &downtimes, &settings, Targets::unchanged)
}

#[test]
fn repaired_server_returns_home_and_its_spare_to_the_buffer() {
    // Repaired at 70 and bound to the buffer at 72; decided at 73, at home at 75, the spare back at 77.
    let report = run(1, &[("s00", 10, 60)], None);
    assert_eq!((report.replaced, report.home, report.returned), (1, 1, 2));
    // The spare is there for the next failure, but not before it is back.
    let report = run(1, &[("s00", 10, 60), ("s01", 75, 60)], None);
    assert_eq!((report.replaced, report.waits[1]), (2, 5.0 * 60.0));
    // If it fails on its way, the spare stays until it is back.
    let report = run(1, &[("s00", 10, 60), ("s00", 74, 60)], None);
    assert_eq!((report.failures, report.home), (2, 1));
}

#[test]
fn replay_replaces_two_failures_with_one_spare() {
    let report = run(1, &[("s00", 10, 60), ("s03", 100, 60)], None);
    assert_eq!((report.failures, report.replaced, report.home, report.returned), (2, 2, 2, 4));
    // One minute until the decision, two minutes of moving.
    assert_eq!(report.waits, [180.0, 180.0]);
    assert_eq!(report.spares, (1, 0));
    let web = &report.reservations[0];
    assert!((web.missing - 0.1).abs() < 1e-9, "{web:?}");
    // Nine servers, three per MSB: with one failed, the loss of an MSB leaves five of six.
    assert!((web.unguaranteed - 0.1).abs() < 1e-9 && web.short == 0.0, "{web:?}");
}

/// Web survives the loss of a switch and not that of an MSB; six of its nine servers are behind one switch.
#[test]
fn replay_counts_what_is_not_guaranteed_by_domain() {
    let mut parts = region(2).to_parts();
    parts.reservations.iter_mut().filter(|of| &*of.reservation_id == "web").for_each(|of| {
        (of.msb_buffer, of.capacity_rru) = (false, 3.0);
    });
    // The spares are s09, behind the same switch, and s10, behind another.
    let domain = |n: usize| if n < 6 || n == 9 { "left" } else { "right" };
    let domains = (0..11).map(|n| (format!("s{n:02}").into(), domain(n).into()));
    let switch = PartitionColumn { name: "switch".into(), domains: domains.collect() };
    parts.crossing.partitions.push(switch);
    let web = SurvivesRow { reservation_id: "web".into(), partition: "switch".into() };
    parts.crossing.survives.push(web);
    let region = snapshot(&parts);
    // Failed from 10 on; s10 is there at 13. Without the other switch, two of three are left until then.
    let downtime = Downtime {
        server: region.server("s08").expect("there"),
        kind: UnavailabilityKind::RandomFailure,
        from: at(10),
        until: None,
    };
    let settings = ReplaySettings {
        until: at(600),
        settle: Duration::from_secs(60),
        move_takes: Duration::from_secs(120),
        storm_guard: StormGuard::default(),
        solve_every: None,
    };
    let report = replay(&region, &[downtime], &settings, Targets::unchanged);
    assert_eq!(report.replaced, 1);
    let web = &report.reservations[0];
    assert!((web.unguaranteed - 3.0 / 60.0).abs() < 1e-9 && web.short == 0.0, "{web:?}");
}

#[test]
fn replay_with_empty_buffer_waits_for_repairs() {
    let report = run(0, &[("s00", 10, 60), ("s01", 20, 60)], None);
    assert_eq!((report.replaced, report.recovered, report.owed_most), (0, 2, 2));
    assert!((report.reservations[0].missing - 2.0).abs() < 1e-9);
    let report = run(1, &[("s00", 10, 60), ("s01", 20, 300)], None);
    // The second failure waits until the first server is repaired and moved (72), decided (73) and bound (75).
    assert_eq!((report.replaced, report.waits[1]), (2, 55.0 * 60.0));
}

#[test]
fn replay_replaces_a_spare_that_fails_on_its_way() {
    let report = run(2, &[("s00", 10, 60), ("s09", 12, 60)], None);
    assert_eq!((report.failures, report.replaced), (1, 1));
    // Failed at 10, the spare at 12; decided at 13, bound at 15.
    assert_eq!(report.waits, [300.0]);
    assert!((report.reservations[0].missing - 5.0 / 60.0).abs() < 1e-9, "{report:?}");
}

#[test]
fn replay_settles_failures_seen_by_a_solve() {
    let hourly = Some(Duration::from_secs(3600));
    let report = run(0, &[("s00", 10, 600)], hourly);
    assert_eq!((report.paid, report.owed, report.solves), (1, 0, 9));
    assert!((report.reservations[0].missing - 50.0 / 60.0).abs() < 1e-9);
    assert_eq!(run(0, &[("s00", 10, 600)], None).owed, 1);
}

/// 120 servers in three MSBs of 40, in racks of ten; web holds 90 of them and the rest are spares.
fn town() -> RegionSnapshot {
    let mut parts = region(0).to_parts();
    let template = parts.servers.remove(0);
    let server = |n: usize| ServerRow {
        server_id: format!("s{n:03}").into(),
        msb: format!("m{}", n / 40).into(),
        rack: format!("r{}", n / 10).into(),
        current_reservation: Some(if n % 4 == 3 { "shared-buffer/t" } else { "web" }.into()),
        ..template.clone()
    };
    parts.servers = (0..120).map(server).collect();
    RegionSnapshot::new(parts).expect("a region")
}

fn ninety_days(
    rows: impl Iterator<Item = (usize, UnavailabilityKind, i64, Option<i64>)>,
) -> ReplayReport {
    let town = town();
    let downtime = |(number, kind, from, until): (usize, UnavailabilityKind, i64, Option<i64>)| {
        let server = town.server(&format!("s{number:03}")).expect("there");
        Downtime { server, kind, from: at(from), until: until.map(at) }
    };
    let downtimes: Vec<Downtime> = rows.map(downtime).collect();
    let settings = ReplaySettings {
        until: at(90 * 24 * 60),
        settle: Duration::from_secs(1),
        move_takes: Duration::from_secs(30),
        storm_guard: StormGuard::default(),
        solve_every: None,
    };
    replay(&town, &downtimes, &settings, Targets::unchanged)
}

#[test]
fn replay_ends_a_storm_although_the_msb_stays_down() {
    use UnavailabilityKind::RandomFailure;
    let report = ninety_days((0..40).map(|n| (n, RandomFailure, 60, None)));
    assert_eq!(report.storms, 1);
    assert!((1.9..2.2).contains(&report.lost_hours), "{}", report.lost_hours);
    // Then the twenty spares in the other MSBs replace failures.
    assert_eq!((report.failures, report.replaced, report.owed), (30, 20, 10));
}

#[test]
fn replay_of_single_failures_has_no_storm() {
    use UnavailabilityKind::RandomFailure;
    let report = ninety_days((0..40).map(|n| (n, RandomFailure, 60 * n as i64, None)));
    assert_eq!((report.storms, report.lost_hours), (0, 0.0));
}

#[test]
fn replay_counts_no_maintenance_as_failure() {
    use UnavailabilityKind::{CorrelatedFailure, PlannedMaintenance};
    let report = ninety_days((0..40).map(|n| (n, PlannedMaintenance, 60, Some(120))));
    assert_eq!((report.failures, report.storms, report.maintenance), (0, 0, 40));
    assert!(report.reservations[0].missing == 0.0 && report.reservations[0].short == 0.0);
    // An event that reports a shared device is believed while it lasts.
    let report = ninety_days([(0, CorrelatedFailure, 60, Some(360))].into_iter());
    assert_eq!((report.storms, report.replaced), (1, 0));
    assert!((report.lost_hours - 5.0).abs() < 0.01, "{}", report.lost_hours);
}

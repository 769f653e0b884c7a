//! Summaries say what counting by hand says.
#![cfg(feature = "summaries")]
use crate::common::{small, small_snapshot};
use datasets::summary::{
    MovesOf, SizeClass, TypeInMsb, TypeSummary, moves_by_reservation, requests_by_size,
    servers_by_type, servers_by_type_and_msb,
};
use fleet::{RegionSnapshot, Rru, Targets};

#[test]
fn servers() {
    let snapshot = small_snapshot();
    let row = |hardware_type: &str, msb: &str, servers, available| TypeInMsb {
        hardware_type: hardware_type.into(),
        msb: msb.into(),
        servers,
        available,
    };
    // Server 4 is down; MSB 3 is under maintenance, which is usable.
    let expected = [
        row("big", "msb0", 2, 2),
        row("big", "msb1", 1, 0),
        row("big", "msb2", 2, 2),
        row("big", "msb3", 1, 1),
        row("small", "msb0", 1, 1),
        row("small", "msb1", 2, 2),
        row("small", "msb2", 1, 1),
        row("small", "msb3", 2, 2),
    ];
    assert_eq!(servers_by_type_and_msb(&snapshot).unwrap(), expected);
    let row = |hardware_type: &str, available, held| TypeSummary {
        hardware_type: hardware_type.into(),
        servers: 6,
        available,
        held,
        in_use: 1,
        msbs: 4,
        largest_msb: 2,
    };
    // Server 2 is on its way out of web, server 3 on its way to cache.
    let expected = [row("big", 5, 1), row("small", 6, 2)];
    assert_eq!(servers_by_type(&snapshot).unwrap(), expected);
}

#[test]
fn requests() {
    let mut parts = small();
    parts.reservations[1].capacity_rru = 10.0;
    let class = |at_least, below, requested, eligible_types| SizeClass {
        at_least,
        below,
        reservations: 1,
        requested: Rru::from_f64(requested).unwrap(),
        eligible_types,
    };
    let snapshot = RegionSnapshot::new(parts.clone()).unwrap();
    let expected = [class(1.0, 10.0, 2.958984, 2.0), class(10.0, 100.0, 10.0, 1.0)];
    assert_eq!(requests_by_size(&snapshot).unwrap(), expected);
    parts.reservations[1].capacity_rru = 0.0;
    let snapshot = RegionSnapshot::new(parts).unwrap();
    let expected = [class(0.0, 0.0, 0.0, 1.0), class(1.0, 10.0, 2.958984, 2.0)];
    assert_eq!(requests_by_size(&snapshot).unwrap(), expected);
}

#[test]
fn moves() {
    let snapshot = small_snapshot();
    let unchanged = Targets::unchanged(&snapshot);
    assert_eq!(moves_by_reservation(&snapshot, &unchanged).unwrap(), []);
    // Both servers of web leave, one of them for cache; nothing else changes.
    let mut holders = unchanged.holders().to_vec();
    holders[0] = None;
    holders[1] = snapshot.reservation("cache");
    let targets = Targets::new(&snapshot, holders);
    let row = |reservation: Option<&str>, before, leave_in_use, arrive| MovesOf {
        reservation: reservation.map(Into::into),
        before,
        leave_in_use,
        leave_idle: 0,
        arrive,
    };
    let expected = [row(None, 9, 0, 1), row(Some("cache"), 1, 0, 1), row(Some("web"), 2, 2, 0)];
    let found = moves_by_reservation(&snapshot, &targets).unwrap();
    assert_eq!(found, expected);
    assert_eq!(found.iter().map(MovesOf::after).collect::<Vec<_>>(), [10, 2, 0]);
}

#[test]
fn an_empty_region() {
    let mut parts = small();
    parts.servers.clear();
    parts.reservations.clear();
    parts.rru.clear();
    parts.affinity.clear();
    parts.allowed_datacenters.clear();
    parts.unavailability.clear();
    parts.ahead.budgets.clear();
    let snapshot = RegionSnapshot::new(parts).unwrap();
    assert_eq!(servers_by_type(&snapshot).unwrap(), []);
    assert_eq!(servers_by_type_and_msb(&snapshot).unwrap(), []);
    assert_eq!(requests_by_size(&snapshot).unwrap(), []);
    assert_eq!(moves_by_reservation(&snapshot, &Targets::unchanged(&snapshot)).unwrap(), []);
}

//! Ten days on which real reservations changed size, solved in a chain: only what has to move does.
//!
//! The data lies beside the project, not in it. Where it is absent these tests are reported as ignored, by name.

use chrono::{DateTime, TimeDelta};
use datasets::import::{ImportOptions, change_requests, import_csv};
use fleet::{RegionSnapshot, Rru, SHARED_BUFFER_FRACTION_DEFAULT};
use scenarios::{data, solve};
use std::path::Path;

/// Each change day, and the fewest servers that must leave a reservation on it: what reservations
/// shrink by.
const DAYS: [(u32, usize); 10] = [
    (6, 10),
    (97, 18),
    (111, 16),
    (121, 16),
    (137, 0),
    (142, 12),
    (146, 13),
    (154, 0),
    (156, 5),
    (175, 1),
];

/// Solves each day on what the day before left: how many servers left a reservation on each, and
/// what is short on it.
fn chain(folder: &Path, in_use: bool, shared_buffer: f64) -> (Vec<usize>, Vec<Rru>) {
    let changes = folder.join("request_changes.csv");
    let (mut parts, _) = import_csv(&ImportOptions {
        requests: Some(folder.join("requests.csv")),
        request_changes: Some((changes.clone(), 0)),
        shared_buffer_fraction: Some(shared_buffer),
        ..ImportOptions::new("helios-venus", folder.join("servers.csv"), DateTime::UNIX_EPOCH)
    })
    .expect("the data is as its README says");
    let (mut left, mut short) = (Vec::new(), Vec::new());
    for day in std::iter::once(0).chain(DAYS.map(|(day, _)| day)) {
        if day > 0 {
            change_requests(&mut parts, None, Some((&changes, day))).expect("the day is there");
            parts.taken_at += TimeDelta::days(1);
        }
        let snapshot = RegionSnapshot::new(parts).expect("a valid region");
        let solved = solve(&snapshot);
        assert_eq!(solved.objections, [] as [String; 0], "day {day}");
        left.push(solved.audit.moves.in_use + solved.audit.moves.idle);
        short.push(solved.audit.shortfall);
        parts = solved.targets.apply(&snapshot);
        for server in parts.servers.iter_mut().filter(|row| row.current_reservation.is_some()) {
            server.in_use = in_use;
        }
    }
    (left, short)
}

#[test]
#[cfg_attr(not(shared_data), ignore = "../shared/data is not beside the project")]
fn ten_change_days_move_what_they_must() {
    let folder = data("helios_venus");
    let forced: Vec<usize> = std::iter::once(0).chain(DAYS.map(|(_, moves)| moves)).collect();
    assert_eq!(forced.iter().sum::<usize>(), 91);
    for in_use in [true, false] {
        let (left, short) = chain(&folder, in_use, 0.0);
        assert_eq!(left, forced, "in use: {in_use}");
        assert_eq!(short, [Rru::ZERO; 11], "in use: {in_use}");
    }
}

/// On day 137 the reservations ask for all 158 servers, and three of those are the shared buffer.
#[test]
#[cfg_attr(not(shared_data), ignore = "../shared/data is not beside the project")]
fn a_shared_buffer_costs_no_moves() {
    let folder = data("helios_venus");
    let forced: Vec<usize> = std::iter::once(0).chain(DAYS.map(|(_, moves)| moves)).collect();
    let (left, short) = chain(&folder, true, SHARED_BUFFER_FRACTION_DEFAULT);
    assert_eq!(left, forced);
    let day_137 = 1 + DAYS.iter().position(|&(day, _)| day == 137).expect("a change day");
    let expected = (0..11).map(|at| if at == day_137 { Rru::units(3) } else { Rru::ZERO });
    assert_eq!(short, expected.collect::<Vec<_>>());
}

//! Imports of the real data sets beside the project: what their READMEs say is what is read.
//!
//! Where they are absent these tests are reported as ignored, by name.
#![allow(clippy::unwrap_used)]

use chrono::{DateTime, Utc};
use datasets::import::{ImportOptions, ImportSummary, import_csv, parse_instant};
use datasets::{read_snapshot, write_snapshot};
use fleet::{RegionSnapshot, Rru};
use scenarios::data;

/// What the Google trace counts from.
fn epoch() -> DateTime<Utc> {
    "2019-05-01T00:00:00Z".parse().unwrap()
}

/// What an error says, causes included.
fn said(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// Imports, and takes the region through Parquet.
fn imported(options: &ImportOptions) -> (RegionSnapshot, ImportSummary) {
    let (parts, summary) = import_csv(options).unwrap_or_else(|error| panic!("{}", said(&error)));
    println!("{summary}");
    let snapshot = RegionSnapshot::new(parts).unwrap();
    let dir = tempfile::tempdir().unwrap();
    write_snapshot(&dir.path().join("s"), &snapshot).unwrap();
    assert_eq!(read_snapshot(&dir.path().join("s")).unwrap(), snapshot);
    (snapshot, summary)
}

#[test]
#[cfg_attr(not(shared_data), ignore = "../shared/data is not beside the project")]
fn google2019_cell_a() {
    let dir = data("google2019_cell_a");
    let mut options = ImportOptions {
        requests: Some(dir.join("requests_hybrid.csv")),
        ..ImportOptions::new("google2019_cell_a", dir.join("servers.csv"), epoch())
    };
    let (snapshot, summary) = imported(&options);
    assert_eq!(snapshot.servers.len(), 10_001);
    assert_eq!((summary.datacenters, summary.msbs, summary.racks), (3, 36, 261));
    assert_eq!((summary.hardware_types, summary.reservations, summary.with_buffer), (12, 16, 16));

    options.msb_column = "msb_mixed".to_owned();
    let (snapshot, _) = imported(&options);
    assert_eq!(
        (snapshot.msbs.len(), snapshot.racks.len(), snapshot.datacenters.len()),
        (36, 261, 1)
    );

    options.msb_column = "msb".to_owned();
    options.events = vec![dir.join("events_day00_13.csv")];
    options.taken_at = parse_instant("604800", Some(epoch())).unwrap();
    options.as_of = true;
    options.log.epoch = Some(epoch());
    let (snapshot, summary) = imported(&options);
    assert_eq!(summary.servers + summary.not_seen_yet + summary.gone, 10_001);
    let down = snapshot.servers.iter().filter(|server| !server.available).count();
    assert_eq!(down, summary.events_active, "no server is down twice at once");
    let share = down as f64 / snapshot.servers.len() as f64;
    assert!(down > 0 && share < 0.0201, "{share} of the fleet is down; its largest is 2.01 %");
}

#[test]
#[cfg_attr(not(shared_data), ignore = "../shared/data is not beside the project")]
fn alibaba_gpu_v2023() {
    let dir = data("alibaba_gpu_v2023");
    let mut options = ImportOptions {
        requests: Some(dir.join("requests.csv")),
        ..ImportOptions::new("alibaba_gpu_v2023", dir.join("servers.csv"), epoch())
    };
    assert!(said(&import_csv(&options).unwrap_err()).contains("a topology file can say it"));
    options.topology = Some(dir.join("topology_synthetic.csv"));
    let (snapshot, summary) = imported(&options);
    assert_eq!(snapshot.servers.len(), 1_523);
    assert_eq!((summary.datacenters, summary.msbs), (3, 12));
    assert_eq!((summary.hardware_types, summary.reservations), (27, 40));
    // The whole static demand is 1,028 T4 GPUs; the requests are 0.7 of it.
    options.scale_requests = 1.0 / 0.7;
    let (snapshot, _) = imported(&options);
    let t4: Rru = (snapshot.reservations.iter())
        .filter(|r| r.id.starts_with("T4/"))
        .map(|r| r.capacity)
        .sum();
    assert_eq!(t4.to_f64().round(), 1028.0);
}

#[test]
#[cfg_attr(not(shared_data), ignore = "../shared/data is not beside the project")]
fn helios_venus() {
    let dir = data("helios_venus");
    let mut options = ImportOptions {
        requests: Some(dir.join("requests.csv")),
        ..ImportOptions::new("helios_venus", dir.join("servers.csv"), epoch())
    };
    let (snapshot, summary) = imported(&options);
    assert_eq!((snapshot.servers.len(), summary.reservations, summary.with_buffer), (158, 16, 0));
    assert_eq!((summary.msbs, summary.racks), (1, 1));
    // The sum of shrinkages over the change days: the fewest servers that must move.
    let days = [0, 6, 97, 111, 121, 137, 142, 146, 154, 156, 175];
    let mut before: Option<RegionSnapshot> = None;
    let mut shrunk = Vec::new();
    for day in days {
        options.request_changes = Some((dir.join("request_changes.csv"), day));
        let (after, _) = imported(&options);
        if let Some(before) = &before {
            let less = before.reservations.iter().filter(|r| !r.made).map(|old| {
                let new = &after.reservations[after.reservation(&old.id).unwrap().ix()];
                (old.capacity - new.capacity).or_zero()
            });
            shrunk.push(less.sum::<Rru>());
        }
        before = Some(after);
    }
    let expected = [10, 18, 16, 16, 0, 12, 13, 0, 5, 1].map(Rru::units);
    assert_eq!(shrunk, expected);
}

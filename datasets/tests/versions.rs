//! Snapshots are written in version 2 of the format, and version 1 is still read.

use crate::common::{self, said, small};
use datasets::schema::{RESERVATIONS, SNAPSHOT_1_TABLES};
use datasets::{read_parts, read_snapshot, write_parts};
use fleet::{AffinityRow, AllowedDatacenterRow, SnapshotParts, UnavailabilityRow};
use std::path::Path;

/// What version 1 can say of the small region.
fn small_1() -> SnapshotParts {
    let mut parts = small();
    parts.allowed_datacenters.clear();
    parts.ahead = fleet::AheadParts::default();
    for row in &mut parts.reservations {
        (row.replicas, row.replicas_per_msb) = (None, None);
    }
    // Work of which nothing is said cannot be recalled.
    for row in &mut parts.unavailability {
        row.recall_minutes = None;
    }
    parts
}

/// Makes a folder say that it is of version 1.
fn call_version_1(dir: &Path) {
    let file = dir.join("region.json");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"ras-snapshot/2\""), "{text}");
    std::fs::write(&file, text.replace("ras-snapshot/2", "ras-snapshot/1")).unwrap();
}

/// The small region as version 1 wrote it.
fn write_version_1(dir: &Path) {
    write_parts(dir, &small()).unwrap();
    for schema in SNAPSHOT_1_TABLES {
        common::rewrite(dir, schema, |name, array| {
            let known = schema.columns.iter().any(|column| column.name == name);
            known.then(|| (name.to_owned(), array)).into_iter().collect()
        });
    }
    std::fs::remove_file(dir.join("allowed_datacenters.parquet")).unwrap();
    std::fs::remove_file(dir.join("move_budgets.parquet")).unwrap();
    call_version_1(dir);
}

#[test]
fn version_1_is_still_read() {
    let dir = tempfile::tempdir().unwrap();
    write_version_1(dir.path());
    assert_eq!(read_parts(dir.path()).unwrap(), small_1());
    read_snapshot(dir.path()).unwrap();
}

#[test]
fn the_region_that_comes_with_the_project_is_of_version_1() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/small-region");
    let text = std::fs::read_to_string(dir.join("region.json")).unwrap();
    assert!(text.contains("\"ras-snapshot/1\""), "{text}");
    let region = read_snapshot(&dir).unwrap();
    assert!(region.reservations.iter().all(|r| r.allowed_datacenters.is_empty()));
    assert!(region.reservations.iter().all(|r| r.replica_rule.is_none()));
}

/// Version 1 says that further columns and files are ignored, under any name.
#[test]
fn what_version_2_adds_means_nothing_in_a_folder_of_version_1() {
    let dir = tempfile::tempdir().unwrap();
    write_parts(dir.path(), &small()).unwrap();
    call_version_1(dir.path());
    assert_eq!(read_parts(dir.path()).unwrap(), small_1());
}

#[test]
fn a_folder_of_version_1_is_replaced_by_one_of_version_2() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("region");
    write_version_1(&dir);
    write_parts(&dir, &read_parts(&dir).unwrap()).unwrap();
    let text = std::fs::read_to_string(dir.join("region.json")).unwrap();
    assert!(text.contains("\"ras-snapshot/2\""), "{text}");
    assert_eq!(read_parts(&dir).unwrap(), small_1());
}

/// Version 1 counted the embedded buffer in: shares of a reservation that has one were up to 2 in all.
#[test]
fn shares_of_version_1_above_1_are_read_in_proportion() {
    let share = |reservation: &str, datacenter: &str, share: f64| AffinityRow {
        reservation_id: reservation.into(),
        datacenter: datacenter.into(),
        share,
    };
    let read = |shares: &[AffinityRow]| {
        let dir = tempfile::tempdir().unwrap();
        let mut parts = small();
        parts.affinity = shares.to_vec();
        parts.allowed_datacenters.clear();
        write_parts(dir.path(), &parts).unwrap();
        call_version_1(dir.path());
        let read = read_snapshot(dir.path()).map(|_| read_parts(dir.path()).unwrap().affinity);
        read.map_err(|error| said(&error).replace(&dir.path().display().to_string(), "DIR"))
    };
    // `web` has a buffer. Half as much again is wanted; of its capacity that is half and half.
    let wide = [share("web", "dc0", 0.75), share("web", "dc1", 0.75)];
    let halves = [share("web", "dc0", 0.5), share("web", "dc1", 0.5)];
    assert_eq!(read(&wide).unwrap(), halves);
    // Shares that are no more than all stay as they are.
    let kept = [share("web", "dc0", 0.3), share("cache", "dc1", 0.7)];
    assert_eq!(read(&kept).unwrap(), kept);
    // What version 1 refused is refused.
    let most = "the shares add up to";
    let row = "DIR/affinity.parquet: row";
    let twice = [share("web", "dc0", 1.0), share("web", "dc1", 1.0), share("web", "dc9", 0.25)];
    let text = format!("{row} \"web\": {most} 2.25; they may add up to at most 2");
    assert_eq!(read(&twice).unwrap_err(), text);
    let plain = [share("cache", "dc0", 1.0), share("cache", "dc1", 0.5)];
    let text = format!("{row} \"cache\": {most} 1.5; they may add up to at most 1");
    assert_eq!(read(&plain).unwrap_err(), text);
}

/// What reading says of the small region with other rows.
fn refusal_of(change: impl FnOnce(&mut SnapshotParts)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut parts = small();
    change(&mut parts);
    write_parts(dir.path(), &parts).unwrap();
    let text = said(&read_snapshot(dir.path()).expect_err("a rule is broken"));
    text.replace(&dir.path().display().to_string(), "DIR")
}

#[test]
fn bad_rows_are_refused_with_file_row_and_rule() {
    let allow = |parts: &mut SnapshotParts, reservation: &str, datacenter: &str| {
        let (reservation_id, datacenter) = (reservation.into(), datacenter.into());
        parts.allowed_datacenters.push(AllowedDatacenterRow { reservation_id, datacenter });
    };
    let file = "DIR/allowed_datacenters.parquet";
    assert_eq!(
        refusal_of(|parts| allow(parts, "web", "dc9")),
        format!(
            "{file}: row \"web/dc9\": datacenter names \"dc9\", which is not in servers.parquet"
        )
    );
    assert_eq!(
        refusal_of(|parts| allow(parts, "wbe", "dc0")),
        format!(
            "{file}: row \"wbe/dc0\": reservation_id names \"wbe\", which is not in \
             reservations.parquet"
        )
    );
    assert_eq!(
        refusal_of(|parts| allow(parts, "cache", "dc1")),
        format!("{file}: row \"cache/dc1\": the id appears in more than one row")
    );
    assert_eq!(
        refusal_of(|parts| allow(parts, "batch", "dc1")),
        format!(
            "{file}: row \"batch/dc1\": only a guaranteed reservation may have allowed \
             datacenters; this one is elastic"
        )
    );
    assert_eq!(
        refusal_of(|parts| parts.allowed_datacenters[0].datacenter = "dc0".into()),
        "DIR/affinity.parquet: row \"cache/dc1\": a share of 0.7 is wanted in datacenter \"dc1\", \
         which is not allowed"
    );
    let planned = |row: &UnavailabilityRow| &*row.kind == "planned_maintenance";
    let refused = refusal_of(|parts| {
        let row = parts.unavailability.iter_mut().find(|row| planned(row)).expect("work");
        row.recall_minutes = Some(-1);
    });
    let said = "recall_minutes is -1; it must be at least 0, or null where work cannot be recalled";
    assert!(refused.ends_with(said), "{refused}");
    assert_eq!(
        refusal_of(|parts| {
            let more = AffinityRow { datacenter: "dc0".into(), ..parts.affinity[0].clone() };
            parts.allowed_datacenters.clear();
            parts.affinity.push(more);
        }),
        "DIR/affinity.parquet: row \"cache\": the shares add up to 1.4; they may add up to at most 1"
    );
    let rule = |row: usize, replicas: Option<i32>, per_msb: Option<i32>| {
        refusal_of(|parts| {
            parts.reservations[row].replicas = replicas;
            parts.reservations[row].replicas_per_msb = per_msb;
        })
    };
    let row = format!("DIR/{}: row \"web\"", RESERVATIONS.file);
    let alone = format!("{row}: replicas and replicas_per_msb must both be given, or neither");
    assert_eq!(rule(3, Some(3), None), alone);
    assert_eq!(rule(3, None, Some(1)), alone);
    assert_eq!(
        rule(3, Some(3), Some(4)),
        format!("{row}: replicas_per_msb is 4; it must be 1 to 3, the number of replicas")
    );
    assert_eq!(
        rule(3, Some(3), Some(0)),
        format!("{row}: replicas_per_msb is 0; it must be 1 to 3, the number of replicas")
    );
    assert_eq!(rule(3, Some(0), Some(0)), format!("{row}: replicas is 0; it must be 1 to 1000"));
    assert_eq!(
        rule(2, Some(3), Some(1)),
        format!(
            "DIR/{}: row \"spare\": only a guaranteed reservation may have a replica rule; this \
             one is shared_buffer",
            RESERVATIONS.file
        )
    );
}

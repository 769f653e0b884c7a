//! Every broken folder is refused, with file, row and rule; nothing is overwritten by mistake.

use crate::common::{self, bytes_of, midnight, said, small, small_snapshot};
use arrow_array::{
    Array, ArrayRef, Float32Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray, TimestampNanosecondArray,
};
use datasets::schema::{
    ASSIGNMENT, RESERVATIONS, RESULT_FORMAT, RRU, SERVERS, SNAPSHOT_TABLES, TableSchema,
    UNAVAILABILITY,
};
use datasets::{
    read_assignment, read_report, read_snapshot, write_parts, write_result, write_snapshot,
};
use fleet::{SnapshotParts, Targets};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// What reading says of the small region after `damage`.
fn refusal(damage: impl FnOnce(&Path)) -> String {
    let dir = tempfile::tempdir().unwrap();
    write_parts(dir.path(), &small()).unwrap();
    read_snapshot(dir.path()).expect("a good snapshot");
    damage(dir.path());
    let error = read_snapshot(dir.path()).expect_err("a damaged snapshot was read");
    let text = said(&error);
    let folder = dir.path().display().to_string();
    assert!(text.starts_with(&folder), "{text}");
    text.replace(&folder, "DIR")
}

/// What reading says of other rows, written in good order.
fn refusal_of(change: impl FnOnce(&mut SnapshotParts)) -> String {
    refusal(|dir| {
        let mut parts = small();
        change(&mut parts);
        write_parts(dir, &parts).unwrap();
    })
}

/// What reading says when one column is another.
fn refusal_with(schema: &TableSchema, column: &str, make: impl Fn(ArrayRef) -> ArrayRef) -> String {
    refusal(|dir| {
        common::rewrite(dir, schema, |name, array| {
            vec![(name.to_owned(), if name == column { make(array) } else { array })]
        });
    })
}

#[test]
fn missing_files() {
    for file in SNAPSHOT_TABLES.iter().map(|table| table.file).chain(["region.json"]) {
        let text = refusal(|dir| std::fs::remove_file(dir.join(file)).unwrap());
        assert!(text.starts_with(&format!("DIR/{file}: cannot be read: No such file")), "{text}");
    }
    let error = read_snapshot(Path::new("/no/such/folder")).unwrap_err();
    assert!(said(&error).starts_with("/no/such/folder/region.json: cannot be read"));
    let text = refusal(|dir| {
        std::fs::remove_file(dir.join("rru.parquet")).unwrap();
        std::fs::create_dir(dir.join("rru.parquet")).unwrap();
    });
    assert!(text.starts_with("DIR/rru.parquet: cannot be read: is a directory"), "{text}");
}

#[test]
fn truncated_and_foreign_files() {
    for table in SNAPSHOT_TABLES {
        for share in [0, 1, 50, 99] {
            let text = refusal(|dir| {
                let bytes = std::fs::read(dir.join(table.file)).unwrap();
                std::fs::write(dir.join(table.file), &bytes[..bytes.len() * share / 100]).unwrap();
            });
            let start = format!("DIR/{}: is not a whole, undamaged Parquet file: ", table.file);
            assert!(text.starts_with(&start), "{text}");
        }
        let text = refusal(|dir| std::fs::write(dir.join(table.file), "server_id\ns00\n").unwrap());
        assert!(text.contains("is not a whole, undamaged Parquet file"), "{text}");
    }
}

#[test]
fn missing_and_doubled_columns() {
    for table in SNAPSHOT_TABLES {
        for column in table.columns {
            let text = refusal(|dir| {
                common::rewrite(dir, table, |name, array| {
                    let kept = (name != column.name).then(|| (name.to_owned(), array));
                    kept.into_iter().collect()
                });
            });
            let expected = format!(
                "DIR/{}: has 0 columns {:?} ({}); it must have exactly one",
                table.file, column.name, column.kind
            );
            assert_eq!(text, expected);
        }
    }
    let text = refusal(|dir| {
        common::rewrite(dir, &RRU, |name, array| {
            let copies = if name == "rru" { 2 } else { 1 };
            vec![(name.to_owned(), array); copies]
        });
    });
    assert!(text.contains("has 2 columns \"rru\" (float64)"), "{text}");
}

#[test]
fn wrong_types() {
    let text = refusal_with(&RESERVATIONS, "priority", |array| {
        Arc::new(Int64Array::from(vec![0; array.len()]))
    });
    assert_eq!(
        text,
        "DIR/reservations.parquet: column \"priority\" is of type Int64; it must be int32"
    );
    let text = refusal_with(&SERVERS, "power_watts", |array| {
        Arc::new(Float32Array::from(vec![1.0; array.len()]))
    });
    assert!(text.ends_with("\"power_watts\" is of type Float32; it must be float64"), "{text}");
    let text = refusal_with(&SERVERS, "in_use", |array| {
        Arc::new(StringArray::from(vec!["true"; array.len()]))
    });
    assert!(text.ends_with("column \"in_use\" is of type Utf8; it must be bool"), "{text}");
    let text =
        refusal_with(&SERVERS, "rack", |array| Arc::new(Int64Array::from(vec![7; array.len()])));
    assert!(text.ends_with("column \"rack\" is of type Int64; it must be string"), "{text}");
    for array in [
        // Whose midnight?
        Arc::new(TimestampMicrosecondArray::from(vec![0; 4])) as ArrayRef,
        Arc::new(TimestampMicrosecondArray::from(vec![0; 4]).with_timezone("Europe/Paris")),
    ] {
        let text = refusal_with(&UNAVAILABILITY, "started_at", |_| array.clone());
        assert!(text.contains("column \"started_at\" is of type Timestamp("), "{text}");
        assert!(text.ends_with("it must be timestamp(us, UTC)"), "{text}");
    }
    let text =
        refusal_with(&SERVERS, "msb", |array| Arc::new(arrow_array::NullArray::new(array.len())));
    assert!(text.ends_with("column \"msb\" is of type Null; it must be string"), "{text}");
}

#[test]
fn nulls_where_none_may_be() {
    let text = refusal_with(&RRU, "rru", |_| {
        Arc::new(Float64Array::from(vec![Some(1.0), Some(1.0), None, Some(1.0)]))
    });
    assert_eq!(text, "DIR/rru.parquet: row \"web/big\": rru is null; it must have a value");
    let text = refusal_with(&SERVERS, "hardware_type", |array| {
        let types = (0..array.len()).map(|row| (row != 6).then_some("big"));
        Arc::new(types.collect::<StringArray>())
    });
    assert!(text.ends_with("row \"s06\": hardware_type is null; it must have a value"), "{text}");
    // A row without an id is named by its number.
    let text = refusal_with(&SERVERS, "server_id", |array| {
        let ids = (0..array.len()).map(|row| (row != 6).then(|| format!("s{row}")));
        Arc::new(ids.collect::<StringArray>())
    });
    assert!(text.ends_with("row \"number 7\": server_id is null; it must have a value"), "{text}");
}

#[test]
fn times_that_cannot_be_held() {
    let text = refusal_with(&UNAVAILABILITY, "ended_at", |_| {
        let nanos = vec![None, Some(1_000), Some(1_001), None];
        Arc::new(TimestampNanosecondArray::from(nanos).with_timezone("UTC"))
    });
    assert!(
        text.starts_with(
            "DIR/unavailability.parquet: row \"e3\": ended_at is 1001 nanoseconds since 1970; it \
             must be whole microseconds"
        ),
        "{text}"
    );
    let text = refusal_with(&UNAVAILABILITY, "started_at", |_| {
        Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX; 4]).with_timezone("UTC"))
    });
    assert!(text.contains("row \"e1\": started_at is 9223372036854775807 microseconds"), "{text}");
}

#[test]
fn region_json() {
    let with = |text: &str| {
        let text = text.to_owned();
        refusal(move |dir| std::fs::write(dir.join("region.json"), text).unwrap())
    };
    let member = |member: &str| {
        with(&format!(
            r#"{{"format": "ras-snapshot/2", "region": "r", "taken_at": "2026-01-01T00:00:00Z",
            {member}}}"#
        ))
    };
    assert!(with("").starts_with("DIR/region.json: is not the expected JSON: EOF"));
    assert!(with("{}").contains("missing field `format`"));
    assert!(with("[1]").contains("DIR/region.json: is not the expected JSON"));
    assert_eq!(
        with(r#"{"format": "ras-snapshot/4", "regions": []}"#),
        "DIR/region.json: format is \"ras-snapshot/4\"; this reads \"ras-snapshot/3\" or \
         \"ras-snapshot/2\" or \"ras-snapshot/1\""
    );
    assert!(with(r#"{"format": "ras-snapshot/1"}"#).contains("missing field `region`"));
    assert!(
        with(r#"{"format": "ras-snapshot/1", "region": "r", "taken_at": "noon"}"#)
            .contains("DIR/region.json: is not the expected JSON: ")
    );
    assert!(member(r#""weights": {"tau": 1}"#).contains("unknown field `tau`"));
    assert!(member(r#""weights": {"move_idle": "high"}"#).contains("invalid type: string"));
    assert!(member(r#""weights": {"move_idle": 1e999}"#).contains("number out of range"));
    assert_eq!(
        member(r#""weights": {"move_idle": -1}"#),
        "DIR/region.json: row \"r\": weights.move_idle is -1; it must be finite and not negative"
    );
    assert!(member(r#""weights": {"msb_alpha": 1.5}"#).contains("weights.msb_alpha is 1.5; it"));
    assert!(member(r#""shared_buffer_fraction": 1"#).contains("shared_buffer_fraction is 1; it"));
    assert!(
        refusal(|dir| std::fs::write(dir.join("region.json"), b"\xff\xfe").unwrap())
            .starts_with("DIR/region.json: cannot be read: stream did not contain valid UTF-8")
    );
}

#[test]
fn rules_between_rows() {
    let check = |change: &dyn Fn(&mut SnapshotParts), expected: &str| {
        assert_eq!(refusal_of(change), format!("DIR/{expected}"));
    };
    check(
        &|parts| parts.servers[3].server_id = "s04".into(),
        "servers.parquet: row \"s04\": the id appears in more than one row",
    );
    check(
        &|parts| parts.reservations[0].reservation_id = "web".into(),
        "reservations.parquet: row \"web\": the id appears in more than one row",
    );
    check(
        &|parts| parts.rru[2].hardware_type = "small".into(),
        "rru.parquet: row \"web/small\": the id appears in more than one row",
    );
    check(
        &|parts| parts.unavailability[0].event_id = "e2".into(),
        "unavailability.parquet: row \"e2\": the id appears in more than one row",
    );
    check(
        &|parts| parts.servers[3].rack = "rack0".into(),
        "servers.parquet: row \"s03\": rack \"rack0\" lies in MSB \"msb0\" and in MSB \"msb1\"; a \
         rack lies in one MSB",
    );
    check(
        &|parts| parts.servers[5].datacenter = "dc1".into(),
        "servers.parquet: row \"s05\": MSB \"msb1\" lies in datacenter \"dc0\" and in datacenter \
         \"dc1\"; an MSB lies in one",
    );
    check(
        &|parts| parts.servers[0].current_reservation = Some("wbe".into()),
        "servers.parquet: row \"s00\": current_reservation names \"wbe\", which is not in \
         reservations.parquet",
    );
    check(
        &|parts| parts.rru[0].reservation_id = "cahce".into(),
        "rru.parquet: row \"cahce/small\": reservation_id names \"cahce\", which is not in \
         reservations.parquet",
    );
    check(
        &|parts| parts.unavailability[1].scope_id = "msb9".into(),
        "unavailability.parquet: row \"e2\": scope_id names \"msb9\", which is not in \
         servers.parquet",
    );
    for (rru, shown) in [(-1.0, "-1"), (0.0, "0"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        check(
            &|parts| parts.rru[2].rru = rru,
            &format!(
                "rru.parquet: row \"web/big\": rru is {shown}; it must be at least 0.000001, at \
                 most 1e9"
            ),
        );
    }
    let sign = "finite and not negative";
    for (capacity, shown, expected) in [
        (-0.5, "-0.5", sign),
        (f64::NAN, "NaN", sign),
        (f64::INFINITY, "inf", sign),
        (2e9, "2000000000", "at most 1e9"),
    ] {
        check(
            &|parts| parts.reservations[1].capacity_rru = capacity,
            &format!(
                "reservations.parquet: row \"cache\": capacity_rru is {shown}; it must be {expected}"
            ),
        );
    }
    check(
        &|parts| parts.reservations[1].kind = "promised".into(),
        "reservations.parquet: row \"cache\": kind is \"promised\"; it must be one of guaranteed, \
         shared_buffer, elastic",
    );
    check(
        &|parts| parts.affinity[0].share = f64::NAN,
        "affinity.parquet: row \"cache/dc1\": share is NaN; it must be 0 to 1",
    );
    check(
        &|parts| parts.servers[0].power_watts = Some(f64::NAN),
        "servers.parquet: row \"s00\": power_watts is NaN; it must be finite and not negative",
    );
    check(
        &|parts| parts.servers[7].rack = "".into(),
        "servers.parquet: row \"s07\": rack must have 1 to 128 characters, not 0",
    );
}

#[test]
fn assignments_that_do_not_fit_the_snapshot() {
    let snapshot = small_snapshot();
    let targets = Targets::unchanged(&snapshot);
    let report = json!({"format": RESULT_FORMAT});
    let refusal = |column: &str, row: usize, value: Option<&str>| {
        let dir = tempfile::tempdir().unwrap();
        write_result(dir.path(), &snapshot, &targets, &report, None).unwrap();
        common::rewrite(dir.path(), &ASSIGNMENT, |name, array| {
            use arrow_array::cast::AsArray;
            let array = if name != column {
                array
            } else if name == "moved" {
                let old = array.as_boolean();
                let flip = |at: usize| old.value(at) != (at == row);
                Arc::new(
                    (0..old.len()).map(|at| Some(flip(at))).collect::<arrow_array::BooleanArray>(),
                )
            } else {
                let text = |at: usize| match array.as_any_dictionary_opt() {
                    None => Some(array.as_string::<i32>().value(at).to_owned()),
                    Some(_) if array.is_null(at) => None,
                    Some(dictionary) => {
                        let key = dictionary.normalized_keys()[at];
                        Some(dictionary.values().as_string::<i32>().value(key).to_owned())
                    }
                };
                let changed = |at| if at == row { value.map(str::to_owned) } else { text(at) };
                Arc::new((0..array.len()).map(changed).collect::<StringArray>()) as ArrayRef
            };
            vec![(name.to_owned(), array)]
        });
        let text = said(&read_assignment(dir.path(), &snapshot).unwrap_err());
        text.replace(&dir.path().display().to_string(), "DIR")
    };
    let row = |id: &str, rule: &str| format!("DIR/assignment.parquet: row \"{id}\": {rule}");
    assert_eq!(
        refusal("server_id", 5, Some("s99")),
        row("s99", "the server is not in the snapshot")
    );
    assert_eq!(
        refusal("server_id", 5, Some("s06")),
        row("s06", "the server appears in more than one row")
    );
    assert_eq!(
        refusal("target_reservation", 6, Some("wbe")),
        row("s06", "target_reservation names \"wbe\", which is not a reservation of the snapshot")
    );
    assert_eq!(
        refusal("current_reservation", 0, None),
        row("s00", "current_reservation is null (free), but \"web\" in the snapshot")
    );
    assert_eq!(
        refusal("moved", 7, None),
        row("s07", "moved is true, but the two reservations say false")
    );
    assert_eq!(
        refusal("target_reservation", 0, Some("cache")),
        row("s00", "moved is false, but the two reservations say true")
    );
    // One server fewer: the rows of a smaller region.
    let mut fewer = small();
    fewer.servers.remove(8);
    let fewer = fleet::RegionSnapshot::new(fewer).unwrap();
    let dir = tempfile::tempdir().unwrap();
    write_result(dir.path(), &fewer, &Targets::unchanged(&fewer), &report, None).unwrap();
    let text = said(&read_assignment(dir.path(), &snapshot).unwrap_err());
    assert!(
        text.ends_with("row \"s08\": the server is in the snapshot and has no row here"),
        "{text}"
    );
}

#[test]
fn reports_of_another_format() {
    let dir = tempfile::tempdir().unwrap();
    let snapshot = small_snapshot();
    let targets = Targets::unchanged(&snapshot);
    let write = |report| write_result(&dir.path().join("r"), &snapshot, &targets, &report, None);
    let error = write(json!({"format": "ras-solve/7"})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "report.json: format must be \"ras-solve/1\", not \"ras-solve/7\""
    );
    assert!(write(json!(null)).unwrap_err().to_string().ends_with("not null"));
    assert!(!dir.path().join("r").exists());
    std::fs::write(dir.path().join("report.json"), r#"{"format": "other"}"#).unwrap();
    let text = said(&read_report(dir.path()).unwrap_err());
    assert!(
        text.ends_with("report.json: format is \"other\"; this reads \"ras-solve/1\""),
        "{text}"
    );
}

#[test]
fn what_is_in_the_way_stays() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("mine");
    let refused = |expected: &str| {
        let before = bytes_of(&dir);
        let text = said(&write_snapshot(&dir, &small_snapshot()).unwrap_err());
        assert!(text.contains("mine: is in the way and is not replaced"), "{text}");
        assert!(text.contains(expected), "{text}");
        assert_eq!(bytes_of(&dir), before);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1, "something was left behind");
    };
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("thesis.txt"), "years of work").unwrap();
    refused("thesis.txt is not part of a snapshot");
    // A snapshot with a stranger in it is not only ours any more.
    std::fs::remove_file(dir.join("thesis.txt")).unwrap();
    write_snapshot(&dir, &small_snapshot()).unwrap();
    std::fs::write(dir.join("notes.md"), "mine").unwrap();
    refused("notes.md is not part of a snapshot");
    std::fs::remove_file(dir.join("notes.md")).unwrap();
    std::fs::write(dir.join("region.json"), r#"{"format": "ras-snapshot/4"}"#).unwrap();
    refused("region.json says that it is \"ras-snapshot/4\"");
    std::fs::remove_file(dir.join("region.json")).unwrap();
    refused("it is not a snapshot");
    // A result is no snapshot either, and a file is no folder.
    let other = root.path().join("other");
    std::fs::write(&other, "a file").unwrap();
    let text = said(&write_snapshot(&other, &small_snapshot()).unwrap_err());
    assert!(
        text.ends_with("other: is in the way and is not replaced: it is not a folder"),
        "{text}"
    );
}

#[test]
fn unwritable_places() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    std::fs::write(&file, "").unwrap();
    let text = said(&write_snapshot(&file.join("snapshot"), &small_snapshot()).unwrap_err());
    assert!(text.contains("file: cannot be written: "), "{text}");
    // No process of any user may make a folder here.
    #[cfg(target_os = "linux")]
    {
        let text =
            said(&write_snapshot(Path::new("/proc/snapshot"), &small_snapshot()).unwrap_err());
        assert!(text.starts_with("/proc: cannot be written: "), "{text}");
    }
    let text = said(&write_snapshot(Path::new("/"), &small_snapshot()).unwrap_err());
    assert!(text.starts_with("/: "), "{text}");
}

#[test]
fn rows_that_the_format_cannot_hold() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("s");
    let mut parts = small();
    parts.unavailability[1].started_at = midnight() + chrono::TimeDelta::nanoseconds(1);
    assert_eq!(
        write_parts(&folder, &parts).unwrap_err().to_string(),
        "unavailability.parquet: row \"e2\": started_at is not whole microseconds"
    );
    let mut parts = small();
    parts.weights.buffer_tau = f64::NAN;
    assert_eq!(
        write_parts(&folder, &parts).unwrap_err().to_string(),
        "region.json: a weight or fraction is not a finite number"
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "something was left behind");
}

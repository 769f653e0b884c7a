//! A small region that uses every column of the format, and ways to write it wrongly.

pub mod inventory;

use chrono::{DateTime, TimeDelta, Utc};
use datasets::schema::TableSchema;
use fleet::{
    AffinityRow, AheadParts, AllowedDatacenterRow, MoveBudgetRow, RegionSnapshot, ReservationRow,
    RruRow, ServerRow, SnapshotParts, UnavailabilityRow, Weights,
};
use std::path::Path;

/// Midnight of 2026-01-01.
pub fn midnight() -> DateTime<Utc> {
    "2026-01-01T00:00:00Z".parse().expect("a time")
}

fn budget(
    scope: &str,
    scope_id: &str,
    in_use: Option<bool>,
    moves: i64,
    because: &str,
) -> MoveBudgetRow {
    let (scope, scope_id, because) = (scope.into(), scope_id.into(), because.into());
    MoveBudgetRow { scope, scope_id, in_use, moves, because }
}

/// Twelve servers in four MSBs, three reservations and one listed shared buffer.
pub fn small() -> SnapshotParts {
    let server = |n: usize| ServerRow {
        server_id: format!("s{n:02}").into(),
        datacenter: format!("dc{}", n / 6).into(),
        msb: format!("msb{}", n / 3).into(),
        rack: format!("rack{}", n / 3).into(),
        hardware_type: if n.is_multiple_of(2) { "big" } else { "small" }.into(),
        current_reservation: (n < 4).then(|| "web".into()),
        target_reservation: (n == 3).then(|| "cache".into()),
        target_pending: n == 3 || n == 2,
        in_use: n < 2,
        loaned_to: (n == 11).then(|| "batch".into()),
        power_watts: (n != 5).then_some(200.0 + n as f64 / 7.0),
    };
    let reservation = |id: &str, kind: &str, capacity_rru: f64| ReservationRow {
        reservation_id: id.into(),
        owner: format!("team-{id}").into(),
        kind: kind.into(),
        capacity_rru,
        msb_buffer: id == "web",
        priority: 3,
        msb_alpha: (id == "web").then_some(0.4),
        rack_alpha: None,
        affinity_theta: (id == "cache").then_some(0.1),
        host_profile: (id == "cache").then(|| "huge-pages".into()),
        replicas: (id == "web").then_some(3),
        replicas_per_msb: (id == "web").then_some(2),
    };
    let value = |reservation: &str, hardware_type: &str, rru: f64| RruRow {
        reservation_id: reservation.into(),
        hardware_type: hardware_type.into(),
        rru,
    };
    let event = |id: &str, scope: &str, scope_id: &str, kind: &str, ended: bool| {
        let started_at = midnight() - TimeDelta::microseconds(3_600_000_001);
        UnavailabilityRow {
            event_id: id.into(),
            scope: scope.into(),
            scope_id: scope_id.into(),
            kind: kind.into(),
            started_at,
            ended_at: ended.then(|| started_at + TimeDelta::seconds(60)),
            recall_minutes: (kind == "planned_maintenance").then_some(20),
        }
    };
    SnapshotParts {
        region: "region-a".into(),
        taken_at: midnight(),
        weights: Weights { spread_beta: 2.1, msb_alpha: Some(0.3), ..Weights::default() },
        shared_buffer_fraction: Some(0.1),
        servers: (0..12).map(server).collect(),
        reservations: vec![
            reservation("batch", "elastic", 0.0),
            reservation("cache", "guaranteed", 1.5),
            reservation("spare", "shared_buffer", 1.0),
            reservation("web", "guaranteed", 2.958984),
        ],
        rru: vec![
            value("cache", "small", 0.5),
            value("spare", "big", 1.0),
            value("web", "big", 1.0),
            value("web", "small", 0.387),
        ],
        affinity: vec![AffinityRow {
            reservation_id: "cache".into(),
            datacenter: "dc1".into(),
            share: 0.7,
        }],
        allowed_datacenters: vec![AllowedDatacenterRow {
            reservation_id: "cache".into(),
            datacenter: "dc1".into(),
        }],
        unavailability: vec![
            event("e1", "server", "s04", "random_failure", false),
            event("e2", "msb", "msb3", "planned_maintenance", false),
            event("e3", "rack", "rack0", "software", true),
            event("e4", "datacenter", "dc0", "correlated_failure", true),
        ],
        ahead: AheadParts {
            horizon_minutes: 60,
            budgets: vec![
                budget("server", "s03", None, 0, "cordon"),
                budget("rack", "rack0", Some(false), 4, "limit"),
                budget("reservation", "web", Some(true), 2, "contract"),
            ],
        },
        crossing: fleet::PartitionParts::default(),
    }
}

/// [`small`], checked.
pub fn small_snapshot() -> RegionSnapshot {
    RegionSnapshot::new(small()).expect("the small region keeps every rule")
}

/// All bytes of a folder's files, by name.
pub fn bytes_of(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .expect("a folder")
        .map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a name");
            (name, std::fs::read(entry.path()).expect("a file"))
        })
        .collect();
    files.sort();
    files
}

/// What an error says, causes included, as `ras` prints it.
pub fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// Writes one table with columns changed at will: `change` gets each column's name and array, and
/// returns what stands there instead, or nothing.
pub fn rewrite(
    dir: &Path,
    schema: &TableSchema,
    change: impl Fn(&str, arrow_array::ArrayRef) -> Vec<(String, arrow_array::ArrayRef)>,
) {
    use parquet::arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder};
    let file = dir.join(schema.file);
    let handle = std::fs::File::open(&file).expect("the table");
    let reader = ParquetRecordBatchReaderBuilder::try_new(handle).expect("Parquet");
    let batch = reader.build().expect("a reader").next().expect("rows").expect("rows");
    let found = batch.schema();
    let columns = found.fields().iter().zip(batch.columns()).flat_map(|(field, array)| {
        change(field.name(), array.clone()).into_iter().map(|(name, array)| (name, array, true))
    });
    let batch = arrow_array::RecordBatch::try_from_iter_with_nullable(columns).expect("a batch");
    let handle = std::fs::File::create(&file).expect("the table");
    let mut writer = ArrowWriter::try_new(handle, batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("written");
}

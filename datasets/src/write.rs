//! Writes a snapshot folder. The same rows give the same bytes.

use crate::basis::Basis;
use crate::error::WriteError;
use crate::folder::{FolderKind, write_folder, write_json};
use crate::partitions::Columns;
use crate::read::RegionFile;
use crate::schema::{
    AFFINITY, ALLOWED_DATACENTERS, ColumnType, EXPORTED_SERVERS, MOVE_BUDGETS, RESERVATIONS, RRU,
    SERVERS, SNAPSHOT_FORMAT, SNAPSHOT_FORMAT_3, SNAPSHOT_FORMATS, SURVIVES, TableSchema,
    UNAVAILABILITY,
};
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::SchemaRef;
use chrono::{DateTime, Timelike, Utc};
use fleet::{
    AffinityRow, AllowedDatacenterRow, Coverage, MoveBudgetRow, RegionSnapshot, ReservationRow,
    RruRow, ServerRow, SnapshotParts, SurvivesRow, Table, UnavailabilityRow,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Rows turned into arrays at a time.
const BATCH_ROWS: usize = 1 << 16;

const SNAPSHOT_FOLDER: FolderKind = FolderKind {
    what: "snapshot",
    marker: Table::Region.file(),
    formats: SNAPSHOT_FORMATS,
    files: &[
        Table::Region.file(),
        Table::Servers.file(),
        Table::Reservations.file(),
        Table::RruValues.file(),
        Table::Affinity.file(),
        Table::AllowedDatacenters.file(),
        Table::MoveBudgets.file(),
        Table::Survives.file(),
        Table::Unavailability.file(),
    ],
};

/// Writes a snapshot, in place of an earlier one if there is one.
///
/// # Errors
/// If the system refuses or something else is in the way; nothing has changed then.
pub fn write_snapshot(dir: &Path, snapshot: &RegionSnapshot) -> Result<(), WriteError> {
    write_parts(dir, &snapshot.to_parts())
}

/// Writes rows as a snapshot, in the order given and without checking the rules between them.
///
/// # Errors
/// As [`write_snapshot`]; also for numbers and times that the files cannot hold.
pub fn write_parts(dir: &Path, parts: &SnapshotParts) -> Result<(), WriteError> {
    write_known(dir, parts, Coverage::WHOLE)
}

/// Writes a snapshot whose source knows only part of what a snapshot holds.
///
/// # Errors
/// As [`write_snapshot`].
pub fn write_inventory(
    dir: &Path,
    snapshot: &RegionSnapshot,
    coverage: Coverage,
) -> Result<(), WriteError> {
    write_known(dir, &snapshot.to_parts(), coverage)
}

fn write_known(dir: &Path, parts: &SnapshotParts, coverage: Coverage) -> Result<(), WriteError> {
    let coverage = Some(coverage).filter(|coverage| *coverage != Coverage::WHOLE);
    write_folder(dir, &SNAPSHOT_FOLDER, |dir| {
        let region = RegionFile { coverage, ..region(parts)? };
        write_json(&dir.join(Table::Region.file()), &region)?;
        write_servers(dir, &SERVERS, parts, &parts.servers, |row| row, |_| None)?;
        write_other_tables(dir, parts)
    })
}

/// Writes rows as a snapshot that also says what a decision made on it rests on.
///
/// # Errors
/// As [`write_parts`].
///
/// # Panics
/// If there is not one generation for each server.
pub fn write_export(dir: &Path, parts: &SnapshotParts, basis: &Basis) -> Result<(), WriteError> {
    assert_eq!(parts.servers.len(), basis.generations.len(), "one generation per server");
    let rows: Vec<(&ServerRow, i64)> =
        parts.servers.iter().zip(basis.generations.iter().copied()).collect();
    write_folder(dir, &SNAPSHOT_FOLDER, |dir| {
        let region = RegionFile { version: Some(basis.version), ..region(parts)? };
        write_json(&dir.join(Table::Region.file()), &region)?;
        let generations = |rows: &[(&ServerRow, i64)]| -> Option<ArrayRef> {
            let generations = rows.iter().map(|(_, generation)| *generation);
            Some(Arc::new(Int64Array::from_iter_values(generations)))
        };
        write_servers(dir, &EXPORTED_SERVERS, parts, &rows, |row| row.0, generations)?;
        write_other_tables(dir, parts)
    })
}

/// Writes `servers.parquet`: the columns of the format, `more` and those of partitions.
fn write_servers<R>(
    dir: &Path,
    table: &TableSchema,
    parts: &SnapshotParts,
    rows: &[R],
    row_of: impl Fn(&R) -> &ServerRow + Copy,
    more: impl Fn(&[R]) -> Option<ArrayRef>,
) -> Result<(), WriteError> {
    let partitions = Columns::new(&parts.crossing.partitions);
    let properties = properties(format_of(parts), std::iter::once(table.columns[0].name));
    write_columns(&dir.join(table.file), &partitions.schema(table), properties, rows, |rows| {
        let mut columns = servers(rows.iter().map(row_of));
        columns.extend(more(rows));
        let domains = partitions.domains(rows.iter().map(row_of));
        columns.extend(domains.map(|domains| names(domains.into_iter())));
        Ok(columns)
    })
}

/// The first version of the format that can say it.
fn format_of(parts: &SnapshotParts) -> &'static str {
    if parts.crossing.is_empty() { SNAPSHOT_FORMAT } else { SNAPSHOT_FORMAT_3 }
}

fn write_other_tables(dir: &Path, parts: &SnapshotParts) -> Result<(), WriteError> {
    write_table(dir, &RESERVATIONS, &parts.reservations, |rows| Ok(reservations(rows)))?;
    write_table(dir, &RRU, &parts.rru, |rows| Ok(rru(rows)))?;
    write_table(dir, &AFFINITY, &parts.affinity, |rows| Ok(affinity(rows)))?;
    write_table(dir, &ALLOWED_DATACENTERS, &parts.allowed_datacenters, |rows| {
        Ok(allowed_datacenters(rows))
    })?;
    write_table(dir, &UNAVAILABILITY, &parts.unavailability, unavailability)?;
    if !parts.crossing.is_empty() {
        write_table(dir, &SURVIVES, &parts.crossing.survives, |rows| Ok(survives(rows)))?;
    }
    write_table(dir, &MOVE_BUDGETS, &parts.ahead.budgets, |rows| Ok(budgets(rows)))
}

/// Writes one table into a folder under construction. `columns` makes the arrays of some rows, in
/// the order of the schema.
pub(crate) fn write_table<R>(
    dir: &Path,
    schema: &TableSchema,
    rows: &[R],
    columns: impl Fn(&[R]) -> Result<Vec<ArrayRef>, WriteError>,
) -> Result<(), WriteError> {
    let ids = schema.columns.iter().filter(|column| column.kind == ColumnType::Id);
    let properties = properties(schema.format, ids.map(|column| column.name));
    write_columns(&dir.join(schema.file), &schema.arrow(), properties, rows, columns)
}

/// Writes rows as a file with these columns.
pub(crate) fn write_columns<R>(
    file: &Path,
    arrow: &SchemaRef,
    properties: WriterProperties,
    rows: &[R],
    columns: impl Fn(&[R]) -> Result<Vec<ArrayRef>, WriteError>,
) -> Result<(), WriteError> {
    let handle = File::create(file).map_err(WriteError::system(file))?;
    let failed = |error: ParquetError| match error {
        // A full disk is the system's refusal, in any layer.
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(source) => WriteError::system(file)(*source),
            Err(cause) => {
                WriteError::Parquet { path: file.to_owned(), source: ParquetError::External(cause) }
            }
        },
        source => WriteError::Parquet { path: file.to_owned(), source },
    };
    let mut writer =
        ArrowWriter::try_new(handle, arrow.clone(), Some(properties)).map_err(failed)?;
    for some in rows.chunks(BATCH_ROWS) {
        let batch = RecordBatch::try_new(arrow.clone(), columns(some)?)
            .map_err(|error| failed(ParquetError::ArrowError(error.to_string())))?;
        writer.write(&batch).map_err(failed)?;
    }
    let handle = writer.into_inner().map_err(failed)?;
    handle.sync_all().map_err(WriteError::system(file))
}

/// How a table of a format is written; a dictionary of ids would hold every row.
pub(crate) fn properties<'c>(format: &str, ids: impl Iterator<Item = &'c str>) -> WriterProperties {
    let format = KeyValue::new("format".to_owned(), format.to_owned());
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![format]));
    for id in ids {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(id), false);
    }
    properties.build()
}

fn region(parts: &SnapshotParts) -> Result<RegionFile, WriteError> {
    let weights = &parts.weights;
    let numbers = [
        Some(weights.move_in_use),
        Some(weights.move_idle),
        Some(weights.spread_beta),
        Some(weights.buffer_tau),
        Some(weights.affinity_theta),
        weights.msb_alpha,
        weights.rack_alpha,
        parts.shared_buffer_fraction,
    ];
    // JSON has no such numbers, and null means something else.
    if numbers.into_iter().flatten().any(|number| !number.is_finite()) {
        return Err(WriteError::NotFinite { file: Table::Region.file() });
    }
    Ok(RegionFile {
        format: format_of(parts).to_owned(),
        region: parts.region.to_string(),
        taken_at: parts.taken_at,
        weights: parts.weights,
        shared_buffer_fraction: parts.shared_buffer_fraction,
        horizon_minutes: Some(parts.ahead.horizon_minutes).filter(|&minutes| minutes > 0),
        version: None,
        coverage: None,
    })
}

/// Strings that differ from row to row.
pub(crate) fn ids<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// Strings that come again.
pub(crate) fn names<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    values.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}

/// True or false.
pub(crate) fn flags(values: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(values.map(Some).collect::<BooleanArray>())
}

fn numbers(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.collect::<Float64Array>())
}

fn integers(values: impl Iterator<Item = Option<i32>>) -> ArrayRef {
    Arc::new(values.collect::<Int32Array>())
}

fn servers<'a>(rows: impl Iterator<Item = &'a ServerRow> + Clone) -> Vec<ArrayRef> {
    vec![
        ids(rows.clone().map(|row| &*row.server_id)),
        names(rows.clone().map(|row| Some(&*row.datacenter))),
        names(rows.clone().map(|row| Some(&*row.msb))),
        names(rows.clone().map(|row| Some(&*row.rack))),
        names(rows.clone().map(|row| Some(&*row.hardware_type))),
        names(rows.clone().map(|row| row.current_reservation.as_deref())),
        names(rows.clone().map(|row| row.target_reservation.as_deref())),
        flags(rows.clone().map(|row| row.target_pending)),
        flags(rows.clone().map(|row| row.in_use)),
        names(rows.clone().map(|row| row.loaned_to.as_deref())),
        numbers(rows.map(|row| row.power_watts)),
    ]
}

fn reservations(rows: &[ReservationRow]) -> Vec<ArrayRef> {
    vec![
        ids(rows.iter().map(|row| &*row.reservation_id)),
        names(rows.iter().map(|row| Some(&*row.owner))),
        names(rows.iter().map(|row| Some(&*row.kind))),
        numbers(rows.iter().map(|row| Some(row.capacity_rru))),
        flags(rows.iter().map(|row| row.msb_buffer)),
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.priority))),
        numbers(rows.iter().map(|row| row.msb_alpha)),
        numbers(rows.iter().map(|row| row.rack_alpha)),
        numbers(rows.iter().map(|row| row.affinity_theta)),
        names(rows.iter().map(|row| row.host_profile.as_deref())),
        integers(rows.iter().map(|row| row.replicas)),
        integers(rows.iter().map(|row| row.replicas_per_msb)),
    ]
}

fn rru(rows: &[RruRow]) -> Vec<ArrayRef> {
    vec![
        names(rows.iter().map(|row| Some(&*row.reservation_id))),
        names(rows.iter().map(|row| Some(&*row.hardware_type))),
        numbers(rows.iter().map(|row| Some(row.rru))),
    ]
}

fn affinity(rows: &[AffinityRow]) -> Vec<ArrayRef> {
    vec![
        names(rows.iter().map(|row| Some(&*row.reservation_id))),
        names(rows.iter().map(|row| Some(&*row.datacenter))),
        numbers(rows.iter().map(|row| Some(row.share))),
    ]
}

fn allowed_datacenters(rows: &[AllowedDatacenterRow]) -> Vec<ArrayRef> {
    vec![
        names(rows.iter().map(|row| Some(&*row.reservation_id))),
        names(rows.iter().map(|row| Some(&*row.datacenter))),
    ]
}

fn survives(rows: &[SurvivesRow]) -> Vec<ArrayRef> {
    vec![
        names(rows.iter().map(|row| Some(&*row.reservation_id))),
        names(rows.iter().map(|row| Some(&*row.partition))),
    ]
}

fn budgets(rows: &[MoveBudgetRow]) -> Vec<ArrayRef> {
    vec![
        names(rows.iter().map(|row| Some(&*row.scope))),
        names(rows.iter().map(|row| Some(&*row.scope_id))),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|row| row.in_use))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.moves))),
        names(rows.iter().map(|row| Some(&*row.because))),
    ]
}

fn unavailability(rows: &[UnavailabilityRow]) -> Result<Vec<ArrayRef>, WriteError> {
    let micros = |row: &UnavailabilityRow, column: &'static str, instant: DateTime<Utc>| {
        // Nanoseconds above 1e9 are leap seconds, which the format has not.
        let nanos = instant.nanosecond();
        if nanos.is_multiple_of(1_000) && nanos < 1_000_000_000 {
            return Ok(instant.timestamp_micros());
        }
        let file = UNAVAILABILITY.file;
        Err(WriteError::Time { file, row: row.event_id.to_string(), column })
    };
    let mut started_at = Vec::with_capacity(rows.len());
    let mut ended_at = Vec::with_capacity(rows.len());
    for row in rows {
        started_at.push(micros(row, "started_at", row.started_at)?);
        ended_at.push(row.ended_at.map(|end| micros(row, "ended_at", end)).transpose()?);
    }
    Ok(vec![
        ids(rows.iter().map(|row| &*row.event_id)),
        names(rows.iter().map(|row| Some(&*row.scope))),
        names(rows.iter().map(|row| Some(&*row.scope_id))),
        names(rows.iter().map(|row| Some(&*row.kind))),
        Arc::new(TimestampMicrosecondArray::from(started_at).with_timezone("UTC")),
        Arc::new(TimestampMicrosecondArray::from(ended_at).with_timezone("UTC")),
        Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.recall_minutes))),
    ])
}

//! Reads one Parquet table, batch by batch, as the columns the format promises.

use crate::error::ReadError;
use crate::schema::{Column, TableSchema};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use chrono::{DateTime, Utc};
use fleet::Name;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use std::collections::HashSet;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Rows decoded at a time: large enough that per-batch work vanishes, small enough that a batch of
/// the widest table stays below 20 MB.
const BATCH_ROWS: usize = 1 << 16;

/// The most rows read from one table: sixteen times the largest region generated. A few bytes of
/// Parquet can claim billions of rows, and would be believed until memory ran out.
const ROWS_MAX: u64 = 1 << 24;

/// Names met so far: one allocation per different name, for any number of rows.
#[derive(Default)]
pub(crate) struct NamePool {
    names: HashSet<Name>,
}

impl NamePool {
    /// The shared copy of a name.
    pub(crate) fn intern(&mut self, text: &str) -> Name {
        if let Some(name) = self.names.get(text) {
            return name.clone();
        }
        let name: Name = text.into();
        self.names.insert(name.clone());
        name
    }
}

/// Some rows of a table.
pub(crate) struct Batch<'a> {
    file: &'a Path,
    schema: &'static TableSchema,
    /// Arrays in the order of the schema's columns.
    arrays: Vec<ArrayRef>,
    rows: usize,
    rows_before: u64,
    pool: &'a mut NamePool,
}

/// Reads a table of a folder and hands its rows to `take`, in order.
pub(crate) fn read_table<E: From<ReadError>>(
    dir: &Path,
    schema: &'static TableSchema,
    pool: &mut NamePool,
    mut take: impl FnMut(&mut Batch) -> Result<(), E>,
) -> Result<(), E> {
    let file = dir.join(schema.file);
    let choose = |found: &arrow_schema::Schema| {
        let find = |column| find_column(&file, found, column);
        Ok(schema.columns.iter().map(find).collect::<Result<_, _>>()?)
    };
    read_columns(&file, choose, |arrays, rows, rows_before| {
        take(&mut Batch { file: &file, schema, arrays, rows, rows_before, pool })
    })
}

/// Reads the columns of a file that `choose` finds in its schema, by position, and hands them to `take`
/// in that order, some rows at a time: the arrays, the number of rows, and that of the rows before them.
///
/// The Parquet reader is written for honest files: should damaged bytes make it panic, that is
/// reported as a damaged file like any other.
pub(crate) fn read_columns<E: From<ReadError>>(
    file: &Path,
    choose: impl FnOnce(&arrow_schema::Schema) -> Result<Vec<usize>, E>,
    mut take: impl FnMut(Vec<ArrayRef>, usize, u64) -> Result<(), E>,
) -> Result<(), E> {
    let damaged = |detail: String| ReadError::Parquet { file: file.to_owned(), detail };
    let mut source = contain(file, || open(file, choose))?;
    let mut rows_before = 0_u64;
    while let Some(batch) =
        contain(file, || source.batches.next().transpose().map_err(|e| damaged(e.to_string())))?
    {
        let arrays = (source.positions.iter()).map(|&at| batch.column(at).clone()).collect();
        let rows = batch.num_rows();
        too_many_rows(file, rows_before + rows as u64)?;
        take(arrays, rows, rows_before)?;
        rows_before += rows as u64;
    }
    if rows_before != source.rows {
        let detail = format!("{} rows announced, {rows_before} found", source.rows);
        return Err(damaged(detail).into());
    }
    Ok(())
}

/// Runs the Parquet reader and turns a panic inside it into an error.
fn contain<T, E: From<ReadError>>(file: &Path, run: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let said = (panic.downcast_ref::<String>().map(String::as_str))
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no reason given");
        let detail = format!("its decoder gave up ({said})");
        Err(ReadError::Parquet { file: file.to_owned(), detail }.into())
    })
}

fn too_many_rows(file: &Path, found: u64) -> Result<(), ReadError> {
    if found <= ROWS_MAX {
        return Ok(());
    }
    Err(ReadError::TooLarge { file: file.to_owned(), what: "rows", found, limit: ROWS_MAX })
}

struct Source {
    batches: Box<dyn Iterator<Item = Result<RecordBatch, arrow_schema::ArrowError>>>,
    /// The position of each column of the schema in a batch.
    positions: Vec<usize>,
    /// Rows that the file says it has.
    rows: u64,
}

/// Opens a file and chooses columns; others are not decoded.
fn open<E: From<ReadError>>(
    file: &Path,
    choose: impl FnOnce(&arrow_schema::Schema) -> Result<Vec<usize>, E>,
) -> Result<Source, E> {
    let damaged =
        |e: ParquetError| ReadError::Parquet { file: file.to_owned(), detail: e.to_string() };
    let handle = File::open(file).map_err(|e| ReadError::file(file, e))?;
    if handle.metadata().map_err(|e| ReadError::file(file, e))?.is_dir() {
        return Err(ReadError::file(file, std::io::ErrorKind::IsADirectory.into()).into());
    }
    let builder = ParquetRecordBatchReaderBuilder::try_new(handle).map_err(damaged)?;
    let rows = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(u64::MAX);
    too_many_rows(file, rows)?;
    let wanted = choose(builder.schema())?;
    // A projection keeps the file's order of columns.
    let mut projected = wanted.clone();
    projected.sort_unstable();
    let positions = wanted.iter().map(|at| projected.partition_point(|other| other < at)).collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), projected);
    let batches = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
    Ok(Source { batches: Box::new(batches.map_err(damaged)?), positions, rows })
}

fn find_column(
    file: &Path,
    found: &arrow_schema::Schema,
    column: &Column,
) -> Result<usize, ReadError> {
    let mut named =
        (found.fields().iter().enumerate()).filter(|(_, field)| field.name() == column.name);
    let (Some((at, field)), None) = (named.next(), named.next()) else {
        let count = found.fields().iter().filter(|field| field.name() == column.name).count();
        return Err(ReadError::Column {
            file: file.to_owned(),
            column: column.name,
            kind: column.kind,
            found: count,
        });
    };
    if !column.kind.reads(field.data_type(), column.nullable) {
        return Err(ReadError::ColumnType {
            file: file.to_owned(),
            column: column.name,
            found: field.data_type().to_string(),
            kind: column.kind,
        });
    }
    Ok(at)
}

impl Batch<'_> {
    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The file the rows come from.
    pub(crate) fn file(&self) -> PathBuf {
        self.file.to_owned()
    }

    /// Ids: different in every row, so that looking for an earlier copy is wasted work.
    pub(crate) fn ids(&mut self, column: &'static str) -> Result<Vec<Name>, ReadError> {
        let values = texts(self.array(column), &mut |text| Name::from(text));
        self.required(column, values)
    }

    /// Names, shared with every earlier mention.
    pub(crate) fn names(&mut self, column: &'static str) -> Result<Vec<Name>, ReadError> {
        let values = self.optional_names(column);
        self.required(column, values)
    }

    /// Names that may be missing.
    pub(crate) fn optional_names(&mut self, column: &'static str) -> Vec<Option<Name>> {
        let array = self.array(column).clone();
        texts(&array, &mut |text| self.pool.intern(text))
    }

    /// True or false.
    pub(crate) fn flags(&self, column: &'static str) -> Result<Vec<bool>, ReadError> {
        self.required(column, self.array(column).as_boolean().iter().collect())
    }

    /// True or false, where that is said.
    pub(crate) fn optional_flags(&self, column: &'static str) -> Vec<Option<bool>> {
        let array = self.array(column);
        match array.data_type() {
            DataType::Null => vec![None; self.rows],
            _ => array.as_boolean().iter().collect(),
        }
    }

    /// Large integers.
    pub(crate) fn counts(&self, column: &'static str) -> Result<Vec<i64>, ReadError> {
        self.required(column, self.optional_counts(column))
    }

    /// Integers.
    pub(crate) fn integers(&self, column: &'static str) -> Result<Vec<i32>, ReadError> {
        let array = self.array(column).as_primitive::<Int32Type>();
        self.required(column, array.iter().collect())
    }

    /// Integers that may be missing, as they are in a version of the format without the column.
    pub(crate) fn optional_integers(&self, column: &'static str) -> Vec<Option<i32>> {
        match self.find(column) {
            Some(array) if *array.data_type() != DataType::Null => {
                array.as_primitive::<Int32Type>().iter().collect()
            }
            _ => vec![None; self.rows],
        }
    }

    /// Large integers that may be missing.
    pub(crate) fn optional_counts(&self, column: &'static str) -> Vec<Option<i64>> {
        let array = self.array(column);
        match array.data_type() {
            DataType::Null => vec![None; self.rows],
            _ => array.as_primitive::<Int64Type>().iter().collect(),
        }
    }

    /// Numbers.
    pub(crate) fn numbers(&self, column: &'static str) -> Result<Vec<f64>, ReadError> {
        self.required(column, self.optional_numbers(column))
    }

    /// Numbers that may be missing.
    pub(crate) fn optional_numbers(&self, column: &'static str) -> Vec<Option<f64>> {
        let array = self.array(column);
        match array.data_type() {
            DataType::Null => vec![None; self.rows],
            _ => array.as_primitive::<Float64Type>().iter().collect(),
        }
    }

    /// Instants.
    pub(crate) fn instants(&self, column: &'static str) -> Result<Vec<DateTime<Utc>>, ReadError> {
        self.required(column, self.optional_instants(column)?)
    }

    /// Instants that may be missing.
    pub(crate) fn optional_instants(
        &self,
        column: &'static str,
    ) -> Result<Vec<Option<DateTime<Utc>>>, ReadError> {
        let array = self.array(column);
        let (values, unit): (Vec<Option<i64>>, TimeUnit) = match array.data_type() {
            DataType::Timestamp(unit, _) => {
                let values = match unit {
                    TimeUnit::Second => {
                        array.as_primitive::<TimestampSecondType>().iter().collect()
                    }
                    TimeUnit::Millisecond => {
                        array.as_primitive::<TimestampMillisecondType>().iter().collect()
                    }
                    TimeUnit::Microsecond => {
                        array.as_primitive::<TimestampMicrosecondType>().iter().collect()
                    }
                    TimeUnit::Nanosecond => {
                        array.as_primitive::<TimestampNanosecondType>().iter().collect()
                    }
                };
                (values, *unit)
            }
            _ => (vec![None; self.rows], TimeUnit::Microsecond),
        };
        let mut instants = Vec::with_capacity(values.len());
        for (row, value) in values.into_iter().enumerate() {
            let Some(value) = value else {
                instants.push(None);
                continue;
            };
            let instant = exact_instant(value, unit).ok_or_else(|| ReadError::Time {
                file: self.file(),
                row: self.label(row),
                column,
                value,
                unit: match unit {
                    TimeUnit::Second => "seconds",
                    TimeUnit::Millisecond => "milliseconds",
                    TimeUnit::Microsecond => "microseconds",
                    TimeUnit::Nanosecond => "nanoseconds",
                },
            })?;
            instants.push(Some(instant));
        }
        Ok(instants)
    }

    /// How a row is named in messages: its id, its parts joined by `/`, or its number, counted
    /// from one, where the id is null.
    pub(crate) fn label(&self, row: usize) -> String {
        let number = self.rows_before + row as u64 + 1;
        let parts: Option<Vec<&str>> =
            self.arrays[..self.schema.key].iter().map(|array| text_at(array, row)).collect();
        parts.map_or_else(|| format!("number {number}"), |parts| parts.join("/"))
    }

    fn array(&self, column: &'static str) -> &ArrayRef {
        self.find(column).expect("callers name columns of the table's schema")
    }

    fn find(&self, column: &'static str) -> Option<&ArrayRef> {
        let at = self.schema.columns.iter().position(|c| c.name == column);
        at.map(|at| &self.arrays[at])
    }

    fn required<T>(
        &self,
        column: &'static str,
        values: Vec<Option<T>>,
    ) -> Result<Vec<T>, ReadError> {
        let null = values.iter().position(Option::is_none);
        if let Some(row) = null {
            return Err(ReadError::Null { file: self.file(), row: self.label(row), column });
        }
        Ok(values.into_iter().flatten().collect())
    }
}

fn exact_instant(value: i64, unit: TimeUnit) -> Option<DateTime<Utc>> {
    let micros = match unit {
        TimeUnit::Second => value.checked_mul(1_000_000)?,
        TimeUnit::Millisecond => value.checked_mul(1_000)?,
        TimeUnit::Microsecond => value,
        TimeUnit::Nanosecond => (value % 1_000 == 0).then_some(value / 1_000)?,
    };
    DateTime::from_timestamp_micros(micros)
}

/// The strings of an array, plain or by dictionary; `make` runs once per dictionary entry.
pub(crate) fn texts(array: &ArrayRef, make: &mut dyn FnMut(&str) -> Name) -> Vec<Option<Name>> {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().map(|t| t.map(&mut *make)).collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(|t| t.map(&mut *make)).collect(),
        DataType::Utf8View => array.as_string_view().iter().map(|t| t.map(&mut *make)).collect(),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let values = texts(dictionary.values(), make);
            if values.is_empty() {
                return vec![None; array.len()];
            }
            let keys = dictionary.normalized_keys().into_iter().enumerate();
            keys.map(|(row, key)| if array.is_null(row) { None } else { values[key].clone() })
                .collect()
        }
        _ => vec![None; array.len()],
    }
}

fn text_at(array: &ArrayRef, row: usize) -> Option<&str> {
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Some(array.as_string_view().value(row)),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            if dictionary.values().is_empty() {
                return None;
            }
            text_at(dictionary.values(), dictionary.normalized_keys()[row])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which damage makes the decoder panic changes with its version; what becomes of a panic
    /// does not.
    #[test]
    fn a_panic_of_the_decoder_is_a_damaged_file() {
        let file = Path::new("region/servers.parquet");
        let formatted = || -> Result<(), ReadError> { panic!("offset {} out of bounds", 7) };
        let plain = || -> Result<(), ReadError> { panic!("out of bounds") };
        let said = |run: &dyn Fn() -> Result<(), ReadError>| {
            contain(file, run).expect_err("the panic is an error").to_string()
        };
        let start = "region/servers.parquet: is not a whole, undamaged Parquet file: its decoder";
        assert_eq!(said(&formatted), format!("{start} gave up (offset 7 out of bounds)"));
        assert_eq!(said(&plain), format!("{start} gave up (out of bounds)"));
    }
}

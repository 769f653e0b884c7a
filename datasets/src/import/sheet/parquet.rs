//! A Parquet file as the lines of a sheet: one reader of fields serves both forms.

use crate::error::ReadError;
use crate::table::read_columns;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};
use chrono::DateTime;
use csv::{Position, StringRecord};
use std::fmt::Display;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// What every Parquet file begins with.
const MAGIC: [u8; 4] = *b"PAR1";

/// Whether a file is Parquet. A file that cannot be read is not.
pub(super) fn is_parquet(file: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    File::open(file).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == MAGIC
}

/// Columns and rows. Rows are numbered as lines of the same table in CSV: the first is 2. A missing value is
/// an empty field. Columns of types that a field cannot have, such as lists, are left out.
pub(super) fn read(file: &Path) -> Result<(Vec<String>, Vec<StringRecord>), ReadError> {
    let (mut columns, mut records) = (Vec::new(), Vec::new());
    let choose = |found: &arrow_schema::Schema| {
        let mut chosen = Vec::new();
        for (at, field) in found.fields().iter().enumerate() {
            if is_field(field.data_type()) {
                chosen.push(at);
                columns.push(field.name().clone());
            }
        }
        Ok::<_, ReadError>(chosen)
    };
    read_columns(file, choose, |arrays, rows, before| {
        let fields: Vec<Vec<String>> = arrays.iter().map(texts).collect();
        for row in 0..rows {
            let mut record: StringRecord = fields.iter().map(|of| of[row].as_str()).collect();
            let mut position = Position::new();
            position.set_line(before + row as u64 + 2);
            record.set_position(Some(position));
            records.push(record);
        }
        Ok::<_, ReadError>(())
    })?;
    Ok((columns, records))
}

fn is_field(kind: &DataType) -> bool {
    use DataType::{Boolean, Dictionary, Float32, Float64, LargeUtf8, Timestamp, Utf8, Utf8View};
    match kind {
        Utf8 | LargeUtf8 | Utf8View | Boolean | Float32 | Float64 | Timestamp(..) => true,
        _ if kind.is_integer() => true,
        Dictionary(_, values) => matches!(**values, Utf8 | LargeUtf8 | Utf8View),
        _ => false,
    }
}

/// The fields of a column, as CSV would have them.
fn texts(array: &ArrayRef) -> Vec<String> {
    fn numbers<T: ArrowPrimitiveType<Native: Display>>(array: &ArrayRef) -> Vec<String> {
        each(array.as_primitive::<T>(), |value| value.to_string())
    }
    match array.data_type() {
        DataType::Int8 => numbers::<Int8Type>(array),
        DataType::Int16 => numbers::<Int16Type>(array),
        DataType::Int32 => numbers::<Int32Type>(array),
        DataType::Int64 => numbers::<Int64Type>(array),
        DataType::UInt8 => numbers::<UInt8Type>(array),
        DataType::UInt16 => numbers::<UInt16Type>(array),
        DataType::UInt32 => numbers::<UInt32Type>(array),
        DataType::UInt64 => numbers::<UInt64Type>(array),
        DataType::Float32 => numbers::<Float32Type>(array),
        DataType::Float64 => numbers::<Float64Type>(array),
        DataType::Boolean => {
            let flags = array.as_boolean().iter();
            flags.map(|flag| flag.map_or_else(String::new, |flag| flag.to_string())).collect()
        }
        DataType::Timestamp(TimeUnit::Second, _) => {
            each(array.as_primitive::<TimestampSecondType>(), |value| instant(value, 1_000_000))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            each(array.as_primitive::<TimestampMillisecondType>(), |value| instant(value, 1_000))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            each(array.as_primitive::<TimestampMicrosecondType>(), |value| instant(value, 1))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let nanoseconds = array.as_primitive::<TimestampNanosecondType>();
            each(nanoseconds, |value| instant(value.div_euclid(1_000), 1))
        }
        _ => {
            let texts = crate::table::texts(array, &mut |text| text.into());
            let text =
                |text: Option<fleet::Name>| text.map_or_else(String::new, |text| text.to_string());
            texts.into_iter().map(text).collect()
        }
    }
}

fn each<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    write: impl Fn(T::Native) -> String,
) -> Vec<String> {
    array.iter().map(|value| value.map_or_else(String::new, &write)).collect()
}

/// An instant in RFC 3339; empty beyond the years that it has.
fn instant(value: i64, micros: i64) -> String {
    let instant = value.checked_mul(micros).and_then(DateTime::from_timestamp_micros);
    instant.map_or_else(String::new, |instant| instant.to_rfc3339())
}

//! Columns of a snapshot beyond its format: power, purchase year, licences, row, cooling loop.

use crate::error::ReadError;
use crate::schema::{Column, EXPORTED_SERVERS, RESERVATIONS};
use crate::table::{NamePool, read_columns, texts};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use fleet::{ExtraCells, ExtraColumn, ExtraOf, ExtraTable, Name, Rru};
use std::collections::BTreeSet;
use std::path::Path;

/// Digits after the point of a decimal in a policy.
const SCALE: i8 = 6;

/// Reads the columns of a snapshot that its format does not name: of `servers.parquet` and
/// `reservations.parquet`, and of `racks.parquet` and `msbs.parquet` where the folder has them.
///
/// Text, integers, floats and decimals, truth values and dates are read; floats to the nearest millionth.
/// A column of another type is listed as unusable, with the reason.
///
/// # Errors
/// If a file is damaged, a column is there twice, a row has no name or is there twice, or a number does
/// not fit.
pub fn read_extra(dir: &Path) -> Result<Vec<ExtraTable>, ReadError> {
    let mut tables = Vec::new();
    for of in ExtraOf::ALL {
        let file = dir.join(of.file());
        let named: &[Column] = match of {
            ExtraOf::Servers => EXPORTED_SERVERS.columns,
            ExtraOf::Reservations => RESERVATIONS.columns,
            // These files are for policies alone.
            ExtraOf::Racks | ExtraOf::Msbs if !file.exists() => continue,
            ExtraOf::Racks | ExtraOf::Msbs => &[],
        };
        tables.push(table(of, &file, named)?);
    }
    Ok(tables)
}

fn table(of: ExtraOf, file: &Path, named: &[Column]) -> Result<ExtraTable, ReadError> {
    let broken = |rule: String| ReadError::Extra { file: file.to_owned(), rule };
    let mut extra = ExtraTable { of, keys: Vec::new(), columns: Vec::new(), unusable: Vec::new() };
    let choose = |found: &arrow_schema::Schema| {
        let mut key = None;
        let (mut positions, mut seen) = (Vec::new(), BTreeSet::new());
        for (at, field) in found.fields().iter().enumerate() {
            let name = field.name();
            if name == of.key() && is_text(field.data_type()) {
                key = Some(at);
            }
            if name == of.key() || named.iter().any(|column| column.name == name) {
                continue;
            }
            if !seen.insert(name) {
                return Err(broken(format!("column {name:?} is there twice")));
            }
            match cells(field.data_type()) {
                Ok(cells) => {
                    positions.push(at);
                    extra.columns.push(ExtraColumn { name: name.clone(), cells });
                }
                Err(reason) => extra.unusable.push((name.clone(), reason)),
            }
        }
        let key = key.ok_or_else(|| {
            broken(format!("has no column {:?} of text, which names its rows", of.key()))
        })?;
        positions.insert(0, key);
        Ok(positions)
    };
    let pool = &mut NamePool::default();
    // What `choose` fills is read once it is done.
    let mut batches: Vec<(Vec<ArrayRef>, u64)> = Vec::new();
    read_columns(file, choose, |arrays, _, rows_before| {
        batches.push((arrays, rows_before));
        Ok::<(), ReadError>(())
    })?;
    let mut seen: BTreeSet<Name> = BTreeSet::new();
    for (arrays, rows_before) in batches {
        let keys = texts(&arrays[0], &mut |text| text.into());
        for (row, key) in keys.into_iter().enumerate() {
            let number = rows_before + row as u64 + 1;
            let key = key.ok_or_else(|| broken(format!("row {number}: {} is null", of.key())))?;
            if !seen.insert(key.clone()) {
                return Err(broken(format!("{} {key:?} is there twice", of.key())));
            }
            extra.keys.push(key);
        }
        for (array, column) in arrays[1..].iter().zip(&mut extra.columns) {
            read(array, column, pool).map_err(|(row, rule)| {
                let number = rows_before + row as u64 + 1;
                broken(format!("row {number}: column {:?} {rule}", column.name))
            })?;
        }
    }
    Ok(extra)
}

fn is_text(of: &DataType) -> bool {
    match of {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// Where values of a type are kept; the error says why they are not.
fn cells(of: &DataType) -> Result<ExtraCells, String> {
    match of {
        text if is_text(text) => Ok(ExtraCells::Text(Vec::new())),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            Ok(ExtraCells::Integer(Vec::new()))
        }
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            Ok(ExtraCells::Integer(Vec::new()))
        }
        DataType::Float32 | DataType::Float64 => Ok(ExtraCells::Decimal(Vec::new())),
        DataType::Decimal128(_, 0..=SCALE) => Ok(ExtraCells::Decimal(Vec::new())),
        DataType::Boolean => Ok(ExtraCells::Boolean(Vec::new())),
        DataType::Date32 => Ok(ExtraCells::Date(Vec::new())),
        other => Err(format!(
            "is of type {other}; text, integers, floats, decimals of up to {SCALE} digits after \
             the point, truth values and dates are read"
        )),
    }
}

/// Appends the values of an array; the error has the row and what is wrong with it.
fn read(
    array: &ArrayRef,
    column: &mut ExtraColumn,
    pool: &mut NamePool,
) -> Result<(), (usize, String)> {
    match &mut column.cells {
        ExtraCells::Text(cells) => cells.extend(texts(array, &mut |text| pool.intern(text))),
        ExtraCells::Integer(cells) => {
            for (row, value) in integers(array).into_iter().enumerate() {
                let value = value.map(i64::try_from).transpose();
                cells.push(value.map_err(|_| (row, "has more than 63 bits".to_owned()))?);
            }
        }
        ExtraCells::Decimal(cells) => {
            for (row, value) in millionths(array).into_iter().enumerate() {
                let wrong = || (row, "is no number of up to 12 digits before the point".to_owned());
                cells.push(value.map(|micro| micro.ok_or_else(wrong)).transpose()?);
            }
        }
        ExtraCells::Boolean(cells) => cells.extend(array.as_boolean().iter()),
        ExtraCells::Date(cells) => cells.extend(array.as_primitive::<Date32Type>().iter()),
    }
    Ok(())
}

fn integers(array: &ArrayRef) -> Vec<Option<i128>> {
    macro_rules! wide {
        ($of:ty) => {
            array.as_primitive::<$of>().iter().map(|value| value.map(i128::from)).collect()
        };
    }
    match array.data_type() {
        DataType::Int8 => wide!(Int8Type),
        DataType::Int16 => wide!(Int16Type),
        DataType::Int32 => wide!(Int32Type),
        DataType::Int64 => wide!(Int64Type),
        DataType::UInt8 => wide!(UInt8Type),
        DataType::UInt16 => wide!(UInt16Type),
        DataType::UInt32 => wide!(UInt32Type),
        DataType::UInt64 => wide!(UInt64Type),
        _ => vec![None; array.len()],
    }
}

/// Numbers in millionths; the inner `None` is one that does not fit.
fn millionths(array: &ArrayRef) -> Vec<Option<Option<i64>>> {
    let float = |value: f64| Rru::from_f64(value).map(|amount| amount.0);
    match array.data_type() {
        DataType::Float32 => (array.as_primitive::<Float32Type>().iter())
            .map(|value| value.map(|value| float(f64::from(value))))
            .collect(),
        DataType::Float64 => {
            array.as_primitive::<Float64Type>().iter().map(|value| value.map(float)).collect()
        }
        DataType::Decimal128(_, scale) => {
            let factor = 10_i128.pow(u32::from((SCALE - scale).unsigned_abs()));
            let micro = |value: i128| i64::try_from(value.checked_mul(factor)?).ok();
            array.as_primitive::<Decimal128Type>().iter().map(|value| value.map(micro)).collect()
        }
        _ => vec![None; array.len()],
    }
}

//! Series of demand.

use super::error::{FieldError, FieldRule, ImportError};
use super::sheet::{Column, Line, Sheet};
use chrono::{DateTime, NaiveDate, NaiveTime};
use forecast::{Faults, Notice, Point, Series, SeriesError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Which columns of a file of series have what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesColumns {
    /// Column of the times: seconds, dates (2026-01-31, from midnight UTC) or RFC 3339.
    pub time: String,
    /// Column of the values. A row without a value is a gap.
    pub value: String,
    /// Columns whose values tell series in one file apart, such as `region` and `type`.
    pub by: Vec<String>,
}

/// A series of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedSeries {
    /// The values of the columns that tell it apart, joined by `/`; without such columns, the name of the value's
    /// column.
    pub name: String,
    /// The series.
    pub series: Series,
    /// Gaps and resets that were marked; rows are lines of the file.
    pub notices: Vec<Notice>,
}

/// A file of series cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SeriesFileError {
    /// The file or its fields are not understood.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The rows of a series break a rule. Rows are lines of the file, the header being the first.
    #[error("{}: {name}: column {column:?}: {broken}", file.display())]
    Series {
        /// The file.
        file: PathBuf,
        /// The series.
        name: String,
        /// The column of the values, or of the times if those are wrong.
        column: String,
        /// The row and the rule.
        #[source]
        broken: SeriesError,
    },
}

/// Reads the series of a CSV file, in the order of their names.
///
/// # Errors
/// Fields that are not understood, all at once, with their lines; rows that are not a series.
pub fn read_series(
    file: &Path,
    columns: &SeriesColumns,
    faults: Faults,
) -> Result<Vec<NamedSeries>, SeriesFileError> {
    let mut sheet = Sheet::read(file)?;
    let mut wrong = sheet.wrong();
    let time = sheet.column(&columns.time)?;
    let value = sheet.column(&columns.value)?;
    let by: Vec<Column> =
        columns.by.iter().map(|name| sheet.column(name)).collect::<Result<_, _>>()?;
    let mut points: BTreeMap<Vec<&str>, Vec<Point>> = BTreeMap::new();
    if by.is_empty() {
        points.insert(Vec::new(), Vec::new());
    }
    for line in sheet.lines() {
        let at = wrong.take(seconds(line, time));
        let observed = wrong.take(line.optional_number(value));
        let key: Option<Vec<&str>> =
            by.iter().map(|column| wrong.take(line.name(*column))).collect();
        let (Some(time), Some(Some(value)), Some(key)) = (at, observed, key) else { continue };
        points.entry(key).or_default().push(Point { time, value, row: line.number() });
    }
    wrong.end(&sheet)?;
    let named = points.into_iter().map(|(key, points)| {
        let name = if key.is_empty() { columns.value.clone() } else { key.join("/") };
        match Series::from_points(&points, faults) {
            Ok((series, notices)) => Ok(NamedSeries { name, series, notices }),
            Err(broken) => {
                let of_value = matches!(
                    broken,
                    SeriesError::Negative { .. }
                        | SeriesError::NotFinite { .. }
                        | SeriesError::TooLarge { .. }
                        | SeriesError::TooShort { .. }
                        | SeriesError::Fault(Notice::Reset { .. })
                );
                let column = if of_value { &columns.value } else { &columns.time };
                let (file, column) = (file.to_owned(), column.clone());
                Err(SeriesFileError::Series { file, name, column, broken })
            }
        }
    });
    named.collect()
}

/// A time in seconds.
pub(super) fn seconds(line: Line, column: Column) -> Result<i64, FieldError> {
    // Beyond three thousand years a number of seconds is a mistake, such as milliseconds.
    const SECONDS_MAX: i64 = 100_000_000_000;
    let text = line.text(column).trim();
    if text.is_empty() {
        return Err(line.broken(column, FieldRule::Empty));
    }
    if let Ok(seconds) = text.parse::<i64>() {
        let is_honest = seconds.abs() <= SECONDS_MAX;
        let expected = "a number of seconds, at most 1e11";
        let rule = FieldRule::Number { value: seconds as f64, expected };
        return if is_honest { Ok(seconds) } else { Err(line.broken(column, rule)) };
    }
    if let Ok(date) = text.parse::<NaiveDate>() {
        return Ok(date.and_time(NaiveTime::MIN).and_utc().timestamp());
    }
    (DateTime::parse_from_rfc3339(text).map(|instant| instant.timestamp()))
        .map_err(|_| line.broken(column, FieldRule::NotTime { value: text.to_owned() }))
}

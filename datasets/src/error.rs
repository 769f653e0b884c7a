//! What can go wrong with the files of a snapshot or a result.

use crate::schema::ColumnType;
use fleet::SnapshotError;
use std::path::{Path, PathBuf};

/// `"a" or "b"`.
fn quoted(formats: &[&str]) -> String {
    formats.iter().map(|format| format!("{format:?}")).collect::<Vec<_>>().join(" or ")
}

/// A folder cannot be read as what it should be: which file, which row or column, which rule.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is missing or the system refuses it.
    #[error("{}: cannot be read", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The file is larger than any honest one.
    #[error("{}: holds {found} {what}; at most {limit} are read", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// What was counted.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        limit: u64,
    },
    /// The file is not JSON of the expected form.
    #[error("{}: is not the expected JSON", file.display())]
    Json {
        /// The file.
        file: PathBuf,
        /// What is wrong, with line and column.
        #[source]
        source: serde_json::Error,
    },
    /// The file says that it is of another format or version.
    #[error("{}: format is {found:?}; this reads {}", file.display(), quoted(expected))]
    Format {
        /// The file.
        file: PathBuf,
        /// The format it names.
        found: String,
        /// The formats wanted.
        expected: &'static [&'static str],
    },
    /// The file is not Parquet, is cut short or is damaged.
    #[error("{}: is not a whole, undamaged Parquet file: {detail}", file.display())]
    Parquet {
        /// The file.
        file: PathBuf,
        /// What the Parquet reader says.
        detail: String,
    },
    /// A column of the format is not there, or is there twice.
    #[error("{}: has {found} columns {column:?} ({kind}); it must have exactly one", file.display())]
    Column {
        /// The file.
        file: PathBuf,
        /// The column.
        column: &'static str,
        /// Its type in the format.
        kind: ColumnType,
        /// How many columns of the name there are.
        found: usize,
    },
    /// A column has another type than the format gives it.
    #[error("{}: column {column:?} is of type {found}; it must be {kind}", file.display())]
    ColumnType {
        /// The file.
        file: PathBuf,
        /// The column.
        column: &'static str,
        /// Its type in the file, in Arrow's words.
        found: String,
        /// Its type in the format.
        kind: ColumnType,
    },
    /// A column that must always have a value has none in a row.
    #[error("{}: row {row:?}: {column} is null; it must have a value", file.display())]
    Null {
        /// The file.
        file: PathBuf,
        /// The row, by id, or by number where the id itself is null.
        row: String,
        /// The column.
        column: &'static str,
    },
    /// A time cannot be held exactly.
    #[error(
        "{}: row {row:?}: {column} is {value} {unit} since 1970; it must be whole microseconds \
         of a year that calendars reach", file.display()
    )]
    Time {
        /// The file.
        file: PathBuf,
        /// The row, by id.
        row: String,
        /// The column.
        column: &'static str,
        /// The number in the file.
        value: i64,
        /// Its unit.
        unit: &'static str,
    },
    /// A column beyond the format, or its file, cannot be read.
    #[error("{}: {rule}", file.display())]
    Extra {
        /// The file.
        file: PathBuf,
        /// Column, row where there is one, and rule.
        rule: String,
    },
    /// The rows break a rule of the snapshot format.
    #[error("{}/{broken}", dir.display())]
    Rule {
        /// The snapshot's folder.
        dir: PathBuf,
        /// File, row and rule.
        broken: Box<SnapshotError>,
    },
}

impl ReadError {
    pub(crate) fn file(file: &Path, source: std::io::Error) -> ReadError {
        ReadError::File { file: file.to_owned(), source }
    }
}

/// A folder cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The system refuses: no permission, no space, no such place.
    #[error("{}: cannot be written", path.display())]
    System {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The rows cannot be put into the table.
    #[error("{}: cannot be written as Parquet", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the Parquet writer says.
        #[source]
        source: parquet::errors::ParquetError,
    },
    /// The JSON file cannot be made.
    #[error("{}: cannot be written as JSON", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What the JSON writer says.
        #[source]
        source: serde_json::Error,
    },
    /// Something else is in the way; it stays as it is.
    #[error("{}: is in the way and is not replaced: {reason}", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// What it holds that is not ours.
        reason: String,
    },
    /// A time is finer than the format holds.
    #[error("{file}: row {row:?}: {column} is not whole microseconds")]
    Time {
        /// The file.
        file: &'static str,
        /// The row, by id.
        row: String,
        /// The column.
        column: &'static str,
    },
    /// JSON has no NaN and no infinity.
    #[error("{file}: a weight or fraction is not a finite number")]
    NotFinite {
        /// The file.
        file: &'static str,
    },
    /// The report is not one of the format.
    #[error("report.json: format must be \"ras-solve/1\", not {found}")]
    Report {
        /// The member `format` as it is.
        found: String,
    },
}

impl WriteError {
    pub(crate) fn system(path: &Path) -> impl FnOnce(std::io::Error) -> WriteError + '_ {
        move |source| WriteError::System { path: path.to_owned(), source }
    }
}

/// A folder cannot be read as the result of a solve of the snapshot at hand.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The files themselves cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A row does not fit the snapshot.
    #[error("{}: row {row:?}: {rule}", file.display())]
    Row {
        /// The file.
        file: PathBuf,
        /// The server.
        row: String,
        /// The rule it breaks.
        rule: AssignmentRule,
    },
}

/// The rules of `assignment.parquet`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum AssignmentRule {
    #[error("the server is not in the snapshot")]
    UnknownServer,
    #[error("the server appears in more than one row")]
    Duplicate,
    #[error("the server is in the snapshot and has no row here")]
    Missing,
    #[error("{column} names {name:?}, which is not a reservation of the snapshot")]
    UnknownReservation { column: &'static str, name: String },
    #[error("current_reservation is {found}, but {expected} in the snapshot")]
    OtherCurrent { found: String, expected: String },
    #[error("moved is {found}, but the two reservations say {expected}")]
    OtherMoved { found: bool, expected: bool },
}

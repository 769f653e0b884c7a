//! What can be wrong with CSV files.

use crate::error::ReadError;
use std::path::{Path, PathBuf};

/// CSV files cannot be imported: which file, which line and field, which rule.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file is missing, not CSV or not UTF-8.
    #[error("{}: cannot be read as CSV", file.display())]
    Csv {
        /// The file.
        file: PathBuf,
        /// What is wrong, with the line.
        #[source]
        source: csv::Error,
    },
    /// The file is Parquet that cannot be read.
    #[error(transparent)]
    Parquet(#[from] ReadError),
    /// A column is needed and not there.
    #[error("{}: has no column {column:?}; its columns are {found}", file.display())]
    Column {
        /// The file.
        file: PathBuf,
        /// The column wanted.
        column: String,
        /// The columns there are.
        found: String,
    },
    /// Two columns have one name.
    #[error("{}: has two columns {column:?}", file.display())]
    ColumnTwice {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
    },
    /// Fields are not understood or break a rule: everything that is wrong with one file.
    #[error("{}", listed(file, errors, *more))]
    Fields {
        /// The file.
        file: PathBuf,
        /// The first [`ERRORS_MAX`], in order of lines.
        errors: Vec<FieldError>,
        /// How many more there are.
        more: usize,
    },
    /// The servers stand nowhere.
    #[error(
        "{}: {column} is empty in every line, so it is not known where the servers stand; a \
         topology file can say it", file.display()
    )]
    Nowhere {
        /// The file.
        file: PathBuf,
        /// The column of the datacenter.
        column: String,
    },
    /// Servers have no line in the topology.
    #[error("{}: has no line for {}", file.display(), servers_named(servers))]
    NotInTopology {
        /// The topology file.
        file: PathBuf,
        /// The servers.
        servers: Vec<String>,
    },
    /// Requests cannot be scaled by such a number.
    #[error("requests cannot be scaled by {value}; it must be finite and not negative")]
    Scale {
        /// The number.
        value: f64,
    },
}

/// Longest field, in bytes, of a CSV file; columns that are not read count too.
pub(super) const FIELD_BYTES_MAX: usize = 1 << 16;

/// Longest line, in bytes: a file without line ends would otherwise be read into memory whole.
pub(super) const LINE_BYTES_MAX: usize = 1 << 20;

/// How many errors of one file are listed.
pub const ERRORS_MAX: usize = 100;

/// One field of a CSV file is not understood or breaks a rule.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("line {line}: {field}: {rule}")]
pub struct FieldError {
    /// The line, counted from one, on which the record begins.
    pub line: u64,
    /// The column.
    pub field: String,
    /// The rule.
    pub rule: Box<FieldRule>,
}

fn listed(file: &Path, errors: &[FieldError], more: usize) -> String {
    let file = file.display();
    let mut lines: Vec<String> = errors.iter().map(|error| format!("{file}: {error}")).collect();
    if more > 0 {
        lines.push(format!("{file}: and {more} more errors"));
    }
    lines.join("\n")
}

fn servers_named(servers: &[String]) -> String {
    const NAMED: usize = 10;
    let named: Vec<String> = servers.iter().take(NAMED).map(|name| format!("{name:?}")).collect();
    let what = if servers.len() == 1 { "server" } else { "servers" };
    match servers.len().saturating_sub(NAMED) {
        0 => format!("{what} {}", named.join(", ")),
        more => format!("{what} {} and {more} more", named.join(", ")),
    }
}

/// The rules for fields.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum FieldRule {
    #[error("is empty")]
    Empty,
    #[error("is empty here, but not in every line")]
    EmptyHere,
    #[error("has {chars} characters; a name has at most 128")]
    TooLong { chars: usize },
    #[error("is not a name: {0}")]
    Name(fleet::NameError),
    #[error("{value:?} is not a number")]
    NotNumber { value: String },
    #[error("{value} must be {expected}")]
    Number { value: f64, expected: &'static str },
    #[error("{value:?} is not one of {expected}")]
    Word { value: String, expected: &'static str },
    #[error("{name:?} stands on line {first} already")]
    Duplicate { name: String, first: u64 },
    #[error("{name:?} is named twice")]
    NamedTwice { name: String },
    #[error("{pair:?} is not of the form {expected}")]
    Pair { pair: String, expected: &'static str },
    #[error("{name:?} is not the id of a server in the servers file")]
    UnknownServer { name: String },
    #[error("no server is of hardware type {name:?}")]
    UnknownType { name: String },
    #[error("no server is in datacenter {name:?}")]
    UnknownDatacenter { name: String },
    #[error("hardware type {name:?} is eligible but has no value")]
    NoValue { name: String },
    #[error("hardware type {name:?} has a value but is not eligible")]
    NotEligible { name: String },
    #[error("rack {rack:?} is in MSB {msb:?} here and in {other:?} on line {line}")]
    RackInTwoMsbs { rack: String, msb: String, other: String, line: u64 },
    #[error("MSB {msb:?} is in datacenter {datacenter:?} here and in {other:?} on line {line}")]
    MsbInTwoDatacenters { msb: String, datacenter: String, other: String, line: u64 },
    #[error("{end} lies before the start, {start}")]
    EndsBeforeStart { start: String, end: String },
    #[error("{value:?} is neither RFC 3339, such as 2026-01-31T12:00:00Z, nor a number of seconds")]
    NotInstant { value: String },
    #[error(
        "{value:?} is neither a whole number of seconds, nor a date such as 2026-01-31, nor RFC 3339"
    )]
    NotTime { value: String },
    #[error(
        "{value} as Unix seconds lies before the year 2000; if the file counts from an instant of its \
         own, that one must be said (--epoch)"
    )]
    NotUnix { value: f64 },
    #[error("{name:?} is not the name of a request")]
    UnknownReservation { name: String },
    #[error(
        "{name:?} is also the name of the placeholder for servers of which the file does not say it"
    )]
    StandIn { name: String },
    #[error("has {found} fields, the header has {expected}")]
    Length { found: u64, expected: u64 },
    #[error("server {name:?} is of type {first:?} on an earlier line; a server has one type")]
    TwoTypes { name: String, first: String },
    #[error("is not UTF-8")]
    NotUtf8,
    #[error(
        "has {character} as character {position}; a name has no control characters and none that \
         change the direction of text or have no width"
    )]
    Character { character: String, position: usize },
    #[error("has {bytes} bytes; a field has at most {}", FIELD_BYTES_MAX)]
    FieldTooLong { bytes: usize },
    #[error("is longer than {} bytes, or a quote is not closed", LINE_BYTES_MAX)]
    LineTooLong,
    #[error(
        "{name:?} counts capacity in other units than servers; changes of its size are in servers"
    )]
    NotServers { name: String },
    #[error("{name:?} begins with \"shared-buffer/\", which is reserved")]
    Reserved { name: String },
    #[error("{name:?} is the name of an elastic reservation or a shared buffer of the region")]
    Taken { name: String },
    #[error("the shares add up to {sum}; they may add up to at most {limit}")]
    ShareSum { sum: f64, limit: f64 },
}

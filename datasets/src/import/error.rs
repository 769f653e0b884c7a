//! What can be wrong with CSV files.

use std::path::PathBuf;

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
    /// A field is not understood or breaks a rule.
    #[error("{}: line {line}: {field}: {rule}", file.display())]
    Field {
        /// The file.
        file: PathBuf,
        /// The line, counted from one, on which the record begins.
        line: u64,
        /// The column.
        field: String,
        /// The rule.
        rule: Box<FieldRule>,
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
    /// A server has no line in the topology.
    #[error("{}: has no line for server {server:?}", file.display())]
    NotInTopology {
        /// The topology file.
        file: PathBuf,
        /// The server.
        server: String,
    },
    /// Requests cannot be scaled by such a number.
    #[error("requests cannot be scaled by {value}; it must be finite and not negative")]
    Scale {
        /// The number.
        value: f64,
    },
    /// An event log says nothing without an instant on it.
    #[error("events are given without an instant; say at which second of the log the region is")]
    EventsWithoutInstant,
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
    #[error("no server stands in datacenter {name:?}")]
    UnknownDatacenter { name: String },
    #[error("hardware type {name:?} is eligible but has no value")]
    NoValue { name: String },
    #[error("hardware type {name:?} has a value but is not eligible")]
    NotEligible { name: String },
    #[error("rack {rack:?} stands in MSB {msb:?} here and in {other:?} on line {line}")]
    RackInTwoMsbs { rack: String, msb: String, other: String, line: u64 },
    #[error("MSB {msb:?} stands in datacenter {datacenter:?} here and in {other:?} on line {line}")]
    MsbInTwoDatacenters { msb: String, datacenter: String, other: String, line: u64 },
    #[error("{end} lies before the start, {start}")]
    EndsBeforeStart { start: f64, end: f64 },
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

//! What can be wrong with a snapshot.

use std::fmt;

/// A table of the snapshot format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// `region.json`
    Region,
    /// `servers.parquet`
    Servers,
    /// `reservations.parquet`
    Reservations,
    /// `rru.parquet`
    RruValues,
    /// `affinity.parquet`
    Affinity,
    /// `allowed_datacenters.parquet`
    AllowedDatacenters,
    /// `unavailability.parquet`
    Unavailability,
    /// `move_budgets.parquet`
    MoveBudgets,
    /// `survives.parquet`
    Survives,
}

impl Table {
    /// The name of its file in a snapshot folder.
    pub const fn file(self) -> &'static str {
        match self {
            Table::Region => "region.json",
            Table::Servers => "servers.parquet",
            Table::Reservations => "reservations.parquet",
            Table::RruValues => "rru.parquet",
            Table::Affinity => "affinity.parquet",
            Table::AllowedDatacenters => "allowed_datacenters.parquet",
            Table::Unavailability => "unavailability.parquet",
            Table::MoveBudgets => "move_budgets.parquet",
            Table::Survives => "survives.parquet",
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.file())
    }
}

/// A snapshot breaks a rule of the format: which file, which row, which rule.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{table}: row {row:?}: {rule}")]
pub struct SnapshotError {
    /// The file.
    pub table: Table,
    /// The row, by id; pairs are written `reservation/type`.
    pub row: String,
    /// The rule it breaks.
    pub rule: Rule,
}

/// The rules of the snapshot format.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum Rule {
    #[error("{column} must have 1 to 128 characters, not {chars}")]
    NameLength { column: &'static str, chars: usize },
    #[error("the id appears in more than one row")]
    Duplicate,
    #[error("rack {rack:?} lies in MSB {first:?} and in MSB {second:?}; a rack lies in one MSB")]
    RackInTwoMsbs { rack: String, first: String, second: String },
    #[error(
        "MSB {msb:?} lies in datacenter {first:?} and in datacenter {second:?}; an MSB lies in one"
    )]
    MsbInTwoDatacenters { msb: String, first: String, second: String },
    #[error("{column} names {name:?}, which is not in {table}")]
    Unknown { column: &'static str, name: String, table: Table },
    #[error("{column} is {value:?}; it must be one of {expected}")]
    Word { column: &'static str, value: String, expected: &'static str },
    #[error("{column} is {value}; it must be {expected}")]
    Number { column: &'static str, value: f64, expected: &'static str },
    #[error("target_reservation is set although target_pending is false")]
    TargetWithoutMove,
    #[error("loaned_to names {name:?}, which is not an elastic reservation")]
    LoanToNotElastic { name: String },
    #[error("a shared buffer has exactly one row in rru.parquet, of value 1; this has {rows}")]
    SharedBufferType { rows: String },
    #[error("two shared buffers, {first:?} and this, are of hardware type {hardware_type:?}")]
    SharedBufferTwice { first: String, hardware_type: String },
    #[error("ids that begin with {prefix:?} are reserved for shared buffers, made or listed")]
    ReservedId { prefix: &'static str },
    #[error(
        "an id of this form names the type of the shared buffer; this one is of {hardware_type:?}"
    )]
    ReservedIdType { hardware_type: String },
    #[error("the shares add up to {sum}; they may add up to at most {limit}")]
    ShareSum { sum: f64, limit: f64 },
    #[error("only a guaranteed reservation may have {what}; this one is {kind}")]
    OnlyGuaranteed { what: &'static str, kind: &'static str },
    #[error("a share of {share} is wanted in datacenter {datacenter:?}, which is not allowed")]
    ShareNotAllowed { datacenter: String, share: f64 },
    #[error("replicas and replicas_per_msb must both be given, or neither")]
    ReplicasAlone,
    #[error("replicas_per_msb is {per_msb}; it must be 1 to {replicas}, the number of replicas")]
    ReplicasPerMsb { per_msb: i32, replicas: i32 },
    #[error("partition is \"msb\", which msb_buffer of reservations.parquet speaks of")]
    PartitionOfMsbs,
    #[error("partition names no column of servers.parquet: {column:?} is not there")]
    NoPartition { column: String },
    #[error("ended_at lies before started_at")]
    EndsBeforeStart,
}

//! The tables of the public formats, as constants: `ras-snapshot/3`, `ras-snapshot/2` and `ras-solve/1`.
//!
//! Reader and writer both go by these lists, so that a column is defined in one place. A change that
//! an older reader would not survive needs a new version of the format.
//!
//! Snapshots are written in version 2, or in version 3 where they have partitions: those are columns `domain:NAME` of
//! `servers.parquet` and the table [`SURVIVES`]. Version 1 is still read: it has no
//! `allowed_datacenters.parquet` and no `move_budgets.parquet`, and of two other tables fewer columns ([`RESERVATIONS_1`],
//! [`UNAVAILABILITY_1`]). What version 2 adds is absent from such a region.

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use fleet::Table;
use std::fmt;
use std::sync::Arc;

/// Version of the snapshot format: the `format` member of `region.json`, and metadata of every
/// Parquet file of a snapshot.
pub const SNAPSHOT_FORMAT: &str = "ras-snapshot/2";

/// The version that has partitions, and is written only for them: an older reader refuses it instead of leaving out what
/// reservations must survive.
pub const SNAPSHOT_FORMAT_3: &str = "ras-snapshot/3";

/// The first version, which is read and no longer written.
pub const SNAPSHOT_FORMAT_1: &str = "ras-snapshot/1";

/// The versions of the snapshot format that are read.
pub(crate) const SNAPSHOT_FORMATS: &[&str] =
    &[SNAPSHOT_FORMAT_3, SNAPSHOT_FORMAT, SNAPSHOT_FORMAT_1];

/// Version of the result format: the `format` member of `report.json`, and metadata of
/// `assignment.parquet`.
pub const RESULT_FORMAT: &str = "ras-solve/1";

/// File of a result that holds one row per server.
pub const ASSIGNMENT_FILE: &str = "assignment.parquet";

/// File of a result that holds the figures of the solve.
pub const REPORT_FILE: &str = "report.json";

/// What a solve leaves for the next one, beside its result.
pub const WARM_FILE: &str = "warm.json";

/// The format of [`WARM_FILE`].
pub const WARM_FORMAT: &str = "ras-warm/1";

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// UTF-8, different in every row.
    Id,
    /// UTF-8, few different values: written with a dictionary.
    Name,
    /// True or false.
    Bool,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
    /// 64-bit floating point.
    Float64,
    /// Microseconds, UTC.
    Timestamp,
}

impl ColumnType {
    /// The Arrow type it is written as.
    pub fn arrow(self) -> DataType {
        match self {
            ColumnType::Id => DataType::Utf8,
            ColumnType::Name => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            ColumnType::Bool => DataType::Boolean,
            ColumnType::Int32 => DataType::Int32,
            ColumnType::Int64 => DataType::Int64,
            ColumnType::Float64 => DataType::Float64,
            ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        }
    }

    /// Whether a column of this Arrow type is read as this one.
    ///
    /// Strings may be plain or dictionary-encoded, times of any unit as long as they are UTC (a
    /// value that is not whole microseconds is refused later); a column without any value may be
    /// untyped where nulls are allowed.
    pub fn reads(self, found: &DataType, nullable: bool) -> bool {
        let text = |found: &DataType| {
            matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        };
        match (self, found) {
            (_, DataType::Null) => nullable,
            (ColumnType::Id | ColumnType::Name, DataType::Dictionary(_, values)) => text(values),
            (ColumnType::Id | ColumnType::Name, found) => text(found),
            (ColumnType::Timestamp, DataType::Timestamp(_, Some(zone))) => {
                ["UTC", "Etc/UTC", "Z", "+00:00", "+0000", "+00"].contains(&zone.as_ref())
            }
            (ColumnType::Timestamp, _) => false,
            (plain, found) => plain.arrow() == *found,
        }
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ColumnType::Id | ColumnType::Name => "string",
            ColumnType::Bool => "bool",
            ColumnType::Int32 => "int32",
            ColumnType::Int64 => "int64",
            ColumnType::Float64 => "float64",
            ColumnType::Timestamp => "timestamp(us, UTC)",
        })
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnType,
    /// Whether it may hold nulls.
    pub nullable: bool,
}

/// A table: one Parquet file of a folder.
#[derive(Clone, Copy, Debug)]
pub struct TableSchema {
    /// Its file.
    pub file: &'static str,
    /// The format it belongs to.
    pub format: &'static str,
    /// Its columns, in the order they are written.
    pub columns: &'static [Column],
    /// How many of the first columns make up a row's id.
    pub key: usize,
}

impl TableSchema {
    /// The Arrow schema it is written with.
    pub fn arrow(&self) -> SchemaRef {
        let field = |column: &Column| Field::new(column.name, column.kind.arrow(), column.nullable);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }
}

const fn required(name: &'static str, kind: ColumnType) -> Column {
    Column { name, kind, nullable: false }
}

const fn nullable(name: &'static str, kind: ColumnType) -> Column {
    Column { name, kind, nullable: true }
}

/// What `servers.parquet` holds; the last column only where a store exported it.
const SERVER_COLUMNS: &[Column] = &[
    required("server_id", ColumnType::Id),
    required("datacenter", ColumnType::Name),
    required("msb", ColumnType::Name),
    required("rack", ColumnType::Name),
    required("hardware_type", ColumnType::Name),
    nullable("current_reservation", ColumnType::Name),
    nullable("target_reservation", ColumnType::Name),
    required("target_pending", ColumnType::Bool),
    required("in_use", ColumnType::Bool),
    nullable("loaned_to", ColumnType::Name),
    nullable("power_watts", ColumnType::Float64),
    nullable("generation", ColumnType::Int64),
];

/// `servers.parquet`
pub const SERVERS: TableSchema = TableSchema {
    file: Table::Servers.file(),
    format: SNAPSHOT_FORMAT,
    columns: SERVER_COLUMNS.split_at(SERVER_COLUMNS.len() - 1).0,
    key: 1,
};

/// `servers.parquet` of a region that a store exported: with the column `generation`, which other
/// readers of the format ignore.
pub const EXPORTED_SERVERS: TableSchema = TableSchema { columns: SERVER_COLUMNS, ..SERVERS };

/// The part of it that says what a decision rests on.
pub const GENERATIONS: TableSchema = TableSchema {
    columns: &[required("server_id", ColumnType::Id), nullable("generation", ColumnType::Int64)],
    ..SERVERS
};

/// What `reservations.parquet` holds; the last two columns since version 2.
const RESERVATION_COLUMNS: &[Column] = &[
    required("reservation_id", ColumnType::Id),
    required("owner", ColumnType::Name),
    required("kind", ColumnType::Name),
    required("capacity_rru", ColumnType::Float64),
    required("msb_buffer", ColumnType::Bool),
    required("priority", ColumnType::Int32),
    nullable("msb_alpha", ColumnType::Float64),
    nullable("rack_alpha", ColumnType::Float64),
    nullable("affinity_theta", ColumnType::Float64),
    nullable("host_profile", ColumnType::Name),
    nullable("replicas", ColumnType::Int32),
    nullable("replicas_per_msb", ColumnType::Int32),
];

/// `reservations.parquet`
pub const RESERVATIONS: TableSchema = TableSchema {
    file: Table::Reservations.file(),
    format: SNAPSHOT_FORMAT,
    columns: RESERVATION_COLUMNS,
    key: 1,
};

/// `reservations.parquet` of version 1.
pub const RESERVATIONS_1: TableSchema = TableSchema {
    format: SNAPSHOT_FORMAT_1,
    columns: RESERVATION_COLUMNS.split_at(RESERVATION_COLUMNS.len() - 2).0,
    ..RESERVATIONS
};

/// `rru.parquet`
pub const RRU: TableSchema = TableSchema {
    file: Table::RruValues.file(),
    format: SNAPSHOT_FORMAT,
    columns: &[
        required("reservation_id", ColumnType::Name),
        required("hardware_type", ColumnType::Name),
        required("rru", ColumnType::Float64),
    ],
    key: 2,
};

/// `affinity.parquet`
pub const AFFINITY: TableSchema = TableSchema {
    file: Table::Affinity.file(),
    format: SNAPSHOT_FORMAT,
    columns: &[
        required("reservation_id", ColumnType::Name),
        required("datacenter", ColumnType::Name),
        required("share", ColumnType::Float64),
    ],
    key: 2,
};

/// `allowed_datacenters.parquet`: a reservation with rows is held to the datacenters they name.
pub const ALLOWED_DATACENTERS: TableSchema = TableSchema {
    file: Table::AllowedDatacenters.file(),
    format: SNAPSHOT_FORMAT,
    columns: &[
        required("reservation_id", ColumnType::Name),
        required("datacenter", ColumnType::Name),
    ],
    key: 2,
};

/// `move_budgets.parquet`: how many servers may begin to move before the next solve.
pub const MOVE_BUDGETS: TableSchema = TableSchema {
    file: Table::MoveBudgets.file(),
    format: SNAPSHOT_FORMAT,
    columns: &[
        required("scope", ColumnType::Name),
        required("scope_id", ColumnType::Name),
        nullable("in_use", ColumnType::Bool),
        required("moves", ColumnType::Int64),
        required("because", ColumnType::Name),
    ],
    key: 2,
};

/// `survives.parquet` of version 3: partitions of which a reservation survives the loss of any one domain.
pub const SURVIVES: TableSchema = TableSchema {
    file: Table::Survives.file(),
    format: SNAPSHOT_FORMAT_3,
    columns: &[
        required("reservation_id", ColumnType::Name),
        required("partition", ColumnType::Name),
    ],
    key: 2,
};

/// What `unavailability.parquet` holds: the first [`UNAVAILABILITY_1_COLUMNS`] in version 1 too.
const UNAVAILABILITY_COLUMNS: &[Column] = &[
    required("event_id", ColumnType::Id),
    required("scope", ColumnType::Name),
    required("scope_id", ColumnType::Name),
    required("kind", ColumnType::Name),
    required("started_at", ColumnType::Timestamp),
    nullable("ended_at", ColumnType::Timestamp),
    nullable("recall_minutes", ColumnType::Int32),
];

/// Columns of `unavailability.parquet` in version 1.
const UNAVAILABILITY_1_COLUMNS: usize = 6;

/// `unavailability.parquet`
pub const UNAVAILABILITY: TableSchema = TableSchema {
    file: Table::Unavailability.file(),
    format: SNAPSHOT_FORMAT,
    columns: UNAVAILABILITY_COLUMNS,
    key: 1,
};

/// `unavailability.parquet` of version 1.
pub const UNAVAILABILITY_1: TableSchema = TableSchema {
    format: SNAPSHOT_FORMAT_1,
    columns: UNAVAILABILITY_COLUMNS.split_at(UNAVAILABILITY_1_COLUMNS).0,
    ..UNAVAILABILITY
};

/// `assignment.parquet` of a result.
pub const ASSIGNMENT: TableSchema = TableSchema {
    file: ASSIGNMENT_FILE,
    format: RESULT_FORMAT,
    columns: &[
        required("server_id", ColumnType::Id),
        nullable("current_reservation", ColumnType::Name),
        nullable("target_reservation", ColumnType::Name),
        required("moved", ColumnType::Bool),
    ],
    key: 1,
};

/// The Parquet tables of a snapshot, in the order they are read and written.
pub const SNAPSHOT_TABLES: [&TableSchema; 7] = [
    &SERVERS,
    &RESERVATIONS,
    &RRU,
    &AFFINITY,
    &ALLOWED_DATACENTERS,
    &UNAVAILABILITY,
    &MOVE_BUDGETS,
];

/// The Parquet tables of version 1.
pub const SNAPSHOT_1_TABLES: [&TableSchema; 5] =
    [&SERVERS, &RESERVATIONS_1, &RRU, &AFFINITY, &UNAVAILABILITY_1];

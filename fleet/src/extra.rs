//! Columns of a snapshot beyond its format. The solver does not read them; policies may.

use crate::id::Name;

/// The table that extra columns belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraOf {
    /// Columns of `servers.parquet` that the format does not name.
    Servers,
    /// Columns of `reservations.parquet` that the format does not name.
    Reservations,
    /// `racks.parquet`, a file that only policies read.
    Racks,
    /// `msbs.parquet`, a file that only policies read.
    Msbs,
}

impl ExtraOf {
    /// All of them.
    pub const ALL: [ExtraOf; 4] =
        [ExtraOf::Servers, ExtraOf::Reservations, ExtraOf::Racks, ExtraOf::Msbs];

    /// Name of the table.
    pub fn table(self) -> &'static str {
        match self {
            ExtraOf::Servers => "servers",
            ExtraOf::Reservations => "reservations",
            ExtraOf::Racks => "racks",
            ExtraOf::Msbs => "msbs",
        }
    }

    /// The file that holds it.
    pub fn file(self) -> &'static str {
        match self {
            ExtraOf::Servers => "servers.parquet",
            ExtraOf::Reservations => "reservations.parquet",
            ExtraOf::Racks => "racks.parquet",
            ExtraOf::Msbs => "msbs.parquet",
        }
    }

    /// The column that names a row.
    pub fn key(self) -> &'static str {
        match self {
            ExtraOf::Servers => "server_id",
            ExtraOf::Reservations => "reservation_id",
            ExtraOf::Racks => "rack",
            ExtraOf::Msbs => "msb",
        }
    }
}

/// Values of an extra column, row by row; `None` is no value.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtraCells {
    /// Text.
    Text(Vec<Option<Name>>),
    /// Whole numbers.
    Integer(Vec<Option<i64>>),
    /// Numbers in millionths.
    Decimal(Vec<Option<i64>>),
    /// True or false.
    Boolean(Vec<Option<bool>>),
    /// Days since 1970-01-01.
    Date(Vec<Option<i32>>),
}

/// A column that the format does not name.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraColumn {
    /// Its name.
    pub name: String,
    /// A value for each row of the table.
    pub cells: ExtraCells,
}

/// The extra columns of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraTable {
    /// The table.
    pub of: ExtraOf,
    /// The row that each value belongs to, by name; each once.
    pub keys: Vec<Name>,
    /// Columns, in the order of the file.
    pub columns: Vec<ExtraColumn>,
    /// Columns that cannot be read, each with the reason: its type.
    pub unusable: Vec<(String, String)>,
}

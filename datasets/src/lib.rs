//! Data at rest: snapshots and results as Parquet folders, inventories as CSV, synthetic regions.
//!
//! The formats are public ([`schema`]): other programs write snapshots and read results. So
//! everything read is checked, and what breaks a rule is refused with file, row and rule; nothing
//! is fixed, dropped or guessed. Everything written appears whole or not at all, and the same
//! input gives the same bytes.
//!
//! This crate knows files and Parquet. It does not know what a good assignment is (`fleet` audits,
//! `async-solver` solves) and reads no clock. Start at [`read_snapshot`].
//!
//! | module | what it does |
//! |---|---|
//! | [`schema`] | the tables of the formats as constants |
//! | `read`, `table`, `write`, `folder`, `error` | snapshot folders: every rule checked, each folder replaced atomically |
//! | `partitions` | columns `domain:NAME` of `servers.parquet` |
//! | `extra` | columns beyond the format, for policies |
//! | `result`, `basis` | `assignment.parquet` and `report.json`; version and generations of an exported region |
//! | [`import`] | CSV inventories, requests, resizes and event logs |
//! | [`generate`] | synthetic regions |
//! | `summary`, `backtest` (feature) | regions counted, and replays joined by day and reservation, with Polars |
//!
//! `examples/audit_region.rs` reads and audits a region: `cargo run -p datasets --example audit_region`.

#[cfg(feature = "summaries")]
pub mod backtest;
mod basis;
pub mod cluster;
mod error;
mod extra;
mod folder;
pub mod generate;
pub mod import;
mod partitions;
mod read;
mod result;
pub mod schema;
#[cfg(feature = "summaries")]
pub mod summary;
mod table;
mod write;

pub use basis::{Basis, read_basis};
pub use error::{AssignmentRule, ReadError, ResultError, WriteError};
pub use extra::read_extra;
pub use read::{SnapshotHead, read_coverage, read_head, read_parts, read_snapshot};
pub use result::{
    copy_warm, read_assignment, read_report, read_warm, write_assignment, write_result,
};
pub use write::{write_export, write_inventory, write_parts, write_snapshot};

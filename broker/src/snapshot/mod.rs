//! A whole region at once: import with its difference, and export.

pub(crate) mod domains;
pub(crate) mod export;
pub(crate) mod import_diff;
pub(crate) mod load;
pub(crate) mod region_read;

pub use export::{Export, ExportError};
pub use import_diff::{Changes, Elsewhere, ImportPlan, Missing, VANISHING_MAX, Vanishing};
pub use load::{ImportOptions, LoadError, Loaded, MergeError, PlanError};

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] =
    &[domains::sql::ALL, export::sql::ALL, load::sql::ALL, region_read::sql::ALL];

//! Reports about servers: unavailability events and use.

pub(crate) mod report;
pub(crate) mod unavailability;
pub(crate) mod usage;

pub use report::{Refusal, Report, ReportOutcome, Reported};
pub use usage::{Usage, UsageOutcome};

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] =
    &[report::sql::ALL, unavailability::sql::ALL, usage::sql::ALL];

//! Decisions between solves, written down: outages, replacements, loans, emergencies, preemption.

pub(crate) mod emergency;
pub(crate) mod give_way;
pub(crate) mod loan;
pub(crate) mod outage;
pub(crate) mod placement;
pub(crate) mod replacement;

pub use emergency::{Emergency, EmergencyError, EmergencyRefusal, Grant};
pub use give_way::{GaveWay, GiveWayAnswer, GiveWayCause, GiveWayError, give_way_version};
pub use loan::Lent;
pub use outage::Outage;
pub use replacement::{Replaced, ReplacementRow};

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[
    emergency::sql::ALL,
    give_way::sql::ALL,
    loan::sql::ALL,
    outage::sql::ALL,
    placement::sql::ALL,
    replacement::sql::ALL,
];

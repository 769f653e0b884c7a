//! Decisions between solves, written down: outages, replacements, loans, emergencies, preemption.

pub(crate) mod emergency;
pub(crate) mod emergency_refusal;
pub(crate) mod homecoming;
pub(crate) mod loan;
pub(crate) mod outage;
pub(crate) mod placement;
pub(crate) mod preemption;
pub(crate) mod replacement;

pub use emergency::{Emergency, EmergencyError, EmergencyRequest, Grant};
pub use emergency_refusal::EmergencyRefusal;
pub use homecoming::Homecoming;
pub use loan::Lent;
pub use outage::Outage;
pub use preemption::{
    Preempted, PreemptionAnswer, PreemptionCause, PreemptionError, preemption_version,
};
pub use replacement::{Replaced, ReplacementRow, ReplacementTimes};

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[
    emergency::sql::ALL,
    homecoming::sql::ALL,
    preemption::sql::ALL,
    loan::sql::ALL,
    outage::sql::ALL,
    placement::sql::ALL,
    replacement::sql::ALL,
];

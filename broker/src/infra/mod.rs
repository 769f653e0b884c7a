//! The connection to Postgres and what every room needs: errors, text and documents that Postgres can
//! store, `COPY`, leases, state machines, times of statements.

pub(crate) mod connection;
pub(crate) mod copy;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod id;
pub(crate) mod latency;
pub(crate) mod lease;
pub(crate) mod read_throttle;
pub(crate) mod state;
pub(crate) mod text;
pub(crate) mod words;

pub use connection::{Address, Broker, MIGRATOR, OpenError, POSTGRES_MIN, REGION};
pub use document::Document;
pub use error::{DbError, Fault};
pub use id::{
    BatchId, EmergencyId, HardwareOrderId, JobId, MaintenanceId, MaintenancePlanId, MoveId,
    OperationId, OrderId, PlanId, PublicationId, RecallId, RequestId, SolveId, TokenId, WindowId,
};
pub use latency::{STATEMENT_WITHIN, StatementTimes, note_statement, statement_times};
pub use lease::{LeaseTerm, keep_lease, since_boot};
pub use read_throttle::{PriorityReaders, Waiting};
pub use state::{
    EmergencyState, HardwareOrderState, JobState, MaintenanceState, MoveState, OperationState,
    PlanState, RecallState, ReplacementState, RequestState, SolveState, State, UnfinishedState,
};
pub use text::storable;

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[connection::sql::ALL];

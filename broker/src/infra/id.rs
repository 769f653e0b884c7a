//! Ids of rows: one type for each table, so that the id of a plan is never bound where a request is looked for.
//!
//! All are UUIDs. They are stored, written and read as such; JSON has their hyphenated text.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type,
        )]
        #[serde(transparent)]
        #[sqlx(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id, ordered by the time it was made.
            pub fn now_v7() -> Self {
                Self(Uuid::now_v7())
            }

            /// The id of all zeros, which no row has.
            pub const fn nil() -> Self {
                Self(Uuid::nil())
            }

            /// The id with this number.
            pub const fn from_u128(number: u128) -> Self {
                Self(Uuid::from_u128(number))
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Uuid {
                id.0
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                text.parse().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

ids! {
    /// A solve.
    SolveId,
    /// A job of the queue. The job of a solve has the id of the solve.
    JobId,
    /// Jobs that were requested together.
    BatchId,
    /// A publication of targets, chosen by the publisher.
    PublicationId,
    /// A move of a server.
    MoveId,
    /// A capacity request.
    RequestId,
    /// A plan of capacity changes.
    PlanId,
    /// An operation that a client waits for.
    OperationId,
    /// A window of planned maintenance.
    WindowId,
    /// Windows of planned maintenance that were requested together.
    MaintenancePlanId,
    /// A window of planned maintenance or all windows of a plan, as operators name them.
    MaintenanceId,
    /// A server's recall from maintenance.
    RecallId,
    /// An order to a host: it executes a move or a recall.
    OrderId,
    /// An order of hardware.
    HardwareOrderId,
    /// An emergency.
    EmergencyId,
    /// A token.
    TokenId,
}

impl From<JobId> for SolveId {
    fn from(job: JobId) -> SolveId {
        SolveId(job.0)
    }
}

impl From<SolveId> for JobId {
    fn from(solve: SolveId) -> JobId {
        JobId(solve.0)
    }
}

impl From<MoveId> for OrderId {
    fn from(of: MoveId) -> OrderId {
        OrderId(of.0)
    }
}

impl From<RecallId> for OrderId {
    fn from(of: RecallId) -> OrderId {
        OrderId(of.0)
    }
}

impl From<WindowId> for MaintenanceId {
    fn from(window: WindowId) -> MaintenanceId {
        MaintenanceId(window.0)
    }
}

impl From<MaintenancePlanId> for MaintenanceId {
    fn from(plan: MaintenancePlanId) -> MaintenanceId {
        MaintenanceId(plan.0)
    }
}

/// A window requested alone is a plan of its own id.
impl From<MaintenancePlanId> for WindowId {
    fn from(plan: MaintenancePlanId) -> WindowId {
        WindowId(plan.0)
    }
}

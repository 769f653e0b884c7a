//! Why maintenance is refused, with the numbers.

use super::rules::TooMuch;
use crate::error::DbError;
use chrono::{DateTime, Utc};
use fleet::{Name, Rru, Scope};
use uuid::Uuid;

/// Why maintenance is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum MaintenanceRefusal {
    #[error("there is no {} {name:?} with a server in it", scope.as_str())]
    UnknownScope { scope: Scope, name: Name },
    #[error("it would begin at {}, and it is {} now", starts_at.to_rfc3339(), now.to_rfc3339())]
    InThePast { starts_at: DateTime<Utc>, now: DateTime<Utc> },
    #[error("{what} of {seconds} s; it may be {least} s to {most} s")]
    Length { what: &'static str, seconds: u64, least: u64, most: u64 },
    #[error(
        "{out} of the {servers} servers of MSB {msb:?} would be under maintenance at once; at most {most} may"
    )]
    Share { msb: Name, out: u64, servers: u64, most: u64 },
    #[error(
        "reservation {reservation:?} needs {} RRU and would have {} while servers of MSB {msb:?} are out",
        needed.to_f64(),
        left.to_f64()
    )]
    Guarantee { reservation: Name, needed: Rru, left: Rru, msb: Name },
    #[error("MSB {msb:?} is lost; nothing begins until it is back")]
    OutageNow { msb: Name },
}

impl MaintenanceRefusal {
    /// Every [`MaintenanceRefusal::code`].
    pub const CODES: [&str; 6] =
        ["unknown_scope", "in_the_past", "length", "share", "guarantee", "outage_now"];

    /// A word for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            MaintenanceRefusal::UnknownScope { .. } => "unknown_scope",
            MaintenanceRefusal::InThePast { .. } => "in_the_past",
            MaintenanceRefusal::Length { .. } => "length",
            MaintenanceRefusal::Share { .. } => "share",
            MaintenanceRefusal::Guarantee { .. } => "guarantee",
            MaintenanceRefusal::OutageNow { .. } => "outage_now",
        }
    }

    /// The numbers behind it.
    pub fn numbers(&self) -> serde_json::Value {
        match self {
            MaintenanceRefusal::UnknownScope { scope, name } => {
                serde_json::json!({ "scope": scope.as_str(), "name": name })
            }
            MaintenanceRefusal::InThePast { starts_at, now } => {
                serde_json::json!({ "starts_at": starts_at, "now": now })
            }
            MaintenanceRefusal::Length { what, seconds, least, most } => serde_json::json!({
                "what": what, "seconds": seconds, "least": least, "most": most,
            }),
            MaintenanceRefusal::Share { msb, out, servers, most } => {
                serde_json::json!({ "msb": msb, "out": out, "servers": servers, "most": most })
            }
            MaintenanceRefusal::Guarantee { reservation, needed, left, msb } => serde_json::json!({
                "reservation": reservation, "needed_rru": needed.to_f64(),
                "left_rru": left.to_f64(), "msb": msb,
            }),
            MaintenanceRefusal::OutageNow { msb } => serde_json::json!({ "msb": msb }),
        }
    }
}

impl From<TooMuch> for MaintenanceRefusal {
    fn from(too_much: TooMuch) -> MaintenanceRefusal {
        match too_much {
            TooMuch::Share { msb, out, servers, most } => {
                MaintenanceRefusal::Share { msb, out, servers, most }
            }
            TooMuch::Guarantee { reservation, needed, left, msb } => {
                MaintenanceRefusal::Guarantee { reservation, needed, left, msb }
            }
        }
    }
}

/// Maintenance cannot be planned, ended or cancelled; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum MaintenanceError {
    #[error(transparent)]
    Refused(#[from] MaintenanceRefusal),
    #[error("there is no maintenance {id}")]
    Unknown { id: Uuid },
    #[error("maintenance {id} is over")]
    Over { id: Uuid },
    #[error("maintenance {id} has not begun; it can be cancelled")]
    NotActive { id: Uuid },
    #[error(transparent)]
    Db(#[from] DbError),
}

//! Why maintenance is refused, with the numbers.

use super::instead::MaintenanceInstead;
use crate::infra::error::DbError;
use crate::infra::id::MaintenanceId;
use chrono::{DateTime, Utc};
use decisions::maintenance::capacity::{Left, TooMuch};
use fleet::{Name, Scope};

/// What is too short or too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceLength {
    /// The window itself.
    Window,
    /// The drain before it.
    Drain,
    /// The recall of its servers.
    Recall,
    /// The time until it begins.
    Ahead,
}

impl MaintenanceLength {
    const fn as_str(self) -> &'static str {
        match self {
            MaintenanceLength::Window => "a window",
            MaintenanceLength::Drain => "a drain",
            MaintenanceLength::Recall => "a recall",
            MaintenanceLength::Ahead => "a time ahead",
        }
    }
}

/// Why maintenance is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum MaintenanceRefusal {
    #[error("there is no {} {name:?} with a server in it", scope.as_str())]
    UnknownScope { scope: Scope, name: Name },
    #[error("it would begin at {}, and it is {} now", starts_at.to_rfc3339(), now.to_rfc3339())]
    InThePast { starts_at: DateTime<Utc>, now: DateTime<Utc> },
    #[error("{} of {seconds} s; it may be {least} s to {most} s", what.as_str())]
    Length { what: MaintenanceLength, seconds: u64, least: u64, most: u64 },
    #[error(
        "{out} of the {servers} servers of MSB {msb:?} would be under maintenance at once; at most {most} may{}",
        or_else(instead)
    )]
    Share { msb: Name, out: u64, servers: u64, most: u64, instead: Vec<MaintenanceInstead> },
    #[error("{}{}", short(left, msb), or_else(instead))]
    Guarantee {
        left: Left,
        /// Where the servers are that would be out.
        msb: Name,
        instead: Vec<MaintenanceInstead>,
    },
    #[error("MSB {msb:?} is lost; nothing begins until it is back")]
    OutageNow { msb: Name },
}

impl MaintenanceRefusal {
    /// It without what would be accepted instead: what is in the way, and no more.
    #[must_use]
    pub fn without_instead(mut self) -> MaintenanceRefusal {
        if let MaintenanceRefusal::Share { instead, .. }
        | MaintenanceRefusal::Guarantee { instead, .. } = &mut self
        {
            instead.clear();
        }
        self
    }

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
                "what": what.as_str(), "seconds": seconds, "least": least, "most": most,
            }),
            MaintenanceRefusal::Share { msb, out, servers, most, instead } => serde_json::json!({
                "msb": msb, "out": out, "servers": servers, "most": most, "instead": json(instead),
            }),
            MaintenanceRefusal::Guarantee { left, msb, instead } => serde_json::json!({
                "reservation": left.reservation, "lost_msb": left.lost,
                "needed_at_once_rru": left.needed_at_once.to_f64(),
                "left_at_once_rru": left.left_at_once.to_f64(),
                "needed_rru": left.needed.to_f64(), "left_rru": left.left.to_f64(),
                "msb": msb, "instead": json(instead),
            }),
            MaintenanceRefusal::OutageNow { msb } => serde_json::json!({ "msb": msb }),
        }
    }
}

impl MaintenanceRefusal {
    pub(crate) fn of(too_much: TooMuch, instead: Vec<MaintenanceInstead>) -> MaintenanceRefusal {
        match too_much {
            TooMuch::Share { msb, out, servers, most } => {
                MaintenanceRefusal::Share { msb, out, servers, most, instead }
            }
            TooMuch::Guarantee { left, msb } => {
                MaintenanceRefusal::Guarantee { left, msb, instead }
            }
        }
    }
}

fn json(instead: &[MaintenanceInstead]) -> Vec<serde_json::Value> {
    instead.iter().map(MaintenanceInstead::json).collect()
}

fn short(left: &Left, msb: &Name) -> String {
    let Left { reservation, lost, needed_at_once, left_at_once, needed, left } = left;
    match lost {
        None => format!(
            "reservation {reservation:?} needs {needed} RRU and would have {left} while servers of \
             MSB {msb:?} are out"
        ),
        Some(lost) => format!(
            "with MSB {lost:?} lost, reservation {reservation:?} needs {needed_at_once} RRU at once \
             and {needed} within 30 minutes, and would have {left_at_once} and {left} while servers \
             of MSB {msb:?} are out"
        ),
    }
}

fn or_else(instead: &[MaintenanceInstead]) -> String {
    let texts: Vec<String> = instead.iter().map(MaintenanceInstead::text).collect();
    match texts.is_empty() {
        true => String::new(),
        false => format!("; it would be accepted with {}", texts.join(", or with ")),
    }
}

/// Maintenance cannot be planned, ended or cancelled; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum MaintenanceError {
    #[error(transparent)]
    Refused(#[from] MaintenanceRefusal),
    #[error("there is no maintenance {id}")]
    Unknown { id: MaintenanceId },
    #[error("maintenance {id} is over")]
    Over { id: MaintenanceId },
    #[error("maintenance {id} has not begun; it can be cancelled")]
    NotActive { id: MaintenanceId },
    #[error(transparent)]
    Db(#[from] DbError),
}

//! Refusals of planned maintenance, with the numbers and the alternatives.

use super::capacity::{Left, TooMuch};
use chrono::{DateTime, Utc};
use fleet::{MsbName, Name, ReservationName, Scope};
use std::time::Duration;

/// The reason why maintenance is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum MaintenanceRefusal {
    #[error("there is no {} {name:?} with a server in it", scope.as_str())]
    UnknownScope { scope: Scope, name: Name },
    #[error("it would begin at {}, and it is {} now", starts_at.to_rfc3339(), now.to_rfc3339())]
    InThePast { starts_at: DateTime<Utc>, now: DateTime<Utc> },
    #[error("{} of {seconds} s; it may be {least} s to {most} s", what.as_str())]
    Length { what: Length, seconds: u64, least: u64, most: u64 },
    #[error(
        "{out} of the {servers} servers of MSB {msb:?} would be under maintenance at once; at most {most} may{}",
        or_with(instead)
    )]
    Share { msb: MsbName, out: u64, servers: u64, most: u64, instead: Vec<MaintenanceAlternative> },
    #[error("{}{}{}", short(left, msb), or_with(instead), ways_out(blocking))]
    Guarantee {
        left: Box<Left>,
        /// The MSB of the servers that would be out.
        msb: MsbName,
        /// Every reservation whose promise blocks it, if nothing else does.
        blocking: Box<[ReservationName]>,
        instead: Vec<MaintenanceAlternative>,
    },
    #[error("MSB {msb:?} is lost; no maintenance begins until it is back")]
    OutageNow { msb: MsbName },
}

impl MaintenanceRefusal {
    /// A refusal by a limit.
    pub fn of(limit: TooMuch, instead: Vec<MaintenanceAlternative>) -> MaintenanceRefusal {
        match limit {
            TooMuch::Share { msb, out, servers, most } => {
                MaintenanceRefusal::Share { msb, out, servers, most, instead }
            }
            TooMuch::Guarantee { left, msb } => MaintenanceRefusal::Guarantee {
                left: Box::new(left),
                msb,
                blocking: Box::default(),
                instead,
            },
        }
    }

    /// With the reservations that block it.
    #[must_use]
    pub fn blocked_by(mut self, reservations: Vec<ReservationName>) -> MaintenanceRefusal {
        if let MaintenanceRefusal::Guarantee { blocking, .. } = &mut self {
            *blocking = reservations.into();
        }
        self
    }

    /// The refusal without alternatives and ways out.
    #[must_use]
    pub fn without_instead(mut self) -> MaintenanceRefusal {
        if let MaintenanceRefusal::Share { instead, .. }
        | MaintenanceRefusal::Guarantee { instead, .. } = &mut self
        {
            instead.clear();
        }
        self.blocked_by(Vec::new())
    }

    /// The word for programs.
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
}

fn short(left: &Left, msb: &MsbName) -> String {
    let Left { reservation, lost, needed_at_once, left_at_once, needed, left } = left;
    match lost {
        None => format!(
            "reservation {reservation:?} needs {needed} RRU and would have {left} while servers of \
             MSB {msb:?} are out"
        ),
        Some(lost) => format!(
            "with {lost} lost, reservation {reservation:?} needs {needed_at_once} RRU at once \
             and {needed} within 30 minutes, and would have {left_at_once} and {left} while servers \
             of MSB {msb:?} are out"
        ),
    }
}

/// How work can be done although reservations block it.
fn ways_out(blocking: &[ReservationName]) -> String {
    let Some(first) = blocking.first() else { return String::new() };
    let names: Vec<String> = blocking.iter().map(|name| format!("{name:?}")).collect();
    let (them, they) = if names.len() == 1 { ("it", "it") } else { ("them", "they") };
    format!(
        ". It is blocked by {}. Move {them} first: `ras request resize {first} --allowed-datacenter \
         DATACENTER` names where else {first:?} may be. Or accept that {they} may be short meanwhile: \
         accept_short, with a reason (`--accept-short {first} --accept-why REASON`)",
        names.join(", ")
    )
}

fn or_with(instead: &[MaintenanceAlternative]) -> String {
    let texts: Vec<String> = instead.iter().map(MaintenanceAlternative::text).collect();
    match texts.is_empty() {
        true => String::new(),
        false => format!("; it would be accepted with {}", texts.join(", or with ")),
    }
}

/// A change to a refused request with which it would be accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceAlternative {
    /// Work that can be recalled within this many minutes.
    pub recall_minutes: Option<u32>,
    /// A later start.
    pub starts_at: Option<DateTime<Utc>>,
    /// The share of an MSB whose racks may be out of service at once, in millionths.
    pub share_micro: Option<u32>,
    /// The most servers of a rack at once.
    pub servers: Option<usize>,
}

impl MaintenanceAlternative {
    /// As people read it.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        if let Some(starts_at) = self.starts_at {
            parts.push(format!("starts_at {}", starts_at.to_rfc3339()));
        }
        if let Some(minutes) = self.recall_minutes {
            parts.push(format!("recall_minutes {minutes}"));
        }
        if let Some(share) = self.share_micro {
            parts.push(format!("share {}", f64::from(share) / 1e6));
        }
        if let Some(servers) = self.servers {
            parts.push(format!("{servers} of its servers at once"));
        }
        parts.join(" with ")
    }
}

/// A length of time in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Of the work.
    Window,
    /// Of the drain.
    Drain,
    /// Until recalled servers are back.
    Recall,
    /// From now to the start.
    Ahead,
}

impl Length {
    /// As people read it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Length::Window => "a window",
            Length::Drain => "a drain",
            Length::Recall => "a recall",
            Length::Ahead => "a time ahead",
        }
    }

    pub(super) fn check(
        self,
        length: Duration,
        least: Duration,
        most: Duration,
    ) -> Result<(), MaintenanceRefusal> {
        if (least..=most).contains(&length) {
            return Ok(());
        }
        let (seconds, least, most) = (length.as_secs(), least.as_secs(), most.as_secs());
        Err(MaintenanceRefusal::Length { what: self, seconds, least, most })
    }
}

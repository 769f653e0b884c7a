//! The input and the report of a replay.

use crate::outage::StormGuard;
use chrono::{DateTime, Utc};
use fleet::{ReservationName, Rru, ServerIx, UnavailabilityKind};
use std::time::Duration;

/// An interval in which a server is out of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downtime {
    /// The server.
    pub server: ServerIx,
    /// The cause. A server in planned maintenance still counts as capacity (RAS section 3.3.1).
    pub kind: UnavailabilityKind,
    /// The start.
    pub from: DateTime<Utc>,
    /// The end; `None`: the log has none.
    pub until: Option<DateTime<Utc>>,
}

/// The settings of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplaySettings {
    /// The end of the replay.
    pub until: DateTime<Utc>,
    /// The time from a failure to the decision about it.
    pub settle: Duration,
    /// The duration of a move.
    pub move_takes: Duration,
    /// When single failures count as the loss of an MSB.
    pub storm_guard: StormGuard,
    /// The interval between solves; `None`: no solves.
    pub solve_every: Option<Duration>,
}

/// The report about one reservation.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservationReplay {
    /// Its name.
    pub reservation: ReservationName,
    /// C.
    pub capacity: Rru,
    /// The value of the hardware type that it values most.
    pub largest_value: Rru,
    /// Servers that failed while the reservation held them.
    pub failures: u64,
    /// RRU-hours of failed servers that were not replaced yet.
    pub missing: f64,
    /// RRU-hours below C.
    pub short: f64,
    /// RRU-hours below C after the loss of the largest MSB.
    pub unguaranteed: f64,
}

/// The report of a replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayReport {
    /// Duration in hours.
    pub hours: f64,
    /// Servers that failed while a guaranteed reservation held them.
    pub failures: u64,
    /// Failures after which a spare was bound.
    pub replaced: u64,
    /// Failures that ended before a spare was chosen.
    pub recovered: u64,
    /// Failures that a solve provided for.
    pub paid: u64,
    /// Failures without a spare at the end.
    pub owed: u64,
    /// The largest number of failures without a spare at any time.
    pub owed_most: u64,
    /// Seconds from failure to binding of the replaced servers, ascending.
    pub waits: Vec<f64>,
    /// Servers that returned to a shared buffer.
    pub returned: u64,
    /// Repaired servers that returned to the reservation that held them when they failed.
    pub home: u64,
    /// Number of times that an MSB counted as lost.
    pub storms: u64,
    /// Hours for which MSBs counted as lost, summed over MSBs.
    pub lost_hours: f64,
    /// Downtimes for planned maintenance, which removes no capacity.
    pub maintenance: u64,
    /// Number of solves.
    pub solves: u64,
    /// Servers moved by solves.
    pub moved_by_solves: u64,
    /// Working servers in shared buffers: at the start, and the fewest at any time.
    pub spares: (u64, u64),
    /// Guaranteed reservations, by name.
    pub reservations: Vec<ReservationReplay>,
}

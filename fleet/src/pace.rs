//! How fast servers may move: limits at once and per window.
//!
//! The mover holds to them; solver and planner know them, so that neither promises more.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many moves of one kind, in one place or of one reservation. `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Caps {
    /// Under way at the same time.
    pub at_once: Option<u32>,
    /// Begun within [`Limits::window`], by what is stored: restarts forget none. A move counts from when it
    /// begins until a window after its end, however it ends.
    pub per_window: Option<u32>,
}

/// Limits of one scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScopeLimits {
    /// Of servers on which containers run.
    pub in_use: Caps,
    /// Of all others.
    pub idle: Caps,
}

/// The limits on moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Of the region.
    pub region: ScopeLimits,
    /// Of each MSB.
    pub msb: ScopeLimits,
    /// Of each rack.
    pub rack: ScopeLimits,
    /// Of each reservation that servers leave.
    pub reservation: ScopeLimits,
    /// The window, in seconds.
    pub window_seconds: u32,
}

impl Default for Limits {
    /// What a region bears without anyone looking: a hundredth of a large one at once, no more than
    /// a few servers in use of one rack, whose switch and power they share.
    fn default() -> Limits {
        let at_once = |in_use, idle| ScopeLimits {
            in_use: Caps { at_once: Some(in_use), per_window: None },
            idle: Caps { at_once: Some(idle), per_window: None },
        };
        Limits {
            region: at_once(2_000, 10_000),
            msb: at_once(200, 1_000),
            rack: at_once(4, 40),
            reservation: at_once(100, 2_000),
            window_seconds: 3_600,
        }
    }
}

impl Limits {
    /// The window.
    pub fn window(&self) -> Duration {
        Duration::from_secs(self.window_seconds.into())
    }

    /// Whether any of them counts what was done earlier.
    pub fn looks_back(&self) -> bool {
        [self.region, self.msb, self.rack, self.reservation]
            .iter()
            .any(|limits| limits.in_use.per_window.is_some() || limits.idle.per_window.is_some())
    }
}

mod arrival;
mod budget;

pub use arrival::{Arrival, Holdup};

use crate::id::{MsbName, RackName, ReservationName};
use chrono::{DateTime, TimeDelta, Timelike, Utc};

/// What a move counts for: where its server stands, whom it leaves, and whether containers run on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MoveKind {
    /// The rack.
    pub rack: RackName,
    /// Its MSB.
    pub msb: MsbName,
    /// Who owns the server; `None`: it is free.
    pub source: Option<ReservationName>,
    /// Whether containers run on it.
    pub in_use: bool,
}

/// Moves of one kind that are not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenMoves {
    /// Their kind.
    pub kind: MoveKind,
    /// Whether they wait to begin.
    pub waiting: bool,
    /// Whether they wait for no limit and no contract: capacity is short without them.
    pub urgent: bool,
    /// How many.
    pub count: u64,
}

/// The number of servers in use that may leave a reservation within the window of its churn contract:
/// the share of the servers that are in use or left within the window, rounded down, but at least one if
/// the share is positive. Otherwise a contract of 2 % would freeze every reservation with fewer than 50
/// servers in use.
///
/// `share_micro` is in millionths.
pub fn contract_allowance(share_micro: u32, in_use: u64, left: u64) -> u64 {
    let micro = u64::from(share_micro);
    let share = u128::from(in_use + left) * u128::from(micro) / 1_000_000;
    u64::try_from(share).unwrap_or(u64::MAX).max(u64::from(micro > 0))
}

/// A churn contract, and what is used of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractPace {
    /// The reservation.
    pub reservation: ReservationName,
    /// How many of its servers in use may leave it within the window.
    pub allowed: u64,
    /// The window, which slides.
    pub window: TimeDelta,
    /// When servers in use left it, within the last window.
    pub left: Vec<DateTime<Utc>>,
    /// Times of the day at which none may, as minutes of the day from and until; until may be before from.
    pub quiet: Vec<(u16, u16)>,
    /// Minutes that its time of the day is ahead of UTC now.
    pub ahead_of_utc: i32,
}

impl ContractPace {
    /// Whether it is quiet at an instant.
    pub fn is_quiet(&self, at: DateTime<Utc>) -> bool {
        let minute = self.minute_of_day(at);
        self.quiet.iter().any(|&(from, until)| {
            let (from, until) = (i64::from(from), i64::from(until));
            if from < until {
                (from..until).contains(&minute)
            } else {
                minute >= from || minute < until
            }
        })
    }

    /// Whether it lets no server leave at any time.
    fn is_never(&self) -> bool {
        let midnight = DateTime::UNIX_EPOCH;
        self.allowed == 0 || self.is_quiet_throughout(midnight, midnight + TimeDelta::days(1))
    }

    /// Whether it is quiet all the time from one instant to another.
    fn is_quiet_throughout(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> bool {
        let mut at = from;
        while at < until {
            if !self.is_quiet(at) {
                return false;
            }
            at = self.next_change(at).unwrap_or(until);
        }
        true
    }

    fn minute_of_day(&self, at: DateTime<Utc>) -> i64 {
        let local = at + TimeDelta::minutes(self.ahead_of_utc.into());
        i64::from(local.hour() * 60 + local.minute())
    }

    /// When the next quiet time begins or ends.
    fn next_change(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let now = self.minute_of_day(after);
        let ends = self.quiet.iter().flat_map(|&(from, until)| [from, until]);
        let minutes = ends.map(|minute| match (i64::from(minute) - now).rem_euclid(1_440) {
            0 => 1_440,
            ahead => ahead,
        });
        let begin = after - TimeDelta::seconds(i64::from(after.second()));
        minutes.min().map(|minutes| begin + TimeDelta::minutes(minutes))
    }
}

/// What the mover is held to at an instant, and how far it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Pacing {
    /// The instant.
    pub now: DateTime<Utc>,
    /// Its limits; `None`: no mover has ever acted, and none are known.
    pub limits: Option<Limits>,
    /// Seconds that a move of an idle server takes, from its first step until it is bound.
    pub idle_seconds: u32,
    /// Seconds that a move of a server in use takes, from its first step until it is bound.
    pub in_use_seconds: u32,
    /// Moves that are not done.
    pub open: Vec<OpenMoves>,
    /// Moves that are done and had begun within the window of the limits.
    pub begun: Vec<(MoveKind, u64)>,
    /// Churn contracts.
    pub contracts: Vec<ContractPace>,
}

impl Pacing {
    fn seconds(&self, in_use: bool) -> u32 {
        if in_use { self.in_use_seconds } else { self.idle_seconds }.max(1)
    }
}

/// A place or reservation whose moves are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All of the region.
    Region,
    /// An MSB.
    Msb(MsbName),
    /// A rack.
    Rack(RackName),
    /// The reservation that servers leave.
    Reservation(ReservationName),
}

impl MoveKind {
    /// The scopes whose limits a move of this kind counts against.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        let places = [Scope::Region, Scope::Msb(self.msb.clone()), Scope::Rack(self.rack.clone())];
        places.into_iter().chain(self.source.clone().map(Scope::Reservation))
    }
}

impl Limits {
    /// The limits of a scope for servers in use or for idle ones.
    pub fn caps(&self, scope: &Scope, in_use: bool) -> Caps {
        let limits = match scope {
            Scope::Region => self.region,
            Scope::Msb(_) => self.msb,
            Scope::Rack(_) => self.rack,
            Scope::Reservation(_) => self.reservation,
        };
        if in_use { limits.in_use } else { limits.idle }
    }
}

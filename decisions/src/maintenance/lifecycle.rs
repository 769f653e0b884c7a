//! The next step of a maintenance window.
//!
//! Nothing is stored between two looks: stored times and the present instant alone decide, so looking twice
//! does nothing more. An obstacle (a lost MSB, the share of the MSB, a guarantee) is checked when the drain
//! begins and when work begins. It pauses the window, which begins later, or is cancelled once its end has
//! passed.

use crate::maintenance::capacity::TooMuch;
use chrono::{DateTime, Utc};
use fleet::MsbName;
use std::time::Duration;

/// The longest time for which work waits for containers to end: as long as a move may take for that step.
/// The wait is at most half of the window.
pub const DRAIN_GRACE: Duration = Duration::from_secs(30 * 60);

/// The state of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MaintenanceState {
    /// Its drain has not begun.
    Planned,
    /// An obstacle holds it back.
    Paused,
    /// No new containers start on its servers, and running ones end.
    Draining,
    /// Work is under way.
    Active,
    /// An MSB is lost elsewhere, and its servers are recalled.
    Recalling,
    /// Work ended.
    Done,
    /// It was cancelled.
    Cancelled,
}

/// The reason for which a window is paused, was cancelled or ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MaintenanceReason {
    /// An operator cancelled it.
    Asked,
    /// An MSB is lost.
    Outage,
    /// Too much of its MSB would be under maintenance.
    Share,
    /// A guarantee would break.
    Guarantee,
    /// Its time passed while it was held back.
    Missed,
    /// Its server was removed.
    Gone,
    /// Its operator ended it.
    EndedEarly,
    /// An MSB was lost, and its servers were returned.
    Recalled,
}

impl MaintenanceReason {
    /// All reasons.
    pub const ALL: [MaintenanceReason; 8] = [
        MaintenanceReason::Asked,
        MaintenanceReason::Outage,
        MaintenanceReason::Share,
        MaintenanceReason::Guarantee,
        MaintenanceReason::Missed,
        MaintenanceReason::Gone,
        MaintenanceReason::EndedEarly,
        MaintenanceReason::Recalled,
    ];

    /// The word in tables and in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            MaintenanceReason::Asked => "asked",
            MaintenanceReason::Outage => "outage",
            MaintenanceReason::Share => "share",
            MaintenanceReason::Guarantee => "guarantee",
            MaintenanceReason::Missed => "missed",
            MaintenanceReason::Gone => "gone",
            MaintenanceReason::EndedEarly => "ended_early",
            MaintenanceReason::Recalled => "recalled",
        }
    }
}

/// The view of a decision about the next step of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowView {
    /// Its state.
    pub state: MaintenanceState,
    /// The reason for which it is paused.
    pub reason: Option<MaintenanceReason>,
    /// When the drain begins.
    pub drains_at: DateTime<Utc>,
    /// When work begins.
    pub starts_at: DateTime<Utc>,
    /// When work ends.
    pub ends_at: DateTime<Utc>,
    /// When moves were opened that end the containers that still run; `None`: not yet.
    pub drained_at: Option<DateTime<Utc>>,
    /// Whether one of those moves is open.
    pub still_drains: bool,
    /// Whether its server was removed.
    pub gone: bool,
}

/// An obstacle that holds a window back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// An MSB is lost.
    Outage(MsbName),
    /// A limit would be exceeded.
    TooMuch(TooMuch),
}

impl Obstacle {
    /// The reason with which the window is paused.
    pub const fn reason(&self) -> MaintenanceReason {
        match self {
            Obstacle::Outage(_) => MaintenanceReason::Outage,
            Obstacle::TooMuch(TooMuch::Share { .. }) => MaintenanceReason::Share,
            Obstacle::TooMuch(TooMuch::Guarantee { .. }) => MaintenanceReason::Guarantee,
        }
    }
}

/// The next step of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowStep {
    /// None now.
    Stay,
    /// Its drain begins, or an obstacle is over, or work begins or ends.
    To(MaintenanceState),
    /// It is paused.
    Pause(Obstacle),
    /// It stays paused, for another reason.
    Explain(Obstacle),
    /// Moves are opened that end the containers that still run.
    Drain,
    /// It is cancelled: [`MaintenanceReason::Gone`] or [`MaintenanceReason::Missed`].
    Cancel(MaintenanceReason),
}

/// Whether the next step of a window depends on the servers that it takes out: its drain or its work would
/// begin.
pub fn is_checked(window: &WindowView, now: DateTime<Utc>) -> bool {
    match window.state {
        MaintenanceState::Planned => window.drains_at <= now,
        MaintenanceState::Paused => true,
        MaintenanceState::Draining => window.drained_at.is_none() && window.starts_at <= now,
        _ => false,
    }
}

/// Decides the next step of a window.
///
/// - `lost`: an MSB that is lost.
/// - `too_much`: the limit that the window would exceed; called only if it matters.
pub fn next(
    window: &WindowView,
    now: DateTime<Utc>,
    lost: Option<&MsbName>,
    too_much: impl Fn() -> Option<TooMuch>,
) -> WindowStep {
    use MaintenanceState::{Active, Cancelled, Done, Draining, Paused, Planned, Recalling};
    let outage = || lost.cloned().map(Obstacle::Outage);
    let too_much = || too_much().map(Obstacle::TooMuch);
    let obstacle = || outage().or_else(too_much);
    match window.state {
        Done | Cancelled => WindowStep::Stay,
        _ if window.gone => WindowStep::Cancel(MaintenanceReason::Gone),
        Active | Recalling if window.ends_at <= now => WindowStep::To(Done),
        Active | Recalling => WindowStep::Stay,
        _ if window.ends_at <= now => WindowStep::Cancel(MaintenanceReason::Missed),
        Planned if now < window.drains_at => WindowStep::Stay,
        Planned => match obstacle() {
            Some(obstacle) => WindowStep::Pause(obstacle),
            None => WindowStep::To(Draining),
        },
        Paused => match obstacle() {
            Some(obstacle) if window.reason == Some(obstacle.reason()) => WindowStep::Stay,
            Some(obstacle) => WindowStep::Explain(obstacle),
            None => WindowStep::To(Planned),
        },
        Draining => match outage() {
            Some(outage) => WindowStep::Pause(outage),
            None if now < window.starts_at => WindowStep::Stay,
            None => begin_work(window, now, too_much),
        },
    }
}

/// The step of a draining window whose work is due.
fn begin_work(
    window: &WindowView,
    now: DateTime<Utc>,
    too_much: impl Fn() -> Option<Obstacle>,
) -> WindowStep {
    let Some(since) = window.drained_at else {
        return too_much().map_or(WindowStep::Drain, WindowStep::Pause);
    };
    let half = (window.ends_at - window.starts_at).to_std().unwrap_or_default() / 2;
    let waited = (now - since).to_std().unwrap_or_default();
    match window.still_drains && waited < half.min(DRAIN_GRACE) {
        true => WindowStep::Stay,
        false => WindowStep::To(MaintenanceState::Active),
    }
}

#[cfg(test)]
mod tests;

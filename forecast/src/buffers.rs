//! Shared buffers that follow failures: whether to keep, grow or shrink the buffer of a hardware type, with the reason.
//!
//! A buffer grows as soon as the servers that are expected to be down need more. Within its limits it shrinks slowly: by a tenth at
//! most, once in a cooldown after any change, and only if two weeks of failures are known. How many servers are down is said by
//! [`spares::downs`](crate::spares::downs).

use crate::autosize::COOLDOWNS;
use serde::Serialize;

/// The largest share of a buffer that one change takes away; at least one server.
const SHRINK: f64 = 0.1;

/// Seconds of failures without which a buffer does not shrink.
pub const KNOWN: i64 = 14 * 86_400;

/// What the operator sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Accepted chance that more servers are down at an instant than the buffer has, from 0.0001 to 0.5.
    pub chance: f64,
    /// The buffer never falls below it, in servers.
    pub min: u32,
    /// The buffer never rises above it, in servers.
    pub max: u32,
    /// Seconds after a change before the buffer may shrink.
    pub cooldown: u32,
}

/// Why settings cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// The chance is out of range.
    #[error("chance is {0}; it must be at least 0.0001 and at most 0.5")]
    Chance(f64),
    /// The limits are in the wrong order or too large.
    #[error("min is {min} and max is {max}; min must be at most max, and max at most 1,000,000")]
    Limits {
        /// The lower limit.
        min: u32,
        /// The upper limit.
        max: u32,
    },
    /// The cooldown is out of range.
    #[error("cooldown is {0} s; it must be from one hour to 31 days")]
    Cooldown(u32),
}

impl Settings {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first that is out of range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let Settings { chance, min, max, cooldown } = *self;
        if !(0.0001..=0.5).contains(&chance) {
            return Err(SettingsError::Chance(chance));
        }
        if min > max || max > 1_000_000 {
            return Err(SettingsError::Limits { min, max });
        }
        if !COOLDOWNS.contains(&cooldown) {
            return Err(SettingsError::Cooldown(cooldown));
        }
        Ok(())
    }
}

/// The buffer as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// Its size in servers.
    pub servers: u32,
    /// When it last changed, by anyone, in seconds; none: not that is known.
    pub changed_at: Option<i64>,
}

/// What failures ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The fewest servers that keep the accepted chance.
    pub servers: u32,
    /// Seconds of failures that it rests on.
    pub known: i64,
}

/// What becomes of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "action", content = "to")]
pub enum Action {
    /// It stays as it is.
    Keep,
    /// It grows to this size.
    Grow(u32),
    /// It shrinks to this size.
    Shrink(u32),
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Reason {
    /// Failures need more.
    #[error("failures need {need} servers for a chance of a shortfall of {percent} %")]
    Failures {
        /// What they need.
        need: u32,
        /// The accepted chance in percent.
        percent: f64,
    },
    /// The buffer is below the lower limit or above the upper one.
    #[error("the buffer is outside min and max")]
    Outside,
    /// Failures need as much as there is.
    #[error(
        "the buffer is what failures need for a chance of a shortfall of {percent} %, within min and max"
    )]
    Fits {
        /// The accepted chance in percent.
        percent: f64,
    },
    /// More is needed than the upper limit allows.
    #[error(
        "failures need {need} servers for a chance of a shortfall of {percent} %, but max is reached"
    )]
    AtMax {
        /// What they need.
        need: u32,
        /// The accepted chance in percent.
        percent: f64,
    },
    /// It would shrink, but a change was less than a cooldown ago.
    #[error("the buffer does not shrink yet: the last change was less than a cooldown ago")]
    Cooldown,
    /// It would shrink, but the history of failures is short.
    #[error("servers that failures do not need are kept: fewer than 14 days of failures are known")]
    TooShort,
    /// No recent failure of any server is known.
    #[error("no failure of any server in the last 14 days is known")]
    Unknown,
}

/// A decision and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// What to do.
    #[serde(flatten)]
    pub action: Action,
    /// Why.
    pub reason: Reason,
}

/// Decides on a buffer at an instant, in seconds. `need`: `None` if no recent failure of any server is known.
///
/// # Errors
/// Settings that are out of range.
pub fn decide(
    need: Option<Need>,
    settings: &Settings,
    current: &Current,
    now: i64,
) -> Result<Decision, SettingsError> {
    settings.check()?;
    let Settings { chance, min, max, cooldown } = *settings;
    let Current { servers, changed_at } = *current;
    let percent = (chance * 1e6).round() / 1e4;
    let does = |action, reason| Ok(Decision { action, reason });
    let rests = changed_at.is_none_or(|at| now.saturating_sub(at) >= i64::from(cooldown));
    if servers < min && need.is_none_or(|need| need.servers <= min) {
        return does(Action::Grow(min), Reason::Outside);
    }
    if servers > max {
        return match rests {
            true => does(Action::Shrink(max), Reason::Outside),
            false => does(Action::Keep, Reason::Cooldown),
        };
    }
    let Some(Need { servers: need, known }) = need else {
        return does(Action::Keep, Reason::Unknown);
    };
    let wanted = need.clamp(min, max);
    if wanted > servers {
        return does(Action::Grow(wanted), Reason::Failures { need, percent });
    }
    if need > servers {
        return does(Action::Keep, Reason::AtMax { need, percent });
    }
    if wanted == servers {
        return does(Action::Keep, Reason::Fits { percent });
    }
    if known < KNOWN {
        return does(Action::Keep, Reason::TooShort);
    }
    if !rests {
        return does(Action::Keep, Reason::Cooldown);
    }
    let most = ((f64::from(servers) * SHRINK) as u32).max(1);
    let to = wanted.max(servers.saturating_sub(most));
    does(Action::Shrink(to), Reason::Failures { need, percent })
}

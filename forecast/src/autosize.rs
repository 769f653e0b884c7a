//! Requests that follow demand: whether to keep, grow or shrink a request, with the reason.
//!
//! A request grows as soon as the forecast of the next hour's peak exceeds it, for servers take time to arrive. It shrinks
//! slowly: by a tenth at most, once in a cooldown after any change, and never below what the last cooldown needed. Which quantile
//! and cooldown suit a reservation its own history says: [`backtest`]. What one setting would have decided: [`replay`].

pub mod backtest;
pub mod replay;

use crate::series::{Series, Step};
use crate::short::MethodError;
use crate::tune::recommended;
use crate::warm::next;
use serde::Serialize;
use std::ops::RangeInclusive;

/// How far ahead a request must suffice: planning and moving servers takes minutes.
pub const AHEAD: Step = Step::HOUR;

/// Seconds after a change before a request or a buffer may shrink, by default: a day, so that each hour of it is seen.
pub const COOLDOWN: u32 = 86_400;

/// The cooldowns that can be set, in seconds: an hour to 31 days.
pub const COOLDOWNS: RangeInclusive<u32> = 3_600..=31 * 86_400;

/// The largest share of a request that one change takes away.
pub const SHRINK: f64 = 0.1;

/// A request does not grow by less than this share of it: ramps of demand are climbed in steps.
const GROW: f64 = 0.05;

/// A request does not shrink for less than this share of it.
const WORTHWHILE: f64 = 0.02;

/// Demand that fills the request may be larger than can be seen: the request then grows by at least this share.
const FILLED: f64 = 0.1;

/// Hours of known demand without which a request does not shrink.
const KNOWN_HOURS: usize = 24;

/// What the owner sets, in the unit of the demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The share of hours whose peak of demand the request must cover, from 0.5 to 0.9999.
    pub quantile: f64,
    /// The request never falls below it.
    pub min: f64,
    /// The request never rises above it.
    pub max: f64,
    /// Seconds after a change before the request may shrink.
    pub cooldown: u32,
}

/// Why settings cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// The quantile is out of range.
    #[error("quantile is {0}; it must be at least 0.5 and at most 0.9999")]
    Quantile(f64),
    /// The limits are out of range or in the wrong order.
    #[error(
        "min is {min} and max is {max}; they must be numbers of at least 0, and min at most max"
    )]
    Limits {
        /// The lower limit.
        min: f64,
        /// The upper limit.
        max: f64,
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
        let Settings { quantile, min, max, cooldown } = *self;
        if !(0.5..=0.9999).contains(&quantile) {
            return Err(SettingsError::Quantile(quantile));
        }
        if !(min >= 0.0 && min <= max && max.is_finite()) {
            return Err(SettingsError::Limits { min, max });
        }
        if !COOLDOWNS.contains(&cooldown) {
            return Err(SettingsError::Cooldown(cooldown));
        }
        Ok(())
    }
}

/// The request as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Current {
    /// Its size.
    pub request: f64,
    /// When it last changed, by anyone, in the seconds of the series; none: not that is known.
    pub changed_at: Option<i64>,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "action", content = "to")]
pub enum Action {
    /// It stays as it is.
    Keep,
    /// It grows to this size.
    Grow(f64),
    /// It shrinks to this size.
    Shrink(f64),
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Reason {
    /// The forecast exceeds the request.
    #[error("the peak of the next hour is forecast at {need:.1} (Q{percent}), above the request")]
    Forecast {
        /// The forecast at the quantile.
        need: f64,
        /// The quantile in percent.
        percent: f64,
    },
    /// Demand fills the request, and may be larger than can be seen.
    #[error("demand of {demand:.1} fills the request and may be larger than can be seen")]
    Filled {
        /// The last known demand.
        demand: f64,
    },
    /// The request is below the lower limit or above the upper one.
    #[error("the request is outside min and max")]
    Outside,
    /// Less was needed for a cooldown, and is for the next hour.
    #[error("the last cooldown and the next hour need at most {need:.1} (Q{percent})")]
    Unneeded {
        /// What was and is needed at most.
        need: f64,
        /// The quantile in percent.
        percent: f64,
    },
    /// The request suffices, and little of it is unneeded.
    #[error("the request fits the forecast of {need:.1} (Q{percent})")]
    Fits {
        /// What was and is needed at most.
        need: f64,
        /// The quantile in percent.
        percent: f64,
    },
    /// More is needed than the upper limit allows.
    #[error("the peak of the next hour is forecast at {need:.1} (Q{percent}), but max is reached")]
    AtMax {
        /// The forecast at the quantile.
        need: f64,
        /// The quantile in percent.
        percent: f64,
    },
    /// It would shrink, but a change was less than a cooldown ago.
    #[error("unneeded capacity is kept: the last change was less than a cooldown ago")]
    Cooldown,
    /// It would shrink, but too little is known of the demand.
    #[error("unneeded capacity is kept: too little of the demand of the last cooldown is known")]
    Unknown,
    /// Demand is not observed at present.
    #[error("demand is unknown for {seconds} s")]
    Stale {
        /// How long.
        seconds: i64,
    },
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

impl Decision {
    fn keep(reason: Reason) -> Decision {
        Decision { action: Action::Keep, reason }
    }
}

/// The demand at a quantile of the hour after a series: at least the demand of its last hour. None if nothing is known.
///
/// # Errors
/// A quantile that is out of range.
pub fn need(series: &Series, quantile: f64) -> Result<Option<f64>, MethodError> {
    let hours = hours(series);
    Ok(next(&hours, &recommended(1.0 - quantile, hours.step()))?.map(|next| next.capacity))
}

/// The demand at a quantile of each step of a series, as it was forecast one step before, and of the step after the last. None
/// before anything is known.
///
/// # Errors
/// A quantile that is out of range.
pub fn ahead(series: &Series, quantile: f64) -> Result<Vec<Option<f64>>, MethodError> {
    let mut forecaster = recommended(1.0 - quantile, series.step()).start()?;
    let mut known = false;
    let mut forecasts = vec![None];
    for observed in series.values() {
        known |= observed.is_some();
        let capacity = forecaster.observe(observed).total();
        forecasts.push(known.then_some(capacity));
    }
    Ok(forecasts)
}

/// The peaks of hours, the last of which ends with the series.
fn hours(series: &Series) -> Series {
    let per = series.step().per(AHEAD);
    let whole = series.slice(series.len() % per, series.len());
    whole.and_then(|whole| whole.peaks(AHEAD)).unwrap_or_else(|| series.clone())
}

/// Decides on a request at an instant, in the seconds of the series. The request covers the quantile of the peak of demand
/// of the next hour, within the limits; see the module for how it shrinks.
///
/// # Errors
/// Settings that are out of range.
pub fn decide(
    series: &Series,
    settings: &Settings,
    current: &Current,
    now: i64,
) -> Result<Decision, SettingsError> {
    settings.check()?;
    let window = Window::of(series, settings.cooldown);
    let need = need(series, settings.quantile).ok().flatten();
    let seen = need.zip(last_known(series)).map(|(need, (at, demand))| Seen {
        need,
        demand,
        age: now.saturating_sub(at),
        is_fresh: now.saturating_sub(at) <= i64::from(series.step().seconds()).saturating_mul(3),
        peak: window.peak,
        is_known: window.is_known && hours(series).values().flatten().count() >= KNOWN_HOURS,
    });
    Ok(rule(seen, settings, current, now))
}

/// What a decision rests on.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The demand at the quantile of the next hour.
    need: f64,
    /// The last known demand.
    demand: f64,
    /// Seconds since it was observed.
    age: i64,
    /// Whether that is recent.
    is_fresh: bool,
    /// The peak of the last cooldown.
    peak: f64,
    /// Whether enough of the past is known to shrink.
    is_known: bool,
}

/// The decision, by what is seen of the demand.
fn rule(seen: Option<Seen>, settings: &Settings, current: &Current, now: i64) -> Decision {
    let Settings { quantile, min, max, cooldown } = *settings;
    let Current { request, changed_at } = *current;
    let percent = (quantile * 1e6).round() / 1e4;
    let Some(Seen { need, demand, age, is_fresh, peak, is_known }) = seen else {
        return Decision::keep(Reason::Unknown);
    };
    if !is_fresh {
        return Decision::keep(Reason::Stale { seconds: age });
    }
    let filled = demand >= request;
    let wanted = if filled { need.max(request * (1.0 + FILLED)) } else { need };
    if wanted > request && request < max {
        let to = wanted.max(request * (1.0 + GROW)).clamp(min, max);
        let reason = match filled {
            true => Reason::Filled { demand },
            false => Reason::Forecast { need, percent },
        };
        return Decision { action: Action::Grow(to), reason };
    }
    if request < min {
        return Decision { action: Action::Grow(min), reason: Reason::Outside };
    }
    let rests = changed_at.is_none_or(|at| now.saturating_sub(at) >= i64::from(cooldown));
    if request > max {
        return match rests {
            true => Decision { action: Action::Shrink(max), reason: Reason::Outside },
            false => Decision::keep(Reason::Cooldown),
        };
    }
    if wanted > request {
        return Decision::keep(Reason::AtMax { need, percent });
    }
    let least = need.max(peak).clamp(min, max);
    if request - least <= request * WORTHWHILE {
        return Decision::keep(Reason::Fits { need: need.max(peak), percent });
    }
    if !is_known {
        return Decision::keep(Reason::Unknown);
    }
    if !rests {
        return Decision::keep(Reason::Cooldown);
    }
    let to = least.max(request * (1.0 - SHRINK));
    let reason = Reason::Unneeded { need: need.max(peak), percent };
    Decision { action: Action::Shrink(to), reason }
}

/// The time and value of the last known observation.
fn last_known(series: &Series) -> Option<(i64, f64)> {
    (0..series.len()).rev().find_map(|index| Some((series.time(index), series.get(index)?)))
}

/// The demand of the last cooldown.
struct Window {
    peak: f64,
    /// Whether the series is as long, and at most a tenth of it is unknown.
    is_known: bool,
}

impl Window {
    fn of(series: &Series, cooldown: u32) -> Window {
        let steps = cooldown.div_ceil(series.step().seconds()) as usize;
        let from = series.len().saturating_sub(steps);
        let known: Vec<f64> = (from..series.len()).filter_map(|index| series.get(index)).collect();
        let peak = known.iter().copied().fold(0.0, f64::max);
        Window { peak, is_known: series.len() >= steps && known.len() * 10 >= steps * 9 }
    }
}

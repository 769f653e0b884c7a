//! A daily series made fit for forecasts, and what is wrong with it.

use super::WEEK;
use crate::series::{Series, SeriesError, Step};
use serde::Serialize;

/// Days below which only the last value and its spread are used.
pub const SHORT: usize = 4 * WEEK;

/// Why a forecast of a series deserves little trust. It is made all the same, and is safe: finite,
/// ordered, at least 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Doubt {
    /// Fewer days than a method can learn from.
    #[error("known days: {days}; fewer than {SHORT} say nothing about weeks or trends")]
    Short {
        /// Days with a value, from the first one that is not 0.
        days: usize,
    },
    /// Days without a value were filled in.
    #[error("missing days, each taken as the last known same weekday: {days}")]
    Gaps {
        /// How many.
        days: usize,
    },
    /// All values are equal: any spread is a guess.
    #[error("all values are equal, so the bands have no width")]
    Constant,
    /// The series ends in zeros: a type no longer in use, or a source that no longer reports.
    #[error("no longer used, or no longer reported; last days of 0: {days}")]
    EndsInZeros {
        /// How many.
        days: usize,
    },
    /// Others that it is forecast with go on for longer: its days ahead are days that have passed.
    #[error(
        "ends {days} days before other series of the file, and is forecast from there: write rows of 0 if it is no longer used"
    )]
    EndsEarly {
        /// How many.
        days: usize,
    },
}

/// A daily series without gaps. At least one value; each is finite and at least 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Daily {
    values: Vec<f64>,
    doubts: Vec<Doubt>,
}

impl Daily {
    /// Fills the gaps of a daily series and looks for what makes its forecast doubtful.
    ///
    /// # Errors
    /// The step is not a day; no value is known.
    pub fn new(series: &Series) -> Result<Daily, DailyError> {
        if series.step() != Step::DAY {
            return Err(DailyError::Step(series.step()));
        }
        series.require(1)?;
        let mut values = series.filled();
        let mut gaps = 0;
        for day in 0..values.len() {
            if series.get(day).is_none() {
                gaps += 1;
                if let Some(before) = day.checked_sub(WEEK) {
                    values[day] = values[before];
                }
            }
        }
        let mut doubts = Vec::new();
        let unused = values.iter().take_while(|value| **value == 0.0).count();
        let is_known = |day: &usize| series.get(*day).is_some();
        // Zeros throughout are a history, too.
        let first = if unused < values.len() { unused } else { 0 };
        let known = (first..values.len()).filter(is_known).count();
        if known < SHORT {
            doubts.push(Doubt::Short { days: known });
        }
        if gaps > 0 {
            doubts.push(Doubt::Gaps { days: gaps });
        }
        let zeros = values.iter().rev().take_while(|value| **value == 0.0).count();
        if values.iter().all(|value| *value == values[0]) {
            doubts.push(Doubt::Constant);
        } else if zeros > WEEK {
            doubts.push(Doubt::EndsInZeros { days: zeros });
        }
        Ok(Daily { values, doubts })
    }

    /// Its values, one a day.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// What makes its forecast doubtful.
    pub fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }
}

/// Why a series is not a daily one.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DailyError {
    /// Another step.
    #[error("the step is {0}; long-term forecasts need one value a day")]
    Step(Step),
    /// No value is known.
    #[error(transparent)]
    Series(#[from] SeriesError),
}

/// The level that errors are measured in: the mean of the last four weeks, but no less than a
/// thousandth of the largest value, so that a type that is used again is not measured in zeros. None
/// for a history of zeros, which has no scale.
pub(crate) fn scale(history: &[f64]) -> Option<f64> {
    let recent = mean(&history[history.len().saturating_sub(SHORT)..]);
    let largest = history.iter().copied().fold(0.0, f64::max);
    Some(recent.max(largest / 1_000.0)).filter(|scale| *scale > 0.0)
}

/// Errors and targets further from 0 than this many times the level are cut: what a type did that
/// started from nothing says little about one in use.
pub(crate) const FURTHEST: f64 = 5.0;

/// The mean; 0 of no values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

//! A method, and what runs it over observations.

use super::level::{Level, LevelState, WINDOW_MAX};
use super::margin::{Margin, MarginState};
use crate::series::MAX_VALUE;
use serde::Serialize;

/// A level and the margin above it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Method {
    /// The forecast of the next observation.
    pub level: Level,
    /// What is added to it.
    pub margin: Margin,
}

/// Why a method cannot run.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum MethodError {
    /// A window, season or memory is 0 or longer than any honest one.
    #[error("{field} is {found} steps; it must be 1 to {WINDOW_MAX}")]
    Steps {
        /// The parameter.
        field: &'static str,
        /// Its value.
        found: usize,
    },
    /// A share is out of range.
    #[error("{field} is {found}; it must be 0 to 1")]
    Share {
        /// The parameter.
        field: &'static str,
        /// Its value.
        found: f64,
    },
    /// A weight is out of range.
    #[error("{field} is {found}; it must be above 0 and at most 1")]
    Weight {
        /// The parameter.
        field: &'static str,
        /// Its value.
        found: f64,
    },
    /// A quantile is out of range.
    #[error("quantile is {found}; it must be at least 0 and below 1")]
    Quantile {
        /// Its value.
        found: f64,
    },
    /// An ARIMA model has too many terms.
    #[error("p + q is {found}; it must be at most {most}")]
    Order {
        /// Their sum.
        found: usize,
        /// The most.
        most: usize,
    },
}

/// The capacity for the next step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// The forecast of the next observation, at least 0.
    pub level: f64,
    /// The margin above it, at least 0.
    pub margin: f64,
}

impl Capacity {
    /// Level and margin together: F of Eigen eq. 6.
    pub fn total(&self) -> f64 {
        self.level + self.margin
    }
}

impl Method {
    /// Checks the parameters.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn check(&self) -> Result<(), MethodError> {
        self.level.check()?;
        self.margin.check()
    }

    /// Begins with no observation.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn start(&self) -> Result<Forecaster, MethodError> {
        self.check()?;
        let (level, margin) = (LevelState::new(&self.level), MarginState::new(&self.margin));
        Ok(Forecaster { level, margin, last: None, capacity: Capacity { level: 0.0, margin: 0.0 } })
    }
}

/// A method as it runs: one observation in, the capacity for the next step out.
#[derive(Clone, Debug)]
pub struct Forecaster {
    level: LevelState,
    margin: MarginState,
    last: Option<f64>,
    capacity: Capacity,
}

impl Forecaster {
    /// Takes an observation and gives the capacity for the next step. Before the first known
    /// observation it is 0.
    ///
    /// A missing observation, or one that is not a number of at least 0, counts as the last known one, and
    /// the margin stays as it is.
    pub fn observe(&mut self, observed: Option<f64>) -> Capacity {
        let known = observed.filter(|value| value.is_finite() && *value >= 0.0);
        let known = known.map(|value| value.min(MAX_VALUE));
        let Some(value) = known.or(self.last) else { return self.capacity };
        if known.is_some() {
            let error = self.last.map(|_| value - self.capacity.level);
            self.capacity.margin = self.margin.observe(value, error);
            self.last = known;
        } else {
            self.margin.skip();
        }
        self.capacity.level = self.level.observe(value).clamp(0.0, MAX_VALUE);
        self.capacity
    }
}

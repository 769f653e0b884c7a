//! Parameters that are out of range.

/// The longest window or season, in steps.
pub(super) const WINDOW_MAX: usize = 100_000;

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

pub(super) fn steps(field: &'static str, found: usize) -> Result<(), MethodError> {
    if (1..=WINDOW_MAX).contains(&found) {
        Ok(())
    } else {
        Err(MethodError::Steps { field, found })
    }
}

pub(super) fn share(field: &'static str, found: f64) -> Result<(), MethodError> {
    if (0.0..=1.0).contains(&found) { Ok(()) } else { Err(MethodError::Share { field, found }) }
}

pub(super) fn weight(field: &'static str, found: f64) -> Result<(), MethodError> {
    if found > 0.0 && found <= 1.0 { Ok(()) } else { Err(MethodError::Weight { field, found }) }
}

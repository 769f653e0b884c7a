//! Margins above a forecast: how large, and how they follow the acceleration of demand.

use super::error::{MethodError, share, steps};
use super::volatility::{RELATIVE_MAX, Volatility};
use super::window::{Largest, Quantile};
use serde::Serialize;

/// A margin: `(1 + R) * base` (Eigen eq. 6 and 8).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Margin {
    /// Its size while demand does not accelerate.
    pub base: Base,
    /// How it follows the acceleration, R.
    pub slope: Slope,
}

/// The size of a margin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Base {
    /// No margin.
    Zero,
    /// A share of the last observation.
    Share {
        /// The share, 0 to 1.
        share: f64,
    },
    /// A quantile of the errors of the level in a window. Eigen takes differences of observations: the same
    /// for a level that forecasts the last observation.
    Quantile {
        /// The quantile, 0 to below 1.
        quantile: f64,
        /// Steps of the window.
        window: usize,
    },
    /// The expected size of the next error, times a quantile of the errors relative to the sizes that were
    /// expected of them. The size is forecast from the last errors and from those at this time of
    /// day.
    Expected {
        /// The quantile, 0 to below 1.
        quantile: f64,
        /// Steps of the window of the quantile.
        window: usize,
        /// Steps of a day.
        season: usize,
    },
}

/// How a margin follows the acceleration of demand, `O'' = O[t] - 2 O[t-1] + O[t-2]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Slope {
    /// Not: R is 0 (Eigen eq. 6).
    Constant,
    /// R is the acceleration relative to the largest one in a window, to the power of gamma, with its sign
    /// (Eigen eq. 9).
    Adaptive {
        /// Amplifies small accelerations, 0 to 1.
        gamma: f64,
        /// Steps of the window.
        window: usize,
    },
    /// As adaptive while demand accelerates. While it decelerates, R falls exponentially (Eigen eq. 10).
    Smoothed {
        /// Amplifies small accelerations, 0 to 1.
        gamma: f64,
        /// What a step leaves of R while demand decelerates, 0 to 1.
        beta: f64,
        /// Steps of the window.
        window: usize,
    },
}

impl Margin {
    /// No margin.
    pub const NONE: Margin = Margin { base: Base::Zero, slope: Slope::Constant };

    pub(super) fn check(&self) -> Result<(), MethodError> {
        match self.base {
            Base::Zero => {}
            Base::Share { share: of } => share("share", of)?,
            Base::Quantile { quantile, window } => {
                if !(0.0..1.0).contains(&quantile) {
                    return Err(MethodError::Quantile { found: quantile });
                }
                steps("window", window)?;
            }
            Base::Expected { quantile, window, season } => {
                if !(0.0..1.0).contains(&quantile) {
                    return Err(MethodError::Quantile { found: quantile });
                }
                steps("window", window)?;
                steps("season", season)?;
            }
        }
        match self.slope {
            Slope::Constant => Ok(()),
            Slope::Adaptive { gamma, window } => {
                share("gamma", gamma)?;
                steps("window", window)
            }
            Slope::Smoothed { gamma, beta, window } => {
                share("gamma", gamma)?;
                share("beta", beta)?;
                steps("window", window)
            }
        }
    }
}

/// A margin as it runs.
#[derive(Clone, Debug)]
pub(super) struct MarginState {
    base: BaseState,
    slope: SlopeState,
}

#[derive(Clone, Debug)]
enum BaseState {
    Zero,
    Share(f64),
    Quantile(Quantile),
    Expected(Box<Volatility>, Quantile),
}

impl MarginState {
    pub(super) fn new(margin: &Margin) -> MarginState {
        let base = match margin.base {
            Base::Zero => BaseState::Zero,
            Base::Share { share } => BaseState::Share(share),
            Base::Quantile { quantile, window } => {
                BaseState::Quantile(Quantile::new(quantile, window))
            }
            Base::Expected { quantile, window, season } => BaseState::Expected(
                Box::new(Volatility::new(season)),
                Quantile::new(quantile, window),
            ),
        };
        MarginState { base, slope: SlopeState::new(margin.slope) }
    }

    /// Passes a step without an observation.
    pub(super) fn skip(&mut self) {
        if let BaseState::Expected(volatility, _) = &mut self.base {
            volatility.skip();
        }
    }

    /// Takes an observation and the error of the forecast of it; gives the margin of the next forecast, at
    /// least 0.
    pub(super) fn observe(&mut self, observed: f64, error: Option<f64>) -> f64 {
        let base = match &mut self.base {
            BaseState::Zero => 0.0,
            BaseState::Share(share) => *share * observed,
            BaseState::Quantile(quantile) => {
                if let Some(error) = error {
                    quantile.push(error);
                }
                quantile.get()
            }
            BaseState::Expected(volatility, quantile) => {
                if let Some(error) = error {
                    let expected = volatility.get();
                    if expected > 0.0 {
                        quantile.push((error / expected).min(RELATIVE_MAX));
                    }
                    volatility.observe(error);
                }
                quantile.get() * volatility.get()
            }
        };
        // R is at least -1, and a level that is always too high needs no margin.
        (1.0 + self.slope.observe(observed)) * base.max(0.0)
    }
}

#[derive(Clone, Debug)]
struct SlopeState {
    slope: Slope,
    last: Option<f64>,
    /// The change before the last observation.
    change: Option<f64>,
    largest: Largest,
    r: f64,
}

impl SlopeState {
    fn new(slope: Slope) -> SlopeState {
        let window = match slope {
            Slope::Constant => 1,
            Slope::Adaptive { window, .. } | Slope::Smoothed { window, .. } => window,
        };
        SlopeState { slope, last: None, change: None, largest: Largest::new(window), r: 0.0 }
    }

    /// Takes an observation and gives R, from -1 to 1.
    fn observe(&mut self, observed: f64) -> f64 {
        if self.slope == Slope::Constant {
            return 0.0;
        }
        let change = self.last.map(|last| observed - last);
        let acceleration = change.zip(self.change).map(|(change, before)| change - before);
        (self.last, self.change) = (Some(observed), change);
        let Some(acceleration) = acceleration else { return self.r };
        // Of the magnitude, so that the ratio is at most 1 when demand decelerates faster than it ever
        // accelerated.
        let largest = self.largest.push(acceleration.abs());
        let relative = if largest > 0.0 { acceleration.abs() / largest } else { 0.0 };
        self.r = match self.slope {
            Slope::Constant => 0.0,
            Slope::Adaptive { gamma, .. } => relative.powf(gamma).copysign(acceleration),
            Slope::Smoothed { gamma, .. } if acceleration >= 0.0 => relative.powf(gamma),
            Slope::Smoothed { gamma, beta, .. } => {
                beta * self.r - (1.0 - beta) * relative.powf(gamma)
            }
        };
        if largest == 0.0 {
            // 0 to the power of 0 is 1; nothing accelerates here.
            self.r = 0.0;
        }
        self.r
    }
}

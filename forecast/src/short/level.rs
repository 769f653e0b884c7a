//! Forecasts of the next observation, without a margin.

use super::arima::{Arima, COEFFICIENTS_MAX};
use super::method::MethodError;
use serde::Serialize;

/// The longest window or season, in steps.
pub(super) const WINDOW_MAX: usize = 100_000;

/// How the next observation is forecast.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Level {
    /// As the last one.
    Last,
    /// As the one a season ago.
    SeasonalNaive {
        /// Steps of a season.
        season: usize,
    },
    /// As the mean of the last ones.
    MovingAverage {
        /// How many.
        window: usize,
    },
    /// Exponential smoothing: `S[t+1] = alpha O[t] + (1 - alpha) S[t]` (Eigen eq. 7).
    Smoothing {
        /// Weight of the last observation, above 0 and at most 1.
        alpha: f64,
    },
    /// ARIMA(p, d, q), fitted as it runs. AR is ARIMA(p, 0, 0).
    Arima {
        /// p, autoregressive terms; with q at most 7.
        p: usize,
        /// d: whether differences are modelled instead of values.
        differenced: bool,
        /// q, moving-average terms.
        q: usize,
        /// Steps after which the fit has forgotten about two thirds.
        memory: usize,
    },
    /// Holt-Winters: additive trend and season. The first season only initializes it.
    HoltWinters {
        /// Weight of the last observation in the level, above 0 and at most 1.
        alpha: f64,
        /// Weight of the last change in the trend, 0 to 1.
        beta: f64,
        /// Weight of the last season in the seasonal part, 0 to 1.
        gamma: f64,
        /// Steps of a season.
        season: usize,
    },
}

impl Level {
    pub(super) fn check(&self) -> Result<(), MethodError> {
        match *self {
            Level::Last => Ok(()),
            Level::SeasonalNaive { season } => steps("season", season),
            Level::MovingAverage { window } => steps("window", window),
            Level::Smoothing { alpha } => weight("alpha", alpha),
            Level::Arima { p, q, memory, .. } => {
                let found = p.saturating_add(q);
                if found >= COEFFICIENTS_MAX {
                    return Err(MethodError::Order { found, most: COEFFICIENTS_MAX - 1 });
                }
                steps("memory", memory)
            }
            Level::HoltWinters { alpha, beta, gamma, season } => {
                weight("alpha", alpha)?;
                share("beta", beta)?;
                share("gamma", gamma)?;
                steps("season", season)
            }
        }
    }
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

fn weight(field: &'static str, found: f64) -> Result<(), MethodError> {
    if found > 0.0 && found <= 1.0 { Ok(()) } else { Err(MethodError::Weight { field, found }) }
}

/// A level as it runs.
#[derive(Clone, Debug)]
pub(super) enum LevelState {
    Last,
    SeasonalNaive(Ring),
    MovingAverage { ring: Ring, anchor: f64, sum: f64 },
    Smoothing { alpha: f64, level: Option<f64> },
    Arima(Box<Arima>),
    HoltWinters(HoltWinters),
}

impl LevelState {
    pub(super) fn new(level: &Level) -> LevelState {
        match *level {
            Level::Last => LevelState::Last,
            Level::SeasonalNaive { season } => LevelState::SeasonalNaive(Ring::new(season)),
            Level::MovingAverage { window } => {
                LevelState::MovingAverage { ring: Ring::new(window), anchor: 0.0, sum: 0.0 }
            }
            Level::Smoothing { alpha } => LevelState::Smoothing { alpha, level: None },
            Level::Arima { p, differenced, q, memory } => {
                LevelState::Arima(Box::new(Arima::new(p, differenced, q, memory)))
            }
            Level::HoltWinters { alpha, beta, gamma, season } => {
                LevelState::HoltWinters(HoltWinters::new(alpha, beta, gamma, season))
            }
        }
    }

    /// Takes an observation and forecasts the next one.
    pub(super) fn observe(&mut self, observed: f64) -> f64 {
        match self {
            LevelState::Last => observed,
            LevelState::SeasonalNaive(ring) => {
                ring.push(observed);
                ring.oldest().unwrap_or(observed)
            }
            LevelState::MovingAverage { ring, anchor, sum } => {
                if ring.values.is_empty() {
                    *anchor = observed;
                }
                // Sums of distances: rounding does not add up to more than a sum of values would.
                *sum += observed - *anchor;
                if let Some(dropped) = ring.push(observed) {
                    *sum -= dropped - *anchor;
                }
                *anchor + *sum / ring.values.len() as f64
            }
            LevelState::Smoothing { alpha, level } => {
                let level = level.get_or_insert(observed);
                *level += *alpha * (observed - *level);
                *level
            }
            LevelState::Arima(model) => model.observe(observed),
            LevelState::HoltWinters(model) => model.observe(observed),
        }
    }
}

/// The last values of a stream.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    size: usize,
    values: Vec<f64>,
    next: usize,
}

impl Ring {
    fn new(size: usize) -> Ring {
        Ring { size, values: Vec::new(), next: 0 }
    }

    /// Adds a value; gives the one it replaces.
    fn push(&mut self, value: f64) -> Option<f64> {
        if self.values.len() < self.size {
            self.values.push(value);
            return None;
        }
        let slot = self.values.get_mut(self.next)?;
        self.next = (self.next + 1) % self.size;
        Some(std::mem::replace(slot, value))
    }

    /// The oldest value, once as many are known as are kept.
    fn oldest(&self) -> Option<f64> {
        self.values.get(self.next).filter(|_| self.values.len() == self.size).copied()
    }
}

/// Additive Holt-Winters as it runs.
#[derive(Clone, Debug)]
pub(super) struct HoltWinters {
    alpha: f64,
    beta: f64,
    gamma: f64,
    season: usize,
    level: Option<f64>,
    trend: f64,
    /// The first season; then the seasonal part by phase.
    parts: Vec<f64>,
    initialized: bool,
    phase: usize,
}

impl HoltWinters {
    fn new(alpha: f64, beta: f64, gamma: f64, season: usize) -> HoltWinters {
        let (parts, trend) = (Vec::new(), 0.0);
        HoltWinters {
            alpha,
            beta,
            gamma,
            season,
            level: None,
            trend,
            parts,
            initialized: false,
            phase: 0,
        }
    }

    fn observe(&mut self, observed: f64) -> f64 {
        if !self.initialized {
            self.parts.push(observed);
            if self.parts.len() == self.season {
                self.initialize();
            }
            return match self.level {
                Some(level) => level + self.part(),
                None => observed,
            };
        }
        let (part, before) = (self.part(), self.level.unwrap_or(observed));
        let expected = before + self.trend;
        let level = expected + self.alpha * (observed - part - expected);
        self.trend += self.beta * (level - before - self.trend);
        let error = observed - level - part;
        if let Some(part) = self.parts.get_mut(self.phase) {
            *part += self.gamma * error;
        }
        self.level = Some(level);
        self.phase = (self.phase + 1) % self.season;
        level + self.trend + self.part()
    }

    /// The mean of the first season is the level, the distances from it the seasonal part.
    fn initialize(&mut self) {
        let first = self.parts.first().copied().unwrap_or(0.0);
        let above = self.parts.iter().map(|value| value - first).sum::<f64>();
        let level = first + above / self.parts.len() as f64;
        self.parts.iter_mut().for_each(|value| *value -= level);
        self.level = Some(level);
        self.initialized = true;
    }

    fn part(&self) -> f64 {
        self.parts.get(self.phase).copied().unwrap_or(0.0)
    }
}

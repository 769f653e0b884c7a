//! How large the next error of a forecast will be.
//!
//! Demand is calm for hours and then moves for hours, and moves at the same times of the day. So the
//! size of the next error is forecast by a linear model of the sizes of the last ones, of the errors at this
//! time of day, and of whether demand has just been above its forecast.

use super::least_squares::LeastSquares;

/// Time constants of the recent sizes, in steps.
const FAST: f64 = 2.5;
const MEDIUM: f64 = 12.5;
const SLOW: f64 = 200.0;

/// Parts of a season whose errors are told apart: hours of a day.
const PARTS: usize = 24;

/// Errors that a part of a season remembers.
const PART: f64 = 33.0;

/// The forecast size is at least this share of the long-run one.
const LEAST: f64 = 0.3;

/// Steps that the model remembers: four weeks of five minutes.
const MEMORY: usize = 8_000;

/// The largest size relative to the usual or expected one that counts. After a long calm even a small error is a
/// huge multiple, which would then multiply all that follow.
pub(super) const RELATIVE_MAX: f64 = 50.0;

/// Regressors, relative to the slow mean: that itself, fast and medium mean, this part of the
/// season, error above the forecast.
const REGRESSORS: usize = 5;

/// The forecast of the size of the next error, with the unit of the series.
#[derive(Clone, Debug)]
pub(super) struct Volatility {
    season: usize,
    phase: usize,
    fast: Mean,
    medium: Mean,
    slow: Mean,
    parts: Vec<Mean>,
    model: LeastSquares<REGRESSORS>,
    regressors: [f64; REGRESSORS],
    /// The slow mean when the last forecast was made, and the forecast relative to it.
    unit: f64,
    relative: f64,
}

impl Volatility {
    pub(super) fn new(season: usize) -> Volatility {
        // Half of the slow and half of the medium mean, until the model knows better.
        let coefficients = [0.5, 0.0, 0.5, 0.0, 0.0];
        Volatility {
            season,
            phase: 0,
            fast: Mean::default(),
            medium: Mean::default(),
            slow: Mean::default(),
            parts: vec![Mean::default(); PARTS.min(season)],
            model: LeastSquares::new(coefficients, REGRESSORS, 1.0, MEMORY),
            regressors: [0.0; REGRESSORS],
            unit: 0.0,
            relative: 0.0,
        }
    }

    /// The forecast size of the next error, at least 0; 0 if none was ever seen.
    pub(super) fn get(&self) -> f64 {
        self.unit * self.relative.clamp(LEAST, RELATIVE_MAX)
    }

    /// Passes a step without an observation.
    pub(super) fn skip(&mut self) {
        self.phase = (self.phase + 1) % self.season;
    }

    /// Takes the error of a forecast, positive if demand was above it.
    pub(super) fn observe(&mut self, error: f64) {
        let size = error.abs();
        if self.unit > 0.0 {
            let relative = (size / self.unit).min(RELATIVE_MAX);
            self.model.learn(&self.regressors, relative - self.relative);
        }
        self.fast.push(size, FAST);
        self.medium.push(size, MEDIUM);
        self.slow.push(size, SLOW);
        let part = self.part();
        if let Some(part) = self.parts.get_mut(part) {
            part.push(size, PART);
        }
        self.skip();
        self.unit = self.slow.value;
        if self.unit > 0.0 {
            // A part of which nothing is known is as usual.
            let part = self.parts.get(self.part()).filter(|part| part.count > 0.0);
            let part = part.map_or(self.unit, |part| part.value);
            let sizes = [self.unit, self.fast.value, self.medium.value, part, error.max(0.0)];
            self.regressors = sizes.map(|size| (size / self.unit).min(RELATIVE_MAX));
            self.relative = self.model.predict(&self.regressors);
        }
    }

    fn part(&self) -> usize {
        self.phase * self.parts.len() / self.season
    }
}

/// A mean that forgets exponentially; of its first values, the plain one.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    value: f64,
    count: f64,
}

impl Mean {
    fn push(&mut self, value: f64, memory: f64) {
        self.count = (self.count + 1.0).min(memory);
        self.value += (value - self.value) / self.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_busy_hours_are_expected_there() {
        let mut volatility = Volatility::new(48);
        let (mut busy, mut calm) = (Vec::new(), Vec::new());
        for step in 0..4_800 {
            let size = if step % 48 < 12 { 5.0 } else { 1.0 };
            if step > 2_400 && step % 48 == 0 {
                busy.push(volatility.get());
            }
            if step > 2_400 && step % 48 == 12 {
                calm.push(volatility.get());
            }
            volatility.observe(if step % 2 == 0 { size } else { -size });
        }
        let least = busy.iter().copied().fold(f64::INFINITY, f64::min);
        let most = calm.iter().copied().fold(0.0, f64::max);
        assert!(least > 3.5 && most < 2.5, "busy {busy:?}, calm {calm:?}");
    }
}

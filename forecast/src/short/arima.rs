//! Autoregressive integrated moving averages by recursive extended least squares.
//!
//! The model is fitted while it runs: the last values and the last errors of its own forecasts are
//! the regressors (Ljung and Söderström, Theory and Practice of Recursive Identification, 1983).

use super::least_squares::LeastSquares;

/// The most coefficients of a model: constant, autoregressive and moving-average part together.
pub(super) const COEFFICIENTS_MAX: usize = 8;

/// The variance of coefficients of which nothing is known. Most are of the order of one; a much
/// larger variance would let the first observations fit wild ones.
const UNKNOWN: f64 = 10.0;

/// ARIMA(p, d, q) with d of 0 or 1.
#[derive(Clone, Debug)]
pub(super) struct Arima {
    p: usize,
    differenced: bool,
    q: usize,
    memory: usize,
    /// Origin and unit of the values, so that neither a shift nor a scale changes the fit.
    origin: Option<f64>,
    unit: f64,
    last: f64,
    model: LeastSquares<COEFFICIENTS_MAX>,
    regressors: [f64; COEFFICIENTS_MAX],
    predicted: f64,
}

impl Arima {
    /// A model that forgets with a time constant of `memory` steps.
    pub(super) fn new(p: usize, differenced: bool, q: usize, memory: usize) -> Arima {
        let mut regressors = [0.0; COEFFICIENTS_MAX];
        regressors[0] = 1.0;
        let mut coefficients = [0.0; COEFFICIENTS_MAX];
        // Begins as the naive forecast: the last value, or no change.
        if p > 0 && !differenced {
            coefficients[1] = 1.0;
        }
        Arima {
            p,
            differenced,
            q,
            memory,
            origin: None,
            unit: 0.0,
            last: 0.0,
            model: LeastSquares::new(coefficients, 1 + p + q, UNKNOWN, memory),
            regressors,
            predicted: 0.0,
        }
    }

    /// Takes an observation and forecasts the next one.
    pub(super) fn observe(&mut self, observed: f64) -> f64 {
        let origin = *self.origin.get_or_insert(observed);
        if self.unit == 0.0 {
            self.unit = (observed - origin).abs();
        }
        let unit = if self.unit > 0.0 { self.unit } else { 1.0 };
        let value = (observed - origin) / unit;
        let target = if self.differenced { value - self.last } else { value };
        let error = target - self.predicted;
        self.model.learn(&self.regressors, error);
        self.shift(target, error);
        self.last = value;
        self.predicted = self.model.predict(&self.regressors);
        let next = if self.differenced { self.last + self.predicted } else { self.predicted };
        let next = origin + next * unit;
        if next.is_finite() {
            return next;
        }
        // No input leaves a state that is not finite.
        *self = Arima::new(self.p, self.differenced, self.q, self.memory);
        observed
    }

    /// Moves target and error into the regressors of the next step.
    fn shift(&mut self, target: f64, error: f64) {
        let errors = 1 + self.p;
        if self.p > 0 {
            self.regressors[1..errors].rotate_right(1);
            self.regressors[1] = target;
        }
        if self.q > 0 {
            self.regressors[errors..errors + self.q].rotate_right(1);
            self.regressors[errors] = error;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_known_coefficients_is_forecast_without_error() {
        // x[t + 1] = 5 + 0.6 x[t] + 0.3 x[t - 1], kept moving by an impulse now and then.
        let mut model = Arima::new(2, false, 0, 1_000);
        let (mut before, mut now, mut worst) = (10.0, 12.0, 0f64);
        for step in 0..600 {
            let forecast = model.observe(now);
            let impulse = if step % 37 == 36 { 3.0 } else { 0.0 };
            let next = 5.0 + 0.6 * now + 0.3 * before;
            if step > 400 {
                worst = worst.max((forecast - next).abs());
            }
            (before, now) = (now, next + impulse);
        }
        assert!(worst < 0.5, "{worst}");
    }

    #[test]
    fn a_differenced_model_follows_a_straight_line() {
        let mut model = Arima::new(1, true, 1, 100);
        let last = (0..50).map(|step| model.observe(7.0 + 2.0 * f64::from(step))).last();
        assert!((last.expect("a forecast") - 107.0).abs() < 0.01, "{last:?}");
    }
}

//! Autoregressive integrated moving averages by recursive extended least squares.
//!
//! The model is fitted while it runs: the last values and the last errors of its own forecasts are
//! the regressors (Ljung and Söderström, Theory and Practice of Recursive Identification, 1983).

/// The most coefficients of a model: constant, autoregressive and moving-average part together.
pub(super) const COEFFICIENTS_MAX: usize = 8;

/// The uncertainty of coefficients of which nothing is known.
const UNKNOWN: f64 = 1e6;

type Row = [f64; COEFFICIENTS_MAX];

/// ARIMA(p, d, q) with d of 0 or 1.
#[derive(Clone, Debug)]
pub(super) struct Arima {
    autoregressive: usize,
    differenced: bool,
    moving: usize,
    /// What a step leaves of the weight of those before it.
    forgetting: f64,
    /// Origin and unit of the values, so that neither a shift nor a scale changes the fit.
    origin: Option<f64>,
    unit: f64,
    last: f64,
    coefficients: Row,
    covariance: [Row; COEFFICIENTS_MAX],
    regressors: Row,
    predicted: f64,
}

impl Arima {
    /// A model that forgets with the time constant of `memory` steps.
    pub(super) fn new(
        autoregressive: usize,
        differenced: bool,
        moving: usize,
        memory: usize,
    ) -> Arima {
        let mut regressors = [0.0; COEFFICIENTS_MAX];
        regressors[0] = 1.0;
        let mut coefficients = [0.0; COEFFICIENTS_MAX];
        // Begins as the naive forecast: the last value, or no change.
        if autoregressive > 0 && !differenced {
            coefficients[1] = 1.0;
        }
        Arima {
            autoregressive,
            differenced,
            moving,
            forgetting: 1.0 - 1.0 / memory.max(2) as f64,
            origin: None,
            unit: 0.0,
            last: 0.0,
            coefficients,
            covariance: unknown(),
            regressors,
            predicted: 0.0,
        }
    }

    fn count(&self) -> usize {
        (1 + self.autoregressive + self.moving).min(COEFFICIENTS_MAX)
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
        self.update(error);
        self.shift(target, error);
        self.last = value;
        self.predicted =
            self.coefficients.iter().zip(&self.regressors).map(|(a, x)| a * x).sum::<f64>();
        let next = if self.differenced { self.last + self.predicted } else { self.predicted };
        let next = origin + next * unit;
        if next.is_finite() {
            return next;
        }
        // Not even the wildest input leaves a state that is not finite.
        *self = Arima::new(
            self.autoregressive,
            self.differenced,
            self.moving,
            (1.0 / (1.0 - self.forgetting)).round() as usize,
        );
        observed
    }

    /// One step of least squares with forgetting.
    fn update(&mut self, error: f64) {
        let (count, x) = (self.count(), self.regressors);
        let mut spread = [0.0; COEFFICIENTS_MAX];
        for (row, spread) in self.covariance.iter().zip(&mut spread).take(count) {
            *spread = row.iter().zip(&x).map(|(p, x)| p * x).sum();
        }
        let scale = self.forgetting + spread.iter().zip(&x).map(|(s, x)| s * x).sum::<f64>();
        if !(scale > 0.0 && scale.is_finite()) {
            self.covariance = unknown();
            return;
        }
        for (coefficient, spread) in self.coefficients.iter_mut().zip(&spread) {
            *coefficient += spread / scale * error;
        }
        let mut trace = 0.0;
        for i in 0..count {
            for j in 0..count {
                self.covariance[i][j] -= spread[i] * spread[j] / scale;
            }
            trace += self.covariance[i][i];
        }
        // Values that do not vary teach nothing, and forgetting would then grow without bound.
        if trace < UNKNOWN {
            self.covariance.iter_mut().flatten().for_each(|entry| *entry /= self.forgetting);
        }
    }

    /// Moves target and error into the regressors of the next step.
    fn shift(&mut self, target: f64, error: f64) {
        let errors = 1 + self.autoregressive;
        if self.autoregressive > 0 {
            self.regressors[1..errors].rotate_right(1);
            self.regressors[1] = target;
        }
        if self.moving > 0 {
            self.regressors[errors..errors + self.moving].rotate_right(1);
            self.regressors[errors] = error;
        }
    }
}

fn unknown() -> [Row; COEFFICIENTS_MAX] {
    let mut covariance = [[0.0; COEFFICIENTS_MAX]; COEFFICIENTS_MAX];
    for (diagonal, row) in covariance.iter_mut().enumerate() {
        row[diagonal] = UNKNOWN;
    }
    covariance
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
        assert!((last.expect("a forecast") - 107.0).abs() < 1e-3, "{last:?}");
    }
}

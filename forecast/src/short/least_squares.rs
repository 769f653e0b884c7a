//! Recursive least squares with forgetting.

/// The coefficients of a linear model of at most `N` regressors, fitted while it runs.
#[derive(Clone, Debug)]
pub(super) struct LeastSquares<const N: usize> {
    /// How many regressors are in use.
    count: usize,
    coefficients: [f64; N],
    covariance: [[f64; N]; N],
    /// Variance of a coefficient of which nothing is known.
    unknown: f64,
    /// What a step leaves of the weight of those before it.
    forgetting: f64,
}

impl<const N: usize> LeastSquares<N> {
    /// Begins with these coefficients, each known with the variance `unknown`, and forgets with a time
    /// constant of `memory` steps. Only the first `count` regressors count.
    pub(super) fn new(coefficients: [f64; N], count: usize, unknown: f64, memory: usize) -> Self {
        let forgetting = 1.0 - 1.0 / memory.max(2) as f64;
        let covariance = diagonal(unknown);
        LeastSquares { count: count.min(N), coefficients, covariance, unknown, forgetting }
    }

    pub(super) fn predict(&self, regressors: &[f64; N]) -> f64 {
        let pairs = self.coefficients.iter().zip(regressors).take(self.count);
        pairs.map(|(coefficient, regressor)| coefficient * regressor).sum()
    }

    /// Learns from the error of the prediction for these regressors.
    pub(super) fn learn(&mut self, regressors: &[f64; N], error: f64) {
        let count = self.count;
        let mut spread = [0.0; N];
        for (row, spread) in self.covariance.iter().zip(&mut spread).take(count) {
            *spread = row.iter().zip(regressors).take(count).map(|(p, x)| p * x).sum();
        }
        let explained: f64 = spread.iter().zip(regressors).take(count).map(|(s, x)| s * x).sum();
        let scale = self.forgetting + explained;
        if !(scale > 0.0 && scale.is_finite() && error.is_finite()) {
            self.covariance = diagonal(self.unknown);
            return;
        }
        let gain = error / scale;
        for (coefficient, spread) in self.coefficients.iter_mut().zip(&spread).take(count) {
            *coefficient += spread * gain;
        }
        let trace: f64 =
            (0..count).map(|i| self.covariance[i][i] - spread[i] * spread[i] / scale).sum();
        // Values that do not vary teach nothing, and forgetting would then grow without bound.
        let grow = if trace < self.unknown { 1.0 / self.forgetting } else { 1.0 };
        for (row, left) in self.covariance.iter_mut().zip(&spread).take(count) {
            for (entry, right) in row.iter_mut().zip(&spread).take(count) {
                *entry = (*entry - left * right / scale) * grow;
            }
        }
    }
}

fn diagonal<const N: usize>(value: f64) -> [[f64; N]; N] {
    let mut matrix = [[0.0; N]; N];
    for (at, row) in matrix.iter_mut().enumerate() {
        row[at] = value;
    }
    matrix
}

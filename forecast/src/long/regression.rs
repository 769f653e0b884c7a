//! Linear quantile regression on lags and the calendar.

use super::daily::{FURTHEST, mean, scale};
use super::point::same_weekday;
use super::{Bands, MAX_HORIZON, Method, WEEK};
use crate::random::Random;

/// For each level a linear function of recent values and of the days ahead, fitted to the pinball
/// loss. It forecasts what is added to the last value of the same weekday, in units of the recent
/// level, so that season and scale need no coefficients.
pub struct QuantileRegression;

/// Numbers that describe an origin and a weekday; each counts once as it is and once times the
/// share of [`MAX_HORIZON`] ahead.
const FEATURES: usize = 6;
const WIDTH: usize = 2 * FEATURES;
/// Days between origins that are learned from, and days ahead learned from each.
const STRIDE: usize = 2;
const AHEAD: usize = 4;
/// Origins that are learned from at most: two years.
const DAYS: usize = 730;
const ROUNDS: usize = 25;
/// Rows that a fit needs at least.
const ENOUGH: usize = 4 * WIDTH;
/// Two weeks before an origin are needed to describe it.
const BEFORE: usize = 2 * WEEK;

type Row = [f64; WIDTH];

fn features(history: &[f64], ahead: usize, scale: f64) -> Row {
    let last = |days: usize| mean(&history[history.len().saturating_sub(days)..]);
    let (week, month, quarter) = (last(WEEK), last(4 * WEEK), last(12 * WEEK));
    let today = history.last().copied().unwrap_or(0.0);
    let before = history[history.len().saturating_sub(WEEK + 1)];
    let plain = [
        1.0,
        (today - before) / scale,
        (week - month) / scale,
        (month - quarter) / scale,
        (same_weekday(history, ahead) - week) / scale,
        (last(2 * WEEK) - week) / scale,
    ];
    let share = ahead as f64 / MAX_HORIZON as f64;
    let mut row = [0.0; WIDTH];
    for (at, value) in plain.into_iter().enumerate() {
        let value = value.clamp(-5.0, 5.0);
        row[at] = value;
        row[FEATURES + at] = value * share;
    }
    row
}

impl Method for QuantileRegression {
    fn name(&self) -> String {
        "quantile regression".to_owned()
    }

    fn forecast(&self, history: &[f64], horizon: usize, levels: &[f64]) -> Bands {
        let otherwise = history.last().copied().unwrap_or(0.0);
        let (Some(now), true) = (scale(history), horizon > 0) else {
            return Bands::constant(levels, horizon, otherwise);
        };
        let (rows, targets) = examples(history, horizon);
        if rows.len() < ENOUGH {
            // Too short to learn from: the last weeks as they are.
            let path = (1..=horizon).map(|ahead| vec![same_weekday(history, ahead); levels.len()]);
            return Bands::new(levels, path.collect(), otherwise);
        }
        let fits: Vec<Row> = levels.iter().map(|level| fit(&rows, &targets, *level)).collect();
        let day = |ahead: usize| {
            let row = features(history, ahead, now);
            let base = same_weekday(history, ahead);
            fits.iter().map(|fit| base + now * dot(fit, &row)).collect()
        };
        Bands::new(levels, (1..=horizon).map(day).collect(), otherwise)
    }
}

/// What was known at past origins, and what was added by each day ahead.
fn examples(history: &[f64], horizon: usize) -> (Vec<Row>, Vec<f64>) {
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    let first = history.len().saturating_sub(DAYS).max(BEFORE);
    // Drawn, not in turn: a step in days ahead and one between origins can add up to a week, and
    // then only one weekday is learned.
    let mut random = Random::new(history.len() as u64);
    for origin in (first..history.len()).step_by(STRIDE) {
        let known = &history[..origin];
        let Some(scale) = scale(known) else { continue };
        for _ in 0..AHEAD {
            let ahead = 1 + random.below(horizon);
            let Some(truth) = history.get(origin + ahead - 1) else { continue };
            rows.push(features(known, ahead, scale));
            targets.push(((truth - same_weekday(known, ahead)) / scale).clamp(-FURTHEST, FURTHEST));
        }
    }
    (rows, targets)
}

fn dot(a: &Row, b: &Row) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Least pinball loss, by the majorization of Hunter and Lange (2000): weighted least squares whose
/// loss touches the pinball loss, smoothed near 0, at the residuals of the round before.
fn fit(rows: &[Row], targets: &[f64], level: f64) -> Row {
    const SMOOTH: f64 = 1e-3;
    const RIDGE: f64 = 1e-3;
    let mut beta = [0.0; WIDTH];
    for _ in 0..ROUNDS {
        let mut matrix = [[0.0; WIDTH]; WIDTH];
        let mut right = [0.0; WIDTH];
        for (row, target) in rows.iter().zip(targets) {
            let weight = 1.0 / (SMOOTH + (target - dot(&beta, row)).abs());
            let pull = weight * target + 2.0 * level - 1.0;
            for i in 0..WIDTH {
                right[i] += row[i] * pull;
                for j in 0..=i {
                    matrix[i][j] += weight * row[i] * row[j];
                }
            }
        }
        for (i, row) in matrix.iter_mut().enumerate() {
            row[i] += RIDGE * rows.len() as f64;
        }
        beta = solve(matrix, right);
    }
    beta
}

/// Cholesky. The ridge makes the matrix (its lower half) positive definite.
fn solve(mut a: [[f64; WIDTH]; WIDTH], mut b: Row) -> Row {
    for i in 0..WIDTH {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| a[i][k] * a[j][k]).sum();
            a[i][j] =
                if i == j { (a[i][i] - sum).max(1e-12).sqrt() } else { (a[i][j] - sum) / a[j][j] };
        }
    }
    for i in 0..WIDTH {
        let sum: f64 = (0..i).map(|k| a[i][k] * b[k]).sum();
        b[i] = (b[i] - sum) / a[i][i];
    }
    for i in (0..WIDTH).rev() {
        let sum: f64 = (i + 1..WIDTH).map(|k| a[k][i] * b[k]).sum();
        b[i] = (b[i] - sum) / a[i][i];
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::long::score::pinball;

    /// Rows and targets of which the given level of the target is `1 + 2 x`.
    fn sample(level: f64) -> (Vec<Row>, Vec<f64>) {
        let mut random = Random::new(3);
        let row = |_| {
            let mut row = [0.0; WIDTH];
            (row[0], row[1]) = (1.0, random.unit());
            let target = 1.0 + 2.0 * row[1] + random.unit() - level;
            (row, target)
        };
        (0..4_000).map(row).unzip()
    }

    #[test]
    fn coefficients_of_a_known_quantile_are_found() {
        let (rows, targets) = sample(0.7);
        let beta = fit(&rows, &targets, 0.7);
        assert!((beta[0] - 1.0).abs() < 0.05 && (beta[1] - 2.0).abs() < 0.1, "{beta:?}");
    }

    #[test]
    fn every_weekday_is_learned() {
        let mut random = Random::new(2);
        let shape = [1.0, 1.1, 1.2, 1.2, 1.1, 0.6, 0.5];
        // The spread of a weekday is that of its level.
        let value = |day: usize| shape[day % WEEK] * (100.0 + 20.0 * random.unit());
        let values: Vec<f64> = (0..700).map(value).collect();
        for horizon in [28, 50] {
            let (mut below, mut days) = (0, 0);
            for origin in (500..700 - horizon).step_by(3) {
                let bands = QuantileRegression.forecast(&values[..origin], horizon, &[0.7]);
                for (truth, forecast) in values[origin..].iter().zip(bands.path(0.7)) {
                    below += u32::from(*truth <= forecast);
                    days += 1;
                }
            }
            let coverage = f64::from(below) / f64::from(days);
            assert!((0.62..0.78).contains(&coverage), "{horizon} days: {coverage}");
        }
    }

    #[test]
    fn no_step_away_from_the_fit_has_less_loss() {
        let (rows, targets) = sample(0.6);
        let beta = fit(&rows, &targets, 0.9);
        let loss = |beta: &Row| -> f64 {
            let pairs = rows.iter().zip(&targets);
            pairs.map(|(row, target)| pinball(*target, dot(beta, row), 0.9)).sum()
        };
        let least = loss(&beta);
        for at in 0..2 {
            for step in [-0.05, 0.05] {
                let mut other = beta;
                other[at] += step;
                assert!(loss(&other) > least, "{at} {step}");
            }
        }
    }
}

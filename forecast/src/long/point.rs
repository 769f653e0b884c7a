//! Methods that forecast one value a day.

use super::WEEK;
use super::bands::median;
use super::daily::mean;

/// A method that forecasts one value a day. [`Conformal`](super::conformal::Conformal) adds bands.
pub trait PointMethod {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// A forecast of `horizon` days from each origin: an origin is how many values are known then,
    /// between 1 and the length. Origins rise. Parameters may be fitted to all values before the
    /// last origin.
    fn paths(&self, values: &[f64], origins: &[usize], horizon: usize) -> Vec<Vec<f64>>;
}

/// The last value.
pub struct Naive;

impl PointMethod for Naive {
    fn name(&self) -> &'static str {
        "naive"
    }

    fn paths(&self, values: &[f64], origins: &[usize], horizon: usize) -> Vec<Vec<f64>> {
        origins.iter().map(|origin| vec![values[origin - 1]; horizon]).collect()
    }
}

/// The last known value of the same weekday.
pub struct SameWeekday;

/// The last value of the weekday of day `ahead` (from 1) after the history.
pub(crate) fn same_weekday(history: &[f64], ahead: usize) -> f64 {
    let back = WEEK - (ahead + WEEK - 1) % WEEK;
    history[history.len().saturating_sub(back)]
}

impl PointMethod for SameWeekday {
    fn name(&self) -> &'static str {
        "same weekday"
    }

    fn paths(&self, values: &[f64], origins: &[usize], horizon: usize) -> Vec<Vec<f64>> {
        let path = |origin: &usize| {
            (1..=horizon).map(|ahead| same_weekday(&values[..*origin], ahead)).collect()
        };
        origins.iter().map(path).collect()
    }
}

/// Weekly decomposition with drift: the mean of the last week, times the factor of the weekday (the
/// median over eight weeks), plus a drift per day (the median slope over eight weeks, which a
/// single jump does not move).
pub struct Decomposition;

const WEEKS: usize = 8;

impl PointMethod for Decomposition {
    fn name(&self) -> &'static str {
        "decomposition + drift"
    }

    fn paths(&self, values: &[f64], origins: &[usize], horizon: usize) -> Vec<Vec<f64>> {
        origins.iter().map(|origin| decomposed(&values[..*origin], horizon)).collect()
    }
}

fn decomposed(history: &[f64], horizon: usize) -> Vec<f64> {
    // Whole weeks, the last one last.
    let weeks: Vec<&[f64]> = history.rchunks_exact(WEEK).take(WEEKS).collect();
    let means: Vec<f64> = weeks.iter().map(|week| mean(week)).collect();
    let Some(level) = means.first().copied() else {
        return vec![mean(history); horizon];
    };
    let mut slopes = Vec::new();
    for newer in 0..means.len() {
        for older in newer + 1..means.len() {
            slopes.push((means[newer] - means[older]) / (WEEK * (older - newer)) as f64);
        }
    }
    let drift = median(&mut slopes);
    let factor = |day: usize| {
        let ratio = |(week, mean): (&&[f64], &f64)| (*mean > 0.0).then(|| week[day] / mean);
        let mut ratios: Vec<f64> = weeks.iter().zip(&means).filter_map(ratio).collect();
        if ratios.is_empty() { 1.0 } else { median(&mut ratios) }
    };
    let factors: Vec<f64> = (0..WEEK).map(factor).collect();
    // The mean of a week is the level of its fourth day.
    let ahead = |day: usize| (day + 1 + WEEK / 2) as f64;
    (0..horizon).map(|day| (level + drift * ahead(day)) * factors[day % WEEK]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weekday_is_the_one_seven_days_before() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        let path = &SameWeekday.paths(&values, &[10], 15)[0];
        assert_eq!(path[..8], [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 3.0]);
        assert_eq!(SameWeekday.paths(&values, &[1], 2), [[0.0, 0.0]]);
    }

    #[test]
    fn a_line_with_weekends_continues() {
        let shape = [1.0, 1.1, 1.2, 1.2, 1.1, 0.7, 0.7];
        let value = |day: usize| (100.0 + day as f64) * shape[day % WEEK];
        let values: Vec<f64> = (0..70).map(value).collect();
        let path = &Decomposition.paths(&values, &[70], 28)[0];
        for (ahead, forecast) in path.iter().enumerate() {
            let truth = value(70 + ahead);
            assert!((forecast / truth - 1.0).abs() < 0.03, "{ahead}: {forecast} for {truth}");
        }
    }
}

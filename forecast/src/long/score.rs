//! How good forecasts were: error, pinball loss, coverage.

use super::Bands;
use serde::Serialize;

/// The loss of a quantile forecast: `level` for each unit that the truth lies above it, 1 - `level`
/// for each unit below. Its mean is least at the true quantile.
pub fn pinball(truth: f64, forecast: f64, level: f64) -> f64 {
    let miss = truth - forecast;
    if miss >= 0.0 { level * miss } else { (level - 1.0) * miss }
}

/// Sums over the days of rolling forecasts; [`Score`] is their mean.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    days: usize,
    truth: f64,
    absolute: f64,
    relative: f64,
    relative_days: usize,
    pinball: f64,
    below: Vec<usize>,
}

/// Means over the days of rolling forecasts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Days that were forecast, each from each origin that reaches it.
    pub days: usize,
    /// Mean relative error of the level nearest Q50 over days with demand: |forecast - truth| /
    /// truth (Eigen's MRE). None if there was no demand.
    pub relative_error: Option<f64>,
    /// Sum of the absolute errors of that level over the sum of the truth. Unlike the mean relative
    /// error it does not explode where demand is near 0. None if there was no demand.
    pub weighted_error: Option<f64>,
    /// Mean pinball loss over days and levels, over the mean truth (over 1 if there was no demand).
    pub pinball: f64,
    /// Share of days at or below each level. Coverage of a calibrated forecast is the level.
    pub coverage: Vec<f64>,
}

impl Tally {
    /// Adds the forecast of the days after an origin. Days past the end of `truth` are skipped.
    pub fn add(&mut self, truth: &[f64], bands: &Bands) {
        let levels = bands.levels();
        self.below.resize(levels.len(), 0);
        let far = |level: f64| (level - 0.5).abs();
        let nearest = (0..levels.len()).min_by(|a, b| far(levels[*a]).total_cmp(&far(levels[*b])));
        for (truth, row) in truth.iter().zip(bands.days()) {
            self.days += 1;
            self.truth += truth;
            let middle = nearest.and_then(|at| row.get(at)).copied().unwrap_or(0.0);
            self.absolute += (truth - middle).abs();
            if *truth > 0.0 {
                self.relative += (truth - middle).abs() / truth;
                self.relative_days += 1;
            }
            for (at, (level, value)) in levels.iter().zip(row).enumerate() {
                self.pinball += pinball(*truth, *value, *level) / levels.len() as f64;
                self.below[at] += usize::from(truth <= value);
            }
        }
    }

    /// The means; none if there was no day.
    pub fn score(&self) -> Option<Score> {
        let days = (self.days > 0).then_some(self.days)?;
        let share = |sum: f64, of: f64| (of > 0.0).then(|| sum / of);
        let unit = if self.truth > 0.0 { self.truth } else { days as f64 };
        Some(Score {
            days,
            relative_error: share(self.relative, self.relative_days as f64),
            weighted_error: share(self.absolute, self.truth),
            pinball: self.pinball / unit,
            coverage: self.below.iter().map(|below| *below as f64 / days as f64).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_by_hand() {
        let bands = Bands::new(&[0.5, 0.9], vec![vec![9.0, 12.0], vec![20.0, 30.0]], 0.0);
        let mut tally = Tally::default();
        // The third day was not forecast.
        tally.add(&[10.0, 40.0, 5.0], &bands);
        let score = tally.score().expect("two days");
        assert_eq!(score.days, 2);
        assert_eq!(score.relative_error, Some((0.1 + 0.5) / 2.0));
        assert_eq!(score.weighted_error, Some(21.0 / 50.0));
        // 0.5, 0.2 on the first day; 10 and 9 on the second.
        let loss = (0.5 * 1.0 + 0.1 * 2.0 + 0.5 * 20.0 + 0.9 * 10.0) / 2.0;
        assert!((score.pinball - loss / 50.0).abs() < 1e-12, "{}", score.pinball);
        assert_eq!(score.coverage, [0.0, 0.5]);
    }

    #[test]
    fn days_without_demand_have_no_relative_error() {
        let mut tally = Tally::default();
        tally.add(&[0.0], &Bands::constant(&[0.5], 1, 3.0));
        let score = tally.score().expect("a day");
        assert_eq!((score.relative_error, score.weighted_error), (None, None));
        assert_eq!(score.pinball, 1.5);
        assert_eq!(Tally::default().score(), None);
    }
}

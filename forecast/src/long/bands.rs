//! Quantiles by day.

use serde::Serialize;

/// The levels that are reported: Q50, Q60, Q70 and Q90, as Eigen's figure 12, and Q90.
pub const LEVELS: [f64; 4] = [0.5, 0.6, 0.7, 0.9];

/// Quantiles of the days of a forecast: ordered by level, finite, at least 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bands {
    levels: Vec<f64>,
    /// By day, then by level.
    days: Vec<Vec<f64>>,
}

impl Bands {
    /// Bands of `days` rows with one value per level. `levels` rise. Values that cross are sorted
    /// (which never worsens the pinball loss: Chernozhukov and others, 2010), values below 0 are 0.
    /// A value that is not finite becomes `otherwise`.
    pub fn new(levels: &[f64], days: Vec<Vec<f64>>, otherwise: f64) -> Bands {
        let days = days.into_iter().map(|mut day| {
            day.resize(levels.len(), otherwise);
            for value in &mut day {
                *value = if value.is_finite() { value.max(0.0) } else { otherwise.max(0.0) };
            }
            day.sort_by(f64::total_cmp);
            day
        });
        Bands { levels: levels.to_vec(), days: days.collect() }
    }

    /// The same value on each day and level.
    pub fn constant(levels: &[f64], horizon: usize, value: f64) -> Bands {
        Bands::new(levels, vec![vec![value; levels.len()]; horizon], value)
    }

    /// The levels, rising.
    pub fn levels(&self) -> &[f64] {
        &self.levels
    }

    /// How many days there are.
    pub fn horizon(&self) -> usize {
        self.days.len()
    }

    /// The quantiles of each day, one per level.
    pub fn days(&self) -> &[Vec<f64>] {
        &self.days
    }

    /// The path of one level: the nearest there is.
    pub fn path(&self, level: f64) -> Vec<f64> {
        let nearest = (0..self.levels.len())
            .min_by(|a, b| {
                let far = |i: usize| (self.levels[i] - level).abs();
                far(*a).total_cmp(&far(*b))
            })
            .unwrap_or(0);
        self.days.iter().filter_map(|day| day.get(nearest).copied()).collect()
    }

    /// The median over several forecasts of the same days and levels, quantile by quantile; none if
    /// there is no forecast.
    pub fn median(all: &[Bands]) -> Option<Bands> {
        let first = all.first()?;
        let mut days = first.days.clone();
        for (day, row) in days.iter_mut().enumerate() {
            for (level, value) in row.iter_mut().enumerate() {
                let mut values: Vec<f64> =
                    all.iter().filter_map(|b| b.days.get(day)?.get(level).copied()).collect();
                *value = median(&mut values);
            }
        }
        Some(Bands::new(&first.levels, days, 0.0))
    }
}

/// The median; the mean of the two middle values of an even number; 0 of no values.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

/// The empirical quantile of n values, at position (n + 1) level: the level at which a further
/// value of the same distribution lies below it with at least that chance, if n is large enough
/// (split conformal prediction). Sorts the values; 0 of no values.
pub(crate) fn quantile(values: &mut [f64], level: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    let position = ((values.len() + 1) as f64 * level - 1.0).clamp(0.0, last as f64);
    let below = position.floor() as usize;
    let part = position - position.floor();
    let above = (below + 1).min(last);
    values[below] + part * (values[above] - values[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossing_and_broken_values_are_repaired() {
        let bands = Bands::new(&[0.5, 0.9], vec![vec![3.0, 2.0], vec![f64::NAN, -1.0]], 7.0);
        assert_eq!(bands.days(), [vec![2.0, 3.0], vec![0.0, 7.0]]);
        assert_eq!(bands.path(0.88), [3.0, 7.0]);
    }

    #[test]
    fn quantiles_of_few_values_are_their_extremes() {
        assert_eq!(quantile(&mut [3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile(&mut [3.0, 1.0, 2.0], 0.99), 3.0);
        assert_eq!(quantile(&mut [], 0.5), 0.0);
    }
}

//! Bands from a method's own past errors (conformal prediction on rolling origins).

use super::bands::quantile;
use super::daily::{FURTHEST, scale};
use super::point::PointMethod;
use super::{Bands, Method};

/// A point method with bands: the forecast of a day plus the quantile of the errors that the method
/// made as many days ahead, from each origin of the last half year, each divided by the level of
/// demand at its origin.
pub struct Conformal<P>(pub P);

/// Origins that errors are taken from: what the errors were half a year ago says little.
const ORIGINS: usize = 182;
/// Errors of this many days before and after are taken as well: a few origins make rough quantiles.
const NEIGHBOURS: usize = 3;
/// Errors that a quantile needs at least; with fewer, those of the furthest day that has enough.
const ENOUGH: usize = 10;

impl<P: PointMethod> Method for Conformal<P> {
    fn name(&self) -> String {
        self.0.name().to_owned()
    }

    fn forecast(&self, history: &[f64], horizon: usize, levels: &[f64]) -> Bands {
        let last = history.last().copied().unwrap_or(0.0);
        let Some(unit) = scale(history) else { return Bands::constant(levels, horizon, last) };
        let first = history.len().saturating_sub(ORIGINS + horizon).max(1);
        let origins: Vec<usize> = (first..=history.len()).collect();
        let mut paths = self.0.paths(history, &origins, horizon);
        let now = paths.pop().unwrap_or_default();
        let mut errors: Vec<Vec<f64>> = vec![Vec::new(); horizon];
        // Latest origins first, so that the latest half year of each day ahead is kept.
        for (origin, path) in origins.iter().zip(&paths).rev() {
            let Some(scale) = scale(&history[..*origin]) else { continue };
            for (errors, (truth, forecast)) in
                errors.iter_mut().zip(history[*origin..].iter().zip(path))
            {
                if errors.len() < ORIGINS {
                    errors.push(((truth - forecast) / scale).clamp(-FURTHEST, FURTHEST));
                }
            }
        }
        let usable = errors.iter().take_while(|errors| errors.len() >= ENOUGH).count();
        let mut days = Vec::with_capacity(horizon);
        for (day, value) in now.iter().enumerate() {
            // Errors grow about as the root of the time: so they do beyond the furthest known.
            let known = day.min(usable.saturating_sub(1));
            let growth = ((day + 1) as f64 / (known + 1) as f64).sqrt();
            let near = known.saturating_sub(NEIGHBOURS)..(known + NEIGHBOURS + 1).min(horizon);
            let mut pool: Vec<f64> = errors[near].iter().flatten().copied().collect();
            let row =
                levels.iter().map(|level| value + unit * growth * quantile(&mut pool, *level));
            days.push(row.collect());
        }
        Bands::new(levels, days, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::long::point::Naive;
    use crate::random::Random;

    #[test]
    fn bands_of_noise_cover_what_they_say() {
        let mut random = Random::new(7);
        let values: Vec<f64> = (0..1_200).map(|_| 100.0 + 20.0 * random.unit()).collect();
        let (mut below, mut days) = (0, 0);
        for origin in (300..1_190).step_by(10) {
            let bands = Conformal(Naive).forecast(&values[..origin], 10, &[0.9]);
            for (truth, forecast) in values[origin..].iter().zip(bands.path(0.9)) {
                below += usize::from(*truth <= forecast);
                days += 1;
            }
        }
        let coverage = f64::from(below as u32) / f64::from(days);
        assert!((0.85..0.95).contains(&coverage), "{coverage}");
    }
}

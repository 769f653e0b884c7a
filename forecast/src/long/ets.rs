//! Exponential smoothing with damped trend and weekly season, all additive (Hyndman's ETS(A,Ad,A)).

use super::WEEK;
use super::daily::mean;
use super::point::PointMethod;

/// The method: its four parameters are the ones of a grid with the least squared one-day error.
pub struct Ets;

/// Smoothing of level, trend and season, and what remains of the trend each day.
#[derive(Clone, Copy)]
struct Parameters {
    level: f64,
    trend: f64,
    season: f64,
    damping: f64,
}

#[derive(Clone)]
struct State {
    level: f64,
    trend: f64,
    /// By day modulo a week.
    season: [f64; WEEK],
}

impl State {
    /// From the first two weeks.
    fn start(values: &[f64]) -> State {
        let first = &values[..values.len().min(WEEK)];
        let level = mean(first);
        let mut season = [0.0; WEEK];
        if first.len() == WEEK {
            for (season, value) in season.iter_mut().zip(first) {
                *season = value - level;
            }
        }
        State { level, trend: 0.0, season }
    }

    /// Takes the value of a day; returns the error of its forecast.
    fn step(&mut self, day: usize, value: f64, p: Parameters) -> f64 {
        let season = &mut self.season[day % WEEK];
        let trend = p.damping * self.trend;
        let error = value - (self.level + trend + *season);
        self.level += trend + p.level * error;
        self.trend = trend + p.trend * error;
        *season += p.season * error;
        error
    }

    fn path(&self, origin: usize, horizon: usize, p: Parameters) -> Vec<f64> {
        let (mut damped, mut sum) = (1.0, 0.0);
        let value = |ahead: usize| {
            damped *= p.damping;
            sum += damped;
            self.level + sum * self.trend + self.season[(origin + ahead) % WEEK]
        };
        (0..horizon).map(value).collect()
    }
}

fn squared_error(values: &[f64], p: Parameters) -> f64 {
    let mut state = State::start(values);
    let days = values.iter().enumerate();
    days.map(|(day, value)| state.step(day, *value, p).powi(2)).sum()
}

fn fit(values: &[f64]) -> Parameters {
    let mut best = Parameters { level: 0.3, trend: 0.0, season: 0.1, damping: 0.9 };
    let mut least = f64::INFINITY;
    for level in [0.05, 0.1, 0.2, 0.35, 0.5, 0.8] {
        for trend in [0.0, 0.01, 0.03, 0.1] {
            for season in [0.02, 0.1, 0.2, 0.4] {
                // Without a trend, damping changes nothing.
                let dampings: &[f64] = if trend == 0.0 { &[0.9] } else { &[0.9, 0.96, 0.98] };
                for damping in dampings {
                    let p = Parameters { level, trend, season, damping: *damping };
                    let error = squared_error(values, p);
                    if error < least {
                        (best, least) = (p, error);
                    }
                }
            }
        }
    }
    best
}

impl PointMethod for Ets {
    fn name(&self) -> &'static str {
        "ETS"
    }

    fn paths(&self, values: &[f64], origins: &[usize], horizon: usize) -> Vec<Vec<f64>> {
        let Some(last) = origins.last().copied() else { return Vec::new() };
        let p = fit(&values[..last]);
        let mut state = State::start(&values[..last]);
        let mut known = 0;
        let path = |origin: &usize| {
            while known < *origin {
                state.step(known, values[known], p);
                known += 1;
            }
            state.path(known, horizon, p)
        };
        origins.iter().map(path).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_season_on_a_level_is_learned() {
        let shape = [10.0, 12.0, 13.0, 13.0, 12.0, 6.0, 5.0];
        let values: Vec<f64> = (0..140).map(|day| shape[day % WEEK]).collect();
        let path = &Ets.paths(&values, &[140], 21)[0];
        for (ahead, value) in path.iter().enumerate() {
            assert!((value - shape[ahead % WEEK]).abs() < 0.1, "{ahead}: {value}");
        }
    }

    #[test]
    fn origins_in_one_pass_are_origins_apart() {
        let values: Vec<f64> = (0..100).map(|day| f64::from(day * day % 37)).collect();
        let together = Ets.paths(&values, &[60, 80, 100], 10);
        // The parameters come from the last origin, so only it can be compared.
        assert_eq!(together[2], Ets.paths(&values, &[100], 10)[0]);
        assert_ne!(together[0], together[1]);
    }
}

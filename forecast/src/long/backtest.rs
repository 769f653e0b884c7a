//! Rolling back-test of one series: a method is chosen by its validation period and judged by the
//! test period after it.

use super::score::{Score, Tally};
use super::{Bands, Method, WEEK};
use serde::Serialize;

/// How a series is cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Days ahead, at least 1.
    pub horizon: usize,
    /// Days between two origins, at least 1.
    pub stride: usize,
    /// Share of the series that is the test period, as Eigen's 4:1. The period is no shorter than
    /// the horizon. The validation period before it is as long.
    pub test: f64,
    /// Levels of the quantiles, rising.
    pub levels: Vec<f64>,
}

impl Plan {
    /// A test period of a fifth, an origin a week.
    pub fn new(horizon: usize) -> Plan {
        Plan { horizon: horizon.max(1), stride: WEEK, test: 0.2, levels: super::LEVELS.to_vec() }
    }

    /// The same with one level more, unless it has it already.
    pub fn with_level(mut self, level: f64) -> Plan {
        if !self.levels.contains(&level) {
            self.levels.push(level);
            self.levels.sort_by(f64::total_cmp);
        }
        self
    }

    /// Where validation and test begin in a series of `days` days; none if less than two weeks
    /// would be left before them.
    pub fn cuts(&self, days: usize) -> Option<(usize, usize)> {
        let period = ((days as f64 * self.test.clamp(0.0, 1.0)) as usize).max(self.horizon);
        let test = days.checked_sub(period)?;
        let validation = test.checked_sub(period)?;
        (validation >= 2 * WEEK).then_some((validation, test))
    }
}

/// A method and its scores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// Its name.
    pub name: String,
    /// On the validation period.
    pub validation: Score,
    /// On the test period.
    pub test: Score,
}

/// The outcome of a back-test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Backtest {
    /// All methods, in the order given; last the median of all, quantile by quantile.
    pub methods: Vec<Judged>,
    /// The method with the least pinball loss on the validation period, the first of equals.
    pub chosen: usize,
    /// The one with the least on the test period: known only afterwards.
    pub best: usize,
}

impl Backtest {
    /// The chosen method.
    pub fn winner(&self) -> Option<&Judged> {
        self.methods.get(self.chosen)
    }

    /// The pinball loss of the chosen method over that of another on the test period; none if there
    /// is no method of that name or it has no loss.
    pub fn against(&self, name: &str) -> Option<f64> {
        let other = self.methods.iter().find(|method| method.name == name)?.test.pinball;
        (other > 0.0).then(|| self.winner().map(|winner| winner.test.pinball / other)).flatten()
    }
}

/// Why a series cannot be back-tested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BacktestError {
    /// Too short for two periods and what comes before.
    #[error("{days} days are too few to forecast {horizon} ahead, choose and judge")]
    Short {
        /// How long it is.
        days: usize,
        /// Days ahead.
        horizon: usize,
    },
    /// No method.
    #[error("there is no method to choose from")]
    NoMethod,
}

/// Forecasts from each origin of both periods, with only the days before it known. `validating`
/// and `testing` are the same methods in the same order; trained ones differ in what they were
/// trained on: nothing of the period that they are judged by.
///
/// # Errors
/// The series is too short; there is no method.
pub fn backtest(
    values: &[f64],
    plan: &Plan,
    validating: &[&dyn Method],
    testing: &[&dyn Method],
) -> Result<Backtest, BacktestError> {
    let days = values.len();
    let (validation, test) =
        plan.cuts(days).ok_or(BacktestError::Short { days, horizon: plan.horizon })?;
    let validated = roll(&values[..test], validation, plan, validating);
    let tested = roll(values, test, plan, testing);
    let names = testing.iter().map(|method| method.name()).chain(["median of all".to_owned()]);
    let judged = names.zip(validated).zip(tested).filter_map(|((name, validation), test)| {
        Some(Judged { name, validation: validation.score()?, test: test.score()? })
    });
    let methods: Vec<Judged> = judged.collect();
    let least = |loss: &dyn Fn(&Judged) -> f64| {
        (0..methods.len()).min_by(|a, b| loss(&methods[*a]).total_cmp(&loss(&methods[*b])))
    };
    let chosen = least(&|judged| judged.validation.pinball).ok_or(BacktestError::NoMethod)?;
    let best = least(&|judged| judged.test.pinball).ok_or(BacktestError::NoMethod)?;
    Ok(Backtest { methods, chosen, best })
}

/// One tally per method, and one of their median.
fn roll(values: &[f64], from: usize, plan: &Plan, methods: &[&dyn Method]) -> Vec<Tally> {
    let mut tallies = vec![Tally::default(); methods.len() + 1];
    for origin in (from..values.len()).step_by(plan.stride.max(1)) {
        let (known, truth) = values.split_at(origin);
        let horizon = plan.horizon.min(truth.len());
        let bands = methods.iter().map(|method| method.forecast(known, horizon, &plan.levels));
        let mut bands: Vec<Bands> = bands.collect();
        bands.extend(Bands::median(&bands));
        tallies.iter_mut().zip(&bands).for_each(|(tally, bands)| tally.add(truth, bands));
    }
    tallies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::long::rivals;

    /// Knows the days of a range, and says 0 for all others.
    struct Oracle {
        values: Vec<f64>,
        known: std::ops::Range<usize>,
    }

    impl Method for Oracle {
        fn name(&self) -> String {
            "oracle".to_owned()
        }

        fn forecast(&self, history: &[f64], horizon: usize, levels: &[f64]) -> Bands {
            let day = |at: usize| if self.known.contains(&at) { self.values[at] } else { 0.0 };
            let days =
                (history.len()..history.len() + horizon).map(|at| vec![day(at); levels.len()]);
            Bands::new(levels, days.collect(), 0.0)
        }
    }

    fn values() -> Vec<f64> {
        (0..200).map(|day| f64::from(100 + day % 7 * 10 + day * day % 13)).collect()
    }

    #[test]
    fn the_choice_knows_nothing_of_the_test_period() {
        let (values, plan) = (values(), Plan::new(14));
        let (validation, test) = plan.cuts(values.len()).expect("long enough");
        assert_eq!((validation, test), (120, 160));
        let rivals = rivals();
        let judge = |known| {
            let oracle = Oracle { values: values.clone(), known };
            let mut methods: Vec<&dyn Method> = vec![&oracle];
            methods.extend(rivals.iter().map(|rival| rival.as_ref() as &dyn Method));
            backtest(&values, &plan, &methods, &methods).expect("long enough")
        };
        let later = judge(test..values.len());
        assert_eq!(later.best, 0);
        assert_ne!(later.chosen, 0);
        let earlier = judge(validation..test);
        assert_eq!(earlier.chosen, 0);
        assert_ne!(earlier.best, 0);
        assert!(earlier.against("naive").expect("a rival") > 1.0);
    }

    #[test]
    fn short_series_are_said() {
        let short = backtest(&values()[..40], &Plan::new(28), &[], &[]);
        assert_eq!(short, Err(BacktestError::Short { days: 40, horizon: 28 }));
        assert_eq!(backtest(&values(), &Plan::new(28), &[], &[]), Err(BacktestError::NoMethod));
    }
}

//! Methods compared: families of candidates, the one that a training range chooses, the frontier.

use crate::series::{Series, Step};
use crate::short::{Base, Level, Margin, Method, MethodError, Slope};
use crate::warm::{Outcome, capacities, judge};
use serde::Serialize;
use std::ops::Range;

/// Methods that differ in their parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// 5 % of the last observation above it.
    Constant5,
    /// 2 %.
    Constant2,
    /// 1 %.
    Constant1,
    /// As at the same time of the day before, without a margin.
    SeasonalNaive,
    /// Autoregression without a margin.
    Autoregression,
    /// Moving average without a margin.
    MovingAverage,
    /// ARIMA without a margin.
    Arima,
    /// Holt-Winters without a margin.
    HoltWinters,
    /// Exponential smoothing without a margin.
    Smoothing,
    /// Exponential smoothing with a constant margin (Eigen eq. 6).
    ConstantMargin,
    /// Exponential smoothing with an adaptive margin (Eigen eq. 8).
    AdaptiveMargin,
    /// Exponential smoothing with a smoothed adaptive margin (Eigen eq. 10).
    SmoothedMargin,
    /// ARIMA with a margin that follows the expected size of its errors.
    ExpectedMargin,
}

impl Family {
    /// All of them, in the order of the table.
    pub const ALL: [Family; 13] = [
        Family::Constant5,
        Family::Constant2,
        Family::Constant1,
        Family::SeasonalNaive,
        Family::Autoregression,
        Family::MovingAverage,
        Family::Arima,
        Family::HoltWinters,
        Family::Smoothing,
        Family::ConstantMargin,
        Family::AdaptiveMargin,
        Family::SmoothedMargin,
        Family::ExpectedMargin,
    ];

    /// How tables name it.
    pub fn label(self) -> &'static str {
        match self {
            Family::Constant5 => "constant 5 %",
            Family::Constant2 => "constant 2 %",
            Family::Constant1 => "constant 1 %",
            Family::SeasonalNaive => "same time yesterday",
            Family::Autoregression => "AR",
            Family::MovingAverage => "MA",
            Family::Arima => "ARIMA",
            Family::HoltWinters => "Holt-Winters",
            Family::Smoothing => "ES",
            Family::ConstantMargin => "ES, constant margin",
            Family::AdaptiveMargin => "ES, adaptive margin",
            Family::SmoothedMargin => "ES, smoothed adaptive margin",
            Family::ExpectedMargin => "ARIMA, expected-error margin",
        }
    }

    /// Its candidates for a series of this step.
    pub fn candidates(self, step: Step) -> Vec<Method> {
        let (day, week) = (step.per(Step::DAY), step.per(Step::WEEK));
        let bare = |levels: Vec<Level>| {
            levels.into_iter().map(|level| Method { level, margin: Margin::NONE }).collect()
        };
        match self {
            Family::Constant5 => vec![constant_share(0.05)],
            Family::Constant2 => vec![constant_share(0.02)],
            Family::Constant1 => vec![constant_share(0.01)],
            Family::SeasonalNaive => bare(vec![Level::SeasonalNaive { season: day }]),
            Family::Autoregression => bare(arima(&[(1, 0), (2, 0), (4, 0), (7, 0)], false, week)),
            Family::MovingAverage => {
                let mut levels = arima(&[(0, 1), (0, 2), (0, 4)], false, week);
                levels.extend([2, 3, 6, 12].map(|window| Level::MovingAverage { window }));
                bare(levels)
            }
            Family::Arima => bare(arima(&[(1, 0), (1, 1), (2, 1), (4, 2)], true, week)),
            Family::HoltWinters => {
                let weights = grid(&[0.3, 0.6, 0.9], &[0.0, 0.05, 0.2]);
                let levels = weights.into_iter().flat_map(|(alpha, beta)| {
                    [0.05, 0.2].map(|gamma| Level::HoltWinters { alpha, beta, gamma, season: day })
                });
                bare(levels.collect())
            }
            Family::Smoothing => {
                bare(ALPHAS.map(|alpha| Level::Smoothing { alpha }).into_iter().collect())
            }
            Family::ConstantMargin => smoothing(&[Slope::Constant], day, week),
            Family::AdaptiveMargin => {
                let slopes = GAMMAS.map(|gamma| Slope::Adaptive { gamma, window: day });
                smoothing(&slopes, day, week)
            }
            Family::SmoothedMargin => {
                let weights = grid(&GAMMAS, &[0.5, 0.8, 0.95]);
                let slopes: Vec<Slope> = (weights.into_iter())
                    .map(|(gamma, beta)| Slope::Smoothed { gamma, beta, window: day })
                    .collect();
                smoothing(&slopes, day, week)
            }
            Family::ExpectedMargin => (QUANTILES.into_iter())
                .flat_map(|quantile| {
                    [1, 2].map(|p| expected_margin(p, quantile, day, MEMORY_WEEKS * week))
                })
                .collect(),
        }
    }
}

const ALPHAS: [f64; 4] = [0.5, 0.7, 0.9, 1.0];
const GAMMAS: [f64; 3] = [0.25, 0.5, 1.0];
const QUANTILES: [f64; 8] = [0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999];

/// Weeks that the expected-error margin remembers.
const MEMORY_WEEKS: usize = 4;

/// The method for a chance of a shortfall in a step, from 0 to 1, where nothing was trained: ARIMA(1, 1, 1)
/// with a margin that follows the expected size of its errors.
pub fn recommended(chance: f64, step: Step) -> Method {
    let quantile = (1.0 - chance).clamp(0.0, QUANTILE_MAX);
    expected_margin(1, quantile, step.per(Step::DAY), MEMORY_WEEKS * step.per(Step::WEEK))
}

/// The highest quantile of [`recommended`].
const QUANTILE_MAX: f64 = 0.999_99;

fn expected_margin(p: usize, quantile: f64, day: usize, memory: usize) -> Method {
    let memory = memory.min(WINDOW);
    let base = Base::Expected { quantile, window: memory, season: day };
    Method {
        level: Level::Arima { p, differenced: true, q: 1, memory },
        margin: Margin { base, slope: Slope::Constant },
    }
}

/// The longest window used here, in steps: a series by the second need not remember four weeks.
const WINDOW: usize = 10_000;

/// The last observation and a share of it above: what a fixed percentage amounts to.
pub fn constant_share(share: f64) -> Method {
    let margin = Margin { base: Base::Share { share }, slope: Slope::Constant };
    Method { level: Level::Last, margin }
}

/// Exponential smoothing with a constant margin: a quantile of its errors in a window.
pub fn constant_margin(alpha: f64, quantile: f64, window: usize) -> Method {
    let margin = Margin { base: Base::Quantile { quantile, window }, slope: Slope::Constant };
    Method { level: Level::Smoothing { alpha }, margin }
}

fn grid(left: &[f64], right: &[f64]) -> Vec<(f64, f64)> {
    left.iter().flat_map(|a| right.iter().map(|b| (*a, *b))).collect()
}

fn arima(orders: &[(usize, usize)], differenced: bool, memory: usize) -> Vec<Level> {
    let memory = memory.min(WINDOW);
    orders.iter().map(|&(p, q)| Level::Arima { p, differenced, q, memory }).collect()
}

fn smoothing(slopes: &[Slope], day: usize, week: usize) -> Vec<Method> {
    let weights = grid(&ALPHAS, &QUANTILES);
    let bases = weights.into_iter().flat_map(|(alpha, quantile)| {
        [day, week].map(|window| constant_margin(alpha, quantile, window.min(WINDOW)))
    });
    let with = |method: Method| {
        slopes.iter().map(move |slope| Method {
            margin: Margin { slope: *slope, ..method.margin },
            ..method
        })
    };
    bases.flat_map(with).collect()
}

/// The candidate that a training range chooses, and what it did there and in the range that judges.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// Its family.
    pub family: Family,
    /// The method chosen.
    pub method: Method,
    /// What it did in the training range.
    pub trained: Outcome,
    /// What it did afterwards.
    pub judged: Outcome,
}

/// Chooses of each family the cheapest candidate whose share of short steps in the training range, the
/// steps before `split`, is at most `chance`; if no candidate keeps that, the one with the fewest. Judges it
/// on the rest, with the state it then has.
///
/// # Errors
/// A parameter of a candidate that is out of range.
pub fn choose(
    series: &Series,
    families: &[Family],
    chance: f64,
    split: usize,
) -> Result<Vec<Choice>, MethodError> {
    let training = series.slice(0, split);
    let training = training.as_ref().unwrap_or(series);
    let mut choices = Vec::new();
    for &family in families {
        let mut best: Option<(Method, Outcome)> = None;
        for method in family.candidates(series.step()) {
            let held = capacities(training, &method)?;
            let trained = judge(training, &held, 0..training.len());
            if best.as_ref().is_none_or(|(_, best)| is_better(&trained, best, chance)) {
                best = Some((method, trained));
            }
        }
        if let Some((method, trained)) = best {
            let held = capacities(series, &method)?;
            let judged = judge(series, &held, split..series.len());
            choices.push(Choice { family, method, trained, judged });
        }
    }
    Ok(choices)
}

/// Whether an outcome is better than another for a chance of shortfalls.
fn is_better(found: &Outcome, best: &Outcome, chance: f64) -> bool {
    let (keeps, kept) = (found.event_share() <= chance, best.event_share() <= chance);
    match (keeps, kept) {
        (true, true) => found.warm_hours < best.warm_hours,
        (false, false) => (found.events, found.warm_hours) < (best.events, best.warm_hours),
        _ => keeps,
    }
}

/// Which outcomes no other one beats: at most the events at less cost, or fewer events at the cost or less.
pub fn frontier(outcomes: &[Outcome]) -> Vec<bool> {
    let beats = |a: &Outcome, b: &Outcome| {
        a.events <= b.events
            && a.warm_hours <= b.warm_hours
            && (a.events < b.events || a.warm_hours < b.warm_hours)
    };
    outcomes.iter().map(|outcome| !outcomes.iter().any(|other| beats(other, outcome))).collect()
}

/// What methods with a dial do at a given cost: the outcome whose cost is nearest to `warm_hours`, found by
/// bisection of the dial between `low` and `high`. The cost must rise with the dial.
///
/// # Errors
/// A parameter of the method that is out of range.
pub fn at_cost(
    series: &Series,
    range: Range<usize>,
    warm_hours: f64,
    (mut low, mut high): (f64, f64),
    method: impl Fn(f64) -> Method,
) -> Result<Outcome, MethodError> {
    let distance = |outcome: &Outcome| (outcome.warm_hours - warm_hours).abs();
    let mut nearest: Option<Outcome> = None;
    for _ in 0..BISECTIONS {
        let dial = low.midpoint(high);
        let outcome = judge(series, &capacities(series, &method(dial))?, range.clone());
        if outcome.warm_hours < warm_hours {
            low = dial;
        } else {
            high = dial;
        }
        if nearest.as_ref().is_none_or(|nearest| distance(&outcome) < distance(nearest)) {
            nearest = Some(outcome);
        }
    }
    Ok(nearest.unwrap_or_default())
}

/// Halvings of the dial: to a millionth of its range.
const BISECTIONS: usize = 20;

//! The five cases of Eigen, figure 10, on a series made to its description.
//!
//! At A, B and C demand rises with an acceleration that could be seen one step before. At D and E it rises after
//! a deceleration: at D by more than a constant margin, at E by less. Constant margins are short at A to
//! D, adaptive ones at D and E, smoothed ones never.

use forecast::short::{Base, Level, Margin, Method, Slope};
use forecast::warm::{capacities, judge};
use forecast::{Series, Step};

/// The margin: what the calm part needs. All changes are multiples of 9/16, so that sums are exact.
const UNIT: f64 = 9.0;

/// Calm steps before and between the cases.
const CALM: usize = 200;

/// The series, and the steps A to E.
fn made() -> (Series, Vec<usize>) {
    let mut values = vec![1_000.0];
    let mut cases = Vec::new();
    let push = |values: &mut Vec<f64>, change: f64| {
        let last = values.last().copied().unwrap_or(0.0);
        values.push(last + change);
    };
    let calm = |values: &mut Vec<f64>| {
        for step in 0..CALM {
            // Up by the margin, slowly back: so that the margin is a high quantile of the changes.
            push(values, if step % 5 == 2 { UNIT } else { -UNIT / 4.0 });
        }
    };
    calm(&mut values);
    for rise in [1.25, 1.375, 1.5] {
        push(&mut values, 0.875 * UNIT);
        cases.push(values.len());
        push(&mut values, rise * UNIT);
        calm(&mut values);
    }
    for rise in [1.1875, 0.8125] {
        push(&mut values, 0.9375 * UNIT);
        push(&mut values, 0.6875 * UNIT);
        cases.push(values.len());
        push(&mut values, rise * UNIT);
        calm(&mut values);
    }
    let values = values.into_iter().map(Some).collect();
    (Series::new(0, Step::FIVE_MINUTES, values).expect("a series"), cases)
}

/// The steps after the first calm part that are short.
fn short(slope: Slope) -> Vec<usize> {
    let (series, _) = made();
    let base = Base::Quantile { quantile: 0.9, window: CALM };
    let method = Method { level: Level::Smoothing { alpha: 1.0 }, margin: Margin { base, slope } };
    let held = capacities(&series, &method).expect("valid parameters");
    let range = CALM..series.len();
    let is_short = |step: &usize| judge(&series, &held, *step..*step + 1).events == 1;
    range.filter(is_short).collect()
}

#[test]
fn constant_margins_are_short_four_times_adaptive_twice_smoothed_never() {
    let (_, cases) = made();
    let (gamma, window) = (0.25, CALM);
    assert_eq!(short(Slope::Constant), cases[..4]);
    assert_eq!(short(Slope::Adaptive { gamma, window }), cases[3..]);
    assert_eq!(short(Slope::Smoothed { gamma, beta: 0.9, window }), [0; 0]);
}

//! What holds for every method on any input.

use forecast::short::{Base, Forecaster, Level, Margin, Method, Slope};
use forecast::tune::{Family, constant_share, recommended};
use forecast::warm::{capacities, judge};
use forecast::{Series, Step};
use proptest::prelude::*;

/// Small windows, so that short series pass through every state.
const SEASON: usize = 7;

fn levels() -> Vec<Level> {
    let arima = |p, differenced, q| Level::Arima { p, differenced, q, memory: 30 };
    vec![
        Level::Last,
        Level::SeasonalNaive { season: SEASON },
        Level::MovingAverage { window: 4 },
        Level::Smoothing { alpha: 0.6 },
        arima(2, false, 0),
        arima(0, false, 2),
        arima(1, true, 1),
        Level::HoltWinters { alpha: 0.5, beta: 0.1, gamma: 0.2, season: SEASON },
    ]
}

fn margins() -> Vec<Margin> {
    let slopes = [
        Slope::Constant,
        Slope::Adaptive { gamma: 0.0, window: 5 },
        Slope::Adaptive { gamma: 0.5, window: 5 },
        Slope::Smoothed { gamma: 0.5, beta: 0.8, window: 5 },
    ];
    let bases = [
        Base::Zero,
        Base::Quantile { quantile: 0.99, window: 20 },
        Base::Expected { quantile: 0.95, window: 20, season: SEASON },
    ];
    let with = |base| slopes.map(|slope| Margin { base, slope });
    bases.into_iter().flat_map(with).collect()
}

fn methods() -> Vec<Method> {
    let with = |level| margins().into_iter().map(move |margin| Method { level, margin });
    levels().into_iter().flat_map(with).chain([constant_share(0.02)]).collect()
}

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, cases: count, ..ProptestConfig::default() }
}

/// Observations of any kind: calm, wild, missing, and what only a broken monitor sends.
fn wild() -> impl Strategy<Value = Vec<Option<f64>>> {
    let value = prop_oneof![
        5 => (0.0..100.0f64).prop_map(Some),
        1 => Just(Some(0.0)),
        1 => Just(None),
        1 => any::<f64>().prop_map(Some),
        1 => (1e12..1e18f64).prop_map(Some),
        1 => Just(Some(1e-300)),
    ];
    prop::collection::vec(value, 0..80)
}

/// Whole numbers, whose sums and products by powers of two are exact.
fn whole() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((0..1_000i32).prop_map(f64::from), 3..60)
}

fn totals(method: &Method, values: &[f64]) -> Vec<f64> {
    let mut forecaster = method.start().expect("valid parameters");
    values.iter().map(|value| forecaster.observe(Some(*value)).total()).collect()
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn no_input_leads_to_a_negative_margin_or_to_no_number(values in wild()) {
        for method in methods() {
            let mut forecaster = method.start().expect("valid parameters");
            for value in &values {
                let capacity = forecaster.observe(*value);
                prop_assert!(capacity.margin >= 0.0 && capacity.level >= 0.0, "{method:?}: {capacity:?}");
                prop_assert!(capacity.total().is_finite(), "{method:?}: {capacity:?}");
            }
        }
    }

    #[test]
    fn capacity_scales_with_demand(values in whole(), power in -4..12i32) {
        let factor = 2f64.powi(power);
        let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
        for method in methods() {
            for (one, other) in totals(&method, &values).into_iter().zip(totals(&method, &scaled)) {
                let distance = (one * factor - other).abs();
                prop_assert!(distance <= 1e-6 * (1.0 + other), "{method:?}: {one} {other}");
            }
        }
    }

    #[test]
    fn capacity_shifts_with_demand(values in whole()) {
        // Far from zero, so that no forecast is cut off there.
        let near: Vec<f64> = values.iter().map(|value| value + 65_536.0).collect();
        let far: Vec<f64> = values.iter().map(|value| value + 131_072.0).collect();
        for method in methods() {
            // A share is of the value itself.
            if matches!(method.margin.base, Base::Share { .. }) {
                continue;
            }
            let mut forecasters = [0; 2].map(|_| method.start().expect("valid parameters"));
            for (near, far) in near.iter().zip(&far) {
                let [one, other] = [(0, near), (1, far)].map(|(which, value)| {
                    let forecaster: &mut Forecaster = &mut forecasters[which];
                    forecaster.observe(Some(*value))
                });
                // Forecasts of a wild fit are cut off at 0, wherever that is.
                if one.level == 0.0 || other.level == 0.0 {
                    break;
                }
                let (one, other) = (one.total(), other.total());
                let distance = (one + 65_536.0 - other).abs();
                prop_assert!(distance <= 1e-3 * (1.0 + one.abs()), "{method:?}: {one} {other}");
            }
        }
    }

    #[test]
    fn a_constant_series_is_forecast_without_error(value in 0.0..1e12f64, count in 1usize..60) {
        for method in methods() {
            let mut forecaster = method.start().expect("valid parameters");
            for _ in 0..count {
                let capacity = forecaster.observe(Some(value));
                let share = matches!(method.margin.base, Base::Share { .. });
                let error = (capacity.level - value).abs();
                prop_assert!(error <= 1e-9 * value, "{method:?}: {capacity:?}");
                prop_assert!(share || capacity.margin <= 1e-9 * value, "{method:?}: {capacity:?}");
            }
        }
    }

    #[test]
    fn missing_observations_change_nothing_but_the_time(values in whole()) {
        let method = constant_share(0.01);
        let mut forecaster = method.start().expect("valid parameters");
        for value in &values {
            let known = forecaster.observe(Some(*value));
            prop_assert_eq!(known, forecaster.observe(None));
        }
    }
}

#[test]
fn two_points_and_a_year_of_zeros_have_safe_answers() {
    for method in methods().into_iter().chain([recommended(0.001, Step::FIVE_MINUTES)]) {
        let two = Series::new(0, Step::FIVE_MINUTES, vec![Some(4.0), Some(6.0)]).expect("two");
        let held = capacities(&two, &method).expect("valid parameters");
        assert_eq!(held[0], None);
        assert!(held[1].is_some_and(|capacity| capacity >= 4.0), "{method:?}: {held:?}");
        let zeros = Series::new(0, Step::HOUR, vec![Some(0.0); 8_760]).expect("zeros");
        let outcome = judge(&zeros, &capacities(&zeros, &method).expect("valid"), 0..8_760);
        assert_eq!((outcome.events, outcome.warm_hours, outcome.warm_share()), (0, 0.0, 0.0));
    }
    let mut unasked = recommended(0.001, Step::DAY).start().expect("valid parameters");
    assert_eq!(unasked.observe(None).total(), 0.0, "nothing is known yet");
}

#[test]
fn parameters_out_of_range_are_named() {
    let margin = |base, slope| Method { level: Level::Last, margin: Margin { base, slope } };
    let level = |level| Method { level, margin: Margin::NONE };
    let quantile = |quantile, window| Base::Quantile { quantile, window };
    let cases = [
        (level(Level::Smoothing { alpha: 0.0 }), "alpha is 0; it must be above 0 and at most 1"),
        (level(Level::Smoothing { alpha: f64::NAN }), "alpha is NaN"),
        (level(Level::SeasonalNaive { season: 0 }), "season is 0 steps; it must be 1 to 100000"),
        (
            level(Level::MovingAverage { window: usize::MAX }),
            "window is 18446744073709551615 steps",
        ),
        (
            level(Level::Arima { p: usize::MAX, differenced: false, q: 9, memory: 5 }),
            "p + q is 18446744073709551615; it must be at most 7",
        ),
        (
            level(Level::HoltWinters { alpha: 0.5, beta: 2.0, gamma: 0.0, season: 7 }),
            "beta is 2; it must be 0 to 1",
        ),
        (
            margin(quantile(1.0, 9), Slope::Constant),
            "quantile is 1; it must be at least 0 and below 1",
        ),
        (margin(Base::Share { share: -0.1 }, Slope::Constant), "share is -0.1; it must be 0 to 1"),
        (margin(Base::Zero, Slope::Adaptive { gamma: 3.0, window: 5 }), "gamma is 3"),
        (margin(Base::Zero, Slope::Smoothed { gamma: 1.0, beta: -1.0, window: 5 }), "beta is -1"),
    ];
    for (method, message) in cases {
        let found = method.start().expect_err("out of range").to_string();
        assert!(found.contains(message), "{found}\n{message}");
    }
}

#[test]
fn every_candidate_is_valid_for_any_step() {
    for seconds in [1, 300, 86_400, 40_000_000] {
        let step = Step::from_seconds(seconds).expect("not 0");
        for family in Family::ALL {
            let candidates = family.candidates(step);
            assert!(!candidates.is_empty());
            for method in candidates {
                assert_eq!(method.check(), Ok(()), "{family:?} {step}: {method:?}");
            }
        }
        assert_eq!(recommended(0.0, step).check(), Ok(()));
    }
}

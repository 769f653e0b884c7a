//! Long-term forecasts of any history: safe, ordered, the same for the same seed, and in any unit.

use forecast::long::tcn::{Model, Output, Training, train};
use forecast::long::{Bands, Daily, Doubt, LEVELS, Method, rivals};
use forecast::orders::advice::{Position, advise};
use forecast::orders::{Pipeline, Terms};
use forecast::{Series, Step};
use proptest::prelude::*;
use std::sync::LazyLock;

static MODEL: LazyLock<Model> = LazyLock::new(|| {
    let value = |day: u32| f64::from(300 + day + 40 * (day % 7) + day * day % 23);
    let series: Vec<f64> = (0..250).map(value).collect();
    let settings = Training::new(Output::Cauchy, 28, 1);
    train(&[&series], &Training { epochs: 2, channels: 6, ..settings })
});

fn all(history: &[f64], horizon: usize) -> Vec<(String, Bands)> {
    let mut bands: Vec<(String, Bands)> = rivals()
        .iter()
        .map(|method| (method.name(), method.forecast(history, horizon, &LEVELS)))
        .collect();
    bands.push((MODEL.name(), MODEL.forecast(history, horizon, &LEVELS)));
    bands
}

fn check(history: &[f64], horizon: usize) {
    for (name, bands) in all(history, horizon) {
        assert_eq!(bands.horizon(), horizon, "{name}");
        for day in bands.days() {
            assert_eq!(day.len(), LEVELS.len(), "{name}");
            assert!(day.iter().all(|value| value.is_finite() && *value >= 0.0), "{name}: {day:?}");
            assert!(day.is_sorted(), "{name}: {day:?}");
        }
        let position = Position { in_use: 3.0, free: 2.0, pipeline: Pipeline(vec![0.0, 1.0]) };
        let advice = advise(&position, &bands.path(0.7), Terms::default());
        assert!(advice.order < 1_000_000_000 && advice.decommission <= 2, "{name}: {advice:?}");
    }
}

fn daily(values: Vec<Option<f64>>) -> Daily {
    Daily::new(&Series::new(0, Step::DAY, values).unwrap()).unwrap()
}

#[test]
fn bad_input_is_said_and_has_a_safe_answer() {
    let two = daily(vec![Some(4.0), Some(5.0)]);
    assert_eq!(two.doubts(), [Doubt::Short { days: 2 }]);
    check(two.values(), 90);

    let constant = daily(vec![Some(7.0); 100]);
    assert_eq!(constant.doubts(), [Doubt::Constant]);
    for (name, bands) in all(constant.values(), 28).iter().take(5) {
        assert!(bands.days().iter().flatten().all(|v| (v - 7.0).abs() < 0.05), "{name}: {bands:?}");
    }

    let zeros = daily(vec![Some(0.0); 365]);
    assert_eq!(zeros.doubts(), [Doubt::Constant]);
    for (name, bands) in all(zeros.values(), 90) {
        assert_eq!(bands, Bands::constant(&LEVELS, 90, 0.0), "{name}");
    }

    let mut values: Vec<Option<f64>> = (0..60).map(|day| Some(f64::from(day % 7))).collect();
    values[40] = None;
    values[41] = None;
    let gaps = daily(values);
    assert_eq!(gaps.doubts(), [Doubt::Gaps { days: 2 }]);
    assert_eq!(gaps.values()[40..42], [5.0, 6.0]);

    let mut ended = vec![Some(9.0); 60];
    ended.extend([Some(0.0); 10]);
    assert_eq!(daily(ended).doubts(), [Doubt::EndsInZeros { days: 10 }]);

    let hourly = Series::new(0, Step::HOUR, vec![Some(1.0)]).unwrap();
    assert_eq!(
        Daily::new(&hourly).unwrap_err().to_string(),
        "the step is 1 h; long-term forecasts need one value a day"
    );
    assert!(Daily::new(&Series::new(0, Step::DAY, vec![None]).unwrap()).is_err());
    check(&[], 5);
    check(&[1.0], 0);
}

fn histories() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![3 => 0.0_f64..1e3, 1 => Just(0.0), 1 => 1e5_f64..1e6];
    prop::collection::vec(value, 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, cases: 24, ..ProptestConfig::default()
    })]

    #[test]
    fn quantiles_are_ordered_finite_and_not_negative(history in histories(), horizon in 1_usize..91) {
        check(&history, horizon);
    }

    #[test]
    fn forecasts_have_no_unit(history in histories(), power in -8_i32..9) {
        // Powers of 2 scale floats exactly, so only an absolute constant can make a difference.
        let by = 2.0_f64.powi(power);
        let scaled: Vec<f64> = history.iter().map(|value| value * by).collect();
        for ((name, plain), (_, scaled)) in all(&history, 21).iter().zip(all(&scaled, 21)) {
            for (plain, scaled) in plain.days().iter().flatten().zip(scaled.days().iter().flatten()) {
                prop_assert!((plain * by - scaled).abs() <= 1e-9 * (1.0 + scaled.abs()), "{}", name);
            }
        }
    }

    #[test]
    fn the_same_history_has_the_same_forecast(history in histories()) {
        prop_assert_eq!(all(&history, 14), all(&history, 14));
    }
}

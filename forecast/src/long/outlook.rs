//! The forecast of a series by the method that its own past chose, with the proof.

use super::backtest::{Backtest, Plan, backtest};
use super::conformal::Conformal;
use super::point::{Naive, SameWeekday};
use super::tcn::{Model, Output, Training, train};
use super::{Bands, Daily, Doubt, Method, WEEK, rivals};
use serde::Serialize;

/// Networks of several series: trained before the validation period of each, before its test period,
/// and on all days.
pub struct Networks {
    before_validation: Vec<Model>,
    before_test: Vec<Model>,
    now: Vec<Model>,
}

impl Networks {
    /// Trains networks of each output for these series. Series too short for a back-test are not
    /// learned from.
    pub fn train(
        series: &[&Daily],
        plan: &Plan,
        settings: impl Fn(Output) -> Training,
    ) -> Networks {
        let parts = |end: fn(usize, usize, usize) -> usize| -> Vec<&[f64]> {
            let values = series.iter().map(|daily| daily.values());
            let part = |values: &'_ [f64]| {
                plan.cuts(values.len())
                    .map(|(validation, test)| end(validation, test, values.len()))
            };
            values.filter_map(|values| values.get(..part(values)?)).collect()
        };
        let models = |series: Vec<&[f64]>| {
            Output::ALL.map(|output| train(&series, &settings(output))).into()
        };
        Networks {
            before_validation: models(parts(|validation, _, _| validation)),
            before_test: models(parts(|_, test, _| test)),
            now: models(parts(|_, _, days| days)),
        }
    }

    /// The models that forecast from today on.
    pub fn models(&self) -> &[Model] {
        &self.now
    }
}

/// A forecast and why it is made this way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlook {
    /// The quantiles of the days after the series.
    pub bands: Bands,
    /// The method that made them.
    pub method: String,
    /// All methods on the past; none if the series is too short to choose by. Then the last same
    /// weekday is taken, or of less than two weeks the last value.
    pub backtest: Option<Backtest>,
    /// Why to doubt it.
    pub doubts: Vec<Doubt>,
}

/// Forecasts a series by the method with the least loss on its validation period. The test period
/// after it, which had no say, judges that method.
pub fn outlook(daily: &Daily, plan: &Plan, networks: Option<&Networks>) -> Outlook {
    let values = daily.values();
    let rivals = rivals();
    let models = |of: fn(&Networks) -> &[Model]| networks.map_or(&[][..], of);
    let judged = backtest(
        values,
        plan,
        &together(&rivals, models(|networks| &networks.before_validation)),
        &together(&rivals, models(|networks| &networks.before_test)),
    );
    let doubts = daily.doubts().to_vec();
    let forecast = |method: &dyn Method| method.forecast(values, plan.horizon, &plan.levels);
    let Ok(judged) = judged else {
        let method: &dyn Method =
            if values.len() < 2 * WEEK { &Conformal(Naive) } else { &Conformal(SameWeekday) };
        let bands = forecast(method);
        return Outlook { bands, method: method.name(), backtest: None, doubts };
    };
    let methods = together(&rivals, models(|networks| &networks.now));
    // The method after the last is the median of all.
    let bands = match methods.get(judged.chosen) {
        Some(method) => forecast(*method),
        None => {
            let all: Vec<Bands> = methods.iter().map(|method| forecast(*method)).collect();
            Bands::median(&all).unwrap_or_else(|| forecast(&Conformal(Naive)))
        }
    };
    let method = judged.winner().map_or_else(String::new, |winner| winner.name.clone());
    Outlook { bands, method, backtest: Some(judged), doubts }
}

fn together<'a>(
    rivals: &'a [Box<dyn Method + Send + Sync>],
    models: &'a [Model],
) -> Vec<&'a dyn Method> {
    let rivals = rivals.iter().map(|rival| rival.as_ref() as &dyn Method);
    rivals.chain(models.iter().map(|model| model as &dyn Method)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::{Series, Step};

    fn daily(days: usize) -> Daily {
        let value = |day: usize| Some((100 + day + 30 * (day % 7)) as f64);
        let series = Series::new(0, Step::DAY, (0..days).map(value).collect());
        Daily::new(&series.expect("valid")).expect("daily")
    }

    #[test]
    fn the_method_of_the_forecast_is_the_one_that_was_judged() {
        let daily = daily(250);
        let plan = Plan::new(14);
        let outlook = outlook(&daily, &plan, None);
        let judged = outlook.backtest.expect("long enough");
        assert_eq!(outlook.method, judged.winner().expect("methods").name);
        let chosen = rivals().into_iter().find(|rival| rival.name() == outlook.method);
        if let Some(chosen) = chosen {
            assert_eq!(outlook.bands, chosen.forecast(daily.values(), 14, &plan.levels));
        } else {
            assert_eq!(outlook.method, "median of all");
        }
    }

    #[test]
    fn a_short_series_has_a_forecast_without_a_proof() {
        let plan = Plan::new(28);
        let few = outlook(&daily(30), &plan, None);
        assert_eq!((few.method.as_str(), few.backtest), ("same weekday", None));
        assert_eq!(few.bands.horizon(), 28);
        let two = outlook(&daily(2), &plan, None);
        assert_eq!(two.method, "naive");
        assert_eq!(two.doubts, [Doubt::Short { days: 2 }]);
    }
}

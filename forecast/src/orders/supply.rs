//! How long the servers of a type in a place last: a forecast of demand against what is there.

use super::advice::{Position, runs_out};
use crate::long::Doubt;
use serde::Serialize;

/// The quantile of demand that a date is for unless another is asked for, as of orders.
pub const QUANTILE: f64 = 0.7;

/// How long the servers of a type in a place last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Supply {
    /// Too few days of demand are known to say.
    Unknown,
    /// None is free, so demand may be larger than can be seen.
    Out,
    /// Demand exceeds what is there on this day ahead (1 is the day after the last one known) for the first time.
    RunsOut {
        /// The day ahead.
        days: usize,
    },
    /// Demand stays within what is there for as long as it is forecast.
    Lasts,
}

impl Supply {
    /// Its words in documents and metrics.
    pub const WORDS: [&str; 4] = ["unknown", "out", "runs_out", "lasts"];

    /// How long it lasts. `demand` is a quantile of the forecast by day, the first tomorrow; `doubts` are those of
    /// the forecast.
    pub fn new(position: &Position, demand: &[f64], doubts: &[Doubt]) -> Supply {
        if position.free < 1.0 && position.in_use > 0.0 {
            return Supply::Out;
        }
        let is_short = |doubt: &Doubt| matches!(doubt, Doubt::Short { .. });
        if demand.is_empty() || doubts.iter().any(is_short) {
            return Supply::Unknown;
        }
        match runs_out(position.in_use, position.free, &position.pipeline, demand) {
            Some(days) => Supply::RunsOut { days },
            None => Supply::Lasts,
        }
    }

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        let at = match self {
            Supply::Unknown => 0,
            Supply::Out => 1,
            Supply::RunsOut { .. } => 2,
            Supply::Lasts => 3,
        };
        Supply::WORDS[at]
    }

    /// Days until more is needed than is there: 0 if none is free; none if it lasts, or if it is not known.
    pub const fn days(self) -> Option<usize> {
        match self {
            Supply::Out => Some(0),
            Supply::RunsOut { days } => Some(days),
            Supply::Unknown | Supply::Lasts => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::Pipeline;

    #[test]
    fn a_date_needs_a_forecast_and_free_servers() {
        let position = |free, arrives: &[f64]| Position {
            in_use: 10.0,
            free,
            pipeline: Pipeline(arrives.to_vec()),
        };
        let demand: Vec<f64> = (1..=28).map(|day| 10.0 + f64::from(day)).collect();
        let of = |position: &Position, doubts: &[Doubt]| Supply::new(position, &demand, doubts);
        assert_eq!(of(&position(4.0, &[]), &[]), Supply::RunsOut { days: 5 });
        assert_eq!(of(&position(4.0, &[0.0, 3.0]), &[]), Supply::RunsOut { days: 8 });
        assert_eq!(of(&position(28.0, &[]), &[]), Supply::Lasts);
        assert_eq!(of(&position(0.0, &[]), &[]), Supply::Out);
        let short = [Doubt::Constant, Doubt::Short { days: 9 }];
        assert_eq!(of(&position(4.0, &[]), &short), Supply::Unknown);
        assert_eq!(of(&position(0.0, &[]), &short), Supply::Out, "that is no forecast");
        assert_eq!(Supply::new(&position(4.0, &[]), &[], &[]), Supply::Unknown);
        // A place without servers and demand is no place that has run out.
        let nothing = Position { in_use: 0.0, ..position(0.0, &[]) };
        assert_eq!(Supply::new(&nothing, &[0.0; 28], &[]), Supply::Lasts);
        let days = [Supply::Out, Supply::RunsOut { days: 3 }, Supply::Lasts].map(Supply::days);
        assert_eq!(days, [Some(0), Some(3), None]);
    }
}

//! Long-term forecasts: daily series, 1 to [`MAX_HORIZON`] days ahead, as quantiles.
//!
//! Every method answers with [`Bands`]: for each of the next days the quantiles of the level of
//! demand on that day. Eigen (section 4.3.1) forecasts the daily difference; quantiles of
//! differences do not add up to a quantile of their sum, and an order needs the sum.
//!
//! | module | what it does |
//! |---|---|
//! | `daily` | a daily series made fit for forecasts, and what is wrong with it |
//! | `bands` | quantiles by day |
//! | `point` | naive, same weekday, decomposition with drift: one value a day |
//! | `ets` | exponential smoothing with damped trend and weekly season |
//! | `conformal` | intervals of these, from their own past errors |
//! | `regression` | linear quantile regression |
//! | `cluster` | similar series: dynamic time warping and k-means |
//! | `tcn` | temporal convolutional network with Cauchy, Laplace or normal outputs |
//! | `shares` | a whole split by types of which one replaces another |
//! | `score` | error, pinball loss, coverage |
//! | `backtest` | rolling origins: chooses a method by one period, judges it by the next |
//! | `outlook` | the forecast of a series by the method that its past chose |

pub mod backtest;
pub mod bands;
pub mod cluster;
pub mod conformal;
pub mod daily;
pub mod ets;
pub mod outlook;
pub mod point;
pub mod regression;
pub mod score;
pub mod shares;
pub mod tcn;

pub use backtest::{Backtest, Plan, backtest};
pub use bands::{Bands, LEVELS};
pub use daily::{Daily, DailyError, Doubt};
pub use outlook::{Networks, Outlook, outlook};

/// The furthest day that is forecast.
pub const MAX_HORIZON: usize = 90;

/// Days of the season.
pub const WEEK: usize = 7;

/// A method that forecasts quantiles.
pub trait Method {
    /// Its name in reports.
    fn name(&self) -> String;

    /// The quantiles at `levels` of the `horizon` days after `history`. Finite, ordered by level
    /// and at least 0, for any history that [`Daily`] accepts.
    fn forecast(&self, history: &[f64], horizon: usize, levels: &[f64]) -> Bands;
}

/// All methods that need no training: what every series is judged against.
pub fn rivals() -> Vec<Box<dyn Method + Send + Sync>> {
    vec![
        Box::new(conformal::Conformal(point::Naive)),
        Box::new(conformal::Conformal(point::SameWeekday)),
        Box::new(conformal::Conformal(ets::Ets)),
        Box::new(conformal::Conformal(point::Decomposition)),
        Box::new(regression::QuantileRegression),
    ]
}

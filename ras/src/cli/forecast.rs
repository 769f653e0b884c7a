//! Arguments of `ras forecast`.

mod autosize;
mod long;
mod plan;
mod replay;
mod report;
mod series;
mod spares;

pub use autosize::AutosizeForecast;
pub use long::{DailySeries, DemandForecast, Lead, OrdersForecast};
pub use plan::PlanForecast;
pub use replay::{AutosizePolicies, Decisions, OrdersPolicies, ReplayForecast, SparesPolicies};
pub use report::ReportForecast;
pub use series::{RegionHistory, SeriesFile};
pub use spares::SparesForecast;

use super::WarmChance;
use crate::quantity;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// The forecasts of demand.
#[derive(Debug, Subcommand)]
pub enum ForecastCommand {
    /// Say how much warm capacity to hold for the next step of a series of demand
    Warm(WarmForecast),
    /// Forecast daily series of demand for the coming weeks
    Demand(DemandForecast),
    /// Say which hardware to order, to cancel and to decommission
    Orders(OrdersForecast),
    /// Say who is short in the coming weeks if requests grow, an MSB is lost or no order arrives
    Plan(Box<PlanForecast>),
    /// Say which quantile and cooldown suit requests that follow demand, by what each would have done
    Autosize(AutosizeForecast),
    /// Say by how many the use of each hardware type may grow within the next hour, and what waits for it
    Headroom(WarmChance),
    /// Say how many spares each hardware type needs, from its failures
    Spares(SparesForecast),
    /// Write one page with all forecasts of a region, and what to do about them
    Report(Box<ReportForecast>),
    /// Judge policies on the snapshots of an archive: what each would have decided, and how it came out
    Replay(Box<ReplayForecast>),
}

/// `ras forecast warm`
#[derive(Debug, Args)]
#[command(after_help = "\
SERIES is CSV with a header line: a column of times (seconds, dates or RFC 3339) in equal steps, and
one of demand, such as servers in use. Warm capacity is in service and free. It is held so that the
demand of the next step is above it with at most the accepted chance: a forecast of the demand and
a margin that follows the expected error (docs/forecasts.md).

With --compare, thirteen methods choose their parameters in the training time and are judged on the
rest: fixed percentages, AR, moving averages, ARIMA, Holt-Winters, exponential smoothing without and
with margins. With --out, DIR/warm.html is a page with the charts of the comparison.

Gaps and resets of the monitor count as unknown and are listed. Anything else that is wrong with the
file is refused with its line. Without SERIES it is the history of a region, a sample every five
minutes, as its server has it.

Examples:
  ras forecast warm used.csv --time t_s --value used
  ras forecast warm used.csv --value used --by region,type --chance 0.1% --output json
  ras forecast warm used.csv --value used --every 10m --out warm
  ras forecast warm --server https://ras.example --reservation web --every 1h")]
pub struct WarmForecast {
    /// Accepted chance that a step is short
    #[arg(long, value_name = "SHARE", default_value = "0.2%", value_parser = quantity::share)]
    pub chance: f64,
    /// Decide once in this time, for the peak of demand in it [default: the step of the series]
    #[arg(long, value_name = "DURATION", value_parser = quantity::span)]
    pub every: Option<Duration>,
    /// Time at the start that chooses parameters and is not judged; at most half of a series
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = quantity::span)]
    pub train: Duration,
    /// Compare all methods; --out does so too
    #[arg(long)]
    pub compare: bool,
    /// Folder for the page
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The series.
    #[command(flatten)]
    pub of: SeriesFile,
}

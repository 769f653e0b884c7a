//! Arguments of `ras forecast demand` and `ras forecast orders`.

use super::series::SeriesFile;
use crate::quantity;
use clap::Args;
use std::path::PathBuf;

/// A file of daily series, and how they are forecast.
#[derive(Debug, Args)]
pub struct DailySeries {
    /// Train neural networks as well; takes about 10 s for 40 series of 900 days
    #[arg(long)]
    pub networks: bool,
    /// Seed of the networks
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// The series. Last, because its headings hold for all options after it.
    #[command(flatten)]
    pub file: SeriesFile,
}

/// `ras forecast demand`
#[derive(Debug, Args)]
#[command(after_help = "\
SERIES is CSV with a header line: a column of dates and one of demand, such as servers in use at the peak of
the day, one value a day. Each series is forecast by the method with the least loss in a validation
period. A test period after it judges that method: --compare shows it beside all others
(docs/forecasts.md). Without SERIES it is the daily peaks of a region's history, up to yesterday.

Missing days are filled in and listed. Anything else that is wrong with the file is refused with its line.

Examples:
  ras forecast demand used.csv --time date --value max --by region,type
  ras forecast demand used.csv --days 50 --networks --compare
  ras forecast demand used.csv --output json
  ras forecast demand --server https://ras.example --by hardware_type,datacenter")]
pub struct DemandForecast {
    /// Days ahead
    #[arg(long, value_name = "DAYS", default_value_t = 28,
          value_parser = clap::value_parser!(u8).range(1..=90))]
    pub days: u8,
    /// Show all methods on the test period
    #[arg(long)]
    pub compare: bool,
    /// The file, and how it is forecast
    #[command(flatten)]
    pub of: DailySeries,
}

/// `ras forecast orders`
#[derive(Debug, Args)]
#[command(after_help = "\
Says which hardware to order, to cancel and to decommission, so that no day is short until the order
after this one can arrive: the minimum-stock policy. SERIES is daily demand in servers, as for `ras
forecast demand`; name hardware type and datacenter in --by.

STOCK is CSV with the columns series, date and servers. series is a name as `ras forecast demand` shows it,
such as 1/A. Servers whose date has passed at the end of the series are free today; others are orders
that arrive on their date. Leave out what must stay free, such as the shared buffer.

Examples:
  ras forecast orders used.csv --time date --value max --by region,type --stock stock.csv
  ras forecast orders used.csv --stock stock.csv --quantile 90% --period 7 --lead 42
  ras forecast orders --server https://ras.example --by hardware_type,datacenter")]
pub struct OrdersForecast {
    /// CSV of free servers and known orders; of a region's history: the free servers of the region
    /// by default
    #[arg(long, value_name = "STOCK")]
    pub stock: Option<PathBuf>,
    /// Quantile of demand that must be covered
    #[arg(long, value_name = "SHARE", default_value = "70%", value_parser = quantity::share)]
    pub quantile: f64,
    /// Days between two decisions
    #[arg(long, value_name = "DAYS", default_value_t = 7,
          value_parser = clap::value_parser!(u8).range(1..=30))]
    pub period: u8,
    /// Days from an order to its arrival
    #[arg(long, value_name = "DAYS", default_value_t = 21,
          value_parser = clap::value_parser!(u8).range(1..=60))]
    pub lead: u8,
    /// The file, and how it is forecast
    #[command(flatten)]
    pub of: DailySeries,
}

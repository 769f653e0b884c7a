//! Arguments of `ras forecast report`.

use super::long::{DailySeries, Lead, lead};
use crate::quantity;
use clap::Args;
use std::path::PathBuf;

/// `ras forecast report`
#[derive(Debug, Args)]
#[command(after_help = "\
Writes DIR/forecasts.html, one page that loads nothing: a summary in sentences, and a section each for warm capacity, demand, orders,
spares and requests that follow demand, as the other commands compute them. A section that cannot be computed says
why. --output json prints the documents of all sections (ras-forecast-report/1).

SOURCE is CSV of one series, or of several told apart by --by; or the folder or URL of an archive of solves. Without it the history
of a region is asked of its server. Of a file, warm capacity and requests need steps of an hour at most; demand and
orders take the peak of each day. Orders of a file need --stock; of an archive without it, no server is on order.
Spares need failures: those of the region's server or of
the archive, else --failures. Its server does not say what servers are worth: 1 RRU each.

Examples:
  ras forecast report --server https://ras.example --out forecasts
  ras forecast report /srv/archive --out forecasts
  ras forecast report used.csv --by type,dc --stock stock.csv --failures outages.csv --out forecasts")]
pub struct ReportForecast {
    /// Folder for the page
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Failures for spares: a snapshot, an archive, CSV or Parquet as of `ras forecast spares`
    #[arg(long, value_name = "HISTORY")]
    pub failures: Option<PathBuf>,
    /// CSV of free servers and known orders [default of a region's history: the region's servers]
    #[arg(long, value_name = "STOCK")]
    pub stock: Option<PathBuf>,
    /// Days ahead that demand is forecast
    #[arg(long, value_name = "DAYS", default_value_t = 28,
          value_parser = clap::value_parser!(u8).range(1..=90))]
    pub days: u8,
    /// Quantile of demand that orders must cover
    #[arg(long, value_name = "SHARE", default_value = "70%", value_parser = quantity::share)]
    pub quantile: f64,
    /// Days between two decisions on orders
    #[arg(long, value_name = "DAYS", default_value_t = 7,
          value_parser = clap::value_parser!(u8).range(1..=30))]
    pub period: u8,
    /// Days from an order to its arrival, of all types or of one
    #[arg(long, value_name = "DAYS|TYPE=DAYS,...", default_value = "21", value_delimiter = ',',
          value_parser = lead)]
    pub lead: Vec<Lead>,
    /// Accepted share of hours in which a request that follows demand is short
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = quantity::share)]
    pub chance: f64,
    /// Accepted chance that a step of warm capacity is short
    #[arg(long, value_name = "SHARE", default_value = "0.2%", value_parser = quantity::share)]
    pub warm_chance: f64,
    /// Accepted chance that a hardware type is short of spares at an instant
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = quantity::share)]
    pub spares_chance: f64,
    /// The series, and how they are forecast
    #[command(flatten)]
    pub of: DailySeries,
}

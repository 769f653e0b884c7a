//! Arguments of `ras forecast demand` and `ras forecast orders`.

use super::series::SeriesFile;
use crate::quantity;
use clap::Args;
use std::path::PathBuf;

/// A file of daily series, and how they are forecast.
#[derive(Clone, Debug, Args)]
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

/// A lead time, of one hardware type or of all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The type; `None`: all others.
    pub hardware_type: Option<String>,
    /// Days from an order to its arrival.
    pub days: u8,
}

/// Reads `21` or `T4=49`.
pub(super) fn lead(text: &str) -> Result<Lead, String> {
    let (hardware_type, days) = match text.rsplit_once('=') {
        Some((name, days)) => (Some(name.to_owned()), days),
        None => (None, text),
    };
    match days.trim().parse::<u8>() {
        Ok(days @ 1..=60) => Ok(Lead { hardware_type, days }),
        _ => Err(format!("{text:?} is not a number of days from 1 to 60, such as 21 or T4=49")),
    }
}

/// `ras forecast orders`
#[derive(Debug, Args)]
#[command(after_help = "\
Says which hardware to order, to cancel and to decommission, so that no day is short until the order
after this one can arrive: the minimum-stock policy. SERIES is daily demand in servers, as for `ras
forecast demand`; name hardware type and datacenter in --by. Without SERIES it is the daily peaks of the servers
that a region's reservations hold, up to yesterday.

STOCK is CSV with the columns series, date and servers. series is a name as `ras forecast demand` shows it,
such as 1/A. Servers whose date has passed at the end of the series are free today; others are orders
that arrive on their date. Leave out what must stay free, such as the shared buffer.

With --rru, demand is in RRU by reservation, and several types may serve one reservation. --rru is a snapshot,
or CSV or Parquet with the columns series, type and rru: what a server of the type is worth to the series. STOCK
then lists the servers of each type, in use or free: its series is the type. What is ordered leaves least short at the
least cost, and only what cannot wait for a quicker type is ordered today.

With --moves-by, what one place would give back is moved to places that are short of the same type.

Examples:
  ras forecast orders used.csv --time date --value max --by region,type --stock stock.csv
  ras forecast orders used.csv --by dc,type --stock stock.csv --moves-by type --lead 21,T4=49
  ras forecast orders rru.csv --by reservation --rru region --stock types.csv --cost T4=2.5
  ras forecast orders used.csv --stock stock.csv --quantile 90% --period 7 --lead 42
  ras forecast orders --server https://ras.example --moves-by hardware_type
  ras forecast orders --server https://ras.example --rru region")]
pub struct OrdersForecast {
    /// CSV of free servers and known orders [default of a region's history: the region's servers]
    #[arg(long, value_name = "STOCK")]
    pub stock: Option<PathBuf>,
    /// Quantile of demand that must be covered
    #[arg(long, value_name = "SHARE", default_value = "70%", value_parser = quantity::share)]
    pub quantile: f64,
    /// Days between two decisions
    #[arg(long, value_name = "DAYS", default_value_t = 7,
          value_parser = clap::value_parser!(u8).range(1..=30))]
    pub period: u8,
    /// Days from an order to its arrival, of all types or of one
    #[arg(long, value_name = "DAYS|TYPE=DAYS,...", default_value = "21", value_delimiter = ',',
          value_parser = lead)]
    pub lead: Vec<Lead>,
    /// Column of --by that names the hardware type: servers move between series of one type
    #[arg(long, value_name = "COLUMN", conflicts_with = "rru")]
    pub moves_by: Option<String>,
    /// What types are worth to the series, whose demand is in RRU: a snapshot, CSV or Parquet
    #[arg(long, value_name = "SNAPSHOT|FILE")]
    pub rru: Option<PathBuf>,
    /// Cost of a server of types; of others 1
    #[arg(long, value_name = "TYPE=COST,...", value_delimiter = ',', requires = "rru",
          value_parser = quantity::named_number)]
    pub cost: Vec<(String, f64)>,
    /// Most servers of types that can be ordered
    #[arg(long, value_name = "TYPE=SERVERS,...", value_delimiter = ',', requires = "rru",
          value_parser = quantity::named_number)]
    pub limit: Vec<(String, f64)>,
    /// The file, and how it is forecast
    #[command(flatten)]
    pub of: DailySeries,
}

impl Lead {
    /// The lead time of a type, in days: its own, else that of all others.
    pub fn of(all: &[Lead], is_type: impl Fn(&str) -> bool) -> u8 {
        let own = |lead: &&Lead| lead.hardware_type.as_deref().is_some_and(&is_type);
        let other = |lead: &&Lead| lead.hardware_type.is_none();
        let found = all.iter().rev();
        found.clone().find(own).or_else(|| found.clone().find(other)).map_or(21, |lead| lead.days)
    }
}

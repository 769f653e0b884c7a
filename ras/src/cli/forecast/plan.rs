//! Arguments of `ras forecast plan`.

use crate::cli::SolveOptions;
use crate::quantity;
use chrono::NaiveDate;
use clap::Args;
use std::path::PathBuf;

/// `ras forecast plan`
#[derive(Debug, Args)]
#[command(after_help = "\
Builds the region of each coming week and solves it: requests grow evenly to their factor by the last week,
ordered servers arrive, and every week begins with the targets of the week before. Says who is short, from
when, by how much, and of which hardware types more servers would help. Nothing is written to a running region.

Events of today are over by then. With --msb-lost, each week is solved once more for each MSB named, without
it; embedded buffers are used up then, and no further loss is assumed.

ORDERS is CSV with the columns series, date and servers, as for `ras forecast orders`. series is a hardware
type, alone or with the datacenter or MSB it arrives in: T4 or T4/dc2. Servers without an MSB are put where
there are fewest of their type. Rows whose date has passed are in the snapshot and do not count.

With --demand, requests follow a quantile of the demand forecast relative to the last day. A series has the name
of a reservation or an owner; reservations without one grow by the factor.

The deadline is that of all solves together [default: 30 s for each]. Ctrl-C ends with the weeks solved so far. The
exit code is 2 if a reservation is short.

Examples:
  ras forecast plan region --scenario growth=1.3 --weeks 8 --stock orders.csv
  ras forecast plan region --scenario growth=1.3 --stock orders.csv --no-orders --msb-lost all --weeks 2
  ras forecast plan region --growth-of feed=1.5 --msb-lost dc1-msb2 --until 2026-12-31 --out plan
  ras forecast plan region --demand used.csv --time date --by reservation --quantile 90%")]
pub struct PlanForecast {
    /// The snapshot
    pub snapshot: PathBuf,
    /// Weeks ahead
    #[arg(long, value_name = "WEEKS", default_value_t = 4,
          value_parser = clap::value_parser!(u8).range(1..=52))]
    pub weeks: u8,
    /// Until this date, instead of a number of weeks: the last week ends on it or after it
    #[arg(long, value_name = "DATE", conflicts_with = "weeks")]
    pub until: Option<NaiveDate>,
    /// What happens: growth=FACTOR multiplies the requests of all by the last week
    #[arg(long, value_name = "growth=FACTOR", value_parser = growth)]
    pub scenario: Option<f64>,
    /// Factor of the requests of an owner or a reservation by the last week, instead of the one of all
    #[arg(long, value_name = "NAME=FACTOR", value_parser = quantity::named_number)]
    pub growth_of: Vec<(String, f64)>,
    /// Solve each week once more without this MSB, or without each one (all)
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "all")]
    pub msb_lost: Option<String>,
    /// CSV of servers on order
    #[arg(long, value_name = "ORDERS")]
    pub stock: Option<PathBuf>,
    /// No order arrives
    #[arg(long)]
    pub no_orders: bool,
    /// CSV of daily demand that requests follow; at most 12 weeks
    #[arg(long, value_name = "SERIES")]
    pub demand: Option<PathBuf>,
    /// Column of the dates of the demand
    #[arg(long, value_name = "COLUMN", default_value = "time")]
    pub time: String,
    /// Column of the demand
    #[arg(long, value_name = "COLUMN", default_value = "value")]
    pub value: String,
    /// Column of the names of reservations or owners
    #[arg(long, value_name = "COLUMN", default_value = "series")]
    pub by: String,
    /// Quantile of the demand
    #[arg(long, value_name = "SHARE", default_value = "70%", value_parser = quantity::share)]
    pub quantile: f64,
    /// Folder for the page
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How each week is solved
    #[command(flatten)]
    pub options: SolveOptions,
}

fn growth(text: &str) -> Result<f64, String> {
    match quantity::named_number(text)? {
        (name, factor) if name == "growth" => Ok(factor),
        (name, _) => Err(format!("{name:?} is not a scenario; there is growth=FACTOR")),
    }
}

//! Arguments of `ras forecast autosize`.

use super::series::SeriesFile;
use crate::quantity;
use clap::Args;

/// `ras forecast autosize`
#[derive(Debug, Args)]
#[command(after_help = "\
Says which quantile and cooldown to set with `ras request autosize set`. The first quarter of the history, a
week at least, is only learnt from. In the rest each pair of a grid decides every ten minutes as a server does: the
table has the hours whose peak of demand exceeded the request when they began, what was requested above the demand,
and how often the request changed. Near misses count: they say which share of short hours is to be expected.
Recommended is the pair with the least idle capacity whose shares, seen and expected, are accepted. It is checked: the
pair that the first half of the judged time chooses, on the second half.

SERIES is CSV or Parquet, with a step from a minute to an hour. Without SERIES it is the used RRU
of a region's reservations, a sample every five minutes. Two weeks of demand are needed. A request that was too small
hides demand: what is not granted is not used.

Examples:
  ras forecast autosize --server https://ras.example --reservation web --chance 0.5%
  ras forecast autosize used.csv --time t_s --value used --by reservation --output json
  ras forecast autosize --reservation web --min 400 --max 2000 --all")]
pub struct AutosizeForecast {
    /// Accepted share of hours whose peak exceeds the request when they begin
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = quantity::share)]
    pub chance: f64,
    /// The request never falls below it
    #[arg(long, value_name = "RRU", default_value = "0", value_parser = quantity::not_negative)]
    pub min: f64,
    /// The request never rises above it
    #[arg(long, value_name = "RRU", default_value = "1000000000", value_parser = quantity::not_negative)]
    pub max: f64,
    /// Show all pairs, not only those that no other one beats
    #[arg(long)]
    pub all: bool,
    /// The series.
    #[command(flatten)]
    pub of: SeriesFile,
}

//! Arguments of `ras forecast spares`.

use crate::quantity;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `ras forecast spares`
#[derive(Debug, Args)]
#[command(after_help = "\
HISTORY is the folder of a snapshot, the folder or URL of an archive, whose snapshots list failures over a
longer time, or a file, CSV or Parquet, with the columns server, type, from and to. A server that has not
failed has a line without from; without such lines, say how many servers there are with --servers. An empty to
is a failure that lasts. Of a snapshot, the unplanned events of servers and racks count; the loss of an MSB is
covered by embedded buffers, not by spares.

Failures that begin close to each other are one burst, and bursts are independent: the number of servers down
at an instant follows (docs/forecasts.md). Servers that failed long ago, lately and not yet fail at different
rates, as the whole fleet shows. Three rules are compared: the same share of each type, the same
number of spares shared out over types, and the fewest for the accepted chance. Each is decided from the first
half of the history and judged on the second, too.

With --out, DIR/spares.html is a page with charts.

Examples:
  ras forecast spares region --chance 1%
  ras forecast spares outages.csv --servers A=4000,B=1200 --rru A=1,B=1.6 --history 14d
  ras forecast spares outages.parquet --total 200 --out spares --output json")]
pub struct SparesForecast {
    /// Snapshot, archive of a region's solves (folder or URL), or CSV or Parquet of failures
    pub history: PathBuf,
    /// Accepted chance that a hardware type is short at an instant
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = quantity::share)]
    pub chance: f64,
    /// Spares to share out over types [default: as many as --fixed keeps]
    #[arg(long, value_name = "SPARES", value_parser = quantity::count)]
    pub total: Option<u32>,
    /// Share of each type that is kept without a forecast, to compare with
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = quantity::share)]
    pub fixed: f64,
    /// Failures that begin within this time of each other are one burst
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = quantity::span)]
    pub burst: Duration,
    /// A server out for longer is lost: an order replaces it, and its spare is free again
    #[arg(long, value_name = "DURATION", default_value = "3d", value_parser = quantity::span)]
    pub lost_after: Duration,
    /// Length of the history [default: from the first failure on]
    #[arg(long = "history", value_name = "DURATION", value_parser = quantity::span)]
    pub length: Option<Duration>,
    /// Servers of types, of a file that does not list all
    #[arg(long, value_name = "TYPE=SERVERS,...", value_delimiter = ',',
          value_parser = quantity::named_number)]
    pub servers: Vec<(String, f64)>,
    /// RRU of a server of types [default: of a snapshot the mean over its reservations; else 1]
    #[arg(long, value_name = "TYPE=RRU,...", value_delimiter = ',',
          value_parser = quantity::named_number)]
    pub rru: Vec<(String, f64)>,
    /// Folder for the page
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

//! The file of all subcommands of `ras forecast`.

use clap::Args;
use std::path::PathBuf;

/// A file of series.
#[derive(Debug, Args)]
pub struct SeriesFile {
    /// CSV of the series
    pub series: PathBuf,
    /// Column of the times
    #[arg(long, value_name = "COLUMN", default_value = "time")]
    pub time: String,
    /// Column of the demand
    #[arg(long, value_name = "COLUMN", default_value = "value")]
    pub value: String,
    /// Columns that tell series in the file apart
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub by: Vec<String>,
}

//! The series of all subcommands of `ras forecast`: a file, or the history of a region.

use crate::cli::server::ServerOptions;
use clap::Args;
use std::path::PathBuf;

/// A file of series, or without one the history of a region.
#[derive(Clone, Debug, Args)]
pub struct SeriesFile {
    /// CSV of the series, or folder or URL of the archive of a region's solves; without it, the history
    /// of a region is asked of its server
    pub series: Option<PathBuf>,
    /// Column of the times
    #[arg(long, value_name = "COLUMN", default_value = "time")]
    pub time: String,
    /// Column of the demand [default: value]; of a region's history used, used_rru, held, held_rru,
    /// promised_rru, lent, free or in_service [default: used; of `autosize` used_rru, of
    /// orders held, with --rru held_rru]
    #[arg(long, value_name = "COLUMN")]
    pub value: Option<String>,
    /// Columns that tell series in the file apart; of a region's history reservation, owner,
    /// hardware_type, datacenter [default: reservation; of orders without --rru
    /// hardware_type,datacenter]
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub by: Vec<String>,
    /// The history of a region.
    #[command(flatten)]
    pub history: RegionHistory,
}

/// Which part of the history of a region.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "History of a region")]
pub struct RegionHistory {
    /// Only of this reservation
    #[arg(long, value_name = "NAME")]
    pub reservation: Option<String>,
    /// Only of this owner
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Only of this time before now, at most 400 days [default: 30 for `warm`, 42 for
    /// `autosize`, else 400]
    #[arg(long, value_name = "DAYS",
          value_parser = clap::value_parser!(u16).range(1..=400))]
    pub past: Option<u16>,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}
